"""The covariance P of the posterior: a diagonal at order 1, the lower triangle of a matrix, row by row, at order 2.

Each function has one implementation for `Diagonal` and one for `Full`; Numba compiles the one in use. No loop both sums
and stores: whether such a loop is vectorised, and so how it rounds, would depend on where arrays are in memory.
"""

from __future__ import annotations

from typing import Any

from redescend.kernels.compiler import part, specialise
from redescend.kernels.selftuning.layout import CENTRE, CONSTANT, COUNT, MEAN, SEEN, Diagonal, Full, State
from redescend.kernels.views import window
from redescend.numeric import Array

LEFT = 1e-9
"""The least part of a variance that is left by a record. Without rounding errors more is always left; with them, a
variance of nearly collinear features could fall below 0."""


def multiply(covariance: Any, P: Array, x: Array, out: Array) -> float:
    """Write P x, and return x'P x."""
    raise NotImplementedError


def subtract(covariance: Any, P: Array, h: float, v: Array) -> None:
    """P -= h v v', at order 1 of the diagonal alone; variances stay positive."""
    raise NotImplementedError


def reset(covariance: Any, P: Array, prior: Array, share: float) -> None:
    """P = share · diag(prior)."""
    raise NotImplementedError


def open_feature(covariance: Any, P: Array, j: int, variance: float) -> None:
    """Set the variance of a feature."""
    raise NotImplementedError


def read_column(covariance: Any, P: Array, j: int, out: Array) -> None:
    """Write a column of P."""
    raise NotImplementedError


def centre(covariance: Any, x: Array, state: State, out: Array) -> None:
    """Write the record with dense features centred, where a constant one takes up the difference.

    At order 1 at the running mean, and a feature that is 0 is absent and stays 0. At order 2 at a fixed value.
    """
    raise NotImplementedError


def _multiply_diagonal(covariance: Any, P: Array, x: Array, out: Array) -> float:
    total = 0.0
    for j in range(len(x)):
        out[j] = P[j] * x[j]
    for j in range(len(x)):
        total += out[j] * x[j]
    return total


def _multiply_full(covariance: Any, P: Array, x: Array, out: Array) -> float:
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


def _subtract_diagonal(covariance: Any, P: Array, h: float, v: Array) -> None:
    for j in range(len(v)):
        P[j] = max(P[j] - h * v[j] * v[j], LEFT * P[j])


def _subtract_full(covariance: Any, P: Array, h: float, v: Array) -> None:
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


def _reset_diagonal(covariance: Any, P: Array, prior: Array, share: float) -> None:
    for j in range(len(prior)):
        P[j] = share * prior[j]


def _reset_full(covariance: Any, P: Array, prior: Array, share: float) -> None:
    at = 0
    for j in range(len(prior)):
        for k in range(j):
            P[at + k] = 0.0
        P[at + j] = share * prior[j]
        at += j + 1


def _open_diagonal(covariance: Any, P: Array, j: int, variance: float) -> None:
    P[j] = variance


def _open_full(covariance: Any, P: Array, j: int, variance: float) -> None:
    P[j * (j + 3) // 2] = variance


def _column_diagonal(covariance: Any, P: Array, j: int, out: Array) -> None:
    for k in range(len(out)):
        out[k] = 0.0
    out[j] = P[j]


def _column_full(covariance: Any, P: Array, j: int, out: Array) -> None:
    for k in range(len(out)):
        high, low = max(j, k), min(j, k)
        out[k] = P[high * (high + 1) // 2 + low]


def _centre_diagonal(covariance: Any, x: Array, state: State, out: Array) -> None:
    feature, constant, seen = state.feature, int(state.scalar[CONSTANT]), state.scalar[SEEN]
    for j in range(len(x)):
        dense = constant >= 0 and j != constant and x[j] != 0.0 and feature[COUNT, j] > 0.5 * seen
        out[j] = x[j] - feature[MEAN, j] * min(1.0, feature[COUNT, j] / seen) if dense and seen > 0.0 else x[j]


def _centre_full(covariance: Any, x: Array, state: State, out: Array) -> None:
    constant = state.scalar[CONSTANT] >= 0.0
    for j in range(len(x)):
        out[j] = x[j] - state.feature[CENTRE, j] if constant else x[j]


@part
def copy_covariance(source: Array, target: Array) -> None:
    for j in range(len(source)):
        target[j] = source[j]


specialise(multiply, {Diagonal: _multiply_diagonal, Full: _multiply_full}, shared=True)
specialise(subtract, {Diagonal: _subtract_diagonal, Full: _subtract_full}, shared=True)
specialise(reset, {Diagonal: _reset_diagonal, Full: _reset_full})
specialise(open_feature, {Diagonal: _open_diagonal, Full: _open_full})
specialise(read_column, {Diagonal: _column_diagonal, Full: _column_full})
specialise(centre, {Diagonal: _centre_diagonal, Full: _centre_full})
