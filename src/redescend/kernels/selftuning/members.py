"""The members: how they share the weight, move, are copied, and restart.

Besides the mean of the posterior there are two followers, which take implicit steps in the metric of the features'
scales; one that seeks the mode of the noise by Newton's method in the metric of the posterior; the origin; a snapshot
of the leader; and the posterior as it was before a restart, which returns if the restart was a mistake.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from redescend.kernels.compiler import part, specialise
from redescend.kernels.selftuning.covariance import copy_covariance, read_column, reset, subtract
from redescend.kernels.selftuning.layout import (
    AGE,
    CENTRE,
    COMMON,
    CONSTANT,
    COUNT,
    CREDIT,
    CURVATURE,
    DUE,
    FAST,
    FLIPPED,
    INFORMATION,
    KNOWN,
    LARGE,
    LEAD,
    MEMBERS,
    MODE,
    NEGATED,
    ORIGIN,
    OUT,
    POSTERIOR,
    PRIOR,
    RESCALED,
    RESIDUALS,
    RING,
    SEEN,
    SIZE,
    SLOW,
    SMALLEST,
    SNAPSHOT,
    SQUARE,
    STORED,
    STORED_AGE,
    STREAK,
    TARGET,
    TYPICAL,
    UNIT,
    USUAL,
    WIDEST,
    Config,
    Diagonal,
    Full,
    Insensitive,
    Labels,
    Quantile,
    Squared,
    State,
    Work,
)
from redescend.kernels.selftuning.losses import follow
from redescend.kernels.selftuning.noise import PATIENCE, reset_mirrors
from redescend.numeric import Array

STEPS = np.array([1.0, 8.0])
"""Steps of the followers, in units of what fits the typical record."""

MODE_TIGHT = 0.5
"""The gate of the mode is one half at a residual of sqrt(MODE_TIGHT) of its own scale."""

ORIGIN_SHARE = 0.1
"""The origin gets this part of the share of another member, in regression."""

LOST, OUT_SHARE, WIDER = 8, 0.01, 2.0
"""The posterior restarts at the leader after LOST rounds out of favour, and then learns as many records again. It is
out of favour below the shares of two, and below OUT_SHARE if its residuals are WIDER than usual."""

RETURN_SHARE = 0.05
"""The stored posterior returns with this weight, if it is twice that of the posterior."""

SHIFT = 64.0
"""Features have another scale if the typical length of records, a square, is this many times as large or as small."""

MOSTLY = 0.6
"""With a larger share of mirrored records, it is the models that are mirrored."""

REOPENED, LABEL_REOPENED = 8.0, 4.0
"""Variance of a restarted posterior, in units of the leader's squared scale; of logits."""

START, LABEL_START, DIAGONAL_LABEL_START = 256.0, 60.0, 20.0
"""Prior variance of a prediction, in units of the squared typical target; of a logit at order 2, and at order 1."""


# --- moving ---


@part
def constant_share(v: Array, x: Array, centred: Array, constant: int) -> float:
    """What the constant feature gives up in a step v along centred features: theta is for features as they are."""
    total = 0.0
    for j in range(len(x)):
        total += (x[j] - centred[j]) * v[j]
    return total / x[constant]


@part
def move_along(i: int, step: float, v: Array, state: State, work: Work) -> None:
    """theta_i += step v, for v along centred features."""
    theta, constant = state.theta, int(state.scalar[CONSTANT])
    for j in range(theta.shape[1]):
        theta[i, j] += step * v[j]
    if constant >= 0:
        theta[i, constant] -= step * constant_share(v, work.x, work.centred, constant)


@part
def move_posterior(y: float, g: float, h: float, c: float, config: Config, state: State, work: Work) -> None:
    """theta += g Px and P -= h Px(Px)', with P kept positive; the mode moves in the same metric."""
    if c > 0.0:
        h = min(h, (1.0 - 1e-9) / c)
        move_along(POSTERIOR, g, work.Px, state, work)
        subtract(config.covariance, state.P, h, work.Px)
        move_mode(config.loss, y, h, c, state, work)


def move_mode(loss: Any, y: float, h: float, c: float, state: State, work: Work) -> None:
    """A Newton step of a tight Cauchy loss, implicit, where h and c are those of the posterior."""
    raise NotImplementedError


def _move_mode_squared(loss: Any, y: float, h: float, c: float, state: State, work: Work) -> None:
    scalar, r = state.scalar, y - work.predictions[MODE]
    near, width = max(1.0 / (scalar[AGE] + 4.0), 1e-3), MODE_TIGHT * state.scale[MODE] ** 2
    gate = width / (width + r * r)
    scalar[INFORMATION] += near * (max(h / (1.0 - h * c), 0.0) - scalar[INFORMATION])
    scalar[CURVATURE] += near * (gate * (2.0 * gate - 1.0) - scalar[CURVATURE])
    e = scalar[INFORMATION] / max(scalar[CURVATURE], 0.15) * gate
    move_along(MODE, e * r / (1.0 + e * c), work.Px, state, work)


def _move_mode_not(loss: Any, y: float, h: float, c: float, state: State, work: Work) -> None:
    pass


specialise(move_mode, dict.fromkeys((Quantile, Insensitive, Labels), _move_mode_not) | {Squared: _move_mode_squared})


@part
def move_followers(y: float, config: Config, state: State, work: Work) -> None:
    """Implicit steps in the metric D of the features' mean squares, behind the followers' gates."""
    feature, scalar, Dx, far = state.feature, state.scalar, work.Dx, 0.0
    seen = scalar[SEEN]
    for j in range(len(Dx)):
        usual = feature[SQUARE, j] * feature[COUNT, j]
        Dx[j] = work.centred[j] * seen / usual if usual > 0.0 else 0.0
    for j in range(len(Dx)):
        far += work.centred[j] * Dx[j]
    for f in range(2):
        i = SLOW + f
        if state.weight[i] > 0.0:
            e = STEPS[f] * work.gate[i] / max(scalar[KNOWN], far)
            move_along(i, follow(config.loss, y, work.predictions[i], e, far, state.scale[i]), Dx, state, work)


# --- weights ---


def first_weight(loss: Any, i: int) -> float:
    """The weight of a member at the start; those without weight are not active. They need not add up to 1."""
    raise NotImplementedError


def _first_weight_squared(loss: Any, i: int) -> float:
    return 0.7 if i == POSTERIOR else 0.1 if i <= ORIGIN else 0.0


def _first_weight_linear(loss: Any, i: int) -> float:
    return 0.7 if i == POSTERIOR else 0.1 if i <= FAST or i == ORIGIN else 0.0


def _first_weight_label(loss: Any, i: int) -> float:
    return 0.8 if i == POSTERIOR else 2e-6 / 3.0 if i == SLOW else 0.2 / 3.0 if i == ORIGIN else 0.0


specialise(
    first_weight,
    dict.fromkeys((Quantile, Insensitive), _first_weight_linear)
    | {Squared: _first_weight_squared, Labels: _first_weight_label},
)


def origin_share(loss: Any) -> float:
    """What the origin gets of the share of another member."""
    raise NotImplementedError


specialise(origin_share, dict.fromkeys(RESIDUALS, lambda loss: ORIGIN_SHARE) | {Labels: lambda loss: 1.0})


@part
def share_weights(total: float, config: Config, state: State) -> float:
    """Normalise, give every active member its share, and find the leader; returns the share of each."""
    weight, played, active, lead = state.weight, state.played, 0, 0
    share = 1.0 / (PATIENCE + state.scalar[SEEN])
    for i in range(MEMBERS):
        active += weight[i] > 0.0
    for i in range(MEMBERS):
        if weight[i] > 0.0:
            played[i] = weight[i] / total
            own = share / active
            if i == ORIGIN:
                own *= origin_share(config.loss)
            weight[i] = (1.0 - share) * played[i] + own
            if weight[i] > weight[lead] * (1.0 + 1e-9):
                lead = i
    state.scalar[LEAD] = lead
    return share / active


@part
def copy_member(source: int, target: int, state: State, work: Work) -> None:
    """Copy a model and its scale; `work.notes` has the source for features that are not at hand."""
    for j in range(state.theta.shape[1]):
        state.theta[target, j] = state.theta[source, j]
    state.scale[target] = state.scale[source]
    work.notes[target] = 1.0 + source


@part
def renew_members(floor: float, config: Config, state: State, work: Work) -> None:
    """Copy the leader to members that are out of favour, and to the snapshot when one is due."""
    weight, scalar, scale = state.weight, state.scalar, state.scale
    lead = int(scalar[LEAD])
    if may_copy(config.covariance, scalar):
        for i in range(SLOW, MODE + 1):
            if i != lead and 0.0 < weight[i] < 2.0 * floor:
                copy_member(lead, i, state, work)
                scalar[CREDIT] = 0.0
    if scalar[SEEN] >= scalar[DUE]:
        scalar[DUE] = np.floor(1.25 * scalar[DUE]) + 1.0
        if weight[SNAPSHOT] <= 0.5:
            copy_member(lead, SNAPSHOT, state, work)
            weight[SNAPSHOT], state.played[SNAPSHOT] = floor, 0.0
    least = max(2.0 * floor, OUT_SHARE) if is_wide(config.loss, scale[POSTERIOR], scalar[USUAL]) else 2.0 * floor
    scalar[USUAL] *= (scale[POSTERIOR] / scalar[USUAL]) ** max(1.0 / scalar[AGE], 0.01)
    scalar[OUT] = scalar[OUT] + 1.0 if weight[POSTERIOR] < least else 0.0


def is_wide(loss: Any, scale: float, usual: float) -> bool:
    """Whether the residuals of the posterior are wider than usual; logits have no scale that would say so."""
    raise NotImplementedError


specialise(
    is_wide,
    dict.fromkeys(RESIDUALS, lambda loss, scale, usual: scale > WIDER * usual)
    | {Labels: lambda loss, scale, usual: True},
)


def may_copy(covariance: Any, scalar: Array) -> bool:
    """Whether work that costs all features is allowed.

    At order 1 once as many non-zeros were seen as there are features, so that it costs no more than sparse records.
    """
    raise NotImplementedError


specialise(
    may_copy,
    {
        Diagonal: lambda covariance, scalar: scalar[CREDIT] >= covariance.dim,
        Full: lambda covariance, scalar: True,
    },
)


# --- restarts and penalty ---


@part
def recover(config: Config, state: State, work: Work) -> bool:
    """Bring the stored posterior back if it is better, or restart the posterior if it is lost; returns whether it was.

    A restart is at the leader, as wide as the leader is wrong.
    """
    scalar, weight = state.scalar, state.weight
    if not may_copy(config.covariance, scalar):
        return False
    if scalar[FLIPPED] > MOSTLY:
        negate(state, work)
        return False
    lead, shifted = int(scalar[LEAD]), is_shifted(scalar)
    if shifted:
        rescale(state, work)
    if not shifted and scalar[STORED_AGE] > 0.0 and weight[STORED] > max(RETURN_SHARE, 2.0 * weight[POSTERIOR]):
        copy_member(STORED, POSTERIOR, state, work)
        copy_covariance(state.stored, state.P)
        weight[POSTERIOR] += weight[STORED] - 1e-6
        weight[STORED] = 1e-6
        scalar[AGE], scalar[STORED_AGE] = scalar[STORED_AGE], 0.0
        scalar[LEAD], scalar[USUAL] = POSTERIOR, scalar[COMMON]
        scalar[OUT] = scalar[CREDIT] = 0.0
    elif shifted or (scalar[OUT] >= LOST and scalar[AGE] >= RING):
        store(state, work)
        copy_member(lead, POSTERIOR, state, work)
        reset(config.covariance, state.P, state.feature[PRIOR], reopened_share(config, state.scale[lead], scalar[SIZE]))
        scalar[USUAL] = state.scale[lead]
        scalar[OUT] = scalar[AGE] = scalar[CREDIT] = 0.0
        weight[lead] *= 0.5
        weight[POSTERIOR] = weight[lead]
        return True
    return False


@part
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
def negate(state: State, work: Work) -> None:
    """Change the sign of all models that move, where more records are mirrored than not; the posterior is stored."""
    store(state, work)
    for i in range(ORIGIN):
        for j in range(state.theta.shape[1]):
            state.theta[i, j] = -state.theta[i, j]
    work.notes[NEGATED] = 1.0
    reset_mirrors(state.cells, state.scalar)
    state.scalar[CREDIT] = 0.0


@part
def is_shifted(scalar: Array) -> bool:
    """Whether features have another scale than what is known of them."""
    return scalar[AGE] >= RING and not 1.0 / SHIFT <= scalar[TYPICAL] <= SHIFT


@part
def rescale(state: State, work: Work) -> None:
    """Multiply the squares of features by the typical length, and the priors of their coefficients accordingly."""
    feature, factor = state.feature, state.scalar[TYPICAL]
    for j in range(feature.shape[1]):
        if feature[SQUARE, j] > 0.0:
            feature[SQUARE, j] = max(feature[SQUARE, j] * factor, SMALLEST)
        feature[PRIOR, j] = min(feature[PRIOR, j] / factor, WIDEST)
        if feature[CENTRE, j] != 0.0:
            feature[CENTRE, j] = min(max(feature[CENTRE, j] * sqrt(factor), -LARGE), LARGE)
    work.notes[RESCALED] = factor
    state.scalar[TYPICAL], state.scalar[STREAK] = 1.0, 0.0


def prior_variance(loss: Any, covariance: Any) -> float:
    """The prior variance of a prediction, in units of the squared typical target."""
    raise NotImplementedError


def reopened_variance(loss: Any, scale: float, size: float) -> float:
    """The variance of a prediction of a restarted posterior, in the same units."""
    raise NotImplementedError


def precision(loss: Any, s: float, target: float) -> float:
    """The precision of an observation with one unit of penalty, where s is the scale of residuals."""
    raise NotImplementedError


def label_start(covariance: Any) -> float:
    """The prior variance of a logit."""
    raise NotImplementedError


specialise(label_start, {Diagonal: lambda covariance: DIAGONAL_LABEL_START, Full: lambda covariance: LABEL_START})
specialise(
    prior_variance,
    dict.fromkeys(RESIDUALS, lambda loss, covariance: START)
    | {Labels: lambda loss, covariance: label_start(covariance)},
)
specialise(
    reopened_variance,
    dict.fromkeys(RESIDUALS, lambda loss, scale, size: REOPENED * (scale / size) ** 2)
    | {Labels: lambda loss, scale, size: LABEL_REOPENED},
)
specialise(
    precision,
    {
        Squared: lambda loss, s, target: 0.5 / (s * s),
        Quantile: lambda loss, s, target: target / s,
        Insensitive: lambda loss, s, target: target / s,
        Labels: lambda loss, s, target: 1.0,
    },
)


@part
def reopened_share(config: Config, scale: float, size: float) -> float:
    """The share of the prior variance that a restarted posterior has."""
    return reopened_variance(config.loss, scale, size) / prior_variance(config.loss, config.covariance)


@part
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
