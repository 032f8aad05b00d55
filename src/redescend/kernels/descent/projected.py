"""The plain loop, for every domain: predict, decide, move, project.

The action is carried out in full in every round, so that at rest keep = 1 and move = 0.
"""

from __future__ import annotations

import numpy as np

from redescend import gates
from redescend.kernels import layout
from redescend.kernels.compiler import compiled, muladd, summing
from redescend.kernels.descent.decision import decide, memory_of, playable, settings_of
from redescend.kernels.descent.projection import project
from redescend.numeric import Array


@summing
def products(X: Array, row: int, theta: Array) -> tuple[float, float]:
    """⟨x, θ⟩ and ‖x‖², in double precision."""
    p = xx = 0.0
    for j in range(len(theta)):
        x = np.float64(X[row, j])
        p += x * theta[j]
        xx += x * x
    return p, xx


@compiled
def run(X: Array, y: Array, pair: Array, numbers: Array, losses: Array, weights: Array, actions: Array) -> int:
    """Play the rows of X until one cannot be played; see `radial.run`."""
    rows, dim = X.shape
    s = settings_of(numbers)
    memory = memory_of(numbers)
    domain = numbers[layout.DOMAIN :]
    t, travelled, tt = int(numbers[layout.ROUNDS]), numbers[layout.TRAVELLED], numbers[layout.NORM2]
    theta = pair[0]

    for row in range(rows):
        p, xx = products(X, row, theta)
        target = y[row]
        f, weight, length, travelled_now, keep, move = decide(s, memory, t, travelled, p, xx, tt, target)
        moved = np.empty(dim)
        for j in range(dim):
            moved[j] = muladd(keep, np.float64(theta[j]), -(move * np.float64(X[row, j])))
        length2 = np.dot(moved, moved)
        if not playable(s, p, xx, target, length, move, X.dtype.type(length2)):
            return row

        if len(actions):
            actions[row] = theta
        gates.remember(s.gate, memory, length)
        travelled = travelled_now
        losses[row] = f
        weights[row] = weight
        if weight > 0.0:
            moved = project(moved, domain)
            tt = np.dot(moved, moved)
            for j in range(dim):
                theta[j] = moved[j]
        t += 1
        numbers[layout.ROUNDS], numbers[layout.TRAVELLED], numbers[layout.NORM2] = t, travelled, tt
    return rows


@compiled
def run_one(x: Array, target: float, pair: Array, numbers: Array) -> tuple[float, float]:
    """Play one record; see `radial.run_one`."""
    loss, weight = np.zeros(1), np.full(1, layout.UNPLAYED)
    run(x.reshape(1, len(x)), np.array([target]), pair, numbers, loss, weight, np.empty((0, len(x)), x.dtype))
    return loss[0], weight[0]
