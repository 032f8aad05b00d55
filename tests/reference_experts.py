"""Expert algorithms from their statements: every expert of the grid by itself, O(T·N·d)."""

from __future__ import annotations

from math import ceil, exp, log, log2, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from redescend import domains, transforms
from tests import reference


class Grid(NamedTuple):
    """The actions that were played, and the experts: weights, iterates, steps and radii."""

    actions: np.ndarray
    weights: np.ndarray
    thetas: np.ndarray
    steps: np.ndarray
    radii: np.ndarray


class Meta(NamedTuple):
    """One round of adaptive weights: what was played, what each expert lost, and the gap up to it."""

    weights: np.ndarray
    lost: np.ndarray
    gap: float


def losses_and_gradients(thetas: np.ndarray, x: np.ndarray, y: float, loss: Any) -> tuple[np.ndarray, np.ndarray]:
    p = thetas @ x
    f = loss.of_prediction(p, y) + 0.5 * loss.l2 * np.sum(thetas**2, axis=1)
    return f, loss.slope(p, y)[:, None] * x + loss.l2 * thetas


def learn_with_experts(
    X: np.ndarray,
    y: np.ndarray,
    *,
    loss: Any,
    a: float,
    b: float,
    rounds: int,
    epsilon: float = 1.0,
    a_max: float | None = None,
    domain: domains.Domain = domains.Reals(),  # noqa: B008 -- frozen
) -> Grid:
    """Algorithm 2 of the paper."""
    T = rounds
    a_max = 2.0 * sqrt(T) if a_max is None else a_max
    alphas = [min(2.0**i, a_max) / sqrt(T) for i in range(1, ceil(log2(a_max)) + 1)]
    radii = [epsilon * 2.0**j / T for j in range(1, T + 1)]
    steps, radii = (grid.ravel() for grid in np.meshgrid(alphas, radii, indexing="ij"))
    beta = sqrt(8.0 * log(len(steps)) / (T * (max(a, 1.0 / a) / b) ** 2))
    thetas, log_weights = np.zeros((len(steps), X.shape[1])), np.zeros(len(steps))
    actions = []
    for x, target in zip(X, y, strict=True):
        weights = np.exp(log_weights - logsumexp(log_weights))
        actions.append(weights @ thetas)
        f, gradient = losses_and_gradients(thetas, x, target, loss)
        with np.errstate(over="ignore"):
            eta = 1.0 / (1.0 + b * np.exp(f / a))
        log_weights = log_weights - beta * eta.min() * f
        thetas = projected(thetas - (steps * eta)[:, None] * gradient, radii, domain)
    return Grid(np.array(actions), np.exp(log_weights - logsumexp(log_weights)), thetas, steps, radii)


def reordered(X: np.ndarray, y: np.ndarray, **settings: Any) -> np.ndarray:
    """The actions of the same algorithm with its features in another order: equal but for rounding errors.

    Long steps are chaotic, so that no two orders of summation agree to the last digits; how far these two are apart is
    what can be asked of a third.
    """
    order = np.roll(np.arange(X.shape[1])[::-1], X.shape[1] // 3)
    grid = learn_with_experts(X[:, order] * (1.0 + 1e-16), y * (1.0 + 2e-16), **settings)
    return grid.actions[:, np.argsort(order)]


def projected(moved: np.ndarray, radii: np.ndarray, domain: domains.Domain) -> np.ndarray:
    if isinstance(domain, domains.Reals):
        length = np.maximum(np.linalg.norm(moved, axis=1), 1e-300)
        return np.where(length > radii, radii, length)[:, None] * (moved / length[:, None])
    parts = getattr(domain, "parts", (domain,))
    sets = [domains.Intersection(*parts, domains.Ball(min(radius, 1e100))) for radius in radii]
    return np.array([reference.project(one, theta) for one, theta in zip(sets, moved, strict=True)])


def ader(
    X: np.ndarray, y: np.ndarray, *, loss: Any, domain: domains.Domain, rounds: int, gradient: float, span: float
) -> Grid:
    """Zhang, Lu and Zhou: Hedge over online gradient descents."""
    T = rounds
    N = ceil(0.5 * log2(1 + 4 * T / 7)) + 1
    index = np.arange(1, N + 1)
    steps = 2.0 ** (index - 1) * domain.diameter / gradient * sqrt(7 / (2 * T))
    weights = (N + 1) / (N * index * (index + 1))
    thetas, actions = np.zeros((N, X.shape[1])), []
    for x, target in zip(X, y, strict=True):
        actions.append(weights @ thetas)
        f, slope = losses_and_gradients(thetas, x, target, loss)
        weights = weights * np.exp(-sqrt(8 / (T * span**2)) * f)
        weights /= weights.sum()
        thetas = np.array([reference.project(domain, theta) for theta in thetas - steps[:, None] * slope])
    return Grid(np.array(actions), weights, thetas, steps, np.full(N, np.inf))


def jacobsen_cutkosky(
    X: np.ndarray,
    y: np.ndarray,
    *,
    loss: Any,
    rounds: int,
    gradient: float,
    smoothness: float,
    epsilon: float = 1.0,
    curvature: float,
) -> Grid:
    """Algorithm 3 of Jacobsen and Cutkosky on all radii; λ by bisection."""
    T, G, L = rounds, gradient, smoothness
    etas = [min(epsilon * 2.0**i / (8 * (G + epsilon * L) * T), 1 / (8 * L)) for i in range(T + 1)]
    balls = [epsilon / T * 2.0**j for j in range(T + 1)]
    steps, radii = (grid.ravel() for grid in np.meshgrid(list(dict.fromkeys(etas)), balls, indexing="ij"))
    mu = 1 / (2 * radii * (G + radii / steps))
    prior = mu**2 / np.sum(mu**2)
    p, beta = prior.copy(), 1 - exp(-1 / T)
    thetas, actions = np.zeros((len(steps), X.shape[1])), []
    for x, target in zip(X, y, strict=True):
        actions.append(p @ thetas)
        f, slope = losses_and_gradients(thetas, x, target, loss)
        more = f - loss.value(np.zeros(X.shape[1]), x, target)

        def log_q(height: float, more: np.ndarray = more, p: np.ndarray = p) -> np.ndarray:
            return np.log(p) - 2 * mu / 9 * (more + mu * more**2 + height)

        bound = 1.0
        while logsumexp(log_q(bound)) > 0 or logsumexp(log_q(-bound)) < 0:
            bound *= 2
        height = brentq(lambda height: logsumexp(log_q(height)), -bound, bound, xtol=1e-300, rtol=1e-15)
        p = (1 - beta) * np.exp(log_q(height)) + beta * prior
        rate = steps * (1 + 8 * steps * (curvature * x @ x + loss.l2))
        thetas = projected(thetas - rate[:, None] * slope, radii, domains.Reals())
    return Grid(np.array(actions), p, thetas, steps, radii)


def robust(
    X: np.ndarray,
    y: np.ndarray,
    *,
    loss: Any,
    a: float,
    b: float,
    domain: domains.Domain = domains.Reals(),  # noqa: B008 -- frozen
    count: int = 12,
    meta: list[Meta] | None = None,
) -> Grid:
    """AdaHedge with a share of 1/(t + 1) on the LEARN losses of `count` descents."""
    learn = transforms.Learn(a, b)
    thetas, weights, gap = np.zeros((count, X.shape[1])), np.full(count, 1.0 / count), 0.0
    factors = 0.5 ** np.arange(count)
    norms: list[float] = []
    scales: list[float] = []
    actions = []
    for x, target in zip(X, y, strict=True):
        actions.append(weights @ thetas)
        slope = loss.slope(0.0, target)
        scale = 4.0 * loss.of_prediction(0.0, target) / slope**2 if slope != 0.0 else 0.0
        if not x.any() or (scale == 0.0 and not scales):
            continue
        if scale > 0.0:
            scales.append(follow(scales, scale))
        norms.append(follow(norms, x @ x))
        curvature = max(norms[-1], x @ x) / scales[-1] + loss.l2

        f, gradient = losses_and_gradients(thetas, x, target, loss)
        # In extended precision: experts that have all lost nearly everything differ in the last digits alone.
        survives = np.exp(-f.astype(np.longdouble) / a)
        lost = (-a * np.log1p((survives - 1.0) / (1.0 + np.longdouble(b)))).astype(float)
        before, posterior = weights, weights
        if np.ptp(lost) > 1e-7 * lost.max():
            gap = gap if gap > 0.0 else np.ptp(lost)
            rate = log(count) / gap
            mixed = -logsumexp(-rate * lost, b=weights) / rate
            log_posterior = np.log(weights) - rate * (lost - mixed)
            wider = gap + max(0.0, weights @ lost - mixed)
            posterior, gap = np.exp(log_posterior * (gap / wider)), wider
        share = 1.0 / (len(norms) + 1.0)
        weights = (1.0 - share) * posterior / posterior.sum() + share / count
        if meta is not None:
            meta.append(Meta(before, lost, gap))
        steps = factors / curvature * learn.weight(f) / learn.weight(0.0)
        thetas = projected(thetas - steps[:, None] * gradient, np.full(count, 1e100), domain)
    return Grid(np.array(actions), weights, thetas, factors, np.full(count, np.inf))


def follow(seen: list[float], number: float) -> float:
    """A running median: a factor towards the new number of at most e^(2/n), or e^0.05 if that is more."""
    if not seen:
        return number
    most = max(2.0 / (len(seen) + 1), 0.05)
    return seen[-1] * exp(min(max(log(number / seen[-1]), -most), most))
