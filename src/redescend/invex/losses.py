r"""Losses over a space: a value and a gradient in the tangent space, for a record of any shape."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from redescend.errors import DataError
from redescend.invex.space import Space, float_point
from redescend.invex.spd import SPD
from redescend.numeric import Array
from redescend.parameters import POSITIVE, bad_parameter, check, check_instance


class Seen(NamedTuple):
    """A loss at a point."""

    value: float
    gradient: Array


class Loss(ABC):
    r"""f(θ; record) with f(θ) − f(u) ≤ c·⟨−grad f(θ), Log_θ(u)⟩: invex, with ζ(u, θ) = c·Log_θ(u).

    c is 1 where f is geodesically convex, for every u; see `slack` for the others.
    """

    space: Space

    @abstractmethod
    def check(self, record: Any) -> Array:
        """The record as an array, or one sentence that says why it cannot be learned from."""

    @abstractmethod
    def value(self, theta: Array, record: Array) -> float:
        """f(θ; record)."""

    @abstractmethod
    def at(self, theta: Array, record: Array) -> Seen:
        """The value and the gradient."""

    def slack(self, length: float) -> float:
        """c at a point where the gradient has this length."""
        return 1.0


class SquaredDistance(Loss):
    r"""f = Σ Δ(θ, a_i)²/(2n): what the Fréchet mean of a_1..a_n minimises. Strongly geodesically convex, with μ = 1.

    A record is a point of the space, or a stack of them.

    Examples
    --------
    >>> from redescend import invex
    >>> loss = SquaredDistance(invex.Euclidean(1))
    >>> loss.at(np.array([0.0]), np.array([[1.0], [3.0]]))
    Seen(value=2.5, gradient=array([-2.]))
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
            raise DataError("The record must be a point, or a stack of at least one. Got none instead.")
        return np.stack(points)

    def value(self, theta: Array, record: Array) -> float:
        points = self._stack(record)
        return sum(self.space.distance(theta, point) ** 2 for point in points) / (2.0 * len(points))

    def at(self, theta: Array, record: Array) -> Seen:
        points = self._stack(record)
        pull = sum((self.space.log(theta, point) for point in points), np.zeros(self.space.shape)) / len(points)
        return Seen(self.value(theta, record), -pull)

    def _stack(self, record: Array) -> Array:
        return record if record.ndim > len(self.space.shape) else record[None]


class OperatorScaling(Loss):
    r"""f = ln det(Σ A_i·X·A_iᵀ) − ln det X on positive definite X; geodesically convex, and blind to the scale of X.

    A record is a stack of square matrices. Its gradient is never longer than √(n(n − 1)), whatever the record. Operator
    scaling asks whether f is bounded from below; a minimiser need not exist.

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
        """No gradient is longer."""
        return math.sqrt(self.space.size * (self.space.size - 1.0))

    def check(self, record: Any) -> Array:
        stack = float_point("The record", record, (len(record), *self.space.shape) if np.ndim(record) == 3 else (0,))
        top = float(np.max(np.abs(stack), initial=0.0))
        scaled = stack / top if top > 0.0 else stack
        if not len(stack) or np.linalg.matrix_rank(np.concatenate([*scaled], axis=1)) < self.space.size:
            raise DataError("The matrices of the record must have a sum of A·Aᵀ of full rank.")
        # f changes by a constant when all matrices are scaled, and its gradient not at all.
        return stack

    def value(self, theta: Array, record: Array) -> float:
        top = float(np.max(np.abs(record)))
        image = _image(theta, record / top)
        logs = np.linalg.slogdet(image)[1] - np.linalg.slogdet(theta)[1]
        return float(logs + 2.0 * self.space.size * math.log(top))

    def at(self, theta: Array, record: Array) -> Seen:
        scaled = record / float(np.max(np.abs(record)))
        inner = np.linalg.solve(_image(theta, scaled), scaled)
        pulled = theta @ (scaled.transpose(0, 2, 1) @ inner).sum(axis=0) @ theta - theta
        return Seen(self.value(theta, record), 0.5 * (pulled + pulled.T))


class Pseudoconvex(Loss):
    r"""f(θ) = F(θ − c) in flat space, with the record c as its minimiser, and ⟨∇F(x), x⟩ ≥ degree·(F(x) − F(0)).

    Homogeneous functions of that degree are such, star-convex ones with degree 1; F need not be convex. With
    ‖∇F‖ ≤ steepest on the differences that occur this is weak pseudo-convexity,
    f(θ) − f* ≤ K·⟨∇f(θ), θ − c⟩/‖∇f(θ)‖ with K = steepest/degree: the condition for normalised descent.

    Parameters
    ----------
    space : Euclidean
        Where θ lives.
    value, gradient : functions of x
        F and its gradient.
    degree, steepest : float
        The two constants.

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
        return self.steepest / self.degree

    def check(self, record: Any) -> Array:
        return self.space.check("The record", record)

    def value(self, theta: Array, record: Array) -> float:
        return float(self._value(theta - record))

    def at(self, theta: Array, record: Array) -> Seen:
        return Seen(self.value(theta, record), np.asarray(self._gradient(theta - record), dtype=np.float64))

    def slack(self, length: float) -> float:
        return self.K / length if length > 0.0 else 1.0


def _image(theta: Array, record: Array) -> Array:
    return (record @ theta @ record.transpose(0, 2, 1)).sum(axis=0)
