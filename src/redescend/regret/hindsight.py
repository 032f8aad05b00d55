r"""Losses at comparators, the best action of each round by itself, and the best fixed action in hindsight.

The last is the minimum over Θ of Σ_t φ(⟨x_t, θ⟩, y_t) + (n·l2/2)·‖θ‖². Squared and Logistic are smooth. The others are
sums of kinks max(low·r, high·r) with r = c − ⟨a, θ⟩, that is, of the largest u·r with low ≤ u ≤ high; the method of
multipliers minimizes them until the duality gap is small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from redescend.domains import Ball, Domain
from redescend.errors import DataError
from redescend.losses import Absolute, Custom, EpsilonInsensitive, Hinge, LinearLoss, Logistic, Loss, Pinball, Squared
from redescend.losses.linear import curvature
from redescend.numeric import LARGEST, Array, norm


def row_inner_products(left: Array, right: Array) -> Array:
    """⟨left_t, right_t⟩ of every row, in double precision and without a copy; `right` may be one row for all."""
    return np.einsum("ij,j->i" if right.ndim == 1 else "ij,ij->i", left, right, dtype=np.float64)


def _penalize_losses(loss: LinearLoss, p: Array, y: Array, size2: Any) -> Array:
    """f of the predictions p by actions of squared length `size2`."""
    f: Array = loss.of_prediction(p, y)
    return np.minimum(f + 0.5 * loss.l2 * size2, LARGEST) if loss.l2 else f


def losses_at(loss: Loss, X: Array, y: Array, theta: Array, counted: Array) -> Array:
    """f_t(θ) of every counted round, for one θ or a path of them."""
    if isinstance(loss, LinearLoss):
        with np.errstate(all="ignore"):
            size2 = row_inner_products(theta, theta) if theta.ndim == 2 else theta @ theta
            return _penalize_losses(loss, row_inner_products(X, theta), y, size2)
    f = np.zeros(len(y))
    for row in np.flatnonzero(counted):
        f[row] = loss.value(theta[row] if theta.ndim == 2 else theta, X[row], float(y[row]))
    return f


def minimum_losses(loss: Loss, X: Array, y: Array, domain: Domain | None, counted: Array) -> Array:
    """The minimum of f_t over the domain, of every counted round."""
    f = np.zeros(len(y))
    alone = counted
    if isinstance(loss, LinearLoss) and (domain is None or domain.radial):
        scale, xx = best_scales(loss, X, y, domain)
        with np.errstate(all="ignore"):
            f = _penalize_losses(loss, scale * xx, y, scale * (scale * xx))
        alone = counted & _find_extreme(X, xx)
    for row in np.flatnonzero(alone):
        f[row] = loss.minimum(X[row], float(y[row]), domain)[1]
    return f


def _find_extreme(X: Array, xx: Array) -> Array:
    """The rows whose ‖x‖² over- or underflows; `Loss.minimum` handles these."""
    odd = ~((xx > 1e-250) & (xx < 1e250))
    odd[odd] = np.any(X[odd] != 0.0, axis=1)
    return odd


def best_actions(loss: Loss, X: Array, y: Array, domain: Domain | None) -> Array:
    """The minimizer of f_t over the domain, of every row."""
    if isinstance(loss, LinearLoss) and (domain is None or domain.radial):
        scale, xx = best_scales(loss, X, y, domain)
        actions: Array = scale[:, None] * X
        for row in np.flatnonzero(_find_extreme(X, xx)):
            actions[row] = loss.minimum(X[row], float(y[row]), domain)[0]
        return actions
    return np.array([loss.minimum(x, float(response), domain)[0] for x, response in zip(X, y, strict=True)])


def best_scales(loss: LinearLoss, X: Array, y: Array, domain: Domain | None) -> tuple[Array, Array]:
    """The μ_t whose μ_t·x_t minimizes f_t over a radial domain, and ‖x_t‖²; where x_t = 0 the minimizer is 0."""
    with np.errstate(all="ignore"):
        xx = row_inner_products(X, X)
        usable = (xx > 0.0) & np.isfinite(xx)
        scale = loss.best_scale(np.where(usable, xx, 1.0), y.astype(np.float64))
        if isinstance(domain, Ball):
            # On a line through 0 the loss is convex: the nearest end of the segment is best.
            limit = domain.radius / np.sqrt(np.where(usable, xx, 1.0))
            scale = np.clip(scale, -limit, limit)
    return np.where(usable, scale, 0.0), xx


GAP = 1e-11  # the relative duality gap at which the method of multipliers stops
Parts = Callable[[Array], tuple[Array, Array, Array]]  # from predictions to ψ, ψ' and ψ'' of each


def best_action(loss: Loss, X: Array, y: Array, domain: Domain | None) -> Array:
    """The action with the least total loss on these records; of several, one of them."""
    dim = X.shape[1]
    if len(y) == 0:
        return np.zeros(dim) if domain is None else domain.project(np.zeros(dim))
    X, y = X.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
    if not isinstance(loss, LinearLoss):
        return _minimize_custom(loss, X, y, domain)
    ridge = loss.l2 * len(y)
    if isinstance(domain, Ball):
        return _minimize_in_ball(loss, X, y, ridge, domain)
    free = _minimize_free(loss, X, y, ridge)
    if domain is None or domain.contains(free):
        return free
    start, project = domain.project(free), domain.project
    if isinstance(loss, Squared | Logistic):
        return accelerated_descent(_make_smooth(loss, X, y, ridge), start, project, curvature(loss.kind))

    def minimize(inner: Objective, theta: Array, bend: float) -> Array:
        return accelerated_descent(inner, theta, project, bend)

    return _minimize_kinks(_make_kinks(loss, X, y), ridge, start, minimize)


def _minimize_free(loss: LinearLoss, X: Array, y: Array, ridge: float) -> Array:
    start = np.zeros(X.shape[1])
    if isinstance(loss, Squared | Logistic):
        return newton(_make_smooth(loss, X, y, ridge), start)
    return _minimize_kinks(_make_kinks(loss, X, y), ridge, start, lambda inner, theta, _: newton(inner, theta))


def _minimize_in_ball(loss: LinearLoss, X: Array, y: Array, ridge: float, ball: Ball) -> Array:
    """The free minimizer if it is inside; otherwise one more ridge, as strong as holds it on the sphere."""
    theta = _minimize_free(loss, X, y, ridge)
    if norm(theta) <= ball.radius:
        return theta
    from scipy.optimize import brentq

    def minimize(log_ridge: float) -> Array:
        return _minimize_free(loss, X, y, ridge + float(np.exp(log_ridge)))

    weakest = strongest = float(np.log(1e-12 * np.square(X).sum()))
    if norm(minimize(weakest)) > ball.radius:
        while norm(minimize(strongest)) > ball.radius:
            strongest += 5.0
        weakest = brentq(lambda s: norm(minimize(s)) / ball.radius - 1.0, strongest - 5.0, strongest, xtol=1e-13)
    return ball.project(minimize(weakest))


def _make_smooth(loss: Squared | Logistic, X: Array, y: Array, ridge: float) -> Objective:
    def parts(p: Array) -> tuple[Array, Array, Array]:
        f, slope = loss.of_prediction(p, y), loss.slope(p, y)
        # For the logistic loss ψ'' = s·(1 − s), with s = |ψ'|.
        bend = np.full_like(p, 2.0) if isinstance(loss, Squared) else np.abs(slope) * (1.0 - np.abs(slope))
        return f, slope, bend

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


def _make_kinks(loss: LinearLoss, X: Array, y: Array) -> Kinks:
    if isinstance(loss, Hinge):
        return Kinks(y[:, None] * X, np.ones(len(y)), 0.0, 1.0)
    if isinstance(loss, EpsilonInsensitive):
        return Kinks(np.vstack([X, -X]), np.concatenate([y, -y]) - loss.epsilon, 0.0, 1.0)
    if isinstance(loss, Pinball):
        return Kinks(X, y, loss.quantile - 1.0, loss.quantile)
    if isinstance(loss, Absolute):
        return Kinks(X, y, -1.0, 1.0)
    raise DataError(f"The best fixed action under {loss} is not known; add its kinks or its curvature to hindsight.py.")


def _minimize_kinks(
    kinks: Kinks, ridge: float, theta: Array, minimize: Callable[[Objective, Array, float], Array]
) -> Array:
    """Proximal steps in u: each is a smooth problem in θ, with kinks rounded off over a width that shrinks.

    After a step θ minimizes the Lagrangian of u, so that Σ max(low·r, high·r) − u·r bounds how far the minimum is.
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
            clipped = np.clip(moved, low, high)
            rounded = clipped * (c - p) - 0.5 * width * (clipped - u) ** 2
            return rounded, -clipped, np.where(clipped == moved, 1.0 / width, 0.0)

        theta = minimize(Objective(A, parts, ridge), theta, 1.0 / width)
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


def _minimize_custom(loss: Loss, X: Array, y: Array, domain: Domain | None) -> Array:
    """Minimize the total of a loss of which only values and gradients are known, as if it were one record."""
    records = [(x, float(response)) for x, response in zip(X, y, strict=True)]
    total = Custom(
        lambda theta, _x, _y: sum(loss.value(theta, *record) for record in records),
        lambda theta, _x, _y: np.sum([loss.gradient(theta, *record) for record in records], axis=0),
    )
    return total.minimum(np.zeros(X.shape[1]), 0.0, domain)[0]


# --- Σⱼ ψⱼ(⟨aⱼ, θ⟩) + (ridge/2)·‖θ‖² with smooth ψ: Newton's method, and accelerated descent on a domain ---


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
        _, slope, bend = self.parts(self.A @ theta)
        gradient = slope @ self.A + self.ridge * theta
        curved = bend > 0.0
        rows = self.A if curved.all() else self.A[curved]
        hessian = (rows.T * bend[curved]) @ rows
        hessian.flat[:: len(theta) + 1] += self.ridge
        # Scaled to a unit diagonal, small features are not lost in the rounding errors of large ones.
        unit = np.sqrt(np.where(hessian.diagonal() > 0.0, hessian.diagonal(), 1.0))
        scaled = hessian / np.outer(unit, unit)
        # Where nothing is curved the gradient may still point downhill: go far, and let the line search shorten it.
        scaled.flat[:: len(theta) + 1] += 1e-13
        return gradient, np.linalg.solve(scaled, gradient / unit) / unit


def newton(objective: Objective, theta: Array) -> Array:
    """Newton's method, to the last digit that the value shows."""
    value = objective.value(theta)
    for _ in range(300):
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


def accelerated_descent(objective: Objective, theta: Array, project: Callable[[Array], Array], bend: float) -> Array:
    """Accelerated projected descent until it no longer moves; `bend` is the largest ψ''.

    Beck and Teboulle, 2009, with the restarts of O'Donoghue and Candès, 2015.
    """
    A = objective.A
    steepest = bend * float(np.linalg.eigvalsh(A.T @ A)[-1]) + objective.ridge
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
