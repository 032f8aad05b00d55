"""Bayes weights with a fixed share: who of the followers and the kept is played."""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import inlined
from redescend.kernels.selftuning.layout import SHARE
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
