"""Bayes weights with a fixed share over the followers and the fixed hypotheses: zero, and two snapshots of the mean.

Snapshots do not move; after a burst of outliers one of them is right again.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import inlined
from redescend.kernels.selftuning.layout import DUE, GROWTH, SHARE, SLOT
from redescend.numeric import Array

LUCK = 30.0
"""The most that a member gains on the leader in one round, as a ratio of likelihoods."""


TIED = 1.0 - 1e-9


@inlined
def leader_of(weights: Array) -> int:
    """The member with the largest weight; of those that only rounding errors tell apart, the first."""
    least = TIED * np.max(weights)
    for i in range(len(weights)):
        if weights[i] >= least:
            return i
    return 0


@inlined
def reweigh(weights: Array, logs: Array, power: float, active: float) -> int:
    """Weights times likelihood to this power, and a share for every active member; returns the leader.

    A member with weight 0 is not active. None may gain more than `LUCK` on the leader in one round: when clean records
    are narrow, an outlier that happens to meet a wrong member's prediction would else hand it the lead.
    """
    most = logs[leader_of(weights)] + np.log(LUCK)
    top = -np.inf
    for i in range(len(weights)):
        if weights[i] > 0.0:
            top = max(top, min(logs[i], most))
    # No active weight is far below its share, so that the sum is not 0.
    total = 0.0
    for i in range(len(weights)):
        if weights[i] > 0.0:
            logs[i] = weights[i] * np.exp(power * (min(logs[i], most) - top))
            total += logs[i]
    kept, share = (1.0 - SHARE) / total, SHARE / active
    for i in range(len(weights)):
        if weights[i] > 0.0:
            weights[i] = kept * logs[i] + share
    return leader_of(weights)


@inlined
def next_place(weights: Array, active: float, scalars: Array) -> int:
    """Take the two slots in turn; returns the index of this one, or −1 if it has more than half of the weight."""
    place = len(weights) - 2 + int(scalars[SLOT])
    scalars[SLOT] = 1.0 - scalars[SLOT]
    scalars[DUE] = np.floor(GROWTH * scalars[DUE]) + 1.0
    if weights[place] == 0.0:
        weights[place] = SHARE / (active + 1.0)
        total = np.sum(weights)
        for i in range(len(weights)):
            weights[i] /= total
    return place if weights[place] <= 0.5 else -1


@inlined
def take_snapshot(thetas: Array, weights: Array, active: float, mean: Array, scalars: Array) -> None:
    """Copy the mean to the next slot, unless that slot has more than half of the weight."""
    place = next_place(weights, active, scalars)
    if place >= 0:
        for j in range(len(mean)):
            thetas[place, j] = mean[j]
