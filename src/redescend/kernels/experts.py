"""Many descents at once, each in its own ball: groups of experts, their weights, and the round that plays their mean.

The experts of a group have the same step and the same iterate. They differ in their radius unit·2^j alone,
j = low..high, and none has reached its edge yet. When the iterate leaves a ball, the experts of the balls that it left
split off, each to the edge of its own.
"""

from __future__ import annotations

from math import ldexp
from typing import TypeAlias

import numpy as np

from redescend import transforms
from redescend.kernels.compiler import compiled, inlined, muladd, summing
from redescend.kernels.descent import penalised_loss
from redescend.kernels.projected import project
from redescend.losses import linear
from redescend.numeric import Array

# settings
(LOSS, LOSS_C, L2, MARGIN, TRANSFORM, GATE_C, GATE_B, META, RATE, UNIT, GRADIENT) = range(11)
SETTINGS = 11
# counters: rounds played, groups; for adaptive weights the summed gap, and running medians with their counts
(ROUNDS, GROUPS, GAP, LOG_NORM2, NORMS, LOG_SCALE, SCALES) = range(7)
COUNTERS = 7
# a group: its step and the index of that step, the exponents of its radii, the log of the weight of each of its experts
(STEP, PLACE, LOW, HIGH, LOG_WEIGHT) = range(5)

HEDGE, CENTRED, ADAPTIVE = range(3)

# A round in which all losses agree up to this share is ignored: the differences are rounding errors.
TIED, UNDERFLOW = 1e-7, 1e-290
# The equation for λ is solved when a Newton step no longer changes the sum.
SOLVED, NEWTON_STEPS = 1e-13, 200


State: TypeAlias = tuple[Array, Array, Array, Array]
"""Iterates and groups, both with spare rows; counters; with centred weights those of all experts, otherwise nothing.

A plain tuple, because Python passes it to a kernel faster than a NamedTuple.
"""

Config: TypeAlias = tuple[Array, Array | None]
"""The settings, and the code of the domain within a ball, or None if only the ball limits it."""


@inlined
def write_shares(groups: Array, count: int, out: Array) -> None:
    """Write the weight of each group; they sum to 1."""
    total = 0.0
    for k in range(count):
        out[k] = (groups[k, HIGH] - groups[k, LOW] + 1.0) * np.exp(groups[k, LOG_WEIGHT])
        total += out[k]
    for k in range(count):
        out[k] /= total


@compiled
def mean_action(thetas: Array, groups: Array, counters: Array) -> Array:
    """Compute the action: the weighted mean of the iterates."""
    count = int(counters[GROUPS])
    share = np.empty(count)
    write_shares(groups, count, share)
    out = np.zeros(thetas.shape[1])
    for k in range(count):
        for j in range(len(out)):
            out[j] = muladd(share[k], thetas[k, j], out[j])
    return out


@summing
def inner(left: Array, right: Array) -> float:
    out = 0.0
    for j in range(len(left)):
        out += left[j] * right[j]
    return out


@inlined
def ball_radius(settings: Array, exponent: float) -> float:
    """unit·2^j; infinite where no float holds it, and no finite iterate reaches it."""
    return ldexp(settings[UNIT], int(min(exponent, 4096.0)))


@inlined
def count_splits(settings: Array, groups: Array, k: int, length: float) -> int:
    """Count the experts that split off from group k when its iterate has this length."""
    exponent = groups[k, LOW]
    while exponent < groups[k, HIGH] and ball_radius(settings, exponent) < length:
        exponent += 1.0
    return int(exponent - groups[k, LOW])


@inlined
def project_into_ball(point: Array, length: float, edge: float, code: Array | None, out: Array, k: int) -> None:
    """Write to row k the nearest point of the domain within the ball of radius `edge`; without a code, of the ball."""
    if code is None:
        shrink = edge / length if length > edge else 1.0
        for j in range(len(point)):
            out[k, j] = shrink * point[j]
    else:
        code[-1] = edge
        out[k] = project(point, code)


@inlined
def update_by_hedge(groups: Array, count: int, rate: float, losses: Array, gates: Array) -> None:
    """Exponential weights on trust × loss; the trust in a round is the smallest gate weight of all experts."""
    trust = gates[0]
    for k in range(1, count):
        trust = min(trust, gates[k])
    best = -np.inf
    for k in range(count):
        groups[k, LOG_WEIGHT] -= min(rate * (trust * losses[k]), 1e300)
        best = max(best, groups[k, LOG_WEIGHT])
    for k in range(count):
        groups[k, LOG_WEIGHT] = max(groups[k, LOG_WEIGHT] - best, -1e300)


@inlined
def update_by_adahedge(groups: Array, count: int, counters: Array, rises: Array) -> None:
    """AdaHedge on bounded losses, with a uniform share of 1/(t + 1).

    The rate is ln K over the summed gap between the loss of the mean and that of the mixture. It adapts to the scale of
    the losses, and the share lets an expert that was behind lead within a few rounds.
    """
    least, most = rises[0], rises[0]
    for k in range(1, count):
        least, most = min(least, rises[k]), max(most, rises[k])
    if most - least > max(TIED * most, UNDERFLOW):
        gap = counters[GAP] if counters[GAP] > 0.0 else most - least
        rate, mean, total = np.log(count) / gap, 0.0, 0.0
        for k in range(count):
            weight = np.exp(groups[k, LOG_WEIGHT])
            mean += weight * (rises[k] - least)
            total += weight * np.exp(-rate * (rises[k] - least))
        counters[GAP] = gap + max(0.0, mean + np.log(total) / rate)
        slower, powers = gap / counters[GAP], 0.0
        for k in range(count):
            groups[k, LOG_WEIGHT] = slower * (groups[k, LOG_WEIGHT] - rate * (rises[k] - least) - np.log(total))
            powers += np.exp(groups[k, LOG_WEIGHT])
        for k in range(count):
            groups[k, LOG_WEIGHT] -= np.log(powers)
    share = 1.0 / (counters[NORMS] + 1.0)
    for k in range(count):
        groups[k, LOG_WEIGHT] = np.log((1.0 - share) * np.exp(groups[k, LOG_WEIGHT]) + share / count)


@inlined
def expert_rate(settings: Array, step: float, exponent: float) -> float:
    """μ = 1/(2D(G + D/η)), the rate of the expert with step η in the ball of radius D."""
    edge = ball_radius(settings, exponent)
    return 0.5 / (edge * (settings[GRADIENT] + edge / step))


@compiled
def update_by_own_rates(
    groups: Array, count: int, settings: Array, expert_weights: Array, losses: Array, origin: float
) -> None:
    """Weigh every expert at its own rate by its loss beyond that of the action 0, and mix in a little of the prior.

    q = p·exp(−(2μ/9)·(ℓ + μℓ² + λ)) with Σq = 1, then p ← (1 − β)·q + β·prior. The sum falls in λ and its logarithm is
    convex, so that Newton's method rises to the root from any λ at which the sum is at least 1.
    """
    steps, radii = expert_weights.shape
    rates, excess, logs = np.empty((steps, radii)), np.empty((steps, radii)), np.log(expert_weights)
    total = 0.0
    for k in range(count):
        place, lost = int(groups[k, PLACE]), min(max(losses[k] - origin, -1e140), 1e140)
        for j in range(int(groups[k, LOW]), int(groups[k, HIGH]) + 1):
            rate = expert_rate(settings, groups[k, STEP], j)
            rates[place, j] = rate
            excess[place, j] = lost + rate * lost * lost
            total += rate * rate
    height = -np.inf
    for i in range(steps):
        for j in range(radii):
            height = max(height, 4.5 * logs[i, j] / rates[i, j] - excess[i, j])
    for _ in range(NEWTON_STEPS):
        value = slope = 0.0
        for i in range(steps):
            for j in range(radii):
                pull = rates[i, j] / 4.5
                share = np.exp(logs[i, j] - pull * (excess[i, j] + height))
                value += share
                slope += pull * share
        change = np.log(value) * value / slope
        height += change
        if not abs(np.log(value)) > SOLVED:
            break
    for i in range(steps):
        for j in range(radii):
            share = np.exp(logs[i, j] - rates[i, j] / 4.5 * (excess[i, j] + height))
            prior = rates[i, j] * rates[i, j] / total
            expert_weights[i, j] = (1.0 - settings[RATE]) * share + settings[RATE] * prior


@inlined
def average_weights(groups: Array, count: int, expert_weights: Array) -> None:
    """Set the weight of each group to the mean of its experts' own weights."""
    for k in range(count):
        low, high = int(groups[k, LOW]), int(groups[k, HIGH])
        groups[k, LOG_WEIGHT] = np.log(
            np.sum(expert_weights[int(groups[k, PLACE]), low : high + 1]) / (high - low + 1.0)
        )


PLAYED, FULL, UNPLAYABLE = range(3)
# Lengths whose squares are floats.
FARTHEST = 1e150
# The logarithm of a running median may move by at least this much.
LEAST_MOVE = 0.05


@inlined
def update_log_median(log_median: float, count: float, number: float) -> float:
    """Move the logarithm of a running median towards that of a new number, by at most 2/count."""
    if count == 1.0:
        return np.log(number)
    most = max(2.0 / count, LEAST_MOVE)
    return log_median + min(max(np.log(number) - log_median, -most), most)


@compiled
def update_curvature(counters: Array, norm2: float, scale: float, l2: float) -> float:
    """Estimate the curvature for the steps from running medians of ‖x‖² and of 4f/φ'² at 0; 0 where unknown.

    For the squared loss 4f/φ'² is 1; for a loss that grows linearly it has the unit of the prediction.
    """
    if not 0.0 < norm2 < FARTHEST * FARTHEST:
        return 0.0
    if 0.0 < scale < FARTHEST * FARTHEST:
        counters[SCALES] += 1.0
        counters[LOG_SCALE] = update_log_median(counters[LOG_SCALE], counters[SCALES], scale)
    if counters[SCALES] == 0.0:
        return 0.0
    counters[NORMS] += 1.0
    counters[LOG_NORM2] = update_log_median(counters[LOG_NORM2], counters[NORMS], norm2)
    return max(np.exp(counters[LOG_NORM2]), norm2) / np.exp(counters[LOG_SCALE]) + l2


@inlined
def step_factor(meta: float, step: float, curvature: float, transform: int, c: float, b: float) -> float:
    """The factor of a step in this round."""
    if meta == CENTRED:
        return 1.0 + 8.0 * step * curvature
    if meta == ADAPTIVE:
        return 1.0 / (curvature * transforms.weight(transform, c, b, 0.0))
    return 1.0


@compiled
def finish(state: State, config: Config, moved: Array, losses: Array, gates: Array, origin: float) -> int:
    """Finish a round: weigh the experts by their losses, and place them where they moved, each within its ball."""
    thetas, groups, counters, expert_weights = state
    settings, code = config
    count, dim = int(counters[GROUPS]), thetas.shape[1]
    inside, lengths = np.empty((count, dim)), np.empty(count)
    spare = len(groups)
    for k in range(count):
        project_into_ball(moved[k], 0.0, np.inf, code, inside, k)
        lengths[k] = np.sqrt(inner(inside[k], inside[k]))
        if not lengths[k] < FARTHEST:
            if settings[META] != ADAPTIVE:
                return UNPLAYABLE
            for j in range(dim):
                inside[k, j] = thetas[k, j]
            lengths[k] = 0.0
        spare -= 1 + count_splits(settings, groups, k, lengths[k])
    if spare < 0:
        return FULL

    meta = settings[META]
    if meta == HEDGE:
        update_by_hedge(groups, count, settings[RATE], losses, gates)
    elif meta == CENTRED:
        update_by_own_rates(groups, count, settings, expert_weights, losses, origin)
    else:
        for k in range(count):
            losses[k] = transforms.learn_rise(losses[k], settings[GATE_C], settings[GATE_B])
        update_by_adahedge(groups, count, counters, losses)
    at = count
    for k in range(count):
        for _ in range(count_splits(settings, groups, k, lengths[k])):
            for field in range(groups.shape[1]):
                groups[at, field] = groups[k, field]
            groups[at, HIGH] = groups[at, LOW]
            project_into_ball(moved[k], lengths[k], ball_radius(settings, groups[at, LOW]), code, thetas, at)
            groups[k, LOW] += 1.0
            at += 1
        edge = ball_radius(settings, groups[k, LOW])
        if lengths[k] > edge:
            project_into_ball(moved[k], lengths[k], edge, code, thetas, k)
        else:
            for j in range(dim):
                thetas[k, j] = inside[k, j]
    if meta == CENTRED:
        average_weights(groups, at, expert_weights)
    counters[GROUPS] = at
    counters[ROUNDS] += 1.0
    return PLAYED


@compiled
def run(X: Array, y: Array, state: State, config: Config, out: tuple[Array, ...]) -> tuple[int, int]:
    """Play the rows of X until one needs more groups or cannot be played; returns how many, and the outcome.

    `out` are the losses, weights, predictions and actions of `kernels.layout.Outcomes`.
    """
    thetas, groups, counters, _ = state
    settings, _ = config
    losses, weights, predictions, actions = out
    rows, dim = X.shape
    kind, c, l2 = int(settings[LOSS]), settings[LOSS_C], settings[L2]
    transform, gate_c, gate_b = int(settings[TRANSFORM]), settings[GATE_C], settings[GATE_B]
    margin, meta, most = settings[MARGIN] != 0.0, settings[META], len(groups)
    moved, paid, gates, slopes = np.empty((most, dim)), np.empty(most), np.empty(most), np.empty(most)
    for row in range(rows):
        x, target, count = X[row], y[row], int(counters[GROUPS])
        action = mean_action(thetas, groups, counters)
        prediction, norm2 = inner(x, action), inner(x, x)
        loss = penalised_loss(kind, c, l2, prediction, inner(action, action), target)
        finite = abs(prediction) + abs(target) + norm2
        for k in range(count):
            p = inner(x, thetas[k])
            finite += abs(p)
            paid[k] = penalised_loss(kind, c, l2, p, inner(thetas[k], thetas[k]), target)
            gates[k] = transforms.weight(transform, gate_c, gate_b, paid[k])
            slopes[k] = linear.slope(kind, c, p, target)
        if not finite < np.inf or (margin and target * target != 1.0):
            return row, UNPLAYABLE

        origin, curvature = linear.value(kind, c, 0.0, target), 0.0
        if meta == CENTRED:
            curvature = linear.curvature(kind) * norm2 + l2
        if meta == ADAPTIVE:
            slope = linear.slope(kind, c, 0.0, target)
            curvature = update_curvature(counters, norm2, 4.0 * origin / (slope * slope) if slope != 0.0 else 0.0, l2)
        if meta != ADAPTIVE or curvature > 0.0:
            for k in range(count):
                step = groups[k, STEP]
                rate = gates[k] * step * step_factor(meta, step, curvature, transform, gate_c, gate_b)
                keep, move = 1.0 - rate * l2, rate * slopes[k]
                for j in range(dim):
                    moved[k, j] = muladd(keep, thetas[k, j], -(move * x[j]))
            outcome = finish(state, config, moved, paid, gates, origin)
            if outcome != PLAYED:
                return row, outcome
        else:
            counters[ROUNDS] += 1.0
        losses[row] = loss
        weights[row] = transforms.weight(transform, gate_c, gate_b, loss)
        if len(predictions):
            predictions[row] = prediction
        if len(actions):
            for j in range(dim):
                actions[row, j] = action[j]
    return rows, PLAYED
