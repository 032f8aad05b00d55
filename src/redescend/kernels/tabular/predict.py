"""Predictions of a table, each of which is the same bits whatever rows are around it."""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import compiled, summing
from redescend.numeric import LARGEST, Array


@summing
def along(X: Array, row: int, coefficients: Array, k: int, stand_ins: Array) -> float:
    total = 0.0
    for j in range(X.shape[1]):
        x = X[row, j]
        total += coefficients[k, j] * (x if x == x else stand_ins[j])
    return total


@compiled
def predict(X: Array, coefficients: Array, intercepts: Array, stand_ins: Array) -> Array:
    """What every output predicts of every row, with a number to stand in for NaN in each feature; finite."""
    out = np.empty((len(coefficients), len(X)))
    for k in range(len(coefficients)):
        for row in range(len(X)):
            p = along(X, row, coefficients, k, stand_ins) + intercepts[k]
            out[k, row] = min(max(p, -LARGEST), LARGEST) if p == p else 0.0
    return out
