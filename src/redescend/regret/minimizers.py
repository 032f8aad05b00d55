"""Losses at comparators, and the best action of each round by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.domains import Ball, Domain
from redescend.losses import LinearLoss, Loss
from redescend.numeric import LARGEST, Array


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
