"""The prior of the posterior, as wide as the targets at first and then withdrawn; and l2, another observation."""

from __future__ import annotations

from math import sqrt

from redescend.kernels.compiler import part, rare
from redescend.kernels.selftuning.covariance import read_column, subtract, variance_at
from redescend.kernels.selftuning.labels import penalise_lengths
from redescend.kernels.selftuning.layout import (
    AGE,
    CONSTANT,
    COUNT,
    FULL,
    KNOWN,
    LABELS,
    LEAD,
    MODE,
    ORIGIN,
    POSTERIOR,
    PRIOR,
    SEEN,
    SIZE,
    SLOW,
    SQUARE,
    SQUARED,
    TARGET,
    UNIT,
    Config,
    Loss,
    State,
    Work,
)
from redescend.kernels.selftuning.members import constant_share, move_along
from redescend.numeric import Array

START, OPEN_START = 4.0, 256.0
"""Prior variance of a prediction, in units of the squared typical target: at order 2; and at order 1, and of features
that are mostly 0 or come later, which may be rare and right."""

LABEL_START, LABEL_CONSTANT = 20.0, 10.0
"""The largest prior variance of a logit; that of its constant part, which is large where a label is rare."""

EARLY, ENOUGH, WIDE = 4.0, 32.0, 4096.0
"""The prior is withdrawn from EARLY records for each feature on, from features that were not 0 in ENOUGH of them, until
its variance is WIDE."""

CREDIBLE = 5.0
"""Coefficients are within this many standard deviations of what is learned of them."""


@part
def prior_variance(config: Config, known: float) -> float:
    """The prior variance of a prediction, in units of the squared typical target; of a logit, 1 for each feature."""
    if config.loss.family == LABELS:
        return min(known, LABEL_START)
    return START if config.covariance.order == FULL else OPEN_START


@part
def new_variance(config: Config, known: float) -> float:
    """The same for features that come later."""
    return min(known, LABEL_START) if config.loss.family == LABELS else OPEN_START


@rare
def present_variance(state: State) -> float:
    """The variance of a typical prediction under the prior as it is now, at order 2."""
    total = 0.0
    for j in range(state.feature.shape[1]):
        total += state.feature[PRIOR, j] * state.feature[SQUARE, j] * state.feature[COUNT, j]
    return total / state.scalar[SEEN]


@part
def observe(turn: int, away: float, w: float, config: Config, state: State, work: Work) -> float:
    """Observe with precision w that a coefficient is too large by `away`, or take that back if w is negative.

    Returns the variance that it had.
    """
    read_column(config.covariance, state.P, turn, work.Dx)
    own = work.Dx[turn]
    h = w / (1.0 + w * own)
    move_along(POSTERIOR, -h * away, work.Dx, state, work)
    subtract(config.covariance, state.P, h, work.Dx)
    return own


@part
def withdraw(config: Config, state: State, work: Work) -> None:
    """In turn, take back half of what the prior says of a feature, until it says next to nothing.

    A prior as wide as the targets keeps the first predictions from being wild. But it would also keep coefficients
    small that are large in the end, such as those of features that are nearly collinear.
    """
    scalar, feature = state.scalar, state.feature
    if scalar[AGE] == scalar[SEEN] >= EARLY * scalar[KNOWN]:
        turn = find_known(int(scalar[SEEN]) % max(int(scalar[KNOWN]), 1), feature)
        variance = feature[PRIOR, turn] * feature[SQUARE, turn] * scalar[KNOWN]
        if feature[COUNT, turn] >= ENOUGH and 0.0 < variance < WIDE * scalar[SIZE] ** 2:
            double_variance(turn, config, state, work)


@part
def find_known(place: int, feature: Array) -> int:
    """The feature at a place among those that were seen, or the last of all."""
    for j in range(feature.shape[1] - 1):
        if feature[UNIT, j] > 0.0:
            if place == 0:
                return j
            place -= 1
    return feature.shape[1] - 1


@rare
def double_variance(turn: int, config: Config, state: State, work: Work) -> None:
    """Double the prior variance of a feature, as if it had been twice as large from the start.

    A coefficient that is larger than its prior and what was learned of it allow came from records that were not
    believed in the end, and would grow without limit: only what they allow counts.
    """
    theta, prior, own = state.theta, state.feature[PRIOR], state.P[variance_at(config.covariance, turn)]
    if own < prior[turn]:  # it is not if P was multiplied since
        away, most = theta[POSTERIOR, turn], CREDIBLE * sqrt(prior[turn] - own)
        if turn == int(state.scalar[CONSTANT]):
            away += constant_share(theta[POSTERIOR], work.x, work.centred, turn) - theta[ORIGIN, turn]
        observe(turn, min(max(away, -most), most), -0.5 / prior[turn], config, state, work)
    prior[turn] *= 2.0


@part
def penalty_precision(loss: Loss, s: float, target: float) -> float:
    """The precision of an observation with one unit of penalty, where s is the scale of residuals."""
    if loss.family == LABELS:
        return 1.0
    return 0.5 / (s * s) if loss.family == SQUARED else target / s


@rare
def shrink(turn: int, rounds: int, config: Config, state: State, work: Work) -> None:
    """l2: observe a feature to be 0, with the precision of `rounds` rounds; the constant is spared."""
    theta, scalar, unit = state.theta, state.scalar, state.feature[UNIT, turn]
    if turn == int(scalar[CONSTANT]) or unit == 0.0:
        return
    s = 1.6 * state.scale[int(scalar[LEAD])]
    w = min(config.l2 * rounds / unit / unit * penalty_precision(config.loss, s, scalar[TARGET]), 1e100)
    own = observe(turn, theta[POSTERIOR, turn], w, config, state, work)
    for i in range(SLOW, MODE + 1):
        theta[i, turn] /= 1.0 + w * own
    if config.loss.family == LABELS:
        penalise_lengths(config.loss, config.l2 * rounds / unit / unit, turn, state)
