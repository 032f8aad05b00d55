r"""Convex sets of actions and their projections.

A domain is encoded as a row of numbers: which set, how many parameters it has, and those. The function `project` reads
that code, and the compiled rounds call it too. To add a domain, write its projection and its class here, and a branch
in `project_part`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

import numpy as np

from redescend.errors import ParameterError
from redescend.numeric import Array, largest_entry, unknown_code
from redescend.parameters import Component, Interval, bad_parameter

REALS, BALL, BOX, L1_BALL, SIMPLEX, INTERSECTION = range(6)

Radius = Annotated[float, Interval(1e-150, 1e150)]

NEAR_SWEEPS, SWEEPS, APPROACHES = 300, 10_000, 1_000


def project_ball(theta: Array, radius: float) -> Array:
    top = np.max(np.abs(theta))
    if top == 0.0:
        return theta
    unit = theta / top
    size = np.sqrt(np.sum(unit * unit))
    return unit * (radius / size) if top > radius / size else theta


def project_simplex(theta: Array, total: float) -> Array:
    # Relative to the largest entry, so that the total is exact however far away theta is; entries far below end at 0.
    theta = np.maximum(theta - np.max(theta), -total)
    falling = np.sort(theta)[::-1]
    excess = -total
    running = 0.0
    for count in range(len(falling)):
        running += falling[count]
        level = (running - total) / (count + 1)
        if falling[count] <= level:
            break
        excess = level
    return np.maximum(theta - excess, 0.0)


def project_l1_ball(theta: Array, radius: float) -> Array:
    size = np.abs(theta)
    if np.sum(size) <= radius:
        return theta
    return np.sign(theta) * project_simplex(size, radius)


def project_part(theta: Array, kind: float, numbers: Array) -> Array:
    """Project on a set other than an intersection."""
    if kind == BALL:
        return project_ball(theta, numbers[0])
    if kind == BOX:
        dim = len(theta)
        return np.minimum(np.maximum(theta, numbers[:dim]), numbers[dim : 2 * dim])
    if kind == L1_BALL:
        return project_l1_ball(theta, numbers[0])
    if kind == SIMPLEX:
        return project_simplex(theta, numbers[0])
    if kind == REALS:
        return theta
    return np.full_like(theta, unknown_code(kind))


def dykstra(theta: Array, code: Array, sweeps: int) -> tuple[Array, bool]:
    """Dykstra's alternating projections, and whether they have converged."""
    parts = int(code[1])
    corrections = np.zeros((parts, len(theta)))
    point = theta.copy()
    for _ in range(sweeps):
        before = point.copy()
        moved = 0.0
        at = 2
        for part in range(parts):
            size = int(code[at + 1])
            shifted = point + corrections[part]
            point = project_part(shifted, code[at], code[at + 2 : at + 2 + size])
            moved = max(moved, np.max(np.abs(shifted - point - corrections[part])))
            corrections[part] = shifted - point
            at += 2 + size
        scale = 1e-15 * max(1e-150, np.max(np.abs(point)))
        if np.max(np.abs(point - before)) <= scale and moved <= 10.0 * scale:
            return point, True
    return point, False


def project_intersection(theta: Array, code: Array) -> Array:
    """The nearest point of an intersection of convex sets.

    Dykstra needs sweeps in proportion to the distance. From far away the point is approached by projected descent on
    the distance, in steps as long as the smallest of the sets is wide.
    """
    point, settled = dykstra(theta, code, NEAR_SWEEPS)
    if settled:
        return point
    reach = np.inf
    at = 2
    for _ in range(int(code[1])):
        size = int(code[at + 1])
        reach = min(reach, np.max(np.abs(project_part(theta, code[at], code[at + 2 : at + 2 + size]))))
        at += 2 + size
    for _ in range(APPROACHES):
        away = theta - point
        step = min(1.0, reach / np.max(np.abs(away)))
        nearer, settled = dykstra(point + step * away, code, SWEEPS)
        gap = np.max(np.abs(nearer - point))
        point = nearer
        if not settled or gap <= 1e-14 * reach:
            break
    return point


def project(theta: Array, code: Array) -> Array:
    """The nearest point of the domain with this code."""
    if code[0] == INTERSECTION:
        return project_intersection(theta, code)
    return project_part(theta, code[0], code[2:])


@dataclass(frozen=True)
class Domain(Component, ABC):
    """A closed convex set of actions."""

    kind: ClassVar[int]
    """The code of the set in compiled rounds."""
    radial: ClassVar[bool] = False
    """Whether the projection of a multiple of x is the nearest multiple of x in the set."""

    def numbers(self, dim: int) -> Array:
        """Return the parameters that the projection needs, for `dim` features."""
        return np.array([getattr(self, field.name) for field in fields(self)])

    @property
    @abstractmethod
    def diameter(self) -> float:
        """The largest Euclidean distance between two points of the set, or a bound on it."""

    def code(self, dim: int) -> Array:
        """Return the set as a row of numbers, for `dim` features."""
        numbers = self.numbers(dim)
        return np.concatenate([[self.kind, len(numbers)], numbers]).astype(np.float64)

    def project(self, theta: Any) -> Array:
        """Return the point of the set nearest to `theta`."""
        point = np.asarray(theta, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.array(project(point, self.code(len(point))), dtype=np.float64)

    def contains(self, theta: Any, tolerance: float = 1e-9) -> bool:
        """Return whether `theta` is in the set, up to a relative rounding error of `tolerance`."""
        point = np.asarray(theta, dtype=np.float64)
        return largest_entry(self.project(point) - point) <= tolerance * largest_entry(point)


class Reals(Domain):
    """All of ℝᵈ: no constraint.

    Examples
    --------
    >>> Reals().diameter
    inf
    """

    kind: ClassVar[int] = REALS
    radial: ClassVar[bool] = True

    @property
    def diameter(self) -> float:
        return float("inf")


@dataclass(frozen=True)
class NormBall(Domain):
    """Base class of balls of a norm.

    Parameters
    ----------
    radius : float
        The largest norm.
    """

    kind: ClassVar[int]
    radius: Radius

    @property
    def diameter(self) -> float:
        return 2.0 * self.radius


class Ball(NormBall):
    """The Euclidean ball ‖θ‖ ≤ radius.

    Examples
    --------
    >>> Ball(1.0).project([3.0, 4.0])
    array([0.6, 0.8])
    """

    kind: ClassVar[int] = BALL
    radial: ClassVar[bool] = True


class L1Ball(NormBall):
    """Σ|θⱼ| ≤ radius.

    Examples
    --------
    >>> L1Ball(1.0).project([2.0, -1.5])
    array([ 0.75, -0.25])
    """

    kind: ClassVar[int] = L1_BALL


@dataclass(frozen=True, eq=False)
class Box(Domain):
    """low ≤ θ ≤ high in every coordinate.

    Parameters
    ----------
    low, high : float or array of floats
        Bounds of all coordinates, or of each. With two floats the diameter is inf, as the dimension is not known.

    Examples
    --------
    >>> Box(-1.0, [1.0, 2.0]).project([3.0, 3.0])
    array([1., 2.])
    """

    low: Any
    high: Any
    kind: ClassVar[int] = BOX

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            bound = getattr(self, name)
            try:
                array = np.array(bound)
            except ValueError:
                array = np.array(None)
            if array.ndim > 1 or array.dtype.kind not in "iuf" or np.isnan(array).any():
                raise bad_parameter("Box", name, "a number or a one-dimensional array of numbers", bound)
            array = array.astype(np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.low.ndim and self.high.ndim and self.low.shape != self.high.shape:
            raise bad_parameter("Box", "high", f"as long as 'low', which has {len(self.low)} entries", self.high)
        if (self.low > self.high).any() or np.isposinf(self.low).any() or np.isneginf(self.high).any():
            raise bad_parameter("Box", "high", "at least 'low' in every coordinate", self.high.tolist())

    def __repr__(self) -> str:
        return f"Box(low={self.low.tolist()}, high={self.high.tolist()})"

    def numbers(self, dim: int) -> Array:
        for name in ("low", "high"):
            bound = getattr(self, name)
            if bound.ndim and len(bound) != dim:
                raise ParameterError(
                    f"The '{name}' parameter of Box must have one entry for each of the {dim} features. "
                    f"Got {len(bound)} instead."
                )
        return np.concatenate([np.broadcast_to(self.low, dim), np.broadcast_to(self.high, dim)])

    @property
    def diameter(self) -> float:
        width = self.high - self.low
        return float(np.linalg.norm(width)) if width.ndim else float("inf")


@dataclass(frozen=True)
class Simplex(Domain):
    """θ ≥ 0 with Σθⱼ = total.

    Parameters
    ----------
    total : float, default 1.0
        The sum of the coordinates.

    Examples
    --------
    >>> Simplex().project([0.5, 1.0])
    array([0.25, 0.75])
    """

    total: Radius = 1.0
    kind: ClassVar[int] = SIMPLEX

    @property
    def diameter(self) -> float:
        return float(np.sqrt(2.0)) * self.total


@dataclass(frozen=True, init=False)
class Intersection(Domain):
    """The points that lie in all of the given sets, by Dykstra's projections.

    Parameters
    ----------
    *parts : Domain
        Sets that share a point, other than intersections.

    Examples
    --------
    >>> Intersection(Ball(2.0), Box(0.0, 1.0)).project([3.0, -1.0])
    array([1., 0.])

    References
    ----------
    Boyle and Dykstra, A method for finding projections onto the intersection of convex sets in Hilbert spaces, 1986.
    """

    parts: tuple[Domain, ...]
    kind: ClassVar[int] = INTERSECTION

    def __init__(self, *parts: Domain) -> None:
        for part in parts:
            if not isinstance(part, Domain) or isinstance(part, Intersection):
                raise bad_parameter("Intersection", "parts", "domains other than Intersection", part)
        if not parts:
            raise bad_parameter("Intersection", "parts", "at least one domain", parts)
        object.__setattr__(self, "parts", parts)

    def numbers(self, dim: int) -> Array:
        return np.concatenate([part.code(dim) for part in self.parts])

    def code(self, dim: int) -> Array:
        return np.concatenate([[self.kind, len(self.parts)], self.numbers(dim)]).astype(np.float64)

    def project(self, theta: Any) -> Array:
        point = super().project(theta)
        if not all(part.contains(point, tolerance=1e-6) for part in self.parts):
            raise ParameterError(f"The parts of {self} share no point, or too few to find; choose sets that overlap.")
        return point

    @property
    def diameter(self) -> float:
        return min(part.diameter for part in self.parts)


def limit_to_ball(domain: Domain, radius: float) -> Domain:
    """The part of a domain within a ball around 0, whose radius is the last number of its code."""
    if isinstance(domain, Reals):
        return Ball(radius)
    return Intersection(*(domain.parts if isinstance(domain, Intersection) else (domain,)), Ball(radius))
