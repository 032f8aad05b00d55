"""How the cost of a game grows with its length and its width; linear is a slope of 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks.limits import read_once
from benchmarks.report import Goal, Row, compare
from benchmarks.subjects import playing, stream_of
from benchmarks.timing import Effort, Task, best_of
from redescend import Stream

# Within a tenth of the best loop that was tried at each width, as a multiple of the read; 100 has rows of its own.
WIDTHS = {2: Goal(39.6), 20: Goal(4.6), 100: None, 1_000: Goal(1.47), 10_000: Goal(1.5)}
LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
LENGTH_DIM = 20
# A short game is repeated, at most 10,000 rows in all, because the long games in between empty the cache.
TOGETHER = 10_000


def width_rows(effort: Effort) -> Iterator[Row]:
    """The read and the game at every width, and how the cost of a row grows with the width."""
    cost: dict[int, float] = {}
    for dim, goal in WIDTHS.items():
        rows = effort.rows_of(dim)
        stream = stream_of(rows, dim)
        tasks: dict[str, Task] = {"read": lambda X=stream.X: read_once(X), "play": playing(stream)}  # type: ignore[misc]
        times = best_of(tasks, effort.repetitions)
        cost[dim] = times["play"] / rows
        if goal is not None:
            what = f"play, d = {dim:,}, T = {rows:,}"
            yield compare(what, cost[dim], "one read of X", times["read"] / rows, goal, per="row")
    yield growth("time a row against d", cost)
    yield growth("time a row against d", {dim: time for dim, time in cost.items() if dim >= 100})


def length_rows(effort: Effort) -> Iterator[Row]:
    """The game at every length, and how its cost grows."""
    lengths = [rows for rows in LENGTHS if rows <= effort.rows]
    whole = stream_of(max(lengths), LENGTH_DIM)
    games = {rows: max(1, TOGETHER // rows) for rows in lengths}
    tasks = {str(rows): repeated(playing(Stream(whole.X[:rows], whole.y[:rows])), games[rows]) for rows in lengths}
    times = best_of(tasks, effort.repetitions)
    cost = {rows: times[str(rows)] / games[rows] for rows in lengths}
    yield growth(f"time of a game against T, d = {LENGTH_DIM}", cost)


def repeated(task: Task, times: int) -> Task:
    """A task that is done several times over."""

    def together() -> None:
        for _ in range(times):
            task()

    return together


def growth(what: str, times: Mapping[int, float], power: int = 1) -> Row:
    """The slope of log time over log size, against the power that is due; below it where a fixed cost shows.

    Examples
    --------
    >>> growth("time against size", {10: 1.0, 100: 10.0}).ratio
    1.0
    """
    sizes = sorted(times)
    slope = float(np.polyfit(np.log10(sizes), np.log10([times[size] for size in sizes]), 1)[0])
    span = f"from {sizes[0]:,} to {sizes[-1]:,}"
    goal, due = Goal(power + 0.1, "slope"), {1: "linear growth, slope 1", 2: "quadratic growth, slope 2"}[power]
    return Row(what, span, due, round(slope, 12), str(goal), goal.verdict(slope))
