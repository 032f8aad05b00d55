r"""Algorithm 3: play θ_t, observe an invex loss, update; and the regret bound of the run.

The loss that is descended is g_t: h(f_t) with a robust gate, and w_t·f_t with any other. With
ζ_t(u, θ) = γ₄·Log_θ(u), the exponential update and the geodesic projection satisfy the assumptions of the theorem with

    γ₁ = γ₂ = 1,   γ₃ = ζ(Δ(θ_t, u_t)), the distortion of the space,   γ₄ = c·h'(f_t(u_t))/h'(f_t(θ_t)),

where c is the slack of the loss (1 if it is geodesically convex). If the step is divided by ‖grad f_t‖, γ₃ is divided
by its square, γ₄ is multiplied by it, and α_t is the step before the division.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from redescend import gates
from redescend.bounds import invex as theorem
from redescend.errors import DataError
from redescend.invex.manifold_descent import FirstOrder, Move, compute_weight
from redescend.numeric import Array


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
    chosen = [space.check("A comparator", u) for u in comparators]
    if len(records) != len(chosen) or not records:
        raise DataError(f"There must be a comparator for each record. Got {len(chosen)} for {len(records)} instead.")
    actions, moves = [algorithm.theta], list[Move]()
    for record in records:
        moves.append(algorithm.advance(record))
        actions.append(algorithm.theta)

    chosen.append(chosen[-1])
    compared = np.array([algorithm.value(u, record) for u, record in zip(chosen, records, strict=False)])
    distances = np.array([space.distance(theta, u) for theta, u in zip(actions, chosen, strict=True)])
    crossed = [space.distance(theta, u) for theta, u in zip(actions[1:], chosen, strict=False)]
    path = np.array([space.distance(u, v) for u, v in pairwise(chosen)])
    losses, weights, lengths = (np.array([getattr(m, part) for m in moves]) for part in ("loss", "weight", "length"))
    # A round without a move may have any step; 1 keeps the sums finite.
    taken = np.array([move.step if move.step > 0.0 else 1.0 for move in moves])
    scale = np.array([move.length if move.normalised and move.length > 0.0 else 1.0 for move in moves])
    regrets, trust = _compare_losses(algorithm.gate, losses, compared, weights)
    slack = np.array([algorithm.slack(length) for length in lengths])
    bent = np.array([space.distortion(distance) for distance in distances[:-1]])
    return InvexTrace(
        losses=losses,
        weights=weights,
        compared=compared,
        actions=actions,
        regrets=regrets,
        distances=distances,
        path=path,
        gradients=weights * lengths,
        steps=taken,
        gamma3=bent / scale**2,
        gamma4=trust * slack * scale,
        diameter=float(np.max([*distances, *crossed, *path])),
    )


def _compare_losses(gate: gates.Gate, losses: Array, compared: Array, weights: Array) -> tuple[Array, Array]:
    """The regret of each round in g_t, and h'(f_t(u_t))/h'(f_t(θ_t))."""
    if not isinstance(gate, gates.Robust):
        return weights * (losses - compared), np.ones(len(losses))
    there = np.array([compute_weight(gate, f) for f in compared])
    with np.errstate(divide="ignore", invalid="ignore"):
        trust = np.where(weights > 0.0, there / np.where(weights > 0.0, weights, 1.0), np.inf)
    return gate.transform.value(losses) - gate.transform.value(compared), trust
