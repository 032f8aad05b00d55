"""One round of the self-tuning learner: play the mean, judge the record, weigh the members, let them follow."""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import compiled, inlined, summing
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.bayes import leader_of, reweigh
from redescend.kernels.selftuning.followers import follow, measure
from redescend.kernels.selftuning.kept import keep
from redescend.kernels.selftuning.newton import advance, restart
from redescend.kernels.selftuning.noise import judge, learn_noise, masses, size_of
from redescend.losses import linear
from redescend.numeric import Array

# Losses beyond this are not told apart.
WORST = layout.FARTHEST**2
# Records between these lengths are learned from; and the smallest scale that residuals can begin with.
SHORTEST2, LONGEST2, SMALLEST = 1e-200, 1e200, 1e-260


@summing
def product(X: Array, row: int, thetas: Array, i: int) -> float:
    out = 0.0
    for j in range(X.shape[1]):
        out += X[row, j] * thetas[i, j]
    return out


@summing
def length2(vectors: Array, i: int) -> float:
    out = 0.0
    for j in range(vectors.shape[1]):
        out += vectors[i, j] * vectors[i, j]
    return out


@inlined
def average(thetas: Array, weights: Array, mean: Array) -> None:
    for j in range(mean.shape[1]):
        mean[0, j] = 0.0
    for i in range(len(weights)):
        if weights[i] > 0.0:
            for j in range(mean.shape[1]):
                mean[0, j] += weights[i] * thetas[i, j]


@compiled
def action(thetas: Array, weights: Array, scalars: Array) -> Array:
    """What is played: the mean of the members, made longer where labels are less certain than it says."""
    mean = np.empty((1, thetas.shape[1]))
    average(thetas, weights, mean)
    return scalars[layout.TEMPERATURE] * mean[0]


@compiled
def run(
    X: Array,
    y: Array,
    thetas: Array,
    weights: Array,
    cells: Array,
    norms: Array,
    squares: Array,
    counts: Array,
    P: Array,
    scalars: Array,
    numbers: Array,
    prior: Array,
    rates: Array,
    losses: Array,
    believed: Array,
    actions: Array,
) -> int:
    """Play the rows of X until one cannot be played; returns how many were."""
    rows, dim = X.shape
    kind, c, l2 = int(numbers[layout.LOSS]), numbers[layout.LOSS_C], numbers[layout.L2]
    labels, share = numbers[layout.LABELS] != 0.0, numbers[layout.SHARE_CELLS]
    members, scales = len(weights), len(cells)
    second = len(P) > 0
    moving = 2 * layout.FOLLOWERS + (1 if second else 0)
    clean, outlier, metric, Px = np.empty(scales), np.empty(scales), np.empty(dim), np.empty(dim)
    mean = np.empty((1, dim))
    predictions, sizes2, paid = np.zeros(members), np.zeros(members), np.zeros(members)
    logs, gates = np.zeros(members), np.zeros(members)
    for row in range(rows):
        target, factor = y[row], scalars[layout.TEMPERATURE]
        norm2, p, active = length2(X, row), 0.0, 0.0
        for i in range(members):
            predictions[i] = sizes2[i] = 0.0
            if weights[i] > 0.0:
                active += 1.0
                predictions[i] = min(max(product(X, row, thetas, i), -layout.FARTHEST), layout.FARTHEST)
                sizes2[i] = length2(thetas, i) if l2 > 0.0 else 0.0
                p += weights[i] * predictions[i]
        if not (norm2 < LONGEST2 and abs(target) < layout.FARTHEST) or (labels and target * target != 1.0):
            return row

        due = scalars[layout.SEEN] + 1.0 >= scalars[layout.DUE]
        size2 = 0.0
        if l2 > 0.0 or due or len(actions):
            average(thetas, weights, mean)
            size2 = length2(mean, 0)
        f = min(linear.value(kind, c, factor * p, target) + 0.5 * l2 * factor * factor * size2, WORST)
        losses[row], believed[row] = f, 1.0
        if len(actions):
            for j in range(dim):
                actions[row, j] = factor * mean[0, j]
        scalars[layout.ROUNDS] += 1.0
        size = size_of(kind, labels, f, p, target)
        if norm2 < SHORTEST2 or (scalars[layout.LOWEST] == 0.0 and f == 0.0):
            continue
        if scalars[layout.LOWEST] == 0.0:
            scalars[layout.SPREAD] = max(size, SMALLEST)
            scalars[layout.LOWEST] = scalars[layout.SPREAD] * 2.0 ** (-scales // 2)

        typical, scaled, ready = measure(X, row, norm2, norms, squares, counts, scalars, metric)
        rate, lowest = masses(cells, rates, clean, outlier), scalars[layout.LOWEST]
        _, gate = judge(kind, c, f, size, lowest, clean, outlier, 0.0, labels)
        believed[row] = gate
        for i in range(members):
            gates[i] = gate
            if weights[i] > 0.0:
                own = linear.value(kind, c, factor * predictions[i], target) + 0.5 * l2 * factor * factor * sizes2[i]
                paid[i] = min(own, WORST)
                if labels:
                    logs[i] = np.log(rate + (1.0 - 2.0 * rate) * np.exp(-paid[i]))
                else:
                    own = size_of(kind, labels, paid[i], predictions[i], target)
                    logs[i], gates[i] = judge(kind, c, paid[i], own, lowest, clean, outlier, share, labels)
            if numbers[layout.GATED] == 0.0:
                gates[i] = 1.0
        if not labels:
            # The leader's residuals are what clean records look like; the mean's are wider while members disagree.
            leader = leader_of(weights)
            f, size = paid[leader], size_of(kind, labels, paid[leader], predictions[leader], target)
        if labels or f > 0.0:
            learn_noise(kind, c, f, size, labels, share, cells, prior, rates, scalars)

        power = min(1.0, typical / norm2) if numbers[layout.TEMPERED] != 0.0 else 1.0
        leader = reweigh(weights, logs, power, active)
        spread = scalars[layout.SPREAD]
        follow(kind, c, l2, X, row, target, norm2, typical, scaled, ready, metric, predictions, gates, spread, thetas)
        if second:
            at = moving - 1
            advance(
                kind,
                c,
                labels,
                X,
                row,
                target,
                predictions[at],
                gates[at],
                typical,
                squares,
                counts,
                scalars,
                P,
                Px,
                thetas,
                at,
            )
        if numbers[layout.COPYING] != 0.0:
            for i in range(moving):
                if weights[i] < 2.0 * layout.SHARE / active and (
                    i < 2 * layout.FOLLOWERS or scalars[layout.AGE] >= max(31.0, 4.0 * dim)
                ):
                    if i == 2 * layout.FOLLOWERS:
                        restart(P, squares, counts, typical, scalars)
                    for j in range(dim):
                        thetas[i, j] = thetas[leader, j]
        if due:
            keep(thetas, weights, active, mean[0], scalars)
        if labels and numbers[layout.WARMED] != 0.0:
            scalars[layout.TEMPERATURE] = 1.0 / min(1.0, scalars[layout.SPREAD])
    return rows
