"""A game against one read of its records, single against double precision, and gates against none."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import redescend as rd
from benchmarks.limits import empty_call, read_once
from benchmarks.report import Goal, Row, compare
from benchmarks.subjects import DIM, learn, playing, settings, stream_of
from benchmarks.timing import Effort, Task, best_of
from redescend.numeric import Array


def precision_rows(effort: Effort) -> Iterator[Row]:
    """LEARN in both precisions."""
    rows = effort.rows_of(DIM)
    double, single = stream_of(rows, DIM), stream_of(rows, DIM, np.float32)
    tasks: dict[str, Task] = {
        "read": lambda: read_once(double.X),
        "play": playing(double),
        "read single": lambda: read_once(single.X),
        "play single": playing(single),
    }
    times = {name: time / rows for name, time in best_of(tasks, effort.repetitions).items()}
    yield compare(f"play, float64, d = {DIM}", times["play"], "one read of X", times["read"], Goal(1.5), per="row")
    yield compare("play, float32", times["play single"], "play, float64", times["play"], Goal(0.7), per="row")
    yield compare("play, float32", times["play single"], "one read of X in float32", times["read single"], per="row")


def gate_rows(effort: Effort) -> Iterator[Row]:
    """Gates with memory, on a stream with a quarter of the rounds corrupted, against plain descent."""
    rows = effort.rows_of(DIM)
    k = rows // 4
    stream = rd.adversaries.UniformResponse(0, 1).corrupt(rd.streams.ridge(rows, seed=0, dim=DIM), k=k, seed=1)
    common = settings(DIM)
    tasks: dict[str, Task] = {
        "OGD": lambda: rd.play(rd.OGD(DIM, **common), stream),
        "TopK": lambda: rd.play(rd.TopK(DIM, k=k, **common), stream),
        "ClippedOGD": lambda: rd.play(rd.ClippedOGD(DIM, **common), stream),
    }
    times = {name: time / rows for name, time in best_of(tasks, effort.repetitions).items()}
    yield compare(f"play TopK, k = {k:,}", times["TopK"], "play OGD", times["OGD"], Goal(2.0), per="row")
    yield compare("play ClippedOGD", times["ClippedOGD"], "play OGD", times["OGD"], per="row")


def update_rows(effort: Effort) -> Iterator[Row]:
    """One record at a time from Python, against a call that does nothing; records in the cache and in memory."""
    limit, goal = "an empty compiled call, four arrays", Goal(1.5e-6, "seconds")
    blanks = np.zeros((2, DIM)), np.zeros(DIM), np.zeros(1)
    for count, place in ((effort.calls, "in the cache"), (20 * effort.calls, "in memory")):
        stream = stream_of(count, DIM)
        records = list(zip(list(stream.X), stream.y.tolist(), strict=True))
        tasks = {"update": partial(_updates, learn(DIM), records), "empty": partial(_empty_calls, records, *blanks)}
        times = {name: time / count for name, time in best_of(tasks, effort.repetitions).items()}
        yield compare(f"update, d = {DIM}, records {place}", times["update"], limit, times["empty"], goal, per="call")


def _updates(learner: rd.Learner, records: list[tuple[Array, float]]) -> None:
    update = learner.update
    for x, y in records:
        update(x, y)


def _empty_calls(records: list[tuple[Array, float]], first: Array, second: Array, third: Array) -> None:
    for x, y in records:
        empty_call(x, y, first, second, third)
