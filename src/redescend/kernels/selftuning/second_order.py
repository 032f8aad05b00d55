"""The second-order follower: recursive least squares, or a Kalman step, behind the same gate.

Only the lower triangle of P is kept, so that P is symmetric by construction.
"""

from __future__ import annotations

from redescend.kernels.compiler import compiled, muladd, summing
from redescend.kernels.layout import Rows
from redescend.kernels.selftuning.followers import within
from redescend.kernels.selftuning.layout import (
    AGE,
    FARTHEST,
    HUGE,
    READY,
    RESOLUTION,
    SPREAD,
    WIDEST,
    Scratch,
    Settings,
    State,
)
from redescend.losses import likelihood
from redescend.losses.linear import SQUARED
from redescend.numeric import Array

START, FORGETTING = 100.0, 1e-3
"""P begins at START/(d·typical x_j²); a believed round forgets this share, in the direction of its record alone.

Forgetting in all directions would let P grow where nothing is seen, until the first record there throws θ far off.
"""

SHARPEST = 1e6
"""A round assimilated while the spread was a thousand times wider counts this many times less, and no less."""

FLOOR = 1e-12
TOO_FAR = 1e100
"""From a record whose x'Px is beyond this nothing can be learned."""


@compiled
def start(P: Array, squares: Array, counts: Array, typical: float, j: int) -> None:
    """The feature j as if nothing were known of it."""
    dim = len(squares)
    for k in range(j):
        P[j, k] = 0.0
    for k in range(j + 1, dim):
        P[k, j] = 0.0
    P[j, j] = START / (dim * typical * max(squares[j], RESOLUTION)) if counts[j] >= READY else 0.0


@compiled
def restart(P: Array, squares: Array, counts: Array, typical: float, scalars: Array) -> None:
    scalars[AGE], scalars[WIDEST] = 0.0, scalars[SPREAD]
    for j in range(len(squares)):
        start(P, squares, counts, typical, j)


@summing
def times(P: Array, X: Array, row: int, out: Array) -> float:
    """P·x, and x'P·x."""
    dim = len(out)
    for j in range(dim):
        out[j] = 0.0
    for j in range(dim):
        x = X[row, j]
        total = P[j, j] * x
        for k in range(j):
            total += P[j, k] * X[row, k]
            out[k] += P[j, k] * x
        out[j] += total
    quadratic = 0.0
    for j in range(dim):
        quadratic += out[j] * X[row, j]
    return quadratic


@compiled
def advance(
    s: Settings, now: Scratch, rows: Rows, row: int, typical: float, state: State, Px: Array, place: int
) -> None:
    """Take one step of the follower at this place, and of its P."""
    X, y, kind, c, p, gate = rows.X, rows.y[row], s.kind, s.c, now.predictions[place], now.gates[place]
    squares, counts, scalars, P, thetas = state.squares, state.counts, state.scalars, state.P, state.thetas
    dim, spread = len(squares), scalars[SPREAD]
    scalars[AGE] += 1.0
    scalars[WIDEST] = max(scalars[WIDEST], spread)
    for j in range(dim):
        if P[j, j] == 0.0 and counts[j] >= READY:
            start(P, squares, counts, typical, j)
    t = times(P, X, row, Px)
    if t == 0.0 or t >= TOO_FAR:
        return
    if not t > 0.0:
        restart(P, squares, counts, typical, scalars)
        return
    if kind == SQUARED:
        # Least squares weighs a record by its precision: records that came while the spread was wide count less.
        gain = gate * min((scalars[WIDEST] / spread) ** 2, SHARPEST)
        move = likelihood.implicit_move(kind, c, p, y, 0.5 * gain, t, spread)
    elif s.labels:
        pull = likelihood.logistic_pull(y * p, gate * t)
        gain = gate * likelihood.information(kind, c, pull, spread)
        move = gate * pull * y
    else:
        gain = gate * likelihood.information(kind, c, 0.0, spread)
        move = likelihood.implicit_move(kind, c, p, y, gate / (1.0 + gain * t), t, spread)
    move = within(move, HUGE)
    shrink = gain / (1.0 + gain * t) - FORGETTING * min(gate, 1.0) / t
    floor = FLOOR * START / (dim * typical)
    for j in range(dim):
        thetas[place, j] = within(muladd(move, Px[j], thetas[place, j]), FARTHEST)
        less = shrink * Px[j]
        for k in range(j + 1):
            P[j, k] -= less * Px[k]
        if counts[j] >= READY:
            scale = max(squares[j], RESOLUTION)
            P[j, j] = max(P[j, j], 0.0) + floor / scale
