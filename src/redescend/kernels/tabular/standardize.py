"""Running standardization: the median and scale of every feature, read off a small uniform sample of the rows so far.

Whenever a scale changes, the models are rewritten in the new one and predict as before: scales say how features compare
with one another, and no more. They change ever more seldom.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import compiled, inlined, part, seldom, summing, uncounted
from redescend.numeric import Array, splitmix64

UNSCALED, SCALED, CENTRED, WITH_MISSING = range(4)
"""Methods: none; division by the median size of what is not 0; median and quartiles; or median and quartiles, and NaN
is a missing value: the median takes its place, which is 0 once standardized."""

COUNT, WAKE, NEXT, DUE, CENTRE, INVERSE = range(6)
"""Running statistics of a feature, the rows of an array: values so far; the value at which there is next something to
do, one to sample, a new scale to compute; the median; and one over the scale, 0 while it is not known."""

STATISTICS = 6
NEVER = 1e300

SAMPLE = 32
NORMAL_QUARTILES = 1.3489795003921634
"""Distance between the quartiles of a normal variable, in standard deviations."""

RANGES = ((0.25, 1.0), (0.1, 1.9), (0.0, 3.0))
"""Where the quartiles coincide, wider ranges take their place: a quantile, and how much wider a normal variable is."""

SMALLEST, LARGEST = 1e-100, 1e100

READY, READY_SCALED = 5, 3
"""Values before a feature is used: two may be nearly the same by chance."""

FEW, NARROWEST, SMALLEST_SIZE = 16, 6.0, 4.0
"""Up to this many values, a scale is at least such a part of their range, or of the largest size."""


def new_statistics(features: int, due: int = 1) -> Array:
    """The statistics before the first value; scales are first computed at value `due`."""
    statistics = np.zeros((STATISTICS, features))
    statistics[[WAKE, NEXT]], statistics[DUE] = 1.0, due
    return statistics


@inlined
def pseudo_uniform(n: int) -> float:
    """A number in [0, 1) that looks random and depends on n alone."""
    return np.float64(splitmix64(n) >> np.uint64(11)) * 2.0**-53


@seldom
def plan_sampling(stats: Array, j: int) -> tuple[int, bool]:
    """What to do with the value just counted: its slot in the sample or −1, and whether a new scale is due."""
    count = int(stats[COUNT, j])
    slot, due = -1, count >= stats[DUE, j]
    if count >= stats[NEXT, j]:
        if count < SAMPLE:
            slot, stats[NEXT, j] = count - 1, count + 1.0
        else:
            slot = int(pseudo_uniform(count) * SAMPLE) if count > SAMPLE else SAMPLE - 1
            # After n, the next value of a uniform sample is m or later with probability (n/m)^SAMPLE.
            stats[NEXT, j] = np.floor(count * pseudo_uniform(-count) ** (-1.0 / SAMPLE)) + 1.0
    if due:
        stats[DUE, j] = count + max(1.0, count // 2.0 if count < SAMPLE else count)
    stats[WAKE, j] = min(stats[NEXT, j], stats[DUE, j])
    return slot, due


@inlined
def quantile_of_sorted(ordered: Array, share: float) -> float:
    place = share * (len(ordered) - 1.0)
    below = int(place)
    part = place - below
    above = min(below + 1, len(ordered) - 1)
    return (1.0 - part) * ordered[below] + part * ordered[above]


@seldom
def median_and_scale(values: Array) -> tuple[float, float]:
    """The median, and the scale of a normal variable with the same quartiles; 0 where all values are equal."""
    ordered = np.empty(len(values))
    for i in range(len(values)):
        at = i
        while at > 0 and ordered[at - 1] > values[i]:
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = values[i]
    middle = quantile_of_sorted(ordered, 0.5)
    for share, width in RANGES:
        scale = quantile_of_sorted(ordered, 1.0 - share) - quantile_of_sorted(ordered, share)
        if scale > 0.0:
            return middle, min(scale, LARGEST) / (NORMAL_QUARTILES * width)
    return middle, 0.0


@inlined
def range_of(values: Array) -> tuple[float, float]:
    """The smallest and the largest value. Numba needs half a second to compile those of NumPy."""
    low = high = values[0]
    for i in range(1, len(values)):
        low, high = min(low, values[i]), max(high, values[i])
    return low, high


@seldom
def update_scale(sample: Array, stats: Array, j: int, total: int, method: int) -> tuple[float, float]:
    """Rescale a feature; returns the factor of its coefficient, and how often that is added to the intercept."""
    count = min(total, SAMPLE)
    values = sample[j, :count]
    middle, scale = median_and_scale(values)
    low, high = range_of(values)
    if method == SCALED:
        middle, scale = 0.0, max(middle, high / SMALLEST_SIZE if count < FEW else 0.0)
    elif count < FEW:
        scale = max(scale, (high - low) / NARROWEST)
    inverse = 1.0 / scale if SMALLEST <= scale <= LARGEST else 1.0
    if count < (READY_SCALED if method == SCALED else READY):
        inverse = 0.0
    old = stats[INVERSE, j]
    ratio = old / inverse if inverse > 0.0 else 1.0
    shift = min(max((middle - stats[CENTRE, j]) * old, -LARGEST), LARGEST)
    stats[CENTRE, j], stats[INVERSE, j] = middle, inverse
    return ratio, shift


@inlined
def observe(sample: Array, stats: Array, j: int, value: float) -> bool:
    """Count a value of a feature and perhaps sample it; returns whether a new scale is due."""
    stats[COUNT, j] += 1.0
    if stats[COUNT, j] < stats[WAKE, j]:
        return False
    slot, due = plan_sampling(stats, j)
    if slot >= 0:
        sample[j, slot] = value
    return due


@inlined
def observe_row(X: Array, row: int, method: int, sample: Array, stats: Array, ratios: Array, shifts: Array) -> bool:
    """Update the statistics; returns whether scales changed, and writes how into `ratios` and `shifts`.

    With `CENTRED`, every row has a value of every feature, so the first feature counts for all.
    """
    dim, changed = X.shape[1], False
    if method == CENTRED:
        stats[COUNT, 0] += 1.0
        if stats[COUNT, 0] < stats[WAKE, 0]:
            return False
        slot, changed = plan_sampling(stats, 0)
        if slot >= 0:
            for j in range(dim):
                sample[j, slot] = X[row, j]
        if changed:
            for j in range(dim):
                ratios[j], shifts[j] = update_scale(sample, stats, j, int(stats[COUNT, 0]), method)
    elif method != UNSCALED:
        for j in range(dim):
            value = abs(X[row, j]) if method == SCALED else X[row, j]
            present = value != 0.0 if method == SCALED else value == value
            if present and observe(sample, stats, j, value):
                if not changed:
                    ratios[:], shifts[:] = 1.0, 0.0
                changed = True
                ratios[j], shifts[j] = update_scale(sample, stats, j, int(stats[COUNT, j]), method)
    return changed


@part
def impute(value: float, median: float) -> float:
    """The value, or the running median of its feature if it is missing (NaN); standardized, that median is 0."""
    return value if value == value else median


@summing
def standardize_row(X: Array, row: int, method: int, stats: Array, out: Array, place: int) -> float:
    """Write the standardized row, followed by 1 if there is an intercept; returns its ‖·‖²."""
    dim, norm2 = X.shape[1], 0.0
    for j in range(dim):
        z = (X[row, j] - stats[CENTRE, j]) * stats[INVERSE, j]
        if method == WITH_MISSING:
            z = impute(z, 0.0)
        out[place, j] = z
    # A loop of its own, which stores nothing: how it rounds does not depend on where arrays are in memory.
    for j in range(dim):
        norm2 += out[place, j] * out[place, j]
    if out.shape[1] > dim:
        out[place, dim] = 1.0
        norm2 += 1.0
    return norm2


@summing
def zero_if_finite(X: Array, row: int) -> float:
    """0 if all are finite; 0·∞ and 0·NaN are not 0."""
    total = 0.0
    for j in range(X.shape[1]):
        total += 0.0 * X[row, j]
    return total


@compiled
def all_finite(X: Array, Y: Array) -> bool:
    """Whether every number of two tables is finite."""
    X, Y, total = uncounted(X), uncounted(Y), 0.0
    for row in range(len(X)):
        total += zero_if_finite(X, row)
    for k in range(len(Y)):
        total += zero_if_finite(Y, k)
    return total == 0.0
