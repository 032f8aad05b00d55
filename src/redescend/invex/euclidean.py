"""Flat space: every formula of Algorithm 3 becomes the one that everybody knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from redescend.errors import DataError
from redescend.invex.space import Space, float_point
from redescend.numeric import Array, norm
from redescend.parameters import AT_LEAST_ONE, Component

FARTHEST = 1e150


@dataclass(frozen=True)
class Euclidean(Component, Space):
    """R^dim with straight lines.

    Examples
    --------
    >>> Euclidean(2).distance(np.array([0.0, 0.0]), np.array([3.0, 4.0]))
    5.0
    """

    dim: Annotated[int, AT_LEAST_ONE]
    curvature = 0.0

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
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
        array = float_point(name, point, self.shape)
        if norm(array) > FARTHEST:
            raise DataError(f"{name} must be within {FARTHEST:g} of 0. Got a norm of {norm(array):g} instead.")
        return array

    def random(self, generator: np.random.Generator, spread: float = 1.0) -> Array:
        return spread * generator.normal(size=self.dim)
