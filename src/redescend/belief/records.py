"""The records that a belief judges: checked, their residuals, and residuals in units of those around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.errors import DataError
from redescend.kernels.belief.layout import Records
from redescend.numeric import Array

MOST_APART = 100.0
"""By how much the logarithms of sizes around two records differ at most."""


def read_records(predictions: Any, targets: Any, X: Any, keys: Any, dim: int) -> Records:
    """Check the arguments of a belief with `dim` features, and return them as arrays."""
    arrays = []
    for name, values in {"predictions": predictions, "targets": targets}.items():
        array = np.ascontiguousarray(values, np.float64)
        if array.ndim != 1 or not np.isfinite(array).all():
            raise DataError(f"{name} must be finite numbers, one for each record.")
        arrays.append(array)
    rows = len(arrays[1])
    if len(arrays[0]) != rows:
        raise DataError(f"predictions and targets must be equally many. Got {len(arrays[0])} and {rows}.")
    table = np.ascontiguousarray(np.empty((rows, 0)) if X is None else X, np.float64)
    if table.shape != (rows, dim):
        raise DataError(f"X must have shape ({rows}, {dim}). Got {table.shape} instead.")
    places = np.zeros(rows, np.int64) if keys is None else np.ascontiguousarray(keys, np.int64)
    if places.shape != (rows,) or places.min(initial=0) < 0:
        raise DataError(f"keys must be {rows} whole numbers from 0.")
    return Records(table, arrays[0], arrays[1], places)


def read_sizes(sizes: Any, rows: int) -> Array | None:
    """Check the sizes of residuals around records, if there are any."""
    if sizes is None:
        return None
    array = np.ascontiguousarray(sizes, np.float64)
    if array.shape != (rows,) or not np.isfinite(array).all():
        raise DataError(f"sizes must be {rows} finite numbers, one for each record.")
    return array


def find_residuals(records: Records) -> Array:
    """Targets without predictions; finite, even if the difference is not."""
    largest = np.finfo(float).max
    with np.errstate(over="ignore"):
        return np.clip(records.targets - records.predictions, -largest, largest)


def stretch(records: Records, factors: Array) -> Records:
    """The records with other targets, so that their residuals are multiplied by these factors."""
    with np.errstate(over="ignore", invalid="ignore"):
        targets = records.predictions + factors * (records.targets - records.predictions)
    return records._replace(targets=np.nan_to_num(targets))
