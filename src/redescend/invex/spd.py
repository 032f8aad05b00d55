r"""Symmetric positive definite matrices with the affine-invariant metric ⟨U, V⟩_P = tr(P⁻¹U P⁻¹V).

One LAPACK call solves Q·x = λ·P·x with XᵀPX = I. Then Δ² = Σ(ln λ)², and the geodesic from P to Q is
P·X·diag(λ^s)·Xᵀ·P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.linalg import lapack

from redescend.errors import DataError
from redescend.invex.space import Geodesic, Space, check_floats
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, Component

SMALLEST, LARGEST = 1e-140, 1e140
NOT_SYMMETRIC = 1e-6
NEAR = 1e-2
FLATTEST = 1e-14  # an eigenvalue below this share of the largest is rounding noise


@dataclass(frozen=True)
class SPD(Component, Space):
    """Positive definite matrices, such as covariances. The sectional curvature is at least −½.

    Parameters
    ----------
    size : int
        Number of rows of a matrix.

    Examples
    --------
    >>> space = SPD(2)
    >>> round(space.distance(np.eye(2), np.diag([1.0, np.e])), 12)
    1.0
    >>> space.between(np.eye(2), np.diag([4.0, 16.0]), 0.5).round(12)
    array([[2., 0.],
           [0., 4.]])
    """

    size: Annotated[int, AT_LEAST_ONE]
    curvature = -0.5

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Shape of a point and of a direction."""
        return (self.size, self.size)

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Dimension of the manifold."""
        return self.size * (self.size + 1) // 2

    @property
    def origin(self) -> Array:
        return np.eye(self.size)

    def distance(self, p: Array, q: Array) -> float:
        logs, _ = _log_eigenvalues(p, q)
        return math.sqrt(logs @ logs)

    def inner(self, p: Array, u: Array, v: Array) -> float:
        factor, _ = lapack.dpotrf(p, lower=1)
        first = _whiten(factor, u)
        return float(np.sum(first * (first if v is u else _whiten(factor, v))))

    def exp(self, p: Array, u: Array) -> Array:
        values, vectors = _solve_eigen(u, p)
        with np.errstate(over="ignore", invalid="ignore"):
            return _recompose(p, vectors, np.exp(values))

    def log(self, p: Array, q: Array) -> Array:
        logs, vectors = _log_eigenvalues(p, q)
        return _recompose(p, vectors, logs)

    def geodesic(self, p: Array, q: Array) -> Geodesic:
        logs, vectors = _log_eigenvalues(p, q)
        return Geodesic(math.sqrt(logs @ logs), lambda share: _recompose(p, vectors, np.exp(share * logs)))

    def check(self, name: str, point: Any) -> Array:
        array = check_floats(name, point, self.shape)
        top = np.abs(array).max()
        if top > LARGEST or np.abs(array - array.T).max() > NOT_SYMMETRIC * top:
            raise DataError(f"{name} must be a symmetric matrix with no entry beyond {LARGEST:g}.")
        array = 0.5 * (array + array.T)
        values = lapack.dsyev(array, compute_v=0)[0]
        if values[0] <= max(FLATTEST * values[-1], SMALLEST):
            raise DataError(
                f"{name} must be positive definite. Got eigenvalues from {values[0]:g} to {values[-1]:g}. Shrink a "
                "covariance of few observations, for instance towards a multiple of the identity."
            )
        return array

    def random(self, generator: np.random.Generator, spread: float = 1.0) -> Array:
        draw = generator.normal(size=self.shape)
        return self.exp(
            self.origin,
            spread * (np.tril(draw, -1) + np.tril(draw, -1).T) / math.sqrt(2.0) + spread * np.diag(np.diag(draw)),
        )


def _solve_eigen(a: Array, p: Array) -> tuple[Array, Array]:
    """Eigenvalues and vectors of a·x = λ·p·x, with XᵀpX = I."""
    values, vectors, failed = lapack.dsygv(a, p, uplo="L")
    if failed:
        return np.full(len(p), np.nan), np.full(p.shape, np.nan)
    return values, vectors


def _log_eigenvalues(p: Array, q: Array) -> tuple[Array, Array]:
    """ln λ of q against p; near points use q − p, because λ ≈ 1 would lose digits."""
    values, vectors = _solve_eigen(q, p)
    if abs(values[0] - 1.0) < NEAR and abs(values[-1] - 1.0) < NEAR:
        values, vectors = _solve_eigen(q - p, p)
        return np.log1p(values), vectors
    # Rounding can turn the smallest eigenvalue into 0 if they differ by sixteen digits.
    return np.log(np.maximum(values, FLATTEST * values[-1])), vectors


def _recompose(p: Array, vectors: Array, values: Array) -> Array:
    """P·X·diag(values)·Xᵀ·P, symmetric to the last bit."""
    frame = p @ vectors
    out = (frame * values) @ frame.T
    return 0.5 * (out + out.T)


def _whiten(factor: Array, u: Array) -> Array:
    """L⁻¹·U·L⁻ᵀ; LAPACK writes only the lower triangle."""
    lower = np.tril(lapack.dsygst(u, factor, lower=1)[0])
    return lower + np.tril(lower, -1).T
