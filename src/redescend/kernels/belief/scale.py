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
    EFFECT,
    EVIDENCE,
    FAR,
    FORGET,
    HUGE,
    LARGEST_EFFECT,
    MEAN,
    PREVIOUS,
    QUICK,
    QUICKEST,
    RATE,
    READY,
    SLOWEST,
    SQUARES,
    STEADY,
    TRAVELLED,
)
from redescend.kernels.compiler import compiled, inlined
from redescend.numeric import Array


@inlined
def pull(ratio: float) -> float:
    square = ratio * ratio
    return (square - 1.0) / (square + 1.0)


@compiled
def standardize(x: Array, prediction: float, rounds: float, features: Array, out: Array) -> None:
    """Standardise features and prediction by the mean and the standard deviation of those before them, and clip."""
    last = features.shape[1] - 1
    for j in range(last + 1):
        value = min(max(x[j] if j < last else prediction, -HUGE), HUGE)
        spread = np.sqrt(features[SQUARES, j] / rounds) if rounds > 0.0 else 0.0
        known = spread > 1e-12 * abs(features[MEAN, j])
        out[j] = min(max((value - features[MEAN, j]) / spread, -CLIP), CLIP) if known else 0.0


@compiled
def remember_features(x: Array, prediction: float, rounds: float, features: Array) -> bool:
    """Update means and squares; returns whether all features are those of the previous record."""
    last, same = features.shape[1] - 1, rounds > 0.0
    for j in range(last + 1):
        value = min(max(x[j] if j < last else prediction, -HUGE), HUGE)
        same &= j == last or value == features[PREVIOUS, j]
        features[PREVIOUS, j] = value
        step = value - features[MEAN, j]
        features[MEAN, j] += step / (rounds + 1.0)
        features[SQUARES, j] += step * (value - features[MEAN, j])
    return same


@compiled
def find_effect(standard: Array, features: Array) -> float:
    """What the features add to the logarithm of the scale."""
    effect = 0.0
    for j in range(len(standard)):
        effect += features[EFFECT, j] * standard[j]
    return min(max(effect, -LARGEST_EFFECT), LARGEST_EFFECT)


@inlined
def log_scale(numbers: Array, effect: float) -> float:
    """The logarithm of the scale: of the level alone and of the level with features, by the evidence for each."""
    trust = 1.0 / (1.0 + np.exp(-numbers[EVIDENCE]))
    return (1.0 - trust) * numbers[STEADY] + trust * (numbers[ADJUSTED] + effect)


@compiled
def learn_scale(size: float, standard: Array, effect: float, numbers: Array, features: Array) -> None:
    """Learn from a residual of this size, which is not 0."""
    age, log = numbers[AGE], np.log(size)
    plain = np.exp(min(log - numbers[STEADY], 200.0))
    adjusted = np.exp(min(log - numbers[ADJUSTED] - effect, 200.0))
    if age > READY:
        gain = numbers[STEADY] + np.log1p(plain * plain) - np.log1p(adjusted * adjusted) - numbers[ADJUSTED] - effect
        numbers[EVIDENCE] = min(max(FORGET * numbers[EVIDENCE] + gain, -CONVINCED), CONVINCED)
        norm = np.sum(standard * standard) / len(standard)
        strength = pull(adjusted) / (max(1.0, norm) * (1.0 + (adjusted / FAR) ** 2))
        for j in range(len(standard)):
            slope = strength * standard[j]
            features[TRAVELLED, j] += slope * slope
            features[EFFECT, j] += RATE * slope / np.sqrt(features[TRAVELLED, j])
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
