"""Restarts of the posterior, and other scales of all features."""

from __future__ import annotations

from math import sqrt

from redescend.kernels.compiler import part, rare
from redescend.kernels.selftuning.covariance import copy_covariance, reset, variance_at
from redescend.kernels.selftuning.judging import NORMAL_SCALE
from redescend.kernels.selftuning.labels import resize, widen
from redescend.kernels.selftuning.layout import (
    AGE,
    CENTRE,
    CREDIT,
    DOUBT,
    FEW,
    FULL,
    KNOWN,
    LABELS,
    LARGE,
    LEAD,
    MIRRORED,
    ODDS,
    ORIGIN,
    OUT,
    POSTERIOR,
    PRIOR,
    RESCALED,
    RESET,
    RING,
    SEEN,
    SINCE,
    SIZE,
    SMALLEST,
    SPREAD,
    SQUARE,
    STORED,
    STORED_AGE,
    STREAK,
    TYPICAL,
    VARIANCE,
    WIDENED,
    WIDEST,
    Config,
    State,
    Work,
)
from redescend.kernels.selftuning.members import LOST, WIDER, copy_member, may_copy
from redescend.kernels.selftuning.noise import PATIENCE, forget_scales
from redescend.kernels.selftuning.prior import present_variance, prior_variance
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

ENOUGH_TIME = 4.0
"""A posterior that is out of favour for this many records a feature, with residuals WIDER than the leader's, is lost,
however wide it is: it takes all records for outliers, which teach it nothing."""

FALSE_ALARM, MOST_DOUBT = 1e3, 1e6
"""A change is believed when it is more likely than not: its prior is 1/(PATIENCE + t), FALSE_ALARM times less after
every time that the stored posterior returned, and at most MOST_DOUBT times less."""

RESTARTED = 0.5
"""Weight of a restarted posterior relative to the leader's; of logits 1."""


@part
def recover(config: Config, state: State, work: Work) -> int:
    """Bring the stored posterior back if it is better, or restart the posterior if it is lost.

    A restart is at the leader, with a variance that matches its error, or at the origin with that of the targets if the
    truth has changed. Returns from how many of the last records it learns again.
    """
    scalar, weight = state.scalar, state.weight
    if not may_copy(config.covariance, scalar):
        return 0
    if scalar[MIRRORED] > scalar[WIDENED] + FOUND and scalar[AGE] >= FEW:
        widen(OPEN, state, work)
        scalar[WIDENED] = scalar[MIRRORED]
    if config.loss.family == LABELS:
        resize(state, work)
    shifted = is_shifted(scalar)
    if shifted:
        rescale(state, work)
    younger = scalar[AGE] < scalar[STORED_AGE]
    if not shifted and younger and weight[STORED] > max(RETURN_SHARE, 2.0 * weight[POSTERIOR]):
        copy_member(STORED, POSTERIOR, state, work)
        copy_covariance(state.stored, state.P)
        weight[POSTERIOR] += weight[STORED] - 1e-6
        weight[STORED] = 1e-6
        scalar[AGE], scalar[STORED_AGE] = scalar[STORED_AGE], 0.0
        scalar[LEAD], scalar[DOUBT] = POSTERIOR, min(FALSE_ALARM * scalar[DOUBT], MOST_DOUBT)
        scalar[OUT] = scalar[CREDIT] = 0.0
        return 0
    changed = not shifted and scalar[ODDS] > scalar[DOUBT] * (PATIENCE + scalar[SEEN])
    if scalar[AGE] < FEW or not (shifted or changed or scalar[OUT] >= LOST):
        return 0
    return restart(shifted, changed, config, state, work)


@rare
def restart(shifted: bool, changed: bool, config: Config, state: State, work: Work) -> int:
    """Restart the posterior, unless it is still learning; returns from how many of the last records it learns again."""
    scalar, lead, labels = state.scalar, int(state.scalar[LEAD]), config.loss.family == LABELS
    start, variance, count = lead, reopened(config, state.scale[lead]), LOST
    if changed:
        variance = prior_variance(config, scalar[KNOWN]) if labels else NORMAL_SCALE * scalar[SPREAD] ** 2
        start, count = ORIGIN, min(int(scalar[SINCE]), RING)
    scalar[ODDS], scalar[SINCE] = 1.0, 0.0
    # The variance of logits does not tell whether they are still being learned: it stays large.
    widening = variance / max(scalar[VARIANCE], 1e-100)
    learning = widening <= (WORTH if config.covariance.order == FULL else DIAGONAL_WORTH)
    wider = state.scale[POSTERIOR] > WIDER * state.scale[lead]
    learning &= not wider or scalar[OUT] < LOST + ENOUGH_TIME * scalar[KNOWN]
    if learning and not (shifted or labels):
        return 0
    if changed and not labels:
        forget_scales(state.cells)
    store(state, work)
    copy_member(start, POSTERIOR, state, work)
    share = reopened_share(config, variance, state)
    if shifted or config.covariance.order != FULL or labels:
        reset(config.covariance, state.P, state.feature[PRIOR], share)
        work.notes[RESET] = share
    else:
        reopen(max(widening, 1.0), max(share, 1.0), config, state, work)
    scalar[OUT] = scalar[AGE] = scalar[CREDIT] = 0.0
    state.weight[POSTERIOR] = state.weight[lead] * (1.0 if labels else RESTARTED)
    return count


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
        weight[STORED] = max(weight[STORED], 0.5 * weight[POSTERIOR])


@part
def is_shifted(scalar: Array) -> bool:
    """Whether features have another scale than what is known of them."""
    return scalar[AGE] >= FEW and not 1.0 / SHIFT <= scalar[TYPICAL] <= SHIFT


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
def reopened(config: Config, scale: float) -> float:
    """The variance of the predictions of a restarted posterior, where `scale` is that of the leader's residuals."""
    return LABEL_REOPENED if config.loss.family == LABELS else REOPENED * scale * scale


@part
def reopened_share(config: Config, variance: float, state: State) -> float:
    """The share of the prior variance with which predictions have this variance."""
    scalar, labels = state.scalar, config.loss.family == LABELS
    if config.covariance.order == FULL and not labels:
        return variance / present_variance(state)
    unit = 1.0 if labels else scalar[SIZE] * scalar[SIZE]
    return variance / (prior_variance(config, scalar[KNOWN]) * unit)
