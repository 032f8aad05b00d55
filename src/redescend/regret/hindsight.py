r"""The best fixed action in hindsight: min over Θ of Σ_t φ(⟨x_t, θ⟩, y_t) + (n·l2/2)·‖θ‖².

Squared and Logistic are smooth. The others are sums of kinks max(low·r, high·r) with r = c − ⟨a, θ⟩, that is, of the
largest u·r with low ≤ u ≤ high; the method of multipliers minimises them, and knows by the duality gap how far it is
from the minimum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from redescend.domains import Ball, Domain
from redescend.errors import DataError
from redescend.losses import (
    Absolute,
    Custom,
    EpsilonInsensitive,
    Hinge,
    LinearLoss,
    Logistic,
    Loss,
    Pinball,
    Squared,
)
from redescend.numeric import Array, norm
from redescend.regret.smooth import Objective, accelerated, newton

GAP = 1e-11
"""The relative duality gap at which the method of multipliers stops."""


def best_action(loss: Loss, X: Array, y: Array, domain: Domain | None) -> Array:
    """The action with the least total loss on these records; of several, one of them."""
    dim = X.shape[1]
    if len(y) == 0:
        return np.zeros(dim) if domain is None else domain.project(np.zeros(dim))
    X, y = X.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
    if not isinstance(loss, LinearLoss):
        return _of_values(loss, X, y, domain)
    ridge = loss.l2 * len(y)
    if domain is None or domain.radial:
        return _in_ball(loss, X, y, ridge, domain) if isinstance(domain, Ball) else _free(loss, X, y, ridge)
    free = _free(loss, X, y, ridge)
    if domain.contains(free):
        return free
    start = domain.project(free)
    if isinstance(loss, Squared | Logistic):
        curvature = 2.0 if isinstance(loss, Squared) else 0.25
        return accelerated(_smooth(loss, X, y, ridge), start, domain.project, curvature)
    return _multipliers(
        _kinks(loss, X, y),
        ridge,
        start,
        lambda inner, theta, curvature: accelerated(inner, theta, domain.project, curvature),
    )


def _free(loss: LinearLoss, X: Array, y: Array, ridge: float) -> Array:
    start = np.zeros(X.shape[1])
    if isinstance(loss, Squared | Logistic):
        return newton(_smooth(loss, X, y, ridge), start)
    return _multipliers(_kinks(loss, X, y), ridge, start, lambda inner, theta, _: newton(inner, theta))


def _in_ball(loss: LinearLoss, X: Array, y: Array, ridge: float, ball: Ball) -> Array:
    """The free minimiser if it is inside; otherwise one more ridge, as strong as holds it on the sphere."""
    theta = _free(loss, X, y, ridge)
    if norm(theta) <= ball.radius:
        return theta
    from scipy.optimize import brentq

    def held(log_ridge: float) -> Array:
        return _free(loss, X, y, ridge + float(np.exp(log_ridge)))

    weakest = strongest = float(np.log(1e-12 * np.square(X).sum()))
    if norm(held(weakest)) > ball.radius:
        while norm(held(strongest)) > ball.radius:
            strongest += 5.0
        weakest = brentq(lambda s: norm(held(s)) / ball.radius - 1.0, strongest - 5.0, strongest, xtol=1e-13)
    return ball.project(held(weakest))


def _smooth(loss: Squared | Logistic, X: Array, y: Array, ridge: float) -> Objective:
    def parts(p: Array) -> tuple[Array, Array, Array]:
        f, slope = loss.of_prediction(p, y), loss.slope(p, y)
        # For the logistic loss ψ'' = s·(1 − s), with s = |ψ'|.
        curvature = np.full_like(p, 2.0) if isinstance(loss, Squared) else np.abs(slope) * (1.0 - np.abs(slope))
        return f, slope, curvature

    return Objective(X, parts, ridge)


class Kinks(NamedTuple):
    """Σⱼ max(low·rⱼ, high·rⱼ) with r = c − Aθ."""

    A: Array
    c: Array
    low: float
    high: float

    def values(self, theta: Array) -> tuple[Array, Array]:
        r = self.c - self.A @ theta
        return np.maximum(self.low * r, self.high * r), r


def _kinks(loss: LinearLoss, X: Array, y: Array) -> Kinks:
    if isinstance(loss, Hinge):
        return Kinks(y[:, None] * X, np.ones(len(y)), 0.0, 1.0)
    if isinstance(loss, EpsilonInsensitive):
        return Kinks(np.vstack([X, -X]), np.concatenate([y, -y]) - loss.epsilon, 0.0, 1.0)
    if isinstance(loss, Pinball):
        return Kinks(X, y, loss.quantile - 1.0, loss.quantile)
    if isinstance(loss, Absolute):
        return Kinks(X, y, -1.0, 1.0)
    raise DataError(f"The best fixed action under {loss} is not known; add its kinks or its curvature to hindsight.py.")


def _multipliers(
    kinks: Kinks, ridge: float, theta: Array, minimise: Callable[[Objective, Array, float], Array]
) -> Array:
    """Proximal steps in u: each is a smooth problem in θ, with kinks rounded off over a width that shrinks.

    After a step θ minimises the Lagrangian of u, so that Σ max(low·r, high·r) − u·r bounds how far the minimum is.
    """
    A, c, low, high = kinks
    f, r = kinks.values(theta)
    at_start = float(f.sum())
    width = max(float(np.abs(r).mean()), 1e-150)
    u = np.clip(0.0, low, high) + np.zeros_like(c)
    best, least = theta, np.inf
    for _ in range(60):

        def parts(p: Array, width: float = width, u: Array = u) -> tuple[Array, Array, Array]:
            moved = u + (c - p) / width
            kept = np.clip(moved, low, high)
            rounded = kept * (c - p) - 0.5 * width * (kept - u) ** 2
            return rounded, -kept, np.where(kept == moved, 1.0 / width, 0.0)

        theta = minimise(Objective(A, parts, ridge), theta, 1.0 / width)
        f, r = kinks.values(theta)
        u = np.clip(u + r / width, low, high)
        gap = float((f - u * r).sum())
        value = float(f.sum() + 0.5 * ridge * (theta @ theta))
        if value < least:
            best, least = theta, value
        if gap <= GAP * value or value <= 1e-15 * at_start:
            break
        width *= 0.3
    return best


def _of_values(loss: Loss, X: Array, y: Array, domain: Domain | None) -> Array:
    """The total of a loss that is known by its values and gradients only, minimised as one record."""
    records = [(x, float(response)) for x, response in zip(X, y, strict=True)]
    total = Custom(
        lambda theta, _x, _y: sum(loss.value(theta, *record) for record in records),
        lambda theta, _x, _y: np.sum([loss.gradient(theta, *record) for record in records], axis=0),
    )
    return total.minimum(np.zeros(X.shape[1]), 0.0, domain)[0]
