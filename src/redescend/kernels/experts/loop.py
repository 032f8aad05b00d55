"""The compiled round of many descents, each in its own ball; their weighted mean is played."""

from __future__ import annotations

import numpy as np

from redescend import transforms
from redescend.kernels.compiler import compiled, inlined, muladd
from redescend.kernels.descent.decision import penalised_loss
from redescend.kernels.experts import groups as layout
from redescend.losses import linear
from redescend.numeric import Array

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
        counters[layout.SCALES] += 1.0
        counters[layout.LOG_SCALE] = update_log_median(counters[layout.LOG_SCALE], counters[layout.SCALES], scale)
    if counters[layout.SCALES] == 0.0:
        return 0.0
    counters[layout.NORMS] += 1.0
    counters[layout.LOG_NORM2] = update_log_median(counters[layout.LOG_NORM2], counters[layout.NORMS], norm2)
    return max(np.exp(counters[layout.LOG_NORM2]), norm2) / np.exp(counters[layout.LOG_SCALE]) + l2


@inlined
def step_factor(meta: float, step: float, curvature: float, transform: int, c: float, b: float) -> float:
    """The factor of a step in this round."""
    if meta == layout.CENTRED:
        return 1.0 + 8.0 * step * curvature
    if meta == layout.ADAPTIVE:
        return 1.0 / (curvature * transforms.weight(transform, c, b, 0.0))
    return 1.0


@compiled
def finish(state: layout.State, config: layout.Config, moved: Array, losses: Array, gates: Array, origin: float) -> int:
    """Finish a round: weigh the experts by their losses, and place them where they moved, each within its ball."""
    thetas, groups, counters, expert_weights = state
    settings, code = config
    count, dim = int(counters[layout.GROUPS]), thetas.shape[1]
    inside, lengths = np.empty((count, dim)), np.empty(count)
    spare = len(groups)
    for k in range(count):
        layout.project_into_ball(moved[k], 0.0, np.inf, code, inside, k)
        lengths[k] = np.sqrt(layout.inner(inside[k], inside[k]))
        if not lengths[k] < FARTHEST:
            if settings[layout.META] != layout.ADAPTIVE:
                return UNPLAYABLE
            for j in range(dim):
                inside[k, j] = thetas[k, j]
            lengths[k] = 0.0
        spare -= 1 + layout.count_splits(settings, groups, k, lengths[k])
    if spare < 0:
        return FULL

    meta = settings[layout.META]
    if meta == layout.HEDGE:
        layout.update_by_hedge(groups, count, settings[layout.RATE], losses, gates)
    elif meta == layout.CENTRED:
        layout.update_by_own_rates(groups, count, settings, expert_weights, losses, origin)
    else:
        for k in range(count):
            losses[k] = transforms.learn_rise(losses[k], settings[layout.GATE_C], settings[layout.GATE_B])
        layout.update_by_adahedge(groups, count, counters, losses)
    at = count
    for k in range(count):
        for _ in range(layout.count_splits(settings, groups, k, lengths[k])):
            for field in range(groups.shape[1]):
                groups[at, field] = groups[k, field]
            groups[at, layout.HIGH] = groups[at, layout.LOW]
            layout.project_into_ball(
                moved[k], lengths[k], layout.ball_radius(settings, groups[at, layout.LOW]), code, thetas, at
            )
            groups[k, layout.LOW] += 1.0
            at += 1
        edge = layout.ball_radius(settings, groups[k, layout.LOW])
        if lengths[k] > edge:
            layout.project_into_ball(moved[k], lengths[k], edge, code, thetas, k)
        else:
            for j in range(dim):
                thetas[k, j] = inside[k, j]
    if meta == layout.CENTRED:
        layout.average_weights(groups, at, expert_weights)
    counters[layout.GROUPS] = at
    counters[layout.ROUNDS] += 1.0
    return PLAYED


@compiled
def run(X: Array, y: Array, state: layout.State, config: layout.Config, out: tuple[Array, ...]) -> tuple[int, int]:
    """Play the rows of X until one needs more groups or cannot be played; returns how many, and the outcome.

    `out` are the losses, weights, predictions and actions of `kernels.layout.Outcomes`.
    """
    thetas, groups, counters, _ = state
    settings, _ = config
    losses, weights, predictions, actions = out
    rows, dim = X.shape
    kind, c, l2 = int(settings[layout.LOSS]), settings[layout.LOSS_C], settings[layout.L2]
    transform, gate_c, gate_b = int(settings[layout.TRANSFORM]), settings[layout.GATE_C], settings[layout.GATE_B]
    margin, meta, most = settings[layout.MARGIN] != 0.0, settings[layout.META], len(groups)
    moved, paid, gates, slopes = np.empty((most, dim)), np.empty(most), np.empty(most), np.empty(most)
    for row in range(rows):
        x, target, count = X[row], y[row], int(counters[layout.GROUPS])
        action = layout.mean_action(thetas, groups, counters)
        prediction, norm2 = layout.inner(x, action), layout.inner(x, x)
        loss = penalised_loss(kind, c, l2, prediction, layout.inner(action, action), target)
        finite = abs(prediction) + abs(target) + norm2
        for k in range(count):
            p = layout.inner(x, thetas[k])
            finite += abs(p)
            paid[k] = penalised_loss(kind, c, l2, p, layout.inner(thetas[k], thetas[k]), target)
            gates[k] = transforms.weight(transform, gate_c, gate_b, paid[k])
            slopes[k] = linear.slope(kind, c, p, target)
        if not finite < np.inf or (margin and target * target != 1.0):
            return row, UNPLAYABLE

        origin, curvature = linear.value(kind, c, 0.0, target), 0.0
        if meta == layout.CENTRED:
            curvature = linear.curvature(kind) * norm2 + l2
        if meta == layout.ADAPTIVE:
            slope = linear.slope(kind, c, 0.0, target)
            curvature = update_curvature(counters, norm2, 4.0 * origin / (slope * slope) if slope != 0.0 else 0.0, l2)
        if meta != layout.ADAPTIVE or curvature > 0.0:
            for k in range(count):
                step = groups[k, layout.STEP]
                rate = gates[k] * step * step_factor(meta, step, curvature, transform, gate_c, gate_b)
                keep, move = 1.0 - rate * l2, rate * slopes[k]
                for j in range(dim):
                    moved[k, j] = muladd(keep, thetas[k, j], -(move * x[j]))
            outcome = finish(state, config, moved, paid, gates, origin)
            if outcome != PLAYED:
                return row, outcome
        else:
            counters[layout.ROUNDS] += 1.0
        losses[row] = loss
        weights[row] = transforms.weight(transform, gate_c, gate_b, loss)
        if len(predictions):
            predictions[row] = prediction
        if len(actions):
            for j in range(dim):
                actions[row, j] = action[j]
    return rows, PLAYED
