"""The scale of a residual, known before the residual: a level, and what the features and the prediction say.

With ψ(u) = (u² − 1)/(u² + 1), a level moves by g·ψ(|r|/scale): it stays where half of |ψ| is on either side, which
outliers change little. A quick copy finds changes.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.belief.layout import (
    ADJUSTED,
    AGE,
    APART,
    CLIP,
    CONVINCED,
    DIFFERENCES,
    EARLY,
    EFFECT,
    ENOUGH,
    EVIDENCE,
    EXACT,
    FINEST,
    FIRST_DIFFERENCES,
    FORGET,
    GRID,
    HUGE,
    LARGEST_EFFECT,
    LAST,
    MEAN,
    MULTIPLES,
    PREVIOUS,
    QUICK,
    QUICKEST,
    RATE,
    READY,
    ROUNDED,
    SLOWEST,
    SMALL,
    SPREAD,
    SQUARES,
    STEADY,
    TRAVELLED,
    UNIT,
    WIDER,
)
from redescend.kernels.compiler import part
from redescend.numeric import Array


@part
def pull(ratio: float) -> float:
    square = ratio * ratio
    return (square - 1.0) / (square + 1.0)


@part
def read_record(x: Array, prediction: float, means: Array, out: Array) -> None:
    """Write features and prediction to `out`, clipped so that their squares are floats; what is missing is the mean."""
    for j in range(len(x)):
        out[j] = min(max(x[j], -HUGE), HUGE) if x[j] == x[j] else means[j]
    out[len(x)] = min(max(prediction, -HUGE), HUGE)


@part
def standardize(record: Array, rounds: float, features: Array, out: Array) -> None:
    """Standardise a record by the mean and the standard deviation of those before it, and clip."""
    means, squares = features[MEAN], features[SQUARES]
    share = 1.0 / max(rounds, 1.0)
    for j in range(len(record)):
        spread = np.sqrt(squares[j] * share)
        value = min(max((record[j] - means[j]) / spread, -CLIP), CLIP)
        out[j] = value if spread > 1e-12 * abs(means[j]) else 0.0


@part
def remember_features(record: Array, rounds: float, features: Array) -> bool:
    """Update means and squares; returns whether all features are those of the previous record."""
    means, squares, previous = features[MEAN], features[SQUARES], features[PREVIOUS]
    share, changes = 1.0 / (rounds + 1.0), 0
    for j in range(len(record) - 1):
        changes += record[j] != previous[j]
    for j in range(len(record)):
        previous[j] = record[j]
        step = record[j] - means[j]
        means[j] += step * share
        squares[j] += step * (record[j] - means[j])
    return rounds > 0.0 and changes == 0


@part
def learn_grid(target: float, numbers: Array) -> None:
    """Find the resolution of targets, the largest number of which all differences are multiples, by Euclid's rule."""
    last, grid = numbers[LAST], numbers[GRID]
    gap, error = abs(target - last), EXACT * max(abs(target), abs(last))
    # Very large targets do not show it.
    if grid < 0.0 or not error < gap < HUGE or 0.0 < grid <= FINEST * error:
        return
    common, rest = max(gap, grid), min(gap, grid)
    if 0.0 < rest <= EXACT * common:
        common = rest = 0.0
    while rest > error:
        common, rest = rest, abs(common - np.floor(common / rest + 0.5) * rest)
    if common <= FINEST * error:
        numbers[GRID] = numbers[MULTIPLES] = -1.0
    else:
        numbers[MULTIPLES] = 0.0 if common < 0.999 * grid else numbers[MULTIPLES] + 1.0
        # A part of this difference, because errors of divisors grow from record to record.
        numbers[GRID] = gap / np.floor(gap / common + 0.5)


@part
def learn_spread(target: float, numbers: Array) -> None:
    """Follow the typical difference between a target and the one before it, where they differ."""
    gap = abs(target - numbers[LAST])
    if gap > 0.0:
        log = np.log(min(max(gap, 1e-300), 1e300))
        if numbers[DIFFERENCES] < FIRST_DIFFERENCES:
            numbers[SPREAD] = min(numbers[SPREAD], log) if numbers[DIFFERENCES] > 0.0 else log
        else:
            early = 2.0 / (numbers[DIFFERENCES] + 3.0)
            numbers[SPREAD] += max(early, SLOWEST) * pull(np.exp(min(log - numbers[SPREAD], 200.0)))
        numbers[DIFFERENCES] += 1.0


@part
def raise_scales(numbers: Array) -> float:
    """The size below which residuals are not told apart, in their unit: a rounding error, or next to nothing.

    No level is below it.
    """
    if numbers[UNIT] <= 0.0:
        return 0.0
    small = SMALL * np.exp(numbers[SPREAD]) if numbers[DIFFERENCES] >= FIRST_DIFFERENCES else 0.0
    rounding = ROUNDED * numbers[GRID] if numbers[MULTIPLES] >= ENOUGH else 0.0
    size = min(max(small, rounding) / numbers[UNIT], HUGE)
    if size > 0.0:
        least = np.log(size)
        numbers[STEADY] = max(numbers[STEADY], least)
        numbers[ADJUSTED] = max(numbers[ADJUSTED], least)
        numbers[QUICK] = max(numbers[QUICK], least)
    return size


@part
def find_effect(standard: Array, features: Array) -> float:
    """What the features add to the logarithm of the scale."""
    effects, effect = features[EFFECT], 0.0
    for j in range(len(standard)):
        effect += effects[j] * standard[j]
    return min(max(effect, -LARGEST_EFFECT), LARGEST_EFFECT)


@part
def log_scale(numbers: Array, effect: float) -> float:
    """The logarithm of the scale: of the level alone and of the level with features, by the evidence for each."""
    trust = 1.0 / (1.0 + np.exp(-numbers[EVIDENCE]))
    return (1.0 - trust) * numbers[STEADY] + trust * (numbers[ADJUSTED] + effect)


@part
def log_width(numbers: Array, effect: float) -> float:
    """The same by the likelier one alone, for intervals."""
    return numbers[ADJUSTED] + effect if numbers[EVIDENCE] > 0.0 else numbers[STEADY]


@part
def learn_scale(size: float, standard: Array, effect: float, numbers: Array, features: Array) -> None:
    """Learn from a residual of this size, which is not 0."""
    age, log = numbers[AGE], np.log(size)
    if age < EARLY:
        numbers[STEADY] = min(numbers[STEADY], log + WIDER)
        numbers[ADJUSTED] = min(numbers[ADJUSTED], log + WIDER)
        numbers[QUICK] = min(numbers[QUICK], log + WIDER)
    plain = np.exp(min(log - numbers[STEADY], 200.0))
    adjusted = np.exp(min(log - numbers[ADJUSTED] - effect, 200.0))
    if age > READY:
        gain = numbers[STEADY] + np.log1p(plain * plain) - np.log1p(adjusted * adjusted) - numbers[ADJUSTED] - effect
        numbers[EVIDENCE] = min(max(FORGET * numbers[EVIDENCE] + gain, -CONVINCED), CONVINCED)
        effects, travelled = features[EFFECT], features[TRAVELLED]
        for j in range(len(standard)):
            slope = pull(adjusted) * standard[j]
            travelled[j] += slope * slope
            effects[j] += RATE * slope / np.sqrt(travelled[j])
    early = 2.0 / (age + 3.0)
    numbers[STEADY] += max(early, SLOWEST) * pull(plain)
    numbers[ADJUSTED] += max(early, SLOWEST) * pull(adjusted)
    numbers[QUICK] += max(early, QUICKEST) * pull(np.exp(min(log - numbers[QUICK], 200.0)))
    numbers[AGE] += 1.0
    change = numbers[QUICK] - numbers[STEADY]
    if age > 100.0 and abs(change) > APART:
        numbers[STEADY] += change
        numbers[ADJUSTED] += change
        numbers[AGE] = 20.0
