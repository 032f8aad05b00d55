r"""Checks of the theorem's assumptions on random points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from redescend import steps
from redescend.invex.losses import InvexLoss
from redescend.invex.manifold_descent import ManifoldDescent
from redescend.invex.space import GeodesicBall, Space
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, NONNEGATIVE, check, check_instance


class Slack(NamedTuple):
    """The smallest relative slack of each inequality: negative where one fails; −1e-12 or so is rounding.

    Parameters
    ----------
    law_of_cosines, distortion, first_order_update, invexity : float
        (right-hand side − left-hand side)/scale, the smallest over all points; see `check_assumptions`.

    Examples
    --------
    >>> min(Slack(law_of_cosines=0.2, distortion=0.0, first_order_update=-0.3, invexity=0.1)) >= 0.0
    False
    """

    law_of_cosines: float
    distortion: float
    first_order_update: float
    invexity: float


def check_assumptions(
    loss: InvexLoss,
    draw: Callable[[np.random.Generator], tuple[Any, Array]],
    *,
    trials: int = 200,
    spread: float = 1.0,
    seed: int = 0,
) -> Slack:
    r"""Check the theorem's four inequalities on random points.

    - law of cosines, γ₁ = γ₂ = 1: Δ(x, y)² ≤ Δ(x, z)² + Δ(z, y)² + 2·Δ(x, z)·Δ(z, y);
    - distortion: Δ(Exp_θ(v), u)² ≤ Δ(θ, u)² + ζ·‖v‖² − 2·⟨v, Log_θ(u)⟩, for any direction v;
    - first-order update: the same for v = −α·grad f, after a projection on a geodesic ball that holds u;
    - invexity: f(θ) − f(u) ≤ c·⟨−grad f(θ), Log_θ(u)⟩.

    Parameters
    ----------
    loss : InvexLoss
        The loss to check, over its space.
    draw : callable
        Takes a Generator and returns a record and a comparator u. For a weakly pseudo-convex loss u must be the
        record's minimizer.
    trials : int, default=200
        Number of points.
    spread : float, default=1.0
        Distance of the points, as in `Space.random`.
    seed : int, default=0
        Seed of the points.

    Returns
    -------
    Slack
        All of it is >= 0, up to rounding, if the assumptions hold.

    Examples
    --------
    >>> from redescend import invex
    >>> space = invex.SPD(3)
    >>> slack = check_assumptions(invex.SquaredDistance(space), lambda g: (space.random(g), space.random(g)))
    >>> min(slack) > -1e-9
    True
    """
    check_instance("check_assumptions", "loss", loss, InvexLoss, "a loss over a space")
    check("check_assumptions", "trials", trials, AT_LEAST_ONE)
    check("check_assumptions", "spread", spread, NONNEGATIVE)
    space, generator = loss.space, np.random.default_rng(seed)
    least = np.full(4, np.inf)
    for _ in range(trials):
        record, u = draw(generator)
        theta, other = space.random(generator, spread), space.random(generator, spread)
        direction = generator.exponential() * space.log(theta, other)
        alpha = float(generator.exponential())
        slacks = (
            _check_triangle(space, theta, u, other),
            _check_distortion(space, theta, u, direction, space.exp(theta, direction)),
            _check_update(loss, theta, u, record, alpha),
            _check_invexity(loss, theta, u, record),
        )
        least = np.minimum(least, slacks)
    return Slack(*least.tolist())


def _check_triangle(space: Space, x: Array, y: Array, z: Array) -> float:
    left, first, second = space.distance(x, y), space.distance(x, z), space.distance(z, y)
    right = (first + second) ** 2
    return (right - left**2) / max(right, 1e-300)


def _check_distortion(space: Space, theta: Array, u: Array, move: Array, moved: Array) -> float:
    away, towards = space.distance(theta, u), space.log(theta, u)
    bent = space.distortion(away) * space.inner(theta, move, move)
    right = away**2 + bent - 2.0 * space.inner(theta, move, towards)
    return (right - space.distance(moved, u) ** 2) / max(away**2 + bent, 1e-300)


def _check_update(loss: InvexLoss, theta: Array, u: Array, record: Any, alpha: float) -> float:
    space = loss.space
    centre = space.between(theta, u, 0.5)
    ball = GeodesicBall(space, max(1.1 * space.distance(centre, theta), 1e-9), centre)
    learner = ManifoldDescent(loss, step=steps.Constant(alpha), domain=ball, start=theta)
    evaluated = loss.at(theta, loss.check(record))
    learner.update(record)
    return _check_distortion(space, theta, u, -alpha * evaluated.gradient, learner.theta)


def _check_invexity(loss: InvexLoss, theta: Array, u: Array, record: Any) -> float:
    space, record = loss.space, loss.check(record)
    f, gradient = loss.at(theta, record)
    comparator, towards = loss.value(u, record), space.log(theta, u)
    rise = -loss.slack(space.norm(theta, gradient)) * space.inner(theta, gradient, towards)
    return (rise - (f - comparator)) / max(abs(rise) + abs(f) + abs(comparator), 1e-300)
