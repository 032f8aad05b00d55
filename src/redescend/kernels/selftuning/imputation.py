"""Imputation of missing values in self-tuning models: the mean of the feature.

Where a record is learned from or judged, `impute_row` does it; for predictions of tables, `impute_values` gives the
same numbers in the units of the caller.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import part
from redescend.kernels.selftuning.layout import COUNT, FULL, MEAN, SEEN, UNIT, Covariance, State
from redescend.numeric import Array


@part
def impute_row(covariance: Covariance, x: Array, state: State) -> None:
    """Replace missing values of a record in units. At order 1, the mean is that of values that are not 0."""
    feature, seen, full = state.feature, max(state.scalar[SEEN], 1.0), covariance.order == FULL
    for j in range(len(x)):
        if x[j] != x[j]:
            x[j] = feature[MEAN, j] * (1.0 if full else min(1.0, feature[COUNT, j] / seen))


def impute_values(order: int, feature: Array, scalar: Array) -> Array:
    """The value that replaces a missing one, for each feature."""
    share = 1.0 if order == FULL else np.minimum(1.0, feature[COUNT] / max(scalar[SEEN], 1.0))
    with np.errstate(over="ignore"):
        return np.nan_to_num(feature[MEAN] * share * feature[UNIT])
