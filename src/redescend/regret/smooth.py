r"""Two ways to minimise Σⱼ ψⱼ(⟨aⱼ, θ⟩) + (ridge/2)·‖θ‖² with smooth ψ: Newton, and accelerated descent on a domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from redescend.errors import DataError
from redescend.numeric import Array, norm

Parts = Callable[[Array], tuple[Array, Array, Array]]
"""From predictions to ψ, ψ' and ψ'' of each."""


class Objective(NamedTuple):
    """Σⱼ ψⱼ(⟨aⱼ, θ⟩) + (ridge/2)·‖θ‖²."""

    A: Array
    parts: Parts
    ridge: float

    def value(self, theta: Array) -> float:
        return float(self.parts(self.A @ theta)[0].sum() + 0.5 * self.ridge * (theta @ theta))

    def gradient(self, theta: Array) -> Array:
        out: Array = self.parts(self.A @ theta)[1] @ self.A + self.ridge * theta
        return out

    def newton_step(self, theta: Array) -> tuple[Array, Array]:
        """The gradient, and the step to the minimum of the quadratic model."""
        _, slope, curvature = self.parts(self.A @ theta)
        gradient = slope @ self.A + self.ridge * theta
        curved = curvature > 0.0
        rows = self.A if curved.all() else self.A[curved]
        hessian = (rows.T * curvature[curved]) @ rows
        hessian.flat[:: len(theta) + 1] += self.ridge
        # Features in units far apart: scaled to a unit diagonal, none of them is taken for rounding error.
        unit = np.sqrt(np.where(hessian.diagonal() > 0.0, hessian.diagonal(), 1.0))
        scaled = hessian / np.outer(unit, unit)
        # Where nothing is curved the gradient may still point downhill: go far, and let the line search shorten it.
        scaled.flat[:: len(theta) + 1] += 1e-13
        return gradient, np.linalg.solve(scaled, gradient / unit) / unit


def newton(objective: Objective, theta: Array, iterations: int = 300) -> Array:
    """Newton's method, to the last digit that the value shows."""
    value = objective.value(theta)
    for _ in range(iterations):
        gradient, step = objective.newton_step(theta)
        fall = float(gradient @ step)
        if not fall > 0.0:
            break
        following = theta - step
        reached = objective.value(following)
        if not reached <= value - 1e-4 * fall:
            following = theta - _line_search(objective, theta, step) * step
            reached = objective.value(following)
        if not reached < value:
            break
        theta, value = following, reached
        if fall <= 1e-16 * abs(value):
            break
    return theta


def _line_search(objective: Objective, theta: Array, step: Array) -> float:
    """The rate below 1 at which the value along −step stops falling, by bisection."""

    def rising(rate: float) -> bool:
        return float(objective.gradient(theta - rate * step) @ step) < 0.0

    high = 1.0
    while rising(0.1 * high) and high > 1e-150:
        high *= 0.1
    low = 0.1 * high
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if rising(middle) else (middle, high)
    return low


def accelerated(objective: Objective, theta: Array, project: Callable[[Array], Array], curvature: float) -> Array:
    """Accelerated projected descent, restarted when it turns back, until a step moves no digit that matters.

    `curvature` is the largest ψ''.

    References
    ----------
    Beck and Teboulle, A fast iterative shrinkage-thresholding algorithm, 2009; O'Donoghue and Candès, Adaptive restart
    for accelerated gradient schemes, 2015.
    """
    A = objective.A
    steepest = curvature * float(np.linalg.eigvalsh(A.T @ A)[-1]) + objective.ridge
    theta = project(theta)
    ahead, momentum = theta, 1.0
    for _ in range(20_000):
        following = project(ahead - objective.gradient(ahead) / max(steepest, 1e-300))
        move = following - theta
        if (ahead - following) @ move > 0.0:
            ahead, momentum = theta, 1.0
            following = project(ahead - objective.gradient(ahead) / max(steepest, 1e-300))
            move = following - theta
        longer = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        stride = norm(following - ahead)
        ahead, theta = following + (momentum - 1.0) / longer * move, following
        momentum = longer
        if stride <= 1e-14 * max(norm(theta), 1e-150):
            return theta
    if stride > 1e-8 * max(norm(theta), 1e-150):
        raise DataError("The best fixed action on this domain was not found; scale the features to similar sizes.")
    return theta
