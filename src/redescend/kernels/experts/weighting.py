"""How the losses of experts become their weights."""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import compiled, inlined
from redescend.kernels.experts.groups import GAP, GRADIENT, HIGH, LOG_WEIGHT, LOW, NORMS, PLACE, RATE, STEP, radius
from redescend.numeric import Array

HEDGE, CENTRED, ADAPTIVE = range(3)

# A round in which all lost the same up to this share says nothing: what is left are rounding errors.
TIED, UNDERFLOW = 1e-7, 1e-290
# The equation for λ is solved when a Newton step no longer changes the sum.
SOLVED, NEWTON_STEPS = 1e-13, 200


@inlined
def hedge(groups: Array, count: int, rate: float, losses: Array, believed: Array) -> None:
    """Exponential weights on trust × loss; the trust in a round is the least that any expert has."""
    trust = believed[0]
    for k in range(1, count):
        trust = min(trust, believed[k])
    best = -np.inf
    for k in range(count):
        groups[k, LOG_WEIGHT] -= min(rate * (trust * losses[k]), 1e300)
        best = max(best, groups[k, LOG_WEIGHT])
    for k in range(count):
        groups[k, LOG_WEIGHT] = max(groups[k, LOG_WEIGHT] - best, -1e300)


@inlined
def adaptive(groups: Array, count: int, clock: Array, rises: Array) -> None:
    """AdaHedge on losses that are bounded, and a share of 1/(t + 1) for all alike.

    The rate is ln K over the summed gap: how much more the mean lost than the mixture did. It finds the scale of the
    losses by itself, and the share lets an expert that was behind lead within a few rounds.
    """
    least, most = rises[0], rises[0]
    for k in range(1, count):
        least, most = min(least, rises[k]), max(most, rises[k])
    if most - least > max(TIED * most, UNDERFLOW):
        gap = clock[GAP] if clock[GAP] > 0.0 else most - least
        rate, mean, total = np.log(count) / gap, 0.0, 0.0
        for k in range(count):
            weight = np.exp(groups[k, LOG_WEIGHT])
            mean += weight * (rises[k] - least)
            total += weight * np.exp(-rate * (rises[k] - least))
        clock[GAP] = gap + max(0.0, mean + np.log(total) / rate)
        slower, powers = gap / clock[GAP], 0.0
        for k in range(count):
            groups[k, LOG_WEIGHT] = slower * (groups[k, LOG_WEIGHT] - rate * (rises[k] - least) - np.log(total))
            powers += np.exp(groups[k, LOG_WEIGHT])
        for k in range(count):
            groups[k, LOG_WEIGHT] -= np.log(powers)
    share = 1.0 / (clock[NORMS] + 1.0)
    for k in range(count):
        groups[k, LOG_WEIGHT] = np.log((1.0 - share) * np.exp(groups[k, LOG_WEIGHT]) + share / count)


@inlined
def own_rate(numbers: Array, step: float, exponent: float) -> float:
    """μ = 1/(2D(G + D/η)), the rate of the expert with step η in the ball of radius D."""
    edge = radius(numbers, exponent)
    return 0.5 / (edge * (numbers[GRADIENT] + edge / step))


@compiled
def centred(groups: Array, count: int, numbers: Array, beliefs: Array, losses: Array, origin: float) -> None:
    """Weigh every expert at its own rate by how much more it lost than the action 0, and share a little of the prior.

    q = p·exp(−(2μ/9)·(ℓ + μℓ² + λ)) with Σq = 1, then p ← (1 − β)·q + β·prior. The sum falls in λ and its logarithm is
    convex, so that Newton's method rises to the root from any λ at which the sum is at least 1.
    """
    steps, radii = beliefs.shape
    rates, excess, logs = np.empty((steps, radii)), np.empty((steps, radii)), np.log(beliefs)
    total = 0.0
    for k in range(count):
        place, lost = int(groups[k, PLACE]), min(max(losses[k] - origin, -1e140), 1e140)
        for j in range(int(groups[k, LOW]), int(groups[k, HIGH]) + 1):
            rate = own_rate(numbers, groups[k, STEP], j)
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
            beliefs[i, j] = (1.0 - numbers[RATE]) * share + numbers[RATE] * prior


@inlined
def average(groups: Array, count: int, beliefs: Array) -> None:
    """The weight of a group's experts in the mean, where each has its own."""
    for k in range(count):
        low, high = int(groups[k, LOW]), int(groups[k, HIGH])
        groups[k, LOG_WEIGHT] = np.log(np.sum(beliefs[int(groups[k, PLACE]), low : high + 1]) / (high - low + 1.0))
