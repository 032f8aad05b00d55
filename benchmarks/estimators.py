"""Our estimators against scikit-learn's: a whole table at once, and row by row."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import redescend as rd
from benchmarks.report import Goal, Row, compare
from benchmarks.subjects import DIM, rate
from benchmarks.timing import Effort, Task, best_of

ROWS = 20_000


def estimator_rows(effort: Effort) -> Iterator[Row]:
    """Time of `partial_fit`, including its checks, with a fixed transform and with the self-tuning default."""
    if any(importlib.util.find_spec(package) is None for package in ("sklearn", "river")):
        yield Row("partial_fit", "not measured", "pip install scikit-learn river", None)
        return
    stream = rd.streams.ridge(min(ROWS, effort.rows_of(DIM)), seed=0, dim=DIM)
    few = min(2 * effort.calls, len(stream))
    tasks, counts = _tasks(stream, few)
    times = {name: time / counts[name] for name, time in best_of(tasks, max(3, effort.repetitions // 3)).items()}
    for ours, theirs, goal in (
        ("a transform", "SGDRegressor, the same table", 3),
        ("a transform, standardize=False", "SGDRegressor, the same table", 3),
        ("a transform", "River learn_one", 50),
        ("self-tuning", "River learn_one", 5),
        ("self-tuning", "SGDRegressor, row by row", 50),
        ("self-tuning, row by row", "SGDRegressor, row by row", 50),
    ):
        limit = Goal(goal, "speedup")
        yield compare(f"partial_fit, {ours}", times[ours], theirs, times[theirs], limit, per="row")


def _tasks(stream: rd.Stream, few: int) -> tuple[dict[str, Task], dict[str, int]]:
    """Every call continues the same model; row by row, a few rows are enough."""
    from river import linear_model, optim
    from sklearn.linear_model import SGDRegressor

    from redescend.sklearn import RedescendingRegressor

    X, y, huber = stream.X, stream.y, rd.transforms.Huber(1.0)
    single = [(X[row : row + 1], y[row : row + 1]) for row in range(few)]
    dicts = [(dict(enumerate(x)), target) for x, target in zip(X[:few].tolist(), y[:few].tolist(), strict=True)]
    theirs = {"eta0": rate(DIM), "learning_rate": "constant", "shuffle": False}
    river = linear_model.LinearRegression(optimizer=optim.SGD(rate(DIM)))

    def whole(model: Any) -> Task:
        return lambda: model.partial_fit(X, y)

    def row_by_row(model: Any) -> Task:
        return lambda: [model.partial_fit(*row) for row in single]

    tasks: dict[str, Task] = {
        "a transform": whole(RedescendingRegressor(transform=huber)),
        "a transform, standardize=False": whole(RedescendingRegressor(transform=huber, standardize=False)),
        "self-tuning": whole(RedescendingRegressor(features="linear")),
        "self-tuning, row by row": row_by_row(RedescendingRegressor(features="linear")),
        "SGDRegressor, the same table": whole(SGDRegressor(loss="huber", **theirs)),
        "SGDRegressor, row by row": row_by_row(SGDRegressor(loss="huber", **theirs)),
        "River learn_one": lambda: [river.learn_one(*record) for record in dicts],
    }
    return tasks, {name: few if "row by row" in name or "River" in name else len(stream) for name in tasks}
