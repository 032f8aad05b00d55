r"""Spaces of actions: distances, inner products of directions, and geodesics.

A `Space` is a Hadamard manifold: complete, simply connected, with sectional curvature between `curvature` and 0. Any
two points are joined by exactly one geodesic, so Log_p(q), the direction from p to q, always exists.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from redescend.errors import DataError
from redescend.numeric import Array, norm
from redescend.parameters import AT_LEAST_ONE, POSITIVE, Component, check

FARTHEST = 1e150


class Geodesic(NamedTuple):
    """The length of the geodesic between two points, and the point after any share of it."""

    length: float
    at: Callable[[float], Array]


class Space(ABC):
    """A Hadamard manifold whose points and directions are arrays of one shape.

    To add a space, implement the abstract methods and set the three attributes.

    Attributes
    ----------
    shape : tuple of int
        Shape of a point and of a direction.
    dim : int
        Dimension of the manifold.
    curvature : float
        Lower bound of the sectional curvature; at most 0.

    Examples
    --------
    >>> from redescend import invex
    >>> [isinstance(space, Space) for space in (invex.SPD(3), invex.Hyperboloid(2), invex.Euclidean(2))]
    [True, True, True]
    """

    shape: tuple[int, ...]
    dim: int
    curvature: float

    @property
    @abstractmethod
    def origin(self) -> Array:
        """The default first action."""

    @abstractmethod
    def distance(self, p: Array, q: Array) -> float:
        """Return the distance Δ(p, q) of two points, accurate even where they nearly coincide."""

    @abstractmethod
    def inner(self, p: Array, u: Array, v: Array) -> float:
        """Return the inner product of two directions u and v at the point p."""

    @abstractmethod
    def exp(self, p: Array, u: Array) -> Array:
        """Return the end of the geodesic that leaves the point p in direction u; not finite if it overflows."""

    @abstractmethod
    def log(self, p: Array, q: Array) -> Array:
        """Return the direction u at the point p with exp(p, u) = q."""

    @abstractmethod
    def check(self, name: str, point: Any) -> Array:
        """Return `point` as an array of this space, or raise a DataError that begins with `name`."""

    @abstractmethod
    def random(self, generator: np.random.Generator, spread: float = 1.0) -> Array:
        """Draw a point with this generator, at a distance of about spread·√dim from the origin."""

    def norm(self, p: Array, u: Array) -> float:
        """Return the length of a direction u at the point p."""
        return math.sqrt(max(self.inner(p, u, u), 0.0))

    def between(self, p: Array, q: Array, share: float) -> Array:
        """Return the point after this share of the geodesic from p to q."""
        return self.geodesic(p, q).at(share)

    def geodesic(self, p: Array, q: Array) -> Geodesic:
        """Return the geodesic from p to q: its `length`, and `at(share)`."""
        direction = self.log(p, q)
        return Geodesic(self.distance(p, q), lambda share: self.exp(p, share * direction))

    def distortion(self, distance: float) -> float:
        r"""Return ζ = x·coth(x) with x = √(−curvature)·distance, which bounds how far triangles are from flat.

        In a triangle with sides c and b at the angle A, the third side is at most √(c² + ζ(c)·b² − 2bc·cos A).

        Examples
        --------
        >>> from redescend import invex
        >>> invex.Euclidean(3).distortion(5.0), round(invex.Hyperboloid(3).distortion(5.0), 4)
        (1.0, 5.0005)
        """
        x = math.sqrt(-self.curvature) * distance
        return 1.0 + x * x / 3.0 if x < 1e-4 else x / math.tanh(x)


@dataclass(frozen=True)
class Euclidean(Component, Space):
    """Flat space R^dim, where every formula of Algorithm 3 takes its familiar form.

    Parameters
    ----------
    dim : int
        The number of coordinates.

    Examples
    --------
    >>> space = Euclidean(2)
    >>> space.distance(space.origin, np.array([3.0, 4.0]))
    5.0
    """

    dim: Annotated[int, AT_LEAST_ONE]
    curvature = 0.0

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Shape of a point and of a direction."""
        return (self.dim,)

    @property
    def origin(self) -> Array:
        return np.zeros(self.dim)

    def distance(self, p: Array, q: Array) -> float:
        return norm(p - q)

    def inner(self, p: Array, u: Array, v: Array) -> float:
        return float(u @ v)

    def norm(self, p: Array, u: Array) -> float:
        return norm(u)

    def exp(self, p: Array, u: Array) -> Array:
        return p + u

    def log(self, p: Array, q: Array) -> Array:
        return q - p

    def check(self, name: str, point: Any) -> Array:
        return check_reach(name, check_floats(name, point, self.shape))

    def random(self, generator: np.random.Generator, spread: float = 1.0) -> Array:
        return spread * generator.normal(size=self.dim)


class GeodesicBall:
    """All points within a radius of a centre.

    Parameters
    ----------
    space : Space
        The space that contains the ball.
    radius : float
        Radius of the ball, > 0.
    centre : point, optional
        By default the origin of the space.

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
        """Return the nearest point of the ball, which lies on the geodesic to the centre."""
        away = self.space.distance(self.centre, point)
        return self.space.between(self.centre, point, self.radius / away) if away > self.radius else point

    def __repr__(self) -> str:
        return f"GeodesicBall({self.space}, radius={self.radius}, centre={self.centre.tolist()})"


def check_floats(name: str, point: Any, shape: tuple[int, ...]) -> Array:
    """Return a finite float64 array of this shape, or raise a DataError."""
    try:
        array = np.array(point, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be an array of floats: {error}.") from None
    if array.shape != shape:
        raise DataError(f"{name} must have shape {shape}. Got {array.shape} instead.")
    if not np.isfinite(array).all():
        raise DataError(f"{name} must be finite. Got {array[~np.isfinite(array)][0]} instead.")
    return array


def check_reach(name: str, array: Array) -> Array:
    """Return the array, or raise a DataError if it is too far from 0 to be squared."""
    if norm(array) > FARTHEST:
        raise DataError(f"{name} must be within {FARTHEST:g} of 0. Got a norm of {norm(array):g} instead.")
    return array
