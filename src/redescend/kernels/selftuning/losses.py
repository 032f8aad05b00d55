"""What depends on the loss: the score of a record for the posterior, and the steps of followers.

The posterior N(theta, P) moves by theta += g Px, P -= h Px(Px)'. For the squared loss g and h are the first two
derivatives of the logarithm of the record's density. For losses that grow linearly they are those of the loss itself,
smoothed by the predictive variance, times the probability that the record is clean.
"""

from __future__ import annotations

from math import erfc, exp, sqrt
from typing import Any

from redescend.kernels.compiler import part
from redescend.kernels.selftuning.layout import INSENSITIVE, LABELS, QUANTILE, SCALES, TARGET, Loss, State, Work
from redescend.kernels.selftuning.noise import NORMAL

SMOOTH = 0.0625
"""Variance of the smoothing of a slope, in units of that of clean records."""

HALF_ROOT = 0.7071067811865476


@part
def clean_variance(work: Work, state: State) -> float:
    """The variance of clean records, that of the prediction included; 0 if no record can be clean."""
    inverse = count = 0.0
    for k in range(SCALES):
        q = state.cells[k] * work.clean[k]
        inverse += q * work.inverse[k]
        count += q
    return count / inverse if count > 0.0 else 0.0


@part
def bell(z: float) -> float:
    return NORMAL * exp(-0.5 * min(z * z, 1400.0))


@part
def above(z: float) -> float:
    """The probability that a normal variable is above z."""
    return 0.5 * erfc(HALF_ROOT * z)


@part
def _score_smoothed(loss: Loss, r: float, c: float, clean: float, state: State, work: Work) -> Any:
    """g and h of a loss with kinks, smoothed by the uncertainty of the prediction and a part of the noise."""
    S = clean_variance(work, state)
    if S == 0.0:
        return 0.0, 0.0
    own = max(S - c, 0.01 * S)
    root, width = sqrt(own), sqrt(c + SMOOTH * own)
    z = r / width
    if loss.family == QUANTILE:
        # A record that is met exactly pulls in no direction.
        slope, bend = 2.0 * (loss.setting - above(z)) if r != 0.0 else 0.0, 2.0 * bell(z) / width
    else:
        e = loss.setting / state.scalar[TARGET] / width
        slope, bend = above(e - z) - above(e + z), (bell(z - e) + bell(z + e)) / width
    spread = 1.0 + bend / root * c
    return clean * slope / root / spread, clean * bend / root / spread


@part
def sigmoid(z: float) -> float:
    e = exp(-abs(z))
    return 1.0 / (1.0 + e) if z >= 0.0 else e / (1.0 + e)


@part
def implicit_pull(m: float, a: float) -> float:
    """sigma(-z) where z = m + a sigma(-z), by Newton's method inside its bracket."""
    low, high = m, m + a
    z = m + a * sigmoid(-m) / (1.0 + 0.25 * a)
    for _ in range(30):
        pull = sigmoid(-z)
        over = z - m - a * pull
        if over > 0.0:
            high = z
        else:
            low = z
        better = z - over / (1.0 + a * pull * (1.0 - pull))
        if abs(better - z) <= 1e-10 * (1.0 + abs(z)):
            break
        z = better if low < better < high else 0.5 * (low + high)
    return sigmoid(-z)


@part
def score(loss: Loss, r: float, c: float, first: float, second: float, clean: float, state: State, work: Work) -> Any:
    """g and h of a record at the residual r with predictive variance c.

    `first` and `second` are derivatives of its density over the density, `clean` is the probability that it is clean.
    """
    if loss.family == QUANTILE or loss.family == INSENSITIVE:
        return _score_smoothed(loss, r, c, clean, state, work)
    return first, first * first - second


@part
def follow(loss: Loss, y: float, p: float, e: float, far: float, scale: float) -> float:
    """How far a follower moves along D x in an implicit step of size e, with far = x'D x."""
    if loss.family == LABELS:
        return 4.0 * e * implicit_pull(y * p, 4.0 * e * far) * y
    if loss.family == QUANTILE:
        # A step is as long as the follower's own scale, and does not go beyond the target.
        r = y - p
        full = 2.0 * e * scale * (loss.setting if r > 0.0 else 1.0 - loss.setting)
        return min(full, abs(r) / max(far, 1e-300)) * (1.0 if r > 0.0 else -1.0)
    return e * (y - p) / (1.0 + e * far)
