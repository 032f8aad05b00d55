"""What every loss offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from redescend.numeric import Array


class ConvexSet(Protocol):
    """What a loss needs to know of a domain to minimise over it."""

    @property
    def radial(self) -> bool:
        """Whether the projection of a multiple of x is the nearest multiple of x in the set."""

    def project(self, theta: Array) -> Array: ...


class Loss(ABC):
    """A convex loss f(θ; x, y) ≥ 0."""

    @abstractmethod
    def value(self, theta: Any, x: Any, y: float) -> float:
        """f(θ; x, y); the largest float where it would overflow."""

    @abstractmethod
    def gradient(self, theta: Any, x: Any, y: float) -> Array:
        """A (sub)gradient of f at θ."""

    @abstractmethod
    def minimum(self, x: Any, y: float, domain: ConvexSet | None = None) -> tuple[Array, float]:
        """The θ that minimises f for this one record, over the domain if one is given, and f there."""
