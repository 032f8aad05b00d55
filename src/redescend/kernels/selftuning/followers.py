"""Followers: implicit steps from timid to bold, with one length for all features and with one for each."""

from __future__ import annotations

from redescend.kernels.compiler import inlined, muladd
from redescend.kernels.layout import Rows
from redescend.kernels.selftuning.layout import (
    FARTHEST,
    FOLLOWERS,
    HUGE,
    LONGEST,
    MEMORY,
    NORMS,
    RATIO,
    READY,
    RESOLUTION,
    SEEN,
    SPREAD,
    Lengths,
    Scratch,
    Settings,
    State,
)
from redescend.losses import likelihood
from redescend.numeric import Array


@inlined
def within(value: float, limit: float) -> float:
    """The value, or the limit of its sign: no record makes an action infinite."""
    return min(max(value, -limit), limit)


@inlined
def median(values: Array, count: int) -> float:
    """The lower median of the first values."""
    for i in range(count):
        below = upto = 0
        for j in range(count):
            below += values[j] < values[i]
            upto += values[j] <= values[i]
        if below <= (count - 1) // 2 < upto:
            return values[i]
    return values[0]


@inlined
def measure(
    X: Array, row: int, norm2: float, norms: Array, squares: Array, counts: Array, scalars: Array, metric: Array
) -> tuple[float, float, float]:
    """Follow the scale of records and of features.

    Returns the typical ‖x‖², Σ x_j²·metric_j and how many features have a metric: 1/(N·mean of x_j²/N), with N the
    larger of ‖x‖² and the typical one, so that a record a thousand times too long leaves no mark.
    """
    seen = int(scalars[SEEN])
    norms[seen % NORMS] = norm2
    scalars[SEEN] = seen + 1.0
    typical = median(norms, min(seen + 1, NORMS))
    inverse = 1.0 / max(typical, norm2)
    scaled = ready = 0.0
    for j in range(len(squares)):
        share = X[row, j] * X[row, j] * inverse
        if share > 0.0 or counts[j] >= READY:
            counts[j] = min(counts[j] + 1.0, MEMORY)
            squares[j] += (share - squares[j]) / counts[j]
        metric[j] = 0.0
        if counts[j] >= READY:
            one = 1.0 / max(squares[j], RESOLUTION)
            ready += 1.0
            metric[j] = inverse * one
            scaled += share * one
    return typical, scaled, ready


@inlined
def follow(
    s: Settings, now: Scratch, rows: Rows, row: int, lengths: Lengths, metric: Array, state: State, spared: int
) -> None:
    """Take one implicit step of every follower, on its own gate; l2 spares the last `spared` features.

    Σ x_j²·metric_j is `scaled`, or `longer` with the longer steps of new features.
    """
    X, y, thetas, spread = rows.X, rows.y[row], state.thetas, state.scalars[SPREAD]
    penalised = len(metric) - spared
    length = LONGEST
    for k in range(FOLLOWERS):
        e = length * now.gates[k] / max(lengths.typical, lengths.norm2)
        move = within(likelihood.implicit_move(s.kind, s.c, now.predictions[k], y, e, lengths.norm2, spread), HUGE)
        keep = 1.0 / (1.0 + s.l2 * e)
        for j in range(penalised):
            thetas[k, j] = within(muladd(move, X[row, j], keep * thetas[k, j]), FARTHEST)
        for j in range(penalised, len(metric)):
            thetas[k, j] = within(muladd(move, X[row, j], thetas[k, j]), FARTHEST)
        if lengths.scaled > 0.0:
            i = FOLLOWERS + k
            e = length * now.gates[i] / max(lengths.ready, lengths.scaled)
            move = within(likelihood.implicit_move(s.kind, s.c, now.predictions[i], y, e, lengths.longer, spread), HUGE)
            keep = 1.0 / (1.0 + s.l2 * e)
            for j in range(penalised):
                thetas[i, j] = within(muladd(move, X[row, j] * metric[j], keep * thetas[i, j]), FARTHEST)
            for j in range(penalised, len(metric)):
                thetas[i, j] = within(muladd(move, X[row, j] * metric[j], thetas[i, j]), FARTHEST)
        length *= RATIO
