r"""Where actions live: a distance, inner products of directions, and straight lines.

A `Space` here is a Hadamard manifold: complete, simply connected, and of sectional curvature between `curvature` and 0.
Any two points are joined by one geodesic, so that Log_p(q), the direction in which q lies, exists for all of them.
To add a space: write `distance`, `inner`, `exp`, `log` and `check`, and say what its curvature is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from redescend.errors import DataError
from redescend.numeric import Array
from redescend.parameters import POSITIVE, check


class Geodesic(NamedTuple):
    """How long the way from one point to another is, and the point after any share of it."""

    length: float
    at: Callable[[float], Array]


class Space(ABC):
    """A Hadamard manifold whose points and directions are arrays of one shape."""

    shape: tuple[int, ...]
    """Of a point, and of a direction."""

    dim: int
    """How many independent directions there are."""

    curvature: float
    """No sectional curvature is below it; at most 0."""

    @property
    @abstractmethod
    def origin(self) -> Array:
        """Where actions start unless told otherwise."""

    @abstractmethod
    def distance(self, p: Array, q: Array) -> float:
        """Δ(p, q), to its last digits also where the points nearly meet."""

    @abstractmethod
    def inner(self, p: Array, u: Array, v: Array) -> float:
        """⟨u, v⟩ of two directions at p."""

    @abstractmethod
    def exp(self, p: Array, u: Array) -> Array:
        """The point at the end of the geodesic that leaves p as u; not finite where that is out of reach of floats."""

    @abstractmethod
    def log(self, p: Array, q: Array) -> Array:
        """The direction at p whose exp is q."""

    @abstractmethod
    def check(self, name: str, point: Any) -> Array:
        """The point as an array of this space, or one sentence that says why it is not one."""

    @abstractmethod
    def random(self, generator: np.random.Generator, spread: float = 1.0) -> Array:
        """A point at a distance of about spread·√dim from the origin."""

    def norm(self, p: Array, u: Array) -> float:
        """‖u‖ of a direction at p."""
        return math.sqrt(max(self.inner(p, u, u), 0.0))

    def between(self, p: Array, q: Array, share: float) -> Array:
        """The point after this share of the way from p to q."""
        return self.geodesic(p, q).at(share)

    def geodesic(self, p: Array, q: Array) -> Geodesic:
        """The way from p to q."""
        direction = self.log(p, q)
        return Geodesic(self.distance(p, q), lambda share: self.exp(p, share * direction))

    def distortion(self, distance: float) -> float:
        r"""ζ = x·coth(x) with x = √(−curvature)·distance: how far triangles may be from flat ones.

        In every triangle with sides c and b at the angle A, the third is at most √(c² + ζ(c)·b² − 2bc·cos A).

        Examples
        --------
        >>> from redescend import invex
        >>> invex.Euclidean(3).distortion(5.0), round(invex.Hyperboloid(3).distortion(5.0), 4)
        (1.0, 5.0005)
        """
        x = math.sqrt(-self.curvature) * distance
        return 1.0 + x * x / 3.0 if x < 1e-4 else x / math.tanh(x)


class Everywhere:
    """A domain without an end."""

    def project(self, point: Array) -> Array:
        return point

    def __repr__(self) -> str:
        return "Everywhere()"


class GeodesicBall:
    """All points within a radius of a centre; what is farther goes back along the geodesic to it.

    Parameters
    ----------
    space : Space
        Where the ball is.
    radius : float
        Half of its diameter.
    centre : point, optional
        The origin of the space unless given.

    Examples
    --------
    >>> from redescend import invex
    >>> space = invex.SPD(2)
    >>> ball = GeodesicBall(space, radius=1.0)
    >>> inside = ball.project(100.0 * np.eye(2))
    >>> round(space.distance(space.origin, inside), 12)
    1.0
    """

    def __init__(self, space: Space, radius: float, centre: Any = None) -> None:
        self.space = space
        self.radius = float(check("GeodesicBall", "radius", radius, POSITIVE))
        self.centre = space.origin if centre is None else space.check("centre", centre)

    def project(self, point: Array) -> Array:
        away = self.space.distance(self.centre, point)
        return self.space.between(self.centre, point, self.radius / away) if away > self.radius else point

    def __repr__(self) -> str:
        return f"GeodesicBall({self.space}, radius={self.radius}, centre={self.centre.tolist()})"


def float_point(name: str, point: Any, shape: tuple[int, ...]) -> Array:
    """A finite array of float64 of this shape, or one sentence."""
    try:
        array = np.array(point, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be an array of floats, but it cannot be read as one: {error}.") from None
    if array.shape != shape:
        raise DataError(f"{name} must have shape {shape}. Got {array.shape} instead.")
    if not np.isfinite(array).all():
        raise DataError(f"{name} must be finite. Got {array[~np.isfinite(array)][0]} instead.")
    return array
