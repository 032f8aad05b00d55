"""Sparse rows: the cost of a row as the number of features grows, and compared with scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import SGDRegressor

import redescend as rd
from benchmarks.report import Goal, Row, compare
from benchmarks.timing import Effort, Task, best_of
from redescend.sklearn import RedescendingRegressor

WIDTHS = (1_000, 10_000, 100_000)
NONZEROS, ROWS, L2 = 50, 2_000, 1e-4


def sparse_rows(effort: Effort) -> Iterator[Row]:
    """The same number of non-zeros at every width; features are as rare as words."""
    models = {
        "fixed transform": RedescendingRegressor(transform=rd.transforms.Huber(1.0), alpha=L2, standardize=False),
        "self-tuning": RedescendingRegressor(alpha=L2, standardize=False),
        "self-tuning, standardized": RedescendingRegressor(alpha=L2),
        "SGDRegressor": SGDRegressor(alpha=L2),
    }
    rows = min(ROWS, effort.rows)
    found = {dim: _times(models, *_words(rows, dim), min(5, effort.repetitions)) for dim in WIDTHS}
    for name in list(models)[:-1]:
        for dim in WIDTHS[1:]:
            what, narrow = f"{name}, {NONZEROS} non-zeros of {dim:,}", found[WIDTHS[0]][name] / rows
            yield compare(what, found[dim][name] / rows, f"of {WIDTHS[0]:,}", narrow, per="row")
    widest, theirs = found[WIDTHS[-1]], "SGDRegressor.partial_fit"
    what, goal = f"fixed transform, {NONZEROS} non-zeros of {WIDTHS[-1]:,}", Goal(1, "speedup")
    yield compare(what, widest["fixed transform"] / rows, theirs, widest["SGDRegressor"] / rows, goal, per="row")


def _words(rows: int, dim: int) -> tuple[Any, Any]:
    """Rows in which feature j occurs with a probability proportional to 1/j."""
    random = np.random.default_rng(0)
    places = np.minimum((dim ** random.random((rows, NONZEROS))).astype(np.int32), dim - 1)
    starts = np.arange(0, rows * NONZEROS + 1, NONZEROS, dtype=np.int32)
    X = sparse.csr_array((random.normal(size=places.size), places.ravel(), starts), shape=(rows, dim))
    X.sum_duplicates()
    return X, X @ random.normal(size=dim) / np.sqrt(NONZEROS) + 0.1 * random.normal(size=rows)


def _times(models: dict[str, Any], X: Any, y: Any, repetitions: int) -> dict[str, float]:
    """New models. Every call continues from their current state, as in a long stream."""

    def learning(model: Any) -> Task:
        return lambda: model.partial_fit(X, y)

    return best_of({name: learning(clone(model)) for name, model in models.items()}, repetitions)
