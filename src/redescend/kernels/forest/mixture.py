"""The members of a non-linear model, weighed by Bayes' rule: the linear one, two forests, and a stack of these."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from redescend.kernels.compiler import kernel, part, uncounted
from redescend.kernels.forest.growing import is_right, sigmoid
from redescend.kernels.forest.layout import FIRST_RATE
from redescend.kernels.forest.rounds import FAST_RATE, LEAST_RATE, MOST_RATE
from redescend.numeric import Array
from redescend.state import ArraySpec

MEMBERS = 4
"""The linear member, the forest on the target, the linear member with the forest on what it leaves, and the stack."""

PRIOR = (0.91, 0.03, 0.03, 0.03)
"""First weights: forests and stack have much to learn."""

PATIENCE = 1000.0
"""In round t, a share of 1/(PATIENCE + t) of the weight is spread over all members."""

FAR = 20.0
"""A residual counts at most FAR scales."""

LIGHT = 0.1
"""A member with less than this share of the largest weight is left out of the mean of numbers."""

EVIDENCE, MEMORY, BOUND = 2.5, 0.001, 1e300
"""So is a member whose absolute errors, on the mean of the last 1 / MEMORY records or so, are larger than the linear
one's: weights depend on typical errors, but a mean on the largest. Of fewer records n, they must be smaller, by
EVIDENCE·(1/√n − √MEMORY) of the distance between both: a mean of n differences within the distance is as uncertain."""

GAIN, CLEAR, OFTEN = 0.5, 4.0, 0.25
"""So is a member, also the linear one, that gains less than this share of what the best one does, for which there is
CLEAR times as much evidence. It is the best one only if it is nearer to the target than the linear one at least this
OFTEN: a smaller part of the records may be errors, in which a member that loses on all others gains."""

REACTION, SMALL, LEAST_RATIO = 0.02, 0.05, 1e-3
"""How fast scales follow residuals. Those of less than SMALL scales count by their logarithm, from LEAST_RATIO on, so
that scales shrink fast enough where a member becomes exact, and it takes over."""

COUNT, RATE, MIXTURE_SCALARS = range(3)
"""Rounds so far, and the share of flipped labels."""


class Mixture(NamedTuple):
    """Of every output: the weights of members, those that were played, their scales of residuals, and scalars.

    `cost` is the mean of by how much a member's absolute errors are larger than those of the linear one, and `distance`
    that of how far its predictions are away. `nearer` is the share of records to which it was nearer.
    """

    weight: Array
    played: Array
    scale: Array
    cost: Array
    distance: Array
    nearer: Array
    scalar: Array


SPECS = (
    ArraySpec("weight", ("outputs", MEMBERS), low=0.0, high=1.0),
    ArraySpec("played", ("outputs", MEMBERS), low=0.0, high=1.0),
    ArraySpec("scale", ("outputs", MEMBERS), low=0.0),
    ArraySpec("cost", ("outputs", MEMBERS), low=-2.0 * BOUND, high=2.0 * BOUND),
    ArraySpec("distance", ("outputs", MEMBERS), low=0.0, high=2.0 * BOUND),
    ArraySpec("nearer", ("outputs", MEMBERS), low=0.0, high=1.0),
    ArraySpec(
        "scalar",
        (MIXTURE_SCALARS, "outputs"),
        parts={COUNT: ArraySpec("scalar (count)", kind="count"), RATE: ArraySpec("scalar (rate)", low=0.0, high=0.5)},
    ),
)


@part
def follow_scales(y: float, p: Array, count: float, scale: Array) -> None:
    """The scale of the residuals of every member, at least that of rounding errors of its prediction."""
    gain = max(4.0 / (count + 8.0), REACTION)
    for i in range(MEMBERS):
        r = min(abs(y - p[i]), 1e140)
        s = max(scale[i] if scale[i] > 0.0 else r, 1e-12 * min(abs(p[i]), 1e140) + 1e-140)
        if r < SMALL * s:
            scale[i] = s * max(r / s, LEAST_RATIO) ** gain
        else:
            scale[i] = s * (1.0 + gain * (r * r - s * s) / (r * r + s * s))


@part
def follow_costs(y: float, p: Array, k: int, counts: float, mixture: Mixture) -> None:
    """What it has cost to predict otherwise than the linear member.

    A target that is far from both, FAR times as far as they are apart, does not tell which one is better, and a record
    with wild features little: the linear member is wrong there, however right it is elsewhere.
    """
    scale, cost, distance, nearer = mixture.scale[k], mixture.cost[k], mixture.distance[k], mixture.nearer[k]
    gain, linear = counts * max(1.0 / (mixture.scalar[COUNT, k] + 1.0), MEMORY), min(abs(y - p[0]), BOUND)
    for i in range(MEMBERS):
        apart = min(abs(p[i] - p[0]), BOUND)
        size = min(abs(y - p[i]), BOUND)
        far = min(size, linear) > FAR * max(apart, scale[0], scale[i])
        larger = 0.0 if far else min(max(size - linear, -apart), apart)
        cost[i] += gain * (larger - cost[i])
        distance[i] += gain * (apart - distance[i])
        nearer[i] += gain * ((1.0 if size < linear else 0.0) - nearer[i])


@part
def has_paid(cost: float, distance: float, count: float, evidence: float) -> bool:
    """Whether it has paid to predict otherwise than the linear member; not before that was tried."""
    doubt = evidence * max(1.0 / sqrt(count + 1.0) - sqrt(MEMORY), 0.0)
    return distance > 0.0 and cost <= -doubt * distance


@part
def find_least_cost(cost: Array, distance: Array, nearer: Array, count: float) -> float:
    """The cost of the member with which it has clearly paid most; 0 if there is none."""
    least = 0.0
    for i in range(MEMBERS):
        if nearer[i] >= OFTEN and has_paid(cost[i], distance[i], count, CLEAR * EVIDENCE):
            least = min(least, cost[i])
    return least


@part
def is_usable(i: int, cost: Array, distance: Array, count: float, least: float) -> bool:
    """Whether a member may count in the mean of numbers."""
    return cost[i] <= GAIN * least and (i == 0 or has_paid(cost[i], distance[i], count, EVIDENCE))


@part
def weigh(y: float, p: Array, k: int, counts: float, labels: bool, mixture: Mixture) -> None:
    """Bayes' rule, with a likelihood of Cauchy's for numbers, cut off far out; then a share of the weight for all.

    The likelihood of a number is taken to the power of how far its record counts.
    """
    weight, played, scale, scalar = mixture.weight[k], mixture.played[k], mixture.scale[k], mixture.scalar
    cost, distance = mixture.cost[k], mixture.distance[k]
    rate, total, largest, kept = scalar[RATE, k], 0.0, 0.0, 0.0
    least = find_least_cost(cost, distance, mixture.nearer[k], scalar[COUNT, k])
    for i in range(MEMBERS):
        if labels:
            weight[i] *= rate + (1.0 - 2.0 * rate) * sigmoid(y * p[i])
        else:
            s, r = scale[i], min(abs(y - p[i]), FAR * scale[i])
            likelihood = s * scale[0] / (s * s + r * r)
            weight[i] *= likelihood if counts == 1.0 else likelihood**counts
        total += weight[i]
        if labels or is_usable(i, cost, distance, scalar[COUNT, k], least):
            largest = max(largest, weight[i])
    share, light = 1.0 / (PATIENCE + scalar[COUNT, k]), 0.0 if labels else LIGHT * largest
    for i in range(MEMBERS):
        usable = labels or is_usable(i, cost, distance, scalar[COUNT, k], least)
        played[i] = weight[i] if usable and weight[i] >= light else 0.0
        kept += played[i]
        weight[i] = (1.0 - share) * (weight[i] / total if total > 0.0 else 1.0 / MEMBERS) + share / MEMBERS
    for i in range(MEMBERS):
        played[i] = played[i] / kept if kept > 0.0 else 1.0 / MEMBERS
    scalar[COUNT, k] += 1.0


@kernel
def mix(
    mixture: Mixture, members: Array, Y: Array, sample_weight: Array, counts: Array, labels: bool, out: Array
) -> None:
    """Write the prediction of the mean for every output and row, and learn from rows whose weight is not 0.

    `members` has their predictions, for every output and row, and `counts` how far a row counts for numbers.
    """
    mixture, members, out = uncounted(mixture), uncounted(members), uncounted(out)
    for k in range(len(Y)):
        played, scalar = mixture.played[k], mixture.scalar
        for row in range(len(sample_weight)):
            y, p, total = Y[k, row], members[k, row], 0.0
            for i in range(MEMBERS):
                total += played[i] * p[i]
            out[k, row] = total
            if sample_weight[row] > 0.0:
                if labels:
                    rate = scalar[RATE, k]
                    near = max(FAST_RATE, 1.0 / (100.0 + scalar[COUNT, k]))
                    rate += (1.0 - is_right(sigmoid(y * total), rate) - rate) * near
                    scalar[RATE, k] = min(max(rate, LEAST_RATE), MOST_RATE)
                else:
                    follow_scales(y, p, scalar[COUNT, k], mixture.scale[k])
                    follow_costs(y, p, k, counts[k, row], mixture)
                weigh(y, p, k, counts[k, row], labels, mixture)


def new_mixture(outputs: int) -> Mixture:
    """The mixture before the first record."""
    scalar = np.zeros((MIXTURE_SCALARS, outputs))
    scalar[RATE] = FIRST_RATE
    prior, (scale, cost, distance, nearer) = np.tile(PRIOR, (outputs, 1)), np.zeros((4, outputs, MEMBERS))
    return Mixture(prior, prior.copy(), scale, cost, distance, nearer, scalar)
