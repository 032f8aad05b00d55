"""What occurred in a game, in the quantities that the proofs speak of: one number a round of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from redescend import steps
from redescend.domains import Ball, Domain, Reals
from redescend.errors import DataError
from redescend.game import Stream, Trace
from redescend.learners.descent import Descent
from redescend.losses import LinearLoss
from redescend.losses.linear import jump
from redescend.numeric import LARGEST, Array
from redescend.parameters import check_instance
from redescend.regret import BLOCK
from redescend.regret.minimisers import best_actions, row_products


@dataclass(frozen=True, eq=False)
class Occurred:
    """Of every round t that was played: lengths, distances and products of the action θ, the gradient g = ∇f(θ), u, ω.

    u minimises the loss of the record as nature made it (the paper's θ*), ω that of the record as it was played. What
    is beyond the floats is the largest float.
    """

    clean: Array
    losses: Array
    weights: Array
    steps: Array
    gradient: Array
    """‖g‖."""
    slack: Array
    """⟨g, θ − u⟩: what convexity allows a clean round to lose beyond u."""
    here: Array
    """‖θ_t − u_t‖²."""
    moved: Array
    """‖θ_{t+1} − u_t‖²."""
    onward: Array
    """‖θ_{t+1} − u_{t+1}‖², and in the last round ‖θ_{t+1} − u_t‖²."""
    closer: Array
    """‖θ_t − u_t‖² − ‖θ_{t+1} − u_t‖², to all its digits."""
    error: Array
    """‖θ_{t+1} − Π(θ_t − α_t·w_t·g_t)‖: what rounding did."""
    path: Array
    """‖u_t − u_{t+1}‖; 0 in the last round."""
    path_all: Array
    """‖ω_t − ω_{t+1}‖; 0 in the last round."""
    deviation: Array
    """‖ω − u‖."""
    reach: Array
    """max(‖θ_t‖, ‖θ_{t+1}‖, ‖u‖, ‖ω‖)."""
    comparator: Array
    """‖u‖."""
    rest: Array
    """‖∇f(ω)‖ and the jump of ∇f, which G has to cover."""
    record: Array
    """‖x‖ of the record as it was played."""


DIGITS = 4.0 * float(np.finfo(np.float64).eps)
GIVEN = ("clean", "losses", "weights", "steps")


def occurred(trace: Trace, stream: Stream, learner: Descent) -> Occurred:
    """Measure the game that `learner` has just played; its actions must have been kept."""
    loss, nature, domain = _checked(trace, stream, learner), stream.uncorrupted(), learner.domain
    assert trace.actions is not None
    # A row that was skipped left the action where it was: without it the game is the same.
    kept = np.setdiff1d(np.arange(len(stream)), trace.skipped)
    actions = np.vstack([trace.actions[kept], trace.theta[None]])
    weights, rounds = trace.weights[kept], len(kept)
    out = {name: np.zeros(rounds) for name in Occurred.__annotations__ if name not in GIVEN}
    size = max(1, BLOCK // stream.dim)
    with np.errstate(all="ignore"):
        alpha = _sizes(learner, stream, actions, kept, weights)
        for first in range(0, rounds, size):
            rows, last = slice(first, first + size), min(first + size, rounds)
            count, wide = last - first, kept[first : last + 1]
            X, y = stream.X[kept[rows]].astype(np.float64), stream.y[kept[rows]]
            theta, after = (actions[at : at + count].astype(np.float64) for at in (first, first + 1))
            seen = best_actions(loss, nature.X[wide].astype(np.float64), nature.y[wide], domain)
            u, ahead = _and_next(seen.copy(), count)
            changed = wide[~stream.clean[wide]]
            if len(changed):
                X_seen = stream.X[changed].astype(np.float64)
                seen[~stream.clean[wide]] = best_actions(loss, X_seen, stream.y[changed], domain)
            omega, beyond = _and_next(seen, count)
            g = _gradients(loss, theta, X, y)
            out["gradient"][rows] = _lengths(g)
            rate = np.where(weights[rows] > 0.0, alpha[rows] * weights[rows], 0.0)[:, None]
            told = _projected(domain, np.where(rate > 0.0, theta - rate * g, theta))
            out["record"][rows] = _lengths(X)
            out["slack"][rows] = row_products(g, theta - u)
            for name, left, right in (("here", theta, u), ("moved", after, u), ("onward", after, ahead)):
                out[name][rows] = row_products(left - right, left - right)
            out["closer"][rows] = row_products(theta - after, theta + after - 2.0 * u)
            # What the sum that gave `told` may itself have lost is below the last digits of its terms.
            out["error"][rows] = _lengths(after - told) + DIGITS * (_lengths(theta) + _lengths(after))
            out["path"][rows], out["path_all"][rows] = _lengths(u - ahead), _lengths(omega - beyond)
            out["deviation"][rows], out["comparator"][rows] = _lengths(omega - u), _lengths(u)
            out["reach"][rows] = np.maximum.reduce([_lengths(points) for points in (theta, after, omega, u)])
            # Where nothing holds ω back, 0 is a subgradient there.
            still = 0.0 if isinstance(domain, Reals) else _lengths(_gradients(loss, omega, X, y))
            out["rest"][rows] = still + jump(loss.kind) * out["record"][rows]
    finite = {name: np.nan_to_num(value, nan=LARGEST, posinf=LARGEST) for name, value in out.items()}
    return Occurred(clean=stream.clean[kept], losses=trace.losses[kept], weights=weights, steps=alpha, **finite)


def _and_next(points: Array, count: int) -> tuple[Array, Array]:
    """So many points, and the one after each; the last of all stays."""
    return points[:count], np.vstack([points, points[-1:]])[1 : count + 1]


def _lengths(vectors: Array) -> Array:
    return np.minimum(np.sqrt(row_products(vectors, vectors)), LARGEST)


def _projected(domain: Domain, points: Array) -> Array:
    if isinstance(domain, Reals):
        return points
    if isinstance(domain, Ball):
        return points * np.minimum(1.0, domain.radius / np.maximum(_lengths(points), 1e-300))[:, None]
    return np.array([domain.project(point) for point in points])


def _checked(trace: Trace, stream: Stream, learner: Descent) -> LinearLoss:
    check_instance("bounds", "trace", trace, Trace, "a Trace")
    check_instance("bounds", "stream", stream, Stream, "a Stream")
    check_instance("bounds", "learner", learner, Descent, "a learner that descends, such as Learn(...)")
    loss = learner.loss
    if not isinstance(loss, LinearLoss):
        raise DataError(
            "The bounds know the losses of a linear prediction; a Custom loss needs a Setting(...) by hand."
        )
    if trace.actions is None:
        raise DataError("The trace has no actions to measure; play the game with keep_actions=True.")
    if len(trace) != len(stream):
        raise DataError(
            f"The trace has {len(trace)} rounds and the stream has {len(stream)}; they must be of one game."
        )
    if stream.dim != learner.dim or trace.actions.shape[1] != learner.dim:
        raise DataError(
            f"The learner has {learner.dim} features and the stream {stream.dim}; they must be of one game."
        )
    if learner.rounds < len(trace) or not np.array_equal(trace.theta, learner.theta):
        raise DataError("The trace is not of the learner's last game; measure a game before the learner plays another.")
    return loss


def _gradients(loss: LinearLoss, theta: Array, X: Array, y: Array) -> Array:
    theta, X = theta.astype(np.float64), X.astype(np.float64)
    return loss.slope(row_products(X, theta), y)[:, None] * X + loss.l2 * theta


def _sizes(learner: Descent, stream: Stream, actions: Array, kept: Array, weights: Array) -> Array:
    """α_t of every round that was played."""
    kind, (scale, normalised), rounds = learner.step.kind, learner.step.settings, len(stream)
    t: Any = learner.rounds - rounds + 1.0 + kept
    if kind != steps.PER_TRAVELLED and not normalised:
        return np.broadcast_to(steps.size(kind, scale, 0.0, t, 0.0, 0.0), len(kept)).astype(np.float64)
    if kind == steps.PER_TRAVELLED and learner.rounds > rounds:
        raise DataError("A step that adds up gradients can only be measured from the learner's first round on.")
    assert isinstance(learner.loss, LinearLoss)
    gradient = _lengths(_gradients(learner.loss, actions[:-1], stream.X[kept], stream.y[kept]))
    travelled = np.sqrt(np.cumsum(np.where(weights > 0.0, weights * gradient, 0.0) ** 2))
    rows = zip(t, travelled, gradient, strict=True)
    return np.array([steps.size(kind, scale, normalised, *map(float, row)) for row in rows])
