"""What depends on the loss: the score of a record for the posterior, and the steps of followers.

The posterior N(theta, P) moves by theta += g Px, P -= h Px(Px)'. For the squared loss g and h are the first two
derivatives of the logarithm of the record's density. For losses that grow linearly they are those of the loss itself,
smoothed by the predictive variance, times the probability that the record is clean.
"""

from __future__ import annotations

from math import erfc, exp, sqrt
from typing import Any

from redescend.kernels.compiler import part, specialise
from redescend.kernels.selftuning.layout import SCALES, TARGET, Insensitive, Labels, Quantile, Squared, State, Work
from redescend.kernels.selftuning.noise import NORMAL

SMOOTH = 0.0625
"""Variance of the smoothing of a slope, in units of that of clean records."""

HALF_ROOT = 0.7071067811865476


def score(loss: Any, r: float, c: float, first: float, second: float, clean: float, state: State, work: Work) -> Any:
    """g and h of a record at the residual r with predictive variance c.

    `first` and `second` are derivatives of its density over the density, `clean` is the probability that it is clean.
    """
    raise NotImplementedError


def follow(loss: Any, y: float, p: float, e: float, far: float, scale: float) -> float:
    """How far a follower moves along D x in an implicit step of size e, with far = x'D x."""
    raise NotImplementedError


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


def _score_squared(
    loss: Any, r: float, c: float, first: float, second: float, clean: float, state: State, work: Work
) -> Any:
    return first, first * first - second


def _score_quantile(
    loss: Any, r: float, c: float, first: float, second: float, clean: float, state: State, work: Work
) -> Any:
    S = clean_variance(work, state)
    if S == 0.0:
        return 0.0, 0.0
    own = max(S - c, 0.01 * S)
    root, width = sqrt(own), sqrt(c + SMOOTH * own)
    z = r / width
    # A record that is met exactly pulls in no direction.
    slope, bend = 2.0 * (loss.setting - above(z)) if r != 0.0 else 0.0, 2.0 * bell(z) / width
    spread = 1.0 + bend / root * c
    return clean * slope / root / spread, clean * bend / root / spread


def _score_insensitive(
    loss: Any, r: float, c: float, first: float, second: float, clean: float, state: State, work: Work
) -> Any:
    S = clean_variance(work, state)
    if S == 0.0:
        return 0.0, 0.0
    own = max(S - c, 0.01 * S)
    root, width = sqrt(own), sqrt(c + SMOOTH * own)
    z, e = r / width, loss.setting / state.scalar[TARGET] / width
    slope, bend = above(e - z) - above(e + z), (bell(z - e) + bell(z + e)) / width
    spread = 1.0 + bend / root * c
    return clean * slope / root / spread, clean * bend / root / spread


def _follow_squared(loss: Any, y: float, p: float, e: float, far: float, scale: float) -> float:
    return e * (y - p) / (1.0 + e * far)


def _follow_quantile(loss: Any, y: float, p: float, e: float, far: float, scale: float) -> float:
    # A step is as long as the follower's own scale, and does not go beyond the target.
    r = y - p
    full = 2.0 * e * scale * (loss.setting if r > 0.0 else 1.0 - loss.setting)
    return min(full, abs(r) / max(far, 1e-300)) * (1.0 if r > 0.0 else -1.0)


def _follow_label(loss: Any, y: float, p: float, e: float, far: float, scale: float) -> float:
    return 4.0 * e * implicit_pull(y * p, 4.0 * e * far) * y


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


specialise(score, {Squared: _score_squared, Quantile: _score_quantile, Insensitive: _score_insensitive})
specialise(
    follow,
    {Squared: _follow_squared, Quantile: _follow_quantile, Insensitive: _follow_squared, Labels: _follow_label},
)
