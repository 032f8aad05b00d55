r"""Hyperbolic space, and symmetric positive definite matrices.

Hyperbolic space is a sheet of the hyperboloid: x₀² = 1 + x₁² + … + x_d², x₀ > 0, curvature −1. Only x₁..x_d are free.
x₀ is computed from them whenever a point is made, so rounding never leaves the sheet.

Matrices have the affine-invariant metric ⟨U, V⟩_P = tr(P⁻¹U P⁻¹V). One LAPACK call solves Q·x = λ·P·x with XᵀPX = I.
Then Δ² = Σ(ln λ)², and the geodesic from P to Q is P·X·diag(λ^s)·Xᵀ·P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.linalg import lapack

from redescend.errors import DataError
from redescend.invex.space import Geodesic, Space, check_floats, check_reach
from redescend.numeric import Array, norm
from redescend.parameters import AT_LEAST_ONE, Component

OFF_THE_SHEET = 1e-6


@dataclass(frozen=True)
class Hyperboloid(Component, Space):
    r"""Hyperbolic space H^dim with ⟨x, y⟩_L = −x₀y₀ + x₁y₁ + … and cosh Δ(x, y) = −⟨x, y⟩_L.

    Positions lose digits far from the origin: about 16 − 0.43·r remain at distance r.

    Parameters
    ----------
    dim : int
        Dimension; a point has dim + 1 coordinates.

    Examples
    --------
    >>> space = Hyperboloid(2)
    >>> round(space.distance(space.origin, space.lift([0.0, np.sinh(2.0)])), 12)
    2.0
    """

    dim: Annotated[int, AT_LEAST_ONE]
    curvature = -1.0

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Shape of a point and of a direction."""
        return (self.dim + 1,)

    @property
    def origin(self) -> Array:
        return self.lift(np.zeros(self.dim))

    def lift(self, free: Any) -> Array:
        """Return the point of the sheet with the free coordinates x₁..x_d."""
        free = np.asarray(free, dtype=np.float64)
        return np.concatenate([[math.hypot(1.0, norm(free))], free])

    def distance(self, p: Array, q: Array) -> float:
        return 2.0 * math.asinh(0.5 * math.sqrt(_squared_chord(p, q)))

    def inner(self, p: Array, u: Array, v: Array) -> float:
        # Across p the metric is flat, along it a factor p₀⁻². The Lorentz product would lose p₀² of the digits.
        away = norm(p[1:])
        if away == 0.0:
            return float(u[1:] @ v[1:])
        axis = p[1:] / away
        along_u, along_v = float(axis @ u[1:]), float(axis @ v[1:])
        across = float((u[1:] - along_u * axis) @ (v[1:] - along_v * axis))
        return across + (along_u / p[0]) * (along_v / p[0])

    def exp(self, p: Array, u: Array) -> Array:
        length = self.norm(p, u)
        if length > 700.0:
            return np.full(self.shape, np.inf)
        sinhc = math.sinh(length) / length if length > 1e-8 else 1.0
        return self.lift(math.cosh(length) * p[1:] + sinhc * u[1:])

    def log(self, p: Array, q: Array) -> Array:
        gap = _squared_chord(p, q)
        distance = 2.0 * math.asinh(0.5 * math.sqrt(gap))
        ratio = distance / math.sinh(distance) if distance > 1e-8 else 1.0
        free = ratio * ((q[1:] - p[1:]) - 0.5 * gap * p[1:])
        return np.concatenate([[float(p[1:] @ free) / p[0]], free])

    def geodesic(self, p: Array, q: Array) -> Geodesic:
        distance = self.distance(p, q)

        def at(share: float) -> Array:
            # A sum of the two ends with weights ≥ 0: nothing cancels, however far apart they are.
            if distance < 1e-8:
                return self.lift(p[1:] + share * (q[1:] - p[1:]))
            left, right = _sinh_ratio((1.0 - share) * distance, distance), _sinh_ratio(share * distance, distance)
            return self.lift(left * p[1:] + right * q[1:])

        return Geodesic(distance, at)

    def check(self, name: str, point: Any) -> Array:
        array = check_reach(name, check_floats(name, point, self.shape))
        lifted = self.lift(array[1:])
        if abs(lifted[0] - array[0]) > OFF_THE_SHEET * lifted[0]:
            raise DataError(
                f"{name} must be a point of the hyperboloid, with x0 = sqrt(1 + x1² + …) = {lifted[0]:g}. "
                f"Got x0 = {array[0]:g} instead."
            )
        return lifted

    def random(self, generator: np.random.Generator, spread: float = 1.0) -> Array:
        direction = np.concatenate([[0.0], spread * generator.normal(size=self.dim)])
        return self.exp(self.origin, direction)


def _sinh_ratio(part: float, whole: float) -> float:
    """sinh(part)/sinh(whole) for 0 ≤ part ≤ whole, even where both overflow."""
    return math.exp(part - whole) * (math.expm1(-2.0 * part) / math.expm1(-2.0 * whole))


def _squared_chord(p: Array, q: Array) -> float:
    r"""⟨p − q, p − q⟩_L = 2·(cosh Δ − 1), without the cancellation of either form near Δ = 0.

    With m = p + q, S = m₀ and a the part of p − q along m, the gap g satisfies g = |across|² + (a/S)²·(4 + g).
    """
    difference, total = p[1:] - q[1:], p[1:] + q[1:]
    height, length = p[0] + q[0], norm(total)
    along = float(difference @ (total / length)) if length > 0.0 else 0.0
    slope2 = (along / height) ** 2
    if slope2 > 0.25:
        return max(norm(difference) ** 2 - (p[0] - q[0]) ** 2, 0.0)
    across = difference - along * (total / length) if length > 0.0 else difference
    return (float(across @ across) + 4.0 * slope2) / (1.0 - slope2)


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
        below = np.tril(draw, -1)
        direction = spread * (below + below.T) / math.sqrt(2.0) + spread * np.diag(np.diag(draw))
        return self.exp(self.origin, direction)


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
