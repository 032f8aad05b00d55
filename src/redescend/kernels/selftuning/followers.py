"""Followers: implicit steps from timid to bold, with one length for all features and with one for each."""

from __future__ import annotations

from redescend.kernels.compiler import inlined, muladd
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
    kind: int,
    c: float,
    l2: float,
    X: Array,
    row: int,
    y: float,
    norm2: float,
    typical: float,
    scaled: float,
    longer: float,
    ready: float,
    metric: Array,
    predictions: Array,
    gates: Array,
    spread: float,
    thetas: Array,
    spared: int = 0,
) -> None:
    """One implicit step of every follower, on its own gate; l2 spares so many of the last features.

    Σ x_j²·metric_j is `scaled`, or `longer` where the metric of new features is.
    """
    penalised = len(metric) - spared
    length = LONGEST
    for k in range(FOLLOWERS):
        e = length * gates[k] / max(typical, norm2)
        move = within(likelihood.implicit_move(kind, c, predictions[k], y, e, norm2, spread), HUGE)
        keep = 1.0 / (1.0 + l2 * e)
        for j in range(penalised):
            thetas[k, j] = within(muladd(move, X[row, j], keep * thetas[k, j]), FARTHEST)
        for j in range(penalised, len(metric)):
            thetas[k, j] = within(muladd(move, X[row, j], thetas[k, j]), FARTHEST)
        if scaled > 0.0:
            i = FOLLOWERS + k
            e = length * gates[i] / max(ready, scaled)
            move = within(likelihood.implicit_move(kind, c, predictions[i], y, e, longer, spread), HUGE)
            keep = 1.0 / (1.0 + l2 * e)
            for j in range(penalised):
                thetas[i, j] = within(muladd(move, X[row, j] * metric[j], keep * thetas[i, j]), FARTHEST)
            for j in range(penalised, len(metric)):
                thetas[i, j] = within(muladd(move, X[row, j] * metric[j], thetas[i, j]), FARTHEST)
        length *= RATIO
