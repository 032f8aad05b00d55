"""Streams for River's models, and how two of their states are compared."""

from __future__ import annotations

from typing import Any

import numpy as np

import redescend as rd
from redescend.river import RedescendingClassifier, RedescendingFilter, RedescendingRegressor

Record = tuple[dict[Any, float], Any]

FIXED = {"transform": rd.transforms.Learn(a=2.0, b=0.1), "step": rd.steps.Anytime(0.1)}

MODELS: dict[str, Any] = {
    "regressor": RedescendingRegressor,
    "regressor, order 2": lambda: RedescendingRegressor(order=2),
    "regressor, fixed": lambda: RedescendingRegressor(**FIXED),
    "regressor, absolute, no intercept": lambda: RedescendingRegressor("absolute", fit_intercept=False),
    "classifier": RedescendingClassifier,
    "classifier, hinge, order 2": lambda: RedescendingClassifier("hinge", order=2),
    "classifier, fixed": lambda: RedescendingClassifier(**FIXED),
    "filter": RedescendingFilter,
    "filter of labels": lambda: RedescendingFilter(loss="logistic"),
}


def labelled(model: Any) -> bool:
    return "Classifier" in repr(model) or "logistic" in repr(model)


def stream(
    rows: int, seed: int, labels: bool = False, dim: int = 4, bad: float = 0.1, noise: float = 0.1
) -> list[Record]:
    """A linear truth with an intercept of 1; a share of the targets is off by up to 50, or of the labels flipped."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=dim)
    X = rng.normal(size=(rows, dim))
    clean, wrong = X @ theta + 1.0 + noise * rng.normal(size=rows), rng.random(rows) < bad
    y = (clean > 0.0) != wrong if labels else clean + wrong * rng.uniform(-50.0, 50.0, size=rows)
    return [
        ({f"x{j}": value for j, value in enumerate(x)}, target)
        for x, target in zip(X.tolist(), y.tolist(), strict=True)
    ]


def same(left: Any, right: Any) -> bool:
    """Whether two nested states are the same to the last bit."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, np.ndarray):
        return np.array_equal(left, right) and left.dtype == right.dtype
    return type(left) is type(right) and left == right


def answer(model: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """All that a model says of a record."""
    said: list[Any] = [model.score_one(x, y)]
    if not isinstance(model, RedescendingFilter):
        said.append(model.predict_one(x))
    if isinstance(model, RedescendingClassifier):
        said.append(model.predict_proba_one(x))
    return tuple(said)
