"""Kept hypotheses: zero, and two snapshots of the mean. They do not move; after a burst one of them is right again."""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import inlined
from redescend.kernels.selftuning.layout import DUE, GROWTH, SHARE, SLOT
from redescend.numeric import Array


@inlined
def next_place(weights: Array, active: float, scalars: Array) -> int:
    """The two slots in turn; returns the place of this one, or −1 if more than half of the weight is on it."""
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
def keep(thetas: Array, weights: Array, active: float, mean: Array, scalars: Array) -> None:
    """A slot takes the mean, unless it is itself believed more than all others."""
    place = next_place(weights, active, scalars)
    if place >= 0:
        for j in range(len(mean)):
            thetas[place, j] = mean[j]
