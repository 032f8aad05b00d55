"""The compiled round of many descents, each in a ball of its own, their mean played."""

from __future__ import annotations

import numpy as np

from redescend import transforms
from redescend.kernels.compiler import compiled, inlined, muladd
from redescend.kernels.experts import groups as layout
from redescend.kernels.experts.groups import GROUPS, HIGH, LOW, confine, inner, mean_action, parting, radius
from redescend.kernels.experts.weighting import ADAPTIVE, CENTRED, HEDGE, adaptive, average, centred, hedge
from redescend.losses import linear
from redescend.numeric import LARGEST, Array

PLAYED, FULL, UNPLAYABLE = range(3)
# Lengths whose squares are floats.
FARTHEST = 1e150
# A running median moves by at least this factor's logarithm.
LEAST_MOVE = 0.05


@inlined
def towards(log_median: float, seen: float, number: float) -> float:
    """The running median, as a logarithm: towards the new number, by at most 2/n."""
    if seen == 1.0:
        return np.log(number)
    most = max(2.0 / seen, LEAST_MOVE)
    return log_median + min(max(np.log(number) - log_median, -most), most)


@compiled
def observe(clock: Array, norm2: float, scale: float, l2: float) -> float:
    """The curvature against which steps are measured, from the medians of ‖x‖² and of 4f/φ'² at 0; 0 where unknown.

    For the squared loss 4f/φ'² is 1; for a loss that grows linearly it has the unit of the prediction.
    """
    if not 0.0 < norm2 < FARTHEST * FARTHEST:
        return 0.0
    if 0.0 < scale < FARTHEST * FARTHEST:
        clock[layout.SCALES] += 1.0
        clock[layout.LOG_SCALE] = towards(clock[layout.LOG_SCALE], clock[layout.SCALES], scale)
    if clock[layout.SCALES] == 0.0:
        return 0.0
    clock[layout.NORMS] += 1.0
    clock[layout.LOG_NORM2] = towards(clock[layout.LOG_NORM2], clock[layout.NORMS], norm2)
    return max(np.exp(clock[layout.LOG_NORM2]), norm2) / np.exp(clock[layout.LOG_SCALE]) + l2


@inlined
def stretch(meta: float, step: float, curvature: float, transform: int, c: float, b: float) -> float:
    """What a step is multiplied by in this round."""
    if meta == CENTRED:
        return 1.0 + 8.0 * step * curvature
    if meta == ADAPTIVE:
        return 1.0 / (curvature * transforms.weight(transform, c, b, 0.0))
    return 1.0


@compiled
def settle(
    thetas: Array,
    groups: Array,
    clock: Array,
    beliefs: Array,
    numbers: Array,
    code: Array | None,
    moved: Array,
    losses: Array,
    believed: Array,
    origin: float,
) -> int:
    """Weigh the experts by the losses of what they played, then let them stand where they moved, each in its ball."""
    count, dim = int(clock[GROUPS]), thetas.shape[1]
    inside, lengths = np.empty((count, dim)), np.empty(count)
    room = len(groups)
    for k in range(count):
        confine(moved[k], 0.0, np.inf, code, inside, k)
        lengths[k] = np.sqrt(inner(inside[k], inside[k]))
        if not lengths[k] < FARTHEST:
            if numbers[layout.META] != ADAPTIVE:
                return UNPLAYABLE
            for j in range(dim):
                inside[k, j] = thetas[k, j]
            lengths[k] = 0.0
        room -= 1 + parting(numbers, groups, k, lengths[k])
    if room < 0:
        return FULL

    meta = numbers[layout.META]
    if meta == HEDGE:
        hedge(groups, count, numbers[layout.RATE], losses, believed)
    elif meta == CENTRED:
        centred(groups, count, numbers, beliefs, losses, origin)
    else:
        for k in range(count):
            losses[k] = transforms.learn_rise(losses[k], numbers[layout.GATE_C], numbers[layout.GATE_B])
        adaptive(groups, count, clock, losses)
    at = count
    for k in range(count):
        for _ in range(parting(numbers, groups, k, lengths[k])):
            for field in range(groups.shape[1]):
                groups[at, field] = groups[k, field]
            groups[at, HIGH] = groups[at, LOW]
            confine(moved[k], lengths[k], radius(numbers, groups[at, LOW]), code, thetas, at)
            groups[k, LOW] += 1.0
            at += 1
        edge = radius(numbers, groups[k, LOW])
        if lengths[k] > edge:
            confine(moved[k], lengths[k], edge, code, thetas, k)
        else:
            for j in range(dim):
                thetas[k, j] = inside[k, j]
    if meta == CENTRED:
        average(groups, at, beliefs)
    clock[GROUPS] = at
    clock[layout.ROUNDS] += 1.0
    return PLAYED


@compiled
def run(
    X: Array,
    y: Array,
    thetas: Array,
    groups: Array,
    clock: Array,
    beliefs: Array,
    numbers: Array,
    code: Array | None,
    losses: Array,
    weights: Array,
    actions: Array,
) -> tuple[int, int]:
    """Play the rows of X until one needs more room or cannot be played; returns how many were, and why no more."""
    rows, dim = X.shape
    kind, c, l2 = int(numbers[layout.LOSS]), numbers[layout.LOSS_C], numbers[layout.L2]
    transform, gate_c, gate_b = int(numbers[layout.TRANSFORM]), numbers[layout.GATE_C], numbers[layout.GATE_B]
    margin, meta, most = numbers[layout.MARGIN] != 0.0, numbers[layout.META], len(groups)
    moved, paid, believed, slopes = np.empty((most, dim)), np.empty(most), np.empty(most), np.empty(most)
    for row in range(rows):
        x, target, count = X[row], y[row], int(clock[GROUPS])
        action = mean_action(thetas, groups, clock)
        p, norm2 = inner(x, action), inner(x, x)
        loss = min(linear.value(kind, c, p, target) + 0.5 * l2 * inner(action, action), LARGEST)
        finite = abs(p) + abs(target) + norm2
        for k in range(count):
            p = inner(x, thetas[k])
            finite += abs(p)
            paid[k] = min(linear.value(kind, c, p, target) + 0.5 * l2 * inner(thetas[k], thetas[k]), LARGEST)
            believed[k] = transforms.weight(transform, gate_c, gate_b, paid[k])
            slopes[k] = linear.slope(kind, c, p, target)
        if not finite < np.inf or (margin and target * target != 1.0):
            return row, UNPLAYABLE

        origin, curvature = linear.value(kind, c, 0.0, target), 0.0
        if meta == CENTRED:
            curvature = linear.curvature(kind) * norm2 + l2
        if meta == ADAPTIVE:
            slope = linear.slope(kind, c, 0.0, target)
            curvature = observe(clock, norm2, 4.0 * origin / (slope * slope) if slope != 0.0 else 0.0, l2)
        if meta != ADAPTIVE or curvature > 0.0:
            for k in range(count):
                step = groups[k, layout.STEP]
                rate = believed[k] * step * stretch(meta, step, curvature, transform, gate_c, gate_b)
                keep, move = 1.0 - rate * l2, rate * slopes[k]
                for j in range(dim):
                    moved[k, j] = muladd(keep, thetas[k, j], -(move * x[j]))
            outcome = settle(thetas, groups, clock, beliefs, numbers, code, moved, paid, believed, origin)
            if outcome != PLAYED:
                return row, outcome
        else:
            clock[layout.ROUNDS] += 1.0
        losses[row] = loss
        weights[row] = transforms.weight(transform, gate_c, gate_b, loss)
        if len(actions):
            for j in range(dim):
                actions[row, j] = action[j]
    return rows, PLAYED
