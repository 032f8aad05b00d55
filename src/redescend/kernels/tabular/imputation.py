"""Imputation: a missing value, NaN, is replaced by the running median of its feature."""

from __future__ import annotations

from redescend.kernels.compiler import part


@part
def impute(value: float, median: float) -> float:
    """The value, or the median if it is missing. A standardized feature has the median 0."""
    return value if value == value else median
