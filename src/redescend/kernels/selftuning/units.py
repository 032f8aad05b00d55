"""Units of features and targets: powers of two near their first values, so that no result depends on the caller's.

The first value is the unit until `start` measures more of them.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import part, rare, shared
from redescend.kernels.selftuning.layout import LARGE, UNIT, State
from redescend.numeric import Array, splitmix64

GOLDEN = 0.6180339887498949

LEAST, MOST = 2.0**-400, 2.0**400
"""Units are between these; without a unit, a smaller value is 0."""


FOREIGN = 32.0
"""A value of a constant feature that is this many times as large as all others is wrong, as those beside it may be."""


@part
def power_of_two(a: float) -> float:
    """The largest power of two that is at most |a|, and a unit."""
    return min(max(2.0 ** np.floor(np.log2(abs(a))), LEAST), MOST)


@part
def cut(value: float) -> float:
    """A value in its unit, between -LARGE and LARGE, and 0 if it is tiny."""
    return min(max(value, -LARGE), LARGE) if abs(value) * LARGE > 1.0 else 0.0


@part
def in_unit(value: float, unit: float) -> float:
    """A value in its unit, NaN if it is missing; 0 without a unit."""
    if not unit > 0.0:
        return 0.0
    scaled = value / unit
    return cut(scaled) if scaled == scaled else np.nan


@part
def fits_level(value: float, level: float) -> bool:
    """Whether a constant feature may have this value: its level, or a much larger one, which is wrong."""
    return value == level or abs(value) > FOREIGN * abs(level)


@shared
def to_units(X: Array, row: int, state: State, x: Array) -> int:
    """Write a row in units, NaN where a value is missing, and 1 behind it if there is an intercept.

    Returns how many features that are not 0 have no unit, which are written as 0.
    """
    unit, new = state.feature[UNIT], 0
    for j in range(X.shape[1]):
        value = X[row, j]
        if unit[j] > 0.0:
            x[j] = in_unit(value, unit[j])
        else:
            x[j] = 0.0
            new += abs(value) >= LEAST
    if len(x) > X.shape[1]:
        x[X.shape[1]] = 1.0
    return new


@rare
def take_units(X: Array, row: int, state: State) -> None:
    """Give units to features that have their first value."""
    unit = state.feature[UNIT]
    for j in range(X.shape[1]):
        value = X[row, j]
        if unit[j] == 0.0 and abs(value) >= LEAST:
            unit[j] = power_of_two(value)


@part
def is_finite(X: Array, row: int, y: float, missing: int) -> bool:
    """Whether all values are finite, or missing where that is allowed."""
    total = 0.0 * y
    if missing:
        for j in range(X.shape[1]):
            total += 0.0 * X[row, j] if X[row, j] == X[row, j] else 0.0
    else:
        for j in range(X.shape[1]):
            total += 0.0 * X[row, j]
    return total == 0.0


@rare
def value_at(first: int, last: int, values: Array, count: int) -> float:
    """Of the first values, the first one with a rank, from 0, between these two."""
    for i in range(count):
        below = upto = 0
        for j in range(count):
            below += values[j] < values[i]
            upto += values[j] <= values[i]
        if below <= last and first < upto:
            return values[i]
    return values[0]


@part
def first_median(values: Array, count: int) -> float:
    """The first one of the first values that is a median, whatever their signs and where 0 is."""
    return value_at((count - 1) // 2, count // 2, values, count)


@part
def upper_median(values: Array, count: int) -> float:
    """The upper median of the first values: of two, the larger one. Too small a scale makes predictions wild."""
    return value_at(count // 2, count // 2, values, count)


@part
def least_median(values: Array, count: int) -> float:
    """Of all medians of the first values, the number nearest to 0."""
    lower = (count - 1) // 2
    return min(max(0.0, value_at(lower, lower, values, count)), upper_median(values, count))


@rare
def write_codes(code: Array) -> None:
    """Factors of the checksum, one for each feature."""
    for j in range(len(code)):
        code[j] = code_of(j)


@part
def code_of(j: int) -> float:
    """A number in [1, 2) that looks random. A regular sequence would do for one column of labels, but not for two."""
    return 1.0 + np.float64(splitmix64(j + 1) >> np.uint64(11)) * 2.0**-53


@part
def checksum(x: Array, code: Array) -> float:
    """A number that two records share only if they are equal, or nearly so."""
    total = 0.0
    for j in range(len(x)):
        total += code[j] * (x[j] if x[j] == x[j] else GOLDEN)
    return total
