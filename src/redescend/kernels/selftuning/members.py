"""The members: how they share the weight, move, and are copied.

Besides the mean of the posterior there are two followers, which take implicit steps in the metric of the features'
scales; three members that move in the metric of the posterior, two trackers of a truth that drifts, and one that seeks
the mode of the noise; the origin; a snapshot of the leader; and the posterior as it was before a restart, which returns
if the restart was a mistake.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import part, rare, shared
from redescend.kernels.selftuning.covariance import LEFT, subtract
from redescend.kernels.selftuning.layout import (
    AGE,
    CONSTANT,
    COUNT,
    CREDIT,
    CURVATURE,
    DUE,
    FAST_TRACKER,
    FULL,
    INFORMATION,
    KNOWN,
    LABELS,
    LEAD,
    MEMBERS,
    MODE,
    ORIGIN,
    OUT,
    POSTERIOR,
    SEEN,
    SIZE,
    SLOW,
    SNAPSHOT,
    SQUARE,
    SQUARED,
    TRACKER,
    VARIANCE,
    Config,
    Covariance,
    Loss,
    State,
    Work,
)
from redescend.kernels.selftuning.losses import follow
from redescend.kernels.selftuning.noise import PATIENCE
from redescend.numeric import Array

STEPS = np.array([1.0, 8.0])
"""Steps of the followers, in units of what fits the typical record."""

FORGETTING = np.array([0.01, 0.1])
"""The trackers move like least squares whose records count less by this part in every round."""

MODE_TIGHT = 0.5
"""The gate of the mode is one half at a residual of sqrt(MODE_TIGHT) of its own scale."""

SMALL_SHARE = 0.1
"""The origin and the trackers get this part of the share of another member, in regression. A tracker is little worse
than the posterior where nothing drifts, and would lead by chance too often."""

LOST, OUT_SHARE, WIDER, NEGLIGIBLE = 8, 0.01, 2.0, 1e-9
"""The posterior restarts at the leader after LOST rounds out of favour, and then learns as many records again. It is
out of favour if it and the members that move in its metric have less than OUT_SHARE of the weight, or if it has less
than the shares of two and its residuals are WIDER than the leader's; not if they are NEGLIGIBLE parts of a typical
target, which may be rounding errors."""


# --- moving ---


@part
def constant_share(v: Array, x: Array, centred: Array, constant: int) -> float:
    """What the constant feature gives up in a step v along centred features: theta is for features as they are."""
    total = 0.0
    for j in range(len(x)):
        total += (x[j] - centred[j]) * v[j]
    return total / x[constant]


@shared
def move_along(i: int, step: float, v: Array, state: State, work: Work) -> None:
    """theta_i += step v, for v along centred features."""
    theta, constant = state.theta, int(state.scalar[CONSTANT])
    for j in range(theta.shape[1]):
        theta[i, j] += step * v[j]
    if constant >= 0:
        theta[i, constant] -= step * constant_share(v, work.x, work.centred, constant)


@part
def move_posterior(
    y: float, g: float, h: float, c: float, counts: float, config: Config, state: State, work: Work
) -> None:
    """theta += g Px and P -= h Px(Px)', with P kept positive; the mode moves in the same metric."""
    if c > 0.0:
        h = min(h, (1.0 - LEFT) / c)
        move_along(POSTERIOR, g, work.Px, state, work)
        subtract(config.covariance, state.P, h, work.Px)
        if config.loss.family == SQUARED:
            move_mode(y, h, c, counts, state, work)


@part
def move_mode(y: float, h: float, c: float, counts: float, state: State, work: Work) -> None:
    """A Newton step of a tight Cauchy loss, implicit, where h and c are those of the posterior."""
    scalar, r = state.scalar, y - work.predictions[MODE]
    near, width = counts * max(1.0 / (scalar[AGE] + 4.0), 1e-3), MODE_TIGHT * state.scale[MODE] ** 2
    gate = width / (width + r * r)
    scalar[INFORMATION] += near * (max(h / (1.0 - h * c), 0.0) - scalar[INFORMATION])
    scalar[CURVATURE] += near * (gate * (2.0 * gate - 1.0) - scalar[CURVATURE])
    e = counts * scalar[INFORMATION] / max(scalar[CURVATURE], 0.15) * gate
    move_along(MODE, e * r / (1.0 + e * c), work.Px, state, work)


@part
def move_followers(y: float, c: float, counts: float, config: Config, state: State, work: Work) -> None:
    """Implicit steps in the metric D of the features' mean squares, of trackers in P, behind the members' gates."""
    feature, scalar, Dx, far = state.feature, state.scalar, work.Dx, 0.0
    seen = scalar[SEEN]
    for j in range(len(Dx)):
        usual = feature[SQUARE, j] * feature[COUNT, j]
        Dx[j] = work.centred[j] * seen / usual if usual > 0.0 else 0.0
    for j in range(len(Dx)):
        far += work.centred[j] * Dx[j]
    unit = scalar[KNOWN] / scalar[VARIANCE] if scalar[VARIANCE] > 0.0 else 0.0
    for f in range(2):
        follow_record(SLOW + f, y, counts * STEPS[f] / max(scalar[KNOWN], far), far, Dx, config.loss, state, work)
        follow_record(TRACKER + f, y, counts * FORGETTING[f] * unit, c, work.Px, config.loss, state, work)


@part
def follow_record(i: int, y: float, step: float, far: float, v: Array, loss: Loss, state: State, work: Work) -> None:
    """An implicit step of a member along v, by which its prediction would move by `far` at step 1."""
    if state.weight[i] > 0.0:
        e = step * work.gate[i]
        move_along(i, follow(loss, y, work.predictions[i], e, far, state.scale[i]), v, state, work)


# --- weights ---


@part
def first_weight(loss: Loss, i: int) -> float:
    """The weight of a member at the start; those without weight are not active. They need not add up to 1."""
    if loss.family == LABELS:
        return 0.8 if i == POSTERIOR else 2e-6 / 3.0 if i == SLOW else 0.2 / 3.0 if i == ORIGIN else 0.0
    active = i <= ORIGIN and (i != MODE or loss.family == SQUARED)
    return 0.5 if i == POSTERIOR else 0.2 if i == ORIGIN else 0.1 if active else 0.0


@part
def part_of_share(loss: Loss, i: int) -> float:
    """The part of the share of a round that a member gets."""
    small = i in (ORIGIN, TRACKER, FAST_TRACKER)
    return SMALL_SHARE if small and loss.family != LABELS else 1.0


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
            weight[i] = (1.0 - share) * played[i] + share / active * part_of_share(config.loss, i)
            if weight[i] > weight[lead] * (1.0 + 1e-9):
                lead = i
    state.scalar[LEAD] = lead
    return share / active


@rare
def copy_member(source: int, target: int, state: State, work: Work) -> None:
    """Copy a model and its scale; `work.notes` has the source for features that are not at hand."""
    for j in range(state.theta.shape[1]):
        state.theta[target, j] = state.theta[source, j]
    state.scale[target] = state.scale[source]
    work.notes[target] = 1.0 + source


@part
def renew_members(floor: float, config: Config, state: State, work: Work) -> None:
    """Copy the leader to members that are out of favour, and to the snapshot when one is due."""
    weight, scalar = state.weight, state.scalar
    lead = int(scalar[LEAD])
    if may_copy(config.covariance, scalar):
        for i in range(SLOW, MODE + 1):
            if i != lead and 0.0 < weight[i] < 2.0 * floor * part_of_share(config.loss, i):
                copy_member(lead, i, state, work)
                scalar[CREDIT] = 0.0
    if scalar[SEEN] >= scalar[DUE]:
        scalar[DUE] = np.floor(1.25 * scalar[DUE]) + 1.0
        if lead != SNAPSHOT and weight[SNAPSHOT] <= 0.5:
            # The leader speaks for the former snapshot in the next round: what is played adds up to 1.
            copy_member(lead, SNAPSHOT, state, work)
            weight[SNAPSHOT] = floor
    own = weight[POSTERIOR]
    wider = state.scale[POSTERIOR] > WIDER * state.scale[lead]
    near = own + weight[TRACKER] + weight[FAST_TRACKER] + weight[MODE]
    out = near < max(2.0 * floor, OUT_SHARE) or (own < 2.0 * floor and wider)
    exact = state.scale[POSTERIOR] <= NEGLIGIBLE * scalar[SIZE]
    scalar[OUT] = scalar[OUT] + 1.0 if out and not exact else 0.0


@part
def may_copy(covariance: Covariance, scalar: Array) -> bool:
    """Whether work that costs all features is allowed.

    At order 1 once as many non-zeros were seen as there are features, so that it costs no more than sparse records.
    """
    return covariance.order == FULL or scalar[CREDIT] >= covariance.dim
