"""Our models against River's linear regression, on the same dicts one by one and on the same frames in blocks."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import partial
from typing import Any

import redescend as rd
from benchmarks.report import Goal, Row, compare
from benchmarks.subjects import rate
from benchmarks.timing import Effort, Task, best_of

DIM, BLOCK = 20, 100
LEARN_ONE = {"a transform": Goal(2, "speedup"), "self-tuning": Goal(1, "speedup")}
LEARN_MANY = {"a transform": Goal(10, "speedup"), "self-tuning": Goal(10, "speedup")}


def river_rows(effort: Effort) -> Iterator[Row]:
    """Time of `learn_one` on prepared dicts and of `learn_many` on blocks of 100."""
    if any(importlib.util.find_spec(package) is None for package in ("river", "pandas")):
        yield Row("River's records", "not measured", "pip install river pandas", None)
        return
    records, blocks, count = _records(effort)
    for call, goals, task in (("learn_one", LEARN_ONE, _one), ("learn_many", LEARN_MANY, _many)):
        fed: Any = records if task is _one else blocks
        tasks: dict[str, Task] = {name: partial(task, model, fed) for name, model in _models().items()}
        times = {name: time / count for name, time in best_of(tasks, max(3, effort.repetitions // 2)).items()}
        against = f"River's LinearRegression.{call}"
        for name, goal in goals.items():
            what = f"{call}, {name}, d = {DIM}"
            yield compare(what, times[name], against, times["River"], goal, per="row")


def _records(effort: Effort) -> tuple[list[Any], list[Any], int]:
    """The same rows as pairs of a dict and a target, and as pairs of a frame and a series."""
    import pandas as pd

    count = BLOCK * max(1, 2 * effort.calls // BLOCK)
    stream = rd.streams.ridge(count, seed=0, dim=DIM)
    names = [f"x{j}" for j in range(DIM)]
    records = [(dict(zip(names, x, strict=True)), y) for x, y in zip(stream.X.tolist(), stream.y.tolist(), strict=True)]
    X, y = pd.DataFrame(stream.X, columns=names), pd.Series(stream.y)
    return records, [(X[at : at + BLOCK], y[at : at + BLOCK]) for at in range(0, count, BLOCK)], count


def _models() -> dict[str, Any]:
    """Models that every call continues, as in a long stream."""
    from river import linear_model

    from redescend.river import RedescendingRegressor

    step = rd.steps.Constant(rate(DIM))
    return {
        "River": linear_model.LinearRegression(),
        "a transform": RedescendingRegressor(transform=rd.transforms.Huber(1.0), step=step),
        "self-tuning": RedescendingRegressor(),
    }


def _one(model: Any, records: list[Any]) -> None:
    learn_one = model.learn_one
    for x, y in records:
        learn_one(x, y)


def _many(model: Any, blocks: list[Any]) -> None:
    for X, y in blocks:
        model.learn_many(X, y)
