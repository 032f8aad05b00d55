"""Groups of experts: their layout, radii and weights.

The experts of a group have the same step and the same iterate. They differ in their radius unit·2^j alone,
j = low..high, and none has reached its edge yet. When the iterate leaves a ball, the experts of the balls that it left
split off, each to the edge of its own.
"""

from __future__ import annotations

from math import ldexp
from typing import TypeAlias

import numpy as np

from redescend.kernels.compiler import compiled, inlined, muladd, summing
from redescend.kernels.descent.projected import project
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
