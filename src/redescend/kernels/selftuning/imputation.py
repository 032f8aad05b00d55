"""Imputation of missing values in self-tuning models: the mean of the feature, times the share of records that have it.

Where a record is learned from or judged, `impute_row` does it; for predictions of tables, `impute_values` gives the
same numbers in the units of the caller.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import part
from redescend.kernels.selftuning.layout import COUNT, MEAN, SEEN, UNIT, State
from redescend.numeric import Array


@part
def impute_row(x: Array, state: State) -> None:
    """Replace missing values of a record in units."""
    feature, seen = state.feature, max(state.scalar[SEEN], 1.0)
    for j in range(len(x)):
        if x[j] != x[j]:
            x[j] = feature[MEAN, j] * min(1.0, feature[COUNT, j] / seen)


def impute_values(feature: Array, scalar: Array) -> Array:
    """The value that replaces a missing one, for each feature."""
    share = np.minimum(1.0, feature[COUNT] / max(scalar[SEEN], 1.0))
    with np.errstate(over="ignore"):
        return np.nan_to_num(feature[MEAN] * share * feature[UNIT])
