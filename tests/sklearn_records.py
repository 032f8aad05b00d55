"""Records with outliers, for the tests of the estimators, and the estimators that they are run on."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

import redescend as rd
from redescend.sklearn import RedescendingRegressor

HUBER = rd.transforms.Huber(1.0)
REGRESSORS = [
    RedescendingRegressor(features="linear"),
    RedescendingRegressor(order=2, alpha=1e-3),
    RedescendingRegressor(transform=HUBER, alpha=1e-3),
    RedescendingRegressor("absolute", transform=HUBER, standardize="scale", average=True),
    RedescendingRegressor("pinball", standardize=False, fit_intercept=False, average=50),
]


def regression(rows: int = 300, seed: int = 0, outliers: float = 0.2) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 4)) * [1.0, 100.0, 0.01, 1.0] + [0.0, 500.0, 0.0, 1.0]
    y = X @ [1.0, 0.02, 100.0, 0.0] + 3.0 + 0.1 * random.normal(size=rows)
    clean = random.random(rows) >= outliers
    y[~clean] = 1e4
    return X, y, clean


def labels(rows: int = 600, seed: int = 0, flipped: float = 0.2) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 3))
    right = np.where(X @ [1.0, -2.0, 0.5] > 0.3, "up", "down")
    wrong = random.random(rows) < flipped
    return X, np.where(wrong, np.where(right == "up", "down", "up"), right), right


def nonzeros(rows: int = 400, dim: int = 30, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    X = sparse.random(rows, dim, 0.2, "csr", None, random)  # the name of the last depends on the version of SciPy
    X.data = random.normal(size=X.nnz) * 10.0 ** random.integers(-2, 3, dim)[X.indices]
    y = X @ random.normal(size=dim) + 0.1 * random.normal(size=rows) + 2.0
    y[::7] = 1e3
    return X, y


def same(one: Any, other: Any) -> None:
    for name in ("coef_", "intercept_", "t_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
