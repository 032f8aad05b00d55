r"""Losses over a space: a value, and a gradient in the tangent space."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from redescend.errors import DataError
from redescend.invex.manifolds import SPD
from redescend.invex.space import Euclidean, Space, check_floats
from redescend.numeric import Array
from redescend.parameters import POSITIVE, bad_parameter, check, check_instance


class ValueAndGradient(NamedTuple):
    """The value and the gradient of a loss at a point.

    Parameters
    ----------
    value : float
        f(θ; record).
    gradient : array
        A direction at θ.

    Examples
    --------
    >>> ValueAndGradient(value=2.5, gradient=np.array([-2.0])).value
    2.5
    """

    value: float
    gradient: Array


class InvexLoss(ABC):
    r"""An invex loss: f(θ) − f(u) ≤ c·⟨−grad f(θ), Log_θ(u)⟩, that is, ζ(u, θ) = c·Log_θ(u).

    c is 1 for every u if f is geodesically convex; see `slack` for other losses.

    Attributes
    ----------
    space : Space
        Where θ lives.
    """

    space: Space

    @abstractmethod
    def check(self, record: Any) -> Array:
        """Return the record as an array, or raise a DataError."""

    @abstractmethod
    def value(self, theta: Array, record: Array) -> float:
        """Return f at the point theta for this record."""

    @abstractmethod
    def at(self, theta: Array, record: Array) -> ValueAndGradient:
        """Return the value and the gradient at the point theta for this record."""

    def slack(self, length: float) -> float:
        """Return c at a point where the gradient has this length."""
        return 1.0


class SquaredDistance(InvexLoss):
    r"""f = Σ Δ(θ, a_i)²/(2n), which the Fréchet mean of a_1..a_n minimizes.

    Strongly geodesically convex with μ = 1. A record is a point of the space, or a stack of points.

    Parameters
    ----------
    space : Space
        Such as ``SPD(5)``.

    Examples
    --------
    >>> from redescend import invex
    >>> loss = SquaredDistance(invex.Euclidean(1))
    >>> loss.at(np.array([0.0]), np.array([[1.0], [3.0]]))
    ValueAndGradient(value=2.5, gradient=array([-2.]))
    """

    def __init__(self, space: Space) -> None:
        self.space = check_instance("SquaredDistance", "space", space, Space, "a space, such as SPD(5)")

    def __repr__(self) -> str:
        return f"SquaredDistance({self.space})"

    def check(self, record: Any) -> Array:
        if np.ndim(record) != len(self.space.shape) + 1:
            return self.space.check("The record", record)
        points = [self.space.check(f"Point {place} of the record", point) for place, point in enumerate(record)]
        if not points:
            raise DataError("The record must be a point, or a stack of at least one point. Got an empty stack.")
        return np.stack(points)

    def value(self, theta: Array, record: Array) -> float:
        points = self._to_stack(record)
        return sum(self.space.distance(theta, point) ** 2 for point in points) / (2.0 * len(points))

    def at(self, theta: Array, record: Array) -> ValueAndGradient:
        points = self._to_stack(record)
        pull = sum((self.space.log(theta, point) for point in points), np.zeros(self.space.shape)) / len(points)
        return ValueAndGradient(self.value(theta, record), -pull)

    def _to_stack(self, record: Array) -> Array:
        return record if record.ndim > len(self.space.shape) else record[None]


class OperatorScaling(InvexLoss):
    r"""f = ln det(Σ A_i·X·A_iᵀ) − ln det X on positive definite X.

    Geodesically convex and invariant to the scale of X. A record is a stack of square matrices A_i. Operator scaling
    asks whether f is bounded from below; a minimizer need not exist.

    Parameters
    ----------
    space : SPD
        The space of X.

    Examples
    --------
    >>> from redescend import invex
    >>> loss = OperatorScaling(invex.SPD(2))
    >>> round(loss.value(np.diag([1.0, 2.0]), np.array([np.eye(2), np.eye(2)[::-1]])), 6)
    1.504077
    """

    def __init__(self, space: SPD) -> None:
        self.space: SPD = check_instance("OperatorScaling", "space", space, SPD, "a space of matrices, such as SPD(5)")

    def __repr__(self) -> str:
        return f"OperatorScaling({self.space})"

    @property
    def steepest(self) -> float:
        """Upper bound √(n(n − 1)) of the gradient's length, for every record."""
        return math.sqrt(self.space.size * (self.space.size - 1.0))

    def check(self, record: Any) -> Array:
        stack = check_floats("The record", record, (len(record), *self.space.shape) if np.ndim(record) == 3 else (0,))
        top = float(np.max(np.abs(stack), initial=0.0))
        scaled = stack / top if top > 0.0 else stack
        if not len(stack) or np.linalg.matrix_rank(np.concatenate([*scaled], axis=1)) < self.space.size:
            raise DataError("The sum of A·Aᵀ over the matrices of the record must have full rank.")
        return stack

    def value(self, theta: Array, record: Array) -> float:
        top = float(np.max(np.abs(record)))
        image = _apply_operator(theta, record / top)
        logs = np.linalg.slogdet(image)[1] - np.linalg.slogdet(theta)[1]
        return float(logs + 2.0 * self.space.size * math.log(top))

    def at(self, theta: Array, record: Array) -> ValueAndGradient:
        scaled = record / float(np.max(np.abs(record)))
        inner = np.linalg.solve(_apply_operator(theta, scaled), scaled)
        pulled = theta @ (scaled.transpose(0, 2, 1) @ inner).sum(axis=0) @ theta - theta
        return ValueAndGradient(self.value(theta, record), 0.5 * (pulled + pulled.T))


class Pseudoconvex(InvexLoss):
    r"""f(θ) = F(θ − c) in flat space, minimized by the record c, with ⟨∇F(x), x⟩ ≥ degree·(F(x) − F(0)).

    Homogeneous functions of that degree satisfy this, and star-convex ones with degree 1; F need not be convex. With
    ‖∇F‖ ≤ steepest on the differences that occur, f is weakly pseudo-convex:
    f(θ) − f* ≤ K·⟨∇f(θ), θ − c⟩/‖∇f(θ)‖ with K = steepest/degree, the condition for normalised descent.

    Parameters
    ----------
    space : Euclidean
        Where θ lives.
    value, gradient : callable
        F and its gradient, functions of x.
    degree : float
        The constant of the inequality above, > 0.
    steepest : float
        Upper bound of ‖∇F‖, > 0.

    Examples
    --------
    >>> from redescend import invex
    >>> loss = invex.quartic(radius=1.0)
    >>> loss.value(np.array([1.0, 0.0]), np.zeros(2)), loss.K
    (11.0, 88.0)

    References
    ----------
    Gao, Li and Zhang, Online learning with non-convex losses and non-stationary regret, AISTATS 2018.
    """

    def __init__(
        self,
        space: Space,
        value: Callable[[Array], float],
        gradient: Callable[[Array], Array],
        *,
        degree: float,
        steepest: float,
    ) -> None:
        self.space = check_instance("Pseudoconvex", "space", space, Space, "a flat space, such as Euclidean(2)")
        if space.curvature != 0.0:
            raise bad_parameter("Pseudoconvex", "space", "a flat space, such as Euclidean(2)", space)
        self.degree = float(check("Pseudoconvex", "degree", degree, POSITIVE))
        self.steepest = float(check("Pseudoconvex", "steepest", steepest, POSITIVE))
        self._value, self._gradient = value, gradient

    def __repr__(self) -> str:
        return f"Pseudoconvex({self.space}, degree={self.degree}, steepest={self.steepest})"

    @property
    def K(self) -> float:  # noqa: N802 -- the paper's own letter
        """The constant steepest/degree of weak pseudo-convexity."""
        return self.steepest / self.degree

    def check(self, record: Any) -> Array:
        return self.space.check("The record", record)

    def value(self, theta: Array, record: Array) -> float:
        return float(self._value(theta - record))

    def at(self, theta: Array, record: Array) -> ValueAndGradient:
        return ValueAndGradient(self.value(theta, record), np.asarray(self._gradient(theta - record), dtype=np.float64))

    def slack(self, length: float) -> float:
        return self.K / length if length > 0.0 else 1.0


def _apply_operator(theta: Array, record: Array) -> Array:
    return (record @ theta @ record.transpose(0, 2, 1)).sum(axis=0)


def quartic(radius: float) -> Pseudoconvex:
    """F = (x₁² + x₂²)² + 10·(x₁² − x₂²)² on the plane: homogeneous of degree 4, and not convex.

    Parameters
    ----------
    radius : float
        θ and the records are within this distance of 0.

    Returns
    -------
    Pseudoconvex
        The slope along a circle of radius r is largest on the axes, 44·r³.

    Examples
    --------
    >>> quartic(radius=1.0).at(np.array([1.0, 0.0]), np.zeros(2))
    ValueAndGradient(value=11.0, gradient=array([44.,  0.]))
    """
    reach = 2.0 * check("quartic", "radius", radius, POSITIVE)
    return Pseudoconvex(Euclidean(2), _quartic, _quartic_gradient, degree=4.0, steepest=44.0 * reach**3)


def crease(radius: float) -> Pseudoconvex:
    """F = x₁² + |x₂|^{3/2} on the plane: of degree 3/2 at least, and not smooth at x₂ = 0.

    Parameters
    ----------
    radius
        As in `quartic`.

    Returns
    -------
    Pseudoconvex
        The slope along a circle of radius r is at most √(4r² + 81/256).

    Examples
    --------
    >>> crease(radius=1.0).at(np.array([1.0, 4.0]), np.zeros(2))
    ValueAndGradient(value=9.0, gradient=array([2., 3.]))
    """
    reach = 2.0 * check("crease", "radius", radius, POSITIVE)
    steepest = float(np.sqrt(4.0 * reach**2 + 81.0 / 256.0))
    return Pseudoconvex(Euclidean(2), _crease, _crease_gradient, degree=1.5, steepest=steepest)


def _quartic(x: Array) -> float:
    return float((x @ x) ** 2 + 10.0 * (x[0] ** 2 - x[1] ** 2) ** 2)


def _quartic_gradient(x: Array) -> Array:
    return 4.0 * (x @ x) * x + 40.0 * (x[0] ** 2 - x[1] ** 2) * np.array([x[0], -x[1]])


def _crease(x: Array) -> float:
    return float(x[0] ** 2 + abs(x[1]) ** 1.5)


def _crease_gradient(x: Array) -> Array:
    return np.array([2.0 * x[0], 1.5 * np.sign(x[1]) * np.sqrt(abs(x[1]))])
