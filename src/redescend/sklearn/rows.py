"""Rows of a table in the form that an engine takes, and predictions in the precision of an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from redescend.errors import DataError
from redescend.kernels.selftuning.layout import HEAVIEST
from redescend.numeric import Array


def check_sample_weight(sample_weight: Any, rows: int) -> Array:
    """The weight of each row, at most the largest that the learner distinguishes."""
    if sample_weight is None:
        return np.ones(rows)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"sample_weight must be numbers. Got {sample_weight!r} instead.") from None
    if weights.shape not in ((), (rows,)):
        raise DataError(f"sample_weight must be a number or have shape ({rows},). Got shape {weights.shape} instead.")
    if not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise DataError("sample_weight must be finite and >= 0.")
    return np.minimum(np.broadcast_to(weights, (rows,)), HEAVIEST)


def to_engine_input(X: Any) -> Any:
    """Validated features as an engine takes them."""
    if isinstance(X, np.ndarray):
        return np.require(X, np.float64, ["C", "A", "W"])
    X = X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def min_over_outputs(weights: Array) -> Array:
    """The smallest weight of each row over all outputs."""
    return weights[0] if len(weights) == 1 else weights.min(axis=0)


def cast_clipped(dtype: np.dtype[Any], values: Array) -> Array:
    """Values in this precision, clipped to its range."""
    limit = np.finfo(dtype).max
    return np.clip(values, -limit, limit).astype(dtype)


def predict_linear(X: Any, coefficients: Array, intercepts: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        out = safe_sparse_dot(X, coefficients.T, dense_output=True) + intercepts
    return np.nan_to_num(out, nan=0.0)
