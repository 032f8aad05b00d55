"""The units of features: their medians and scales, read off a small uniform sample of the rows so far.

Whenever the units change, the action is rewritten in the new ones and predicts as before: they say how features are
compared with one another, and no more. They change ever more seldom.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import compiled, inlined, summing, uncounted
from redescend.numeric import Array

AS_THEY_ARE, SCALED, CENTRED, WITH_MISSING = range(4)
"""How features are standardised: not at all, by the median size of what is not 0, or by median and quartiles; or like
that, and NaN is a value that is missing: the median takes its place, which is 0 in the units of the feature."""

NEVER = 1e300

SEEN, WAKE, NEXT, DUE, CENTRE, INVERSE = range(6)
"""What is known of a feature: values seen; at which value there is next something to do, one to keep in the sample, new
units to take; its median; and one over its scale, 0 while it is not known."""


def fresh(features: int, due: int = 1) -> Array:
    """What is known before the first value; units are first taken at value `due`."""
    units = np.zeros((6, features))
    units[[WAKE, NEXT]], units[DUE] = 1.0, due
    return units


SAMPLE = 32
NORMAL_QUARTILES = 1.3489795003921634
"""The quartiles of a normal variable are so many standard deviations apart."""

RANGES = ((0.25, 1.0), (0.1, 1.9), (0.0, 3.0))
"""Where the quartiles are one, wider ranges stand in: a quantile, and how much wider a normal variable is there."""

SMALLEST, LARGEST = 1e-100, 1e100

READY, READY_SCALED = 5, 3
"""A feature is not used before so many values of it were seen: by chance two may be all but the same."""

FEW, NARROWEST, SMALLEST_SIZE = 16, 6.0, 4.0
"""Up to this many values, a scale is no less than such a part of their range, or of the largest size."""


@inlined
def scrambled(n: int) -> float:
    """A number in [0, 1) that looks like chance and is always the same for n."""
    x = np.uint64(n) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((x ^ (x >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@inlined
def slot_of(count: int) -> int:
    """Where in the sample this value goes."""
    return count - 1 if count <= SAMPLE else int(scrambled(count) * SAMPLE)


@inlined
def next_kept(count: int) -> float:
    """Which value is the next in a uniform sample: after n, m or later is with probability (n/m)^SAMPLE."""
    return count + 1.0 if count < SAMPLE else np.floor(count * scrambled(-count) ** (-1.0 / SAMPLE)) + 1.0


@inlined
def next_due(count: float) -> float:
    return count + max(1.0, count // 2.0 if count < SAMPLE else count)


@inlined
def rouse(units: Array, j: int) -> tuple[int, bool]:
    """What is to be done with the value just counted: its slot in the sample or −1, and whether units are due."""
    count = int(units[SEEN, j])
    slot, due = -1, count >= units[DUE, j]
    if count >= units[NEXT, j]:
        slot = slot_of(count)
        units[NEXT, j] = next_kept(count)
    if due:
        units[DUE, j] = next_due(float(count))
    units[WAKE, j] = min(units[NEXT, j], units[DUE, j])
    return slot, due


@inlined
def at_share(ordered: Array, share: float) -> float:
    place = share * (len(ordered) - 1.0)
    below = int(place)
    part = place - below
    above = min(below + 1, len(ordered) - 1)
    return (1.0 - part) * ordered[below] + part * ordered[above]


@compiled
def middle_and_scale(values: Array) -> tuple[float, float]:
    """The median, and the scale of a normal variable with the same quartiles; 0 where all values are one."""
    ordered = np.empty(len(values))
    for i in range(len(values)):
        at = i
        while at > 0 and ordered[at - 1] > values[i]:
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = values[i]
    middle = at_share(ordered, 0.5)
    for share, width in RANGES:
        scale = at_share(ordered, 1.0 - share) - at_share(ordered, share)
        if scale > 0.0:
            return middle, min(scale, LARGEST) / (NORMAL_QUARTILES * width)
    return middle, 0.0


@compiled
def take_anew(sample: Array, units: Array, j: int, seen: int, standard: int) -> tuple[float, float]:
    """New units of a feature: how its coefficient is multiplied, and how often it is added to the intercept."""
    count = min(seen, SAMPLE)
    values = sample[j, :count]
    middle, scale = middle_and_scale(values)
    if standard == SCALED:
        middle, scale = 0.0, max(middle, np.max(values) / SMALLEST_SIZE if count < FEW else 0.0)
    elif count < FEW:
        scale = max(scale, (np.max(values) - np.min(values)) / NARROWEST)
    inverse = 1.0 / scale if SMALLEST <= scale <= LARGEST else 1.0
    if count < (READY_SCALED if standard == SCALED else READY):
        inverse = 0.0
    old = units[INVERSE, j]
    ratio = old / inverse if inverse > 0.0 else 1.0
    shift = min(max((middle - units[CENTRE, j]) * old, -LARGEST), LARGEST)
    units[CENTRE, j], units[INVERSE, j] = middle, inverse
    return ratio, shift


@inlined
def observe(sample: Array, units: Array, j: int, value: float) -> bool:
    """Count a value of a feature, perhaps keep it; whether its units are due."""
    units[SEEN, j] += 1.0
    if units[SEEN, j] < units[WAKE, j]:
        return False
    slot, due = rouse(units, j)
    if slot >= 0:
        sample[j, slot] = value
    return due


@inlined
def observe_row(X: Array, row: int, standard: int, sample: Array, units: Array, ratios: Array, shifts: Array) -> bool:
    """Show a row to the units; where they changed, how is in `ratios` and `shifts`.

    Features that are centred are all seen in every row: what is known of the first as to rows goes for all.
    """
    dim, changed = X.shape[1], False
    if standard == CENTRED:
        units[SEEN, 0] += 1.0
        if units[SEEN, 0] < units[WAKE, 0]:
            return False
        slot, changed = rouse(units, 0)
        if slot >= 0:
            for j in range(dim):
                sample[j, slot] = X[row, j]
        if changed:
            for j in range(dim):
                ratios[j], shifts[j] = take_anew(sample, units, j, int(units[SEEN, 0]), standard)
    elif standard != AS_THEY_ARE:
        for j in range(dim):
            value = abs(X[row, j]) if standard == SCALED else X[row, j]
            there = value != 0.0 if standard == SCALED else value == value
            if there and observe(sample, units, j, value):
                if not changed:
                    ratios[:], shifts[:] = 1.0, 0.0
                changed = True
                ratios[j], shifts[j] = take_anew(sample, units, j, int(units[SEEN, j]), standard)
    return changed


@summing
def standardise(X: Array, row: int, standard: int, units: Array, out: Array, place: int) -> float:
    """The row in these units, and 1 behind it where there is room for an intercept; its ‖·‖²."""
    dim, norm2 = X.shape[1], 0.0
    for j in range(dim):
        z = (X[row, j] - units[CENTRE, j]) * units[INVERSE, j]
        if standard == WITH_MISSING and z != z:
            z = 0.0
        out[place, j] = z
        norm2 += z * z
    if out.shape[1] > dim:
        out[place, dim] = 1.0
        norm2 += 1.0
    return norm2


@summing
def sum_of_nothing(X: Array, row: int) -> float:
    """0 if all are finite; 0·∞ and 0·NaN are not 0."""
    total = 0.0
    for j in range(X.shape[1]):
        total += 0.0 * X[row, j]
    return total


@compiled
def finite(X: Array, Y: Array) -> bool:
    """Whether every number is."""
    X, Y, total = uncounted(X), uncounted(Y), 0.0
    for row in range(len(X)):
        total += sum_of_nothing(X, row)
    for k in range(len(Y)):
        total += sum_of_nothing(Y, k)
    return total == 0.0
