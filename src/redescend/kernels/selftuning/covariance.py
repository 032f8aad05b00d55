"""The covariance P of the posterior: a diagonal at order 1, the lower triangle of a matrix, row by row, at order 2.

Both are in one kernel, which is compiled once. No loop both sums and stores: whether such a loop is vectorised, and so
how it rounds, would depend on where arrays are in memory.
"""

from __future__ import annotations

from redescend.kernels.compiler import part, shared
from redescend.kernels.selftuning.layout import CENTRE, CONSTANT, COUNT, FULL, LEVEL, MEAN, SEEN, Covariance, State
from redescend.kernels.views import window
from redescend.numeric import Array

LEFT = 1e-9
"""The least part of a variance that is left by a record. Without rounding errors more is always left; with them, a
variance of nearly collinear features could fall below 0."""

ROUNDING = 2.0**-44
"""Values that differ by a smaller part are equal up to rounding errors, such as cosines of angles that mirror each
other. As a variation, they would give a feature a tiny scale, and its next other value a wild prediction."""


@shared
def _multiply_diagonal(P: Array, x: Array, out: Array) -> float:
    total = 0.0
    for j in range(len(x)):
        out[j] = P[j] * x[j]
    for j in range(len(x)):
        total += out[j] * x[j]
    return total


@shared
def multiply_full(P: Array, x: Array, out: Array) -> float:
    """Write P x of a matrix, and return x'P x."""
    total, at, dim = 0.0, 0, len(x)
    for j in range(0, dim - 1, 2):  # two rows at a time, so that x and out are read half as often
        row, below = window(P, at, j + 1), window(P, at + j + 1, j + 2)
        a = b = 0.0
        for k in range(j):
            a += row[k] * x[k]
            b += below[k] * x[k]
        for k in range(j):
            out[k] += row[k] * x[j] + below[k] * x[j + 1]
        out[j] = a + row[j] * x[j] + below[j] * x[j + 1]
        out[j + 1] = b + below[j] * x[j] + below[j + 1] * x[j + 1]
        at += 2 * j + 3
    if dim % 2 == 1:
        a, row = 0.0, window(P, at, dim)
        for k in range(dim - 1):
            a += row[k] * x[k]
        for k in range(dim - 1):
            out[k] += row[k] * x[dim - 1]
        out[dim - 1] = a + row[dim - 1] * x[dim - 1]
    for j in range(dim):
        total += out[j] * x[j]
    return total


@shared
def _subtract_diagonal(P: Array, h: float, v: Array) -> None:
    for j in range(len(v)):
        P[j] = max(P[j] - h * v[j] * v[j], LEFT * P[j])


@shared
def subtract_full(P: Array, h: float, v: Array) -> None:
    """P -= h v v' of a matrix."""
    at, dim = 0, len(v)
    for j in range(0, dim - 1, 2):
        a, b = h * v[j], h * v[j + 1]
        row, below = window(P, at, j + 1), window(P, at + j + 1, j + 2)
        least = LEFT * row[j]
        for k in range(j + 1):
            row[k] -= a * v[k]
            below[k] -= b * v[k]
        row[j] = max(row[j], least)
        below[j + 1] = max(below[j + 1] - b * v[j + 1], LEFT * below[j + 1])
        at += 2 * j + 3
    if dim % 2 == 1:
        a, row = h * v[dim - 1], window(P, at, dim)
        least = LEFT * row[dim - 1]
        for k in range(dim):
            row[k] -= a * v[k]
        row[dim - 1] = max(row[dim - 1], least)


@part
def multiply(covariance: Covariance, P: Array, x: Array, out: Array) -> float:
    """Write P x, and return x'P x."""
    return multiply_full(P, x, out) if covariance.order == FULL else _multiply_diagonal(P, x, out)


@part
def subtract(covariance: Covariance, P: Array, h: float, v: Array) -> None:
    """P -= h v v', at order 1 of the diagonal alone; variances stay positive."""
    if covariance.order == FULL:
        subtract_full(P, h, v)
    else:
        _subtract_diagonal(P, h, v)


@part
def variance_at(covariance: Covariance, j: int) -> int:
    """Where the variance of a feature is."""
    return j * (j + 3) // 2 if covariance.order == FULL else j


@part
def reset(covariance: Covariance, P: Array, prior: Array, share: float) -> None:
    """P = share · diag(prior)."""
    for j in range(len(P)):
        P[j] = 0.0
    for j in range(len(prior)):
        P[variance_at(covariance, j)] = share * prior[j]


@part
def open_feature(covariance: Covariance, P: Array, j: int, variance: float) -> None:
    """Set the variance of a feature."""
    P[variance_at(covariance, j)] = variance


@part
def read_column(covariance: Covariance, P: Array, j: int, out: Array) -> None:
    """Write a column of P."""
    for k in range(len(out)):
        high, low = max(j, k), min(j, k)
        if covariance.order == FULL:
            out[k] = P[high * (high + 1) // 2 + low]
        else:
            out[k] = P[j] if j == k else 0.0


@part
def deviation(value: float, middle: float) -> float:
    """By how much a value differs, and 0 if only by rounding errors."""
    away = value - middle
    return away if abs(away) > ROUNDING * abs(middle) else 0.0


@part
def centre(covariance: Covariance, x: Array, state: State, out: Array) -> None:
    """Write the record with dense features centred, where a constant one takes up the difference.

    At order 1 at the running mean, and a feature that is 0 is absent and stays 0. At order 2 at a fixed value. Where
    the constant feature is larger than usual, centres are as much larger.
    """
    constant = int(state.scalar[CONSTANT])
    larger = x[constant] / state.scalar[LEVEL] if constant >= 0 else 0.0
    if covariance.order == FULL:
        for j in range(len(x)):
            out[j] = deviation(x[j], larger * state.feature[CENTRE, j])
    else:
        _centre_running(x, constant, larger, state, out)


@part
def _centre_running(x: Array, constant: int, larger: float, state: State, out: Array) -> None:
    feature, seen = state.feature, state.scalar[SEEN]
    for j in range(len(x)):
        dense = constant >= 0 and j != constant and x[j] != 0.0 and feature[COUNT, j] > 0.5 * seen
        shift = larger * feature[MEAN, j] * min(1.0, feature[COUNT, j] / seen) if dense and seen > 0.0 else 0.0
        out[j] = deviation(x[j], shift)


@part
def copy_covariance(source: Array, target: Array) -> None:
    for j in range(len(source)):
        target[j] = source[j]
