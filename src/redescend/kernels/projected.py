"""The plain loop, for every domain: predict, decide, move, project.

The action is written out in every round, so that between calls keep = 1 and move = 0.
"""

from __future__ import annotations

import numpy as np

from redescend import domains, gates
from redescend.kernels import layout
from redescend.kernels.compiler import compiled, muladd, summing
from redescend.kernels.descent import decide, is_playable, read_settings, view_memory
from redescend.numeric import Array


@compiled
def project(theta: Array, code: Array) -> Array:
    """Find the nearest point of the domain with this code.

    Compiled once for all the loops that call it: it takes longer to compile than a loop.
    """
    return domains.project(theta, code)


@summing
def inner_products(X: Array, row: int, theta: Array) -> tuple[float, float]:
    """⟨x, θ⟩ and ‖x‖², in double precision."""
    p = xx = 0.0
    for j in range(len(theta)):
        x = np.float64(X[row, j])
        p += x * theta[j]
        xx += x * x
    return p, xx


@compiled
def run(X: Array, y: Array, pair: Array, config: Array, out: tuple[Array, ...]) -> int:
    """Play the rows of X until one cannot be played; see `radial.run`."""
    losses, weights, predictions, actions = out
    rows, dim = X.shape
    s = read_settings(config)
    memory = view_memory(config)
    domain = config[layout.DOMAIN :]
    t, travelled, tt = int(config[layout.ROUNDS]), config[layout.TRAVELLED], config[layout.NORM2]
    theta = pair[0]

    for row in range(rows):
        p, xx = inner_products(X, row, theta)
        target = y[row]
        f, weight, length, travelled_now, keep, move = decide(s, memory, t, travelled, p, xx, tt, target)
        moved = np.empty(dim)
        for j in range(dim):
            moved[j] = muladd(keep, np.float64(theta[j]), -(move * np.float64(X[row, j])))
        length2 = np.dot(moved, moved)
        if not is_playable(s, p, xx, target, length, move, X.dtype.type(length2)):
            return row

        if len(actions):
            actions[row] = theta
        if len(predictions):
            predictions[row] = p
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
        config[layout.ROUNDS], config[layout.TRAVELLED], config[layout.NORM2] = t, travelled, tt
    return rows


@compiled
def run_one(x: Array, target: float, pair: Array, config: Array) -> tuple[float, float]:
    """Play one record; see `radial.run_one`."""
    out = np.zeros(1), np.full(1, layout.UNPLAYED), np.empty(0), np.empty((0, len(x)), x.dtype)
    run(x.reshape(1, len(x)), np.array([target]), pair, config, out)
    return out[0][0], out[1][0]
