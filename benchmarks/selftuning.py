"""The self-tuning learner: a round of each order, against plain LEARN, and how it grows with the number of features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import redescend as rd
from benchmarks.report import Goal, Row, compare
from benchmarks.scaling import growth
from benchmarks.subjects import DIM, L2, playing
from benchmarks.timing import Effort, Task, best_of

GOALS: dict[Literal[1, 2], float] = {1: 3e-6, 2: 6e-6}
WIDTHS = (100, 200, 400)
ROWS = 10_000


def selftuning_rows(effort: Effort) -> Iterator[Row]:
    """Ridge with a quarter of the rounds corrupted; the learner continues from its current state, as in a long game."""
    rows = min(ROWS, effort.rows_of(DIM))
    times: dict[tuple[int, int], float] = {}
    for dim in WIDTHS:
        clean = rd.streams.ridge(rows, seed=0, dim=dim)
        stream = rd.adversaries.UniformResponse(0, 1).corrupt(clean, k=rows // 4, seed=1)
        tasks: dict[str, Task] = {"LEARN": playing(stream)}
        for order in GOALS:
            tasks[f"{order}"] = _playing(stream, order)
        found = best_of(tasks, min(5, effort.repetitions))
        times |= {(order, dim): found[f"{order}"] / rows for order in GOALS}
        if dim == DIM:
            for order, goal in GOALS.items():
                what, time = f"self-tuning, order {order}, d = {dim}", found[f"{order}"] / rows
                yield compare(what, time, "play LEARN", found["LEARN"] / rows, Goal(goal, "seconds"), per="row")
    for order in GOALS:
        yield growth(f"self-tuning, order {order}, against d", {dim: times[order, dim] for dim in WIDTHS}, order)


def _playing(stream: rd.Stream, order: Literal[1, 2]) -> Task:
    learner = rd.SelfTuning(stream.dim, loss=rd.losses.Squared(l2=L2), order=order)
    return lambda: rd.play(learner, stream)
