"""The interface of losses, and `Custom`, a loss made of two functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from redescend.errors import DataError
from redescend.numeric import LARGEST, Array, dot, norm
from redescend.parameters import bad_parameter


class ConvexSet(Protocol):
    """The interface of a domain that a loss is minimized over; kernels of losses then do not depend on domains."""

    @property
    def radial(self) -> bool: ...

    def project(self, theta: Array) -> Array: ...


class Loss(ABC):
    """A convex loss f(θ; x, y) ≥ 0 of an action θ on a record (x, y)."""

    @abstractmethod
    def value(self, theta: Any, x: Any, y: float) -> float:
        """Return f(θ; x, y) of the action theta on features x and a target or label y; at most the largest float."""

    @abstractmethod
    def gradient(self, theta: Any, x: Any, y: float) -> Array:
        """Return the gradient of `value` in theta at the record (x, y), or a subgradient at a kink."""

    @abstractmethod
    def minimum(self, x: Any, y: float, domain: ConvexSet | None = None) -> tuple[Array, float]:
        """Return an action in `domain` with the least loss on the record (x, y), and that loss; None: anywhere."""


class Custom(Loss):
    """A convex loss given by its value and its gradient.

    It is played in Python, not compiled: some tens of microseconds a round. Its minimizer for one record is found
    numerically. A model with a `Custom` loss cannot be saved.

    Parameters
    ----------
    value : callable
        Function of (theta, x, y) that returns a number of at least 0.
    gradient : callable
        Function of (theta, x, y) that returns an array as long as theta.

    Examples
    --------
    >>> quartic = Custom(lambda theta, x, y: (x @ theta - y) ** 4, lambda theta, x, y: 4 * (x @ theta - y) ** 3 * x)
    >>> quartic.value(np.array([1.0]), np.array([1.0]), 3.0)
    16.0
    """

    def __init__(
        self, value: Callable[[Array, Array, float], float], gradient: Callable[[Array, Array, float], Array]
    ) -> None:
        for name, function in {"value": value, "gradient": gradient}.items():
            if not callable(function):
                raise bad_parameter("Custom", name, "a function of (theta, x, y)", function)
        self._value, self._gradient = value, gradient

    def __repr__(self) -> str:
        functions = (self._value, self._gradient)
        return f"Custom({', '.join(getattr(part, '__qualname__', type(part).__name__) for part in functions)})"

    def value(self, theta: Any, x: Any, y: float) -> float:
        with np.errstate(over="ignore"):
            out = float(self._value(np.asarray(theta), np.asarray(x), y))
        if np.isnan(out) or out < 0.0:
            raise DataError(f"The value function of Custom must return a number of at least 0. Got {out} instead.")
        return min(out, LARGEST)

    def gradient(self, theta: Any, x: Any, y: float) -> Array:
        theta = np.asarray(theta)
        with np.errstate(over="ignore"):
            out = np.asarray(self._gradient(theta, np.asarray(x), y), dtype=np.float64)
        if out.shape != theta.shape:
            raise DataError(
                f"The gradient function of Custom must return an array of shape {theta.shape}. Got {out.shape} instead."
            )
        if np.isnan(out).any():
            raise DataError("The gradient function of Custom must return numbers. Got NaN instead.")
        return np.clip(out, -LARGEST, LARGEST)

    def minimum(self, x: Any, y: float, domain: ConvexSet | None = None) -> tuple[Array, float]:
        from scipy.optimize import minimize, minimize_scalar

        x = np.asarray(x, dtype=np.float64)
        project = domain.project if domain is not None else np.asarray

        def along(scale: float) -> float:
            return self.value(project(scale * x), x, y)

        def lower(theta: Array) -> float:
            return self.value(theta, x, y)

        # A quasi-Newton search is exact where the loss is smooth, a search along x where it depends on ⟨x, θ⟩ alone.
        smooth = minimize(self.value, np.zeros_like(x), args=(x, y), jac=self.gradient)
        line = minimize_scalar(along, bracket=(0.0, 1.0 / max(norm(x) ** 2, 1e-150)), tol=1e-12)
        theta = min((project(smooth.x), project(line.x * x)), key=lower)
        if not smooth.success:
            theta = min((theta, project(minimize(self.value, theta, args=(x, y), method="Powell").x)), key=lower)
        if domain is not None and norm(project(smooth.x) - smooth.x) > 1e-12 * max(1.0, norm(smooth.x)):
            theta = min((theta, self._projected_descent(x, y, theta, domain)), key=lower)
        return theta, self.value(theta, x, y)

    def _projected_descent(self, x: Array, y: float, theta: Array, domain: ConvexSet) -> Array:
        """Projected gradient with a step that halves until it descends enough, to a fixed point."""
        rate = 1.0
        for _ in range(100_000):
            here, slope_here = self.value(theta, x, y), self.gradient(theta, x, y)
            while rate > 1e-150:
                there = domain.project(theta - rate * slope_here)
                move = there - theta
                if self.value(there, x, y) <= here + dot(slope_here, move) + 0.5 / rate * dot(move, move):
                    break
                rate *= 0.5
            theta = there
            if norm(move) <= 1e-14 * max(1.0, norm(theta)):
                break
            rate *= 2.0
        return theta
