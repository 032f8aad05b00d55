"""Restarts of the posterior, and what else happens to all features at once: other scales, the penalty."""

from __future__ import annotations

from math import sqrt

from redescend.kernels.compiler import part, rare
from redescend.kernels.selftuning.covariance import copy_covariance, read_column, reset, subtract, variance_at
from redescend.kernels.selftuning.labels import penalise_lengths, resize, widen
from redescend.kernels.selftuning.layout import (
    AGE,
    CENTRE,
    CONSTANT,
    CREDIT,
    FULL,
    LABELS,
    LARGE,
    LEAD,
    MIRRORED,
    MODE,
    OUT,
    POSTERIOR,
    PRIOR,
    RESCALED,
    RING,
    SIZE,
    SLOW,
    SMALLEST,
    SQUARE,
    SQUARED,
    STORED,
    STORED_AGE,
    STREAK,
    TARGET,
    TYPICAL,
    UNIT,
    VARIANCE,
    WIDENED,
    WIDEST,
    Config,
    Loss,
    State,
    Work,
)
from redescend.kernels.selftuning.members import LOST, OUT_SHARE, copy_member, may_copy, move_along
from redescend.numeric import Array

RETURN_SHARE = 0.05
"""The stored posterior returns with this weight, if it is twice that of the posterior and knows more records."""

SHIFT = 64.0
"""Features have another scale if the typical length of records, a square, is this many times as large or as small."""

FOUND, OPEN = 0.08, 8.0
"""P is multiplied by OPEN when the share of mirrored records is FOUND above that of the last time: before it was known,
the posterior learned a compromise."""

REOPENED, LABEL_REOPENED = 8.0, 4.0
"""Variance of the predictions of a restarted posterior, in units of the leader's squared scale; of logits."""

WORTH, DIAGONAL_WORTH = 2.0, 64.0
"""The posterior restarts only if that makes the variance of its predictions this many times as large: otherwise it is
still learning, not lost. At order 1 that variance is too small while many features are learned at once."""

RESTARTED = 0.5
"""Weight of a restarted posterior relative to the leader's; of logits 1."""

START, LABEL_START, DIAGONAL_LABEL_START = 256.0, 60.0, 20.0
"""Prior variance of a prediction, in units of the squared typical target; of a logit at order 2, and at order 1."""


@part
def recover(config: Config, state: State, work: Work) -> bool:
    """Bring the stored posterior back if it is better, or restart the posterior if it is lost; returns whether it was.

    A restart is at the leader, with a variance that matches the leader's error.
    """
    scalar, weight = state.scalar, state.weight
    if not may_copy(config.covariance, scalar):
        return False
    if scalar[MIRRORED] > scalar[WIDENED] + FOUND and scalar[AGE] >= RING:
        widen(OPEN, state, work)
        scalar[WIDENED] = scalar[MIRRORED]
    if config.loss.family == LABELS:
        resize(state, work)
    lead, shifted = int(scalar[LEAD]), is_shifted(scalar)
    if shifted:
        rescale(state, work)
    younger = scalar[AGE] < scalar[STORED_AGE]
    if not shifted and younger and weight[STORED] > max(RETURN_SHARE, 2.0 * weight[POSTERIOR]):
        copy_member(STORED, POSTERIOR, state, work)
        copy_covariance(state.stored, state.P)
        weight[POSTERIOR] += weight[STORED] - 1e-6
        weight[STORED] = 1e-6
        scalar[AGE], scalar[STORED_AGE] = scalar[STORED_AGE], 0.0
        scalar[LEAD] = POSTERIOR
        scalar[OUT] = scalar[CREDIT] = 0.0
    elif shifted or is_lost(config, state):
        store(state, work)
        copy_member(lead, POSTERIOR, state, work)
        share = reopened_share(config, state.scale[lead], scalar[SIZE])
        if shifted or config.covariance.order != FULL or config.loss.family == LABELS:
            reset(config.covariance, state.P, state.feature[PRIOR], share)
        else:
            reopen(widening(config, state), max(share, 1.0), config, state, work)
        scalar[OUT] = scalar[AGE] = scalar[CREDIT] = 0.0
        weight[POSTERIOR] = weight[lead] * (1.0 if config.loss.family == LABELS else RESTARTED)
        return True
    return False


@part
def widening(config: Config, state: State) -> float:
    """By what a restart multiplies the variance of the posterior's predictions."""
    return reopened(config, state.scale[int(state.scalar[LEAD])]) / max(state.scalar[VARIANCE], 1e-100)


@part
def is_lost(config: Config, state: State) -> bool:
    """Whether the posterior has to restart. The variance of logits does not tell: it stays large."""
    waited = state.scalar[OUT] >= LOST and state.scalar[AGE] >= RING
    worth = WORTH if config.covariance.order == FULL else DIAGONAL_WORTH
    return waited and (config.loss.family == LABELS or widening(config, state) > worth)


@rare
def reopen(factor: float, most: float, config: Config, state: State, work: Work) -> None:
    """Multiply P, but no variance beyond `most` times its prior. What was learned of correlations stays."""
    P, prior, at = state.P, state.feature[PRIOR], 0
    for j in range(len(prior)):
        own = P[variance_at(config.covariance, j)]
        work.Dx[j] = sqrt(min(factor, most * prior[j] / own)) if own > 0.0 else 1.0
    for j in range(len(prior)):
        for k in range(j + 1):
            P[at] *= work.Dx[j] * work.Dx[k]
            at += 1


@rare
def store(state: State, work: Work) -> None:
    """Store the posterior, unless one that is much older is stored, or leads."""
    scalar, weight = state.scalar, state.weight
    if scalar[AGE] >= 0.5 * scalar[STORED_AGE] and scalar[LEAD] != STORED:
        copy_member(POSTERIOR, STORED, state, work)
        copy_covariance(state.P, state.stored)
        scalar[STORED_AGE] = scalar[AGE]
        if weight[STORED] == 0.0:
            weight[STORED] = min(0.5 * weight[POSTERIOR], OUT_SHARE)
            weight[POSTERIOR] -= weight[STORED]


@part
def is_shifted(scalar: Array) -> bool:
    """Whether features have another scale than what is known of them."""
    return scalar[AGE] >= RING and not 1.0 / SHIFT <= scalar[TYPICAL] <= SHIFT


@rare
def rescale(state: State, work: Work) -> None:
    """Multiply the squares of features by the typical length, and the priors of their coefficients accordingly."""
    feature, factor = state.feature, state.scalar[TYPICAL]
    for j in range(feature.shape[1]):
        if feature[SQUARE, j] > 0.0:
            feature[SQUARE, j] = min(max(feature[SQUARE, j] * factor, SMALLEST), WIDEST)
        feature[PRIOR, j] = min(feature[PRIOR, j] / factor, WIDEST)
        if feature[CENTRE, j] != 0.0:
            feature[CENTRE, j] = min(max(feature[CENTRE, j] * sqrt(factor), -LARGE), LARGE)
    work.notes[RESCALED] = factor
    state.scalar[TYPICAL], state.scalar[STREAK] = 1.0, 0.0


@part
def prior_variance(config: Config) -> float:
    """The prior variance of a prediction, in units of the squared typical target; of a logit, of 1."""
    if config.loss.family == LABELS:
        return LABEL_START if config.covariance.order == FULL else DIAGONAL_LABEL_START
    return START


@part
def precision(loss: Loss, s: float, target: float) -> float:
    """The precision of an observation with one unit of penalty, where s is the scale of residuals."""
    if loss.family == LABELS:
        return 1.0
    return 0.5 / (s * s) if loss.family == SQUARED else target / s


@part
def reopened(config: Config, scale: float) -> float:
    """The variance of the predictions of a restarted posterior, where `scale` is that of the leader's residuals."""
    return LABEL_REOPENED if config.loss.family == LABELS else REOPENED * scale * scale


@part
def reopened_share(config: Config, scale: float, size: float) -> float:
    """The share of the prior variance that a restarted posterior has."""
    unit = 1.0 if config.loss.family == LABELS else size * size
    return reopened(config, scale) / (prior_variance(config) * unit)


@rare
def shrink(turn: int, rounds: int, config: Config, state: State, work: Work) -> None:
    """l2: observe a feature to be 0, with the precision of `rounds` rounds; the constant is spared."""
    theta, scalar, v = state.theta, state.scalar, work.Dx
    constant, unit = int(scalar[CONSTANT]), state.feature[UNIT, turn]
    if turn == constant or unit == 0.0:
        return
    s = 1.6 * state.scale[int(scalar[LEAD])]
    w = min(config.l2 * rounds / unit / unit * precision(config.loss, s, scalar[TARGET]), 1e100)
    read_column(config.covariance, state.P, turn, v)
    own = v[turn]
    h = w / (1.0 + w * own)
    move_along(POSTERIOR, -h * theta[POSTERIOR, turn], v, state, work)
    for i in range(SLOW, MODE + 1):
        theta[i, turn] /= 1.0 + w * own
    subtract(config.covariance, state.P, h, v)
    if config.loss.family == LABELS:
        penalise_lengths(config.loss, config.l2 * rounds / unit / unit, turn, state)
