r"""Algorithm 3: play θ_t, observe an invex loss, update; the regret bound of the run; and checks of its assumptions.

The loss that is descended is g_t: h(f_t) with a robust gate, and w_t·f_t with any other. With
ζ_t(u, θ) = γ₄·Log_θ(u), the exponential update and the geodesic projection satisfy the assumptions of the theorem with

    γ₁ = γ₂ = 1,   γ₃ = ζ(Δ(θ_t, u_t)), the distortion of the space,   γ₄ = c·h'(f_t(u_t))/h'(f_t(θ_t)),

where c is the slack of the loss (1 if it is geodesically convex). If the step is divided by ‖grad f_t‖, γ₃ is divided
by its square, γ₄ is multiplied by it, and α_t is the step before the division.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from redescend import gates, steps
from redescend.bounds import invex as theorem
from redescend.errors import DataError
from redescend.invex.losses import InvexLoss
from redescend.invex.manifold_descent import FirstOrder, ManifoldDescent, Move, compute_weight
from redescend.invex.space import GeodesicBall, Space
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, NONNEGATIVE, check, check_instance


@dataclass(frozen=True)
class InvexTrace:
    """A played stream, one row per round.

    Parameters
    ----------
    losses, weights : arrays
        f_t(θ_t) and w_t.
    compared : array
        f_t(u_t).
    actions : list of points
        θ_1..θ_{T+1}.
    regrets : array
        g_t(θ_t) − g_t(u_t), in the loss that is descended.
    distances, path, gradients, steps, gamma3, gamma4 : arrays
        Inputs of the theorem; `distances` has T + 1 rows.
    diameter : float
        R, the largest distance in the proof; at most the diameter of the domain.

    Examples
    --------
    See `play`.
    """

    losses: Array
    weights: Array
    compared: Array
    actions: list[Array]
    regrets: Array
    distances: Array
    path: Array
    gradients: Array
    steps: Array
    gamma3: Array
    gamma4: Array
    diameter: float

    @property
    def regret(self) -> float:
        """Total regret Σ g_t(θ_t) − g_t(u_t)."""
        return float(self.regrets.sum())

    @property
    def bound(self) -> float:
        """The right-hand side of the theorem; infinite if a round had weight 0 behind a robust gate."""
        if not np.isfinite(self.gamma4).all():
            return np.inf
        inputs = self.distances, self.path, self.gradients, self.steps
        return theorem.dynamic_regret(*inputs, diameter=self.diameter, gamma3=self.gamma3, gamma4=self.gamma4)


def play(algorithm: FirstOrder, records: Iterable[Any], comparators: Iterable[Any]) -> InvexTrace:
    """Play a stream and measure regret against a comparator for each round.

    Parameters
    ----------
    algorithm : FirstOrder
        Such as ``ManifoldDescent(...)``; it learns the records.
    records : iterable
        One record per round.
    comparators : iterable of points
        One point of the domain per round.

    Returns
    -------
    InvexTrace
        Losses, weights and actions, with `regret` and `bound`.

    Examples
    --------
    >>> from redescend import invex, steps
    >>> space, generator = invex.Hyperboloid(3), np.random.default_rng(0)
    >>> points = [space.random(generator, 0.3) for _ in range(50)]
    >>> learner = invex.ManifoldDescent(invex.SquaredDistance(space), step=steps.Constant(0.1))
    >>> run = play(learner, points, [space.origin] * 50)
    >>> run.regret <= run.bound
    True
    """
    space, records = algorithm.space, list(records)
    points = [space.check("A comparator", u) for u in comparators]
    if len(records) != len(points) or not records:
        raise DataError(f"There must be a comparator for each record. Got {len(points)} for {len(records)} instead.")
    actions, moves = [algorithm.theta], list[Move]()
    for record in records:
        moves.append(algorithm.advance(record))
        actions.append(algorithm.theta)

    points.append(points[-1])
    comparator_losses = np.array([algorithm.value(u, record) for u, record in zip(points, records, strict=False)])
    distances = np.array([space.distance(theta, u) for theta, u in zip(actions, points, strict=True)])
    next_distances = [space.distance(theta, u) for theta, u in zip(actions[1:], points, strict=False)]
    path = np.array([space.distance(u, v) for u, v in pairwise(points)])
    losses, weights, lengths = (np.array([getattr(m, part) for m in moves]) for part in ("loss", "weight", "length"))
    # A round without a move may have any step; 1 keeps the sums finite.
    step_sizes = np.array([move.step if move.step > 0.0 else 1.0 for move in moves])
    scale = np.array([move.length if move.normalised and move.length > 0.0 else 1.0 for move in moves])
    regrets, slope_ratios = _compare_losses(algorithm.gate, losses, comparator_losses, weights)
    slack = np.array([algorithm.slack(length) for length in lengths])
    distortions = np.array([space.distortion(distance) for distance in distances[:-1]])
    return InvexTrace(
        losses=losses,
        weights=weights,
        compared=comparator_losses,
        actions=actions,
        regrets=regrets,
        distances=distances,
        path=path,
        gradients=weights * lengths,
        steps=step_sizes,
        gamma3=distortions / scale**2,
        gamma4=slope_ratios * slack * scale,
        diameter=float(np.max([*distances, *next_distances, *path])),
    )


def _compare_losses(gate: gates.Gate, losses: Array, comparator_losses: Array, weights: Array) -> tuple[Array, Array]:
    """The regret of each round in g_t, and h'(f_t(u_t))/h'(f_t(θ_t))."""
    if not isinstance(gate, gates.Robust):
        return weights * (losses - comparator_losses), np.ones(len(losses))
    slopes = np.array([compute_weight(gate, f) for f in comparator_losses])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(weights > 0.0, slopes / np.where(weights > 0.0, weights, 1.0), np.inf)
    return gate.transform.value(losses) - gate.transform.value(comparator_losses), ratios


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
