"""Experts that are still the same are one group, and part when they first differ.

The experts of a group have the same step and the same iterate. They differ in their radius unit·2^j alone,
j = low..high, and none has met it yet. When the iterate leaves a ball, the experts of the balls that it left part from
the group, each on the edge of its own.
"""

from __future__ import annotations

from math import ldexp

import numpy as np

from redescend.kernels.compiler import compiled, inlined, muladd, summing
from redescend.kernels.descent.projection import project
from redescend.numeric import Array

# settings
(LOSS, LOSS_C, L2, MARGIN, TRANSFORM, GATE_C, GATE_B, META, RATE, UNIT, GRADIENT) = range(11)
SETTINGS = 11
# how many rounds were played, how many groups there are; and of adaptive weights the summed gap, and running medians
(ROUNDS, GROUPS, GAP, LOG_NORM2, NORMS, LOG_SCALE, SCALES) = range(7)
CLOCK = 7
# a group: its step and the place of that step, the exponents of its radii, the log of the weight of each of its experts
(STEP, PLACE, LOW, HIGH, LOG_WEIGHT) = range(5)


@inlined
def shares(groups: Array, count: int, out: Array) -> None:
    """The weight of each group, summing to 1."""
    total = 0.0
    for k in range(count):
        out[k] = (groups[k, HIGH] - groups[k, LOW] + 1.0) * np.exp(groups[k, LOG_WEIGHT])
        total += out[k]
    for k in range(count):
        out[k] /= total


@compiled
def mean_action(thetas: Array, groups: Array, clock: Array) -> Array:
    """The action that is played: the weighted mean of the iterates."""
    count = int(clock[GROUPS])
    share = np.empty(count)
    shares(groups, count, share)
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
def radius(numbers: Array, exponent: float) -> float:
    """unit·2^j; infinite where no float holds it, and no finite iterate reaches it."""
    return ldexp(numbers[UNIT], int(min(exponent, 4096.0)))


@inlined
def parting(numbers: Array, groups: Array, k: int, length: float) -> int:
    """How many experts part from the group k when its iterate has this length."""
    exponent = groups[k, LOW]
    while exponent < groups[k, HIGH] and radius(numbers, exponent) < length:
        exponent += 1.0
    return int(exponent - groups[k, LOW])


@inlined
def confine(point: Array, length: float, edge: float, code: Array | None, out: Array, k: int) -> None:
    """Into row k, the nearest point of the domain within the ball of radius `edge`; without a code, of the ball."""
    if code is None:
        shrink = edge / length if length > edge else 1.0
        for j in range(len(point)):
            out[k, j] = shrink * point[j]
    else:
        code[-1] = edge
        out[k] = project(point, code)
