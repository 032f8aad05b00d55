"""What occurred in a game, in the quantities that the proofs speak of: one number a round of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from redescend import steps
from redescend.errors import DataError
from redescend.game import Stream, Trace
from redescend.learners.descent import Descent
from redescend.losses import LinearLoss
from redescend.losses.linear import jump
from redescend.numeric import Array
from redescend.parameters import check_instance
from redescend.regret import BLOCK
from redescend.regret.minimisers import best_actions, row_products


@dataclass(frozen=True, eq=False)
class Occurred:
    """Of every round t: lengths, distances and products of the action θ, the gradient g = ∇f(θ) and the minimisers.

    u minimises the loss of the record as nature made it (the paper's θ*), ω that of the record as it was played.
    """

    clean: Array
    """Clean rounds that were played, not skipped."""
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
    path: Array
    """‖u_t − u_{t+1}‖; 0 in the last round."""
    path_all: Array
    """‖ω_t − ω_{t+1}‖; 0 in the last round."""
    deviation: Array
    """‖ω − u‖."""
    reach: Array
    """max(‖θ‖, ‖u‖, ‖ω‖)."""
    comparator: Array
    """‖u‖."""
    rest: Array
    """‖∇f(ω)‖ and the jump of ∇f, which G has to cover."""
    record: Array
    """‖x‖ of the record as it was played."""


def occurred(trace: Trace, stream: Stream, learner: Descent) -> Occurred:
    """Measure a game that `learner` has just played; its actions must have been kept."""
    loss = _checked(trace, stream, learner)
    nature, actions, domain = stream.uncorrupted(), trace.actions, learner.domain
    assert actions is not None
    rounds, names = (
        len(stream),
        [name for name in Occurred.__annotations__ if name not in ("clean", "weights", "steps")],
    )
    out = {name: np.zeros(rounds) for name in names}
    size = max(1, BLOCK // stream.dim)
    free = domain.diameter == np.inf
    for first in range(0, rounds, size):
        rows, last = slice(first, first + size), min(first + size, rounds)
        wide = slice(first, first + size + 1)
        X, y = stream.X[rows].astype(np.float64), stream.y[rows]
        theta = actions[rows].astype(np.float64)
        after = np.vstack([actions[first + 1 : last + 1], trace.theta[None]])[: last - first].astype(np.float64)
        path = best_actions(loss, nature.X[wide].astype(np.float64), nature.y[wide], domain)
        u, ahead = path[: last - first], np.vstack([path, path[-1:]])[1 : last - first + 1]
        seen = best_actions(loss, stream.X[wide].astype(np.float64), stream.y[wide], domain)
        omega, beyond = seen[: last - first], np.vstack([seen, seen[-1:]])[1 : last - first + 1]
        with np.errstate(over="ignore", invalid="ignore"):
            g = _gradients(loss, theta, X, y)
            out["record"][rows] = np.sqrt(row_products(X, X))
            out["gradient"][rows] = np.sqrt(row_products(g, g))
            out["slack"][rows] = row_products(g, theta - u)
            for name, left, right in (("here", theta, u), ("moved", after, u), ("onward", after, ahead)):
                out[name][rows] = row_products(left - right, left - right)
            out["path"][rows] = np.linalg.norm(u - ahead, axis=1)
            out["path_all"][rows] = np.linalg.norm(omega - beyond, axis=1)
            out["deviation"][rows] = np.linalg.norm(omega - u, axis=1)
            out["comparator"][rows] = np.linalg.norm(u, axis=1)
            lengths = [np.linalg.norm(points, axis=1) for points in (theta, after, omega)]
            out["reach"][rows] = np.maximum.reduce([*lengths, out["comparator"][rows]])
            # Where nothing holds ω back, 0 is a subgradient there.
            still = 0.0 if free else np.linalg.norm(_gradients(loss, omega, X, y), axis=1)
            out["rest"][rows] = still + jump(loss.kind) * out["record"][rows]
    played = np.ones(rounds, dtype=bool)
    played[trace.skipped] = False
    return Occurred(
        clean=stream.clean & played,
        weights=trace.weights,
        steps=_sizes(learner, trace.weights, out["gradient"]),
        **out,
    )


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
    if learner.rounds < len(trace):
        raise DataError(f"The learner has played {learner.rounds} rounds, but the trace has {len(trace)} of them.")
    return loss


def _gradients(loss: LinearLoss, theta: Array, X: Array, y: Array) -> Array:
    return loss.slope(row_products(X, theta), y)[:, None] * X + loss.l2 * theta


def _sizes(learner: Descent, weights: Array, gradient: Array) -> Array:
    """α_t of every round of the game."""
    step, rounds = learner.step, len(weights)
    scale, normalised = step.settings
    t = np.arange(learner.rounds - rounds + 1.0, learner.rounds + 1.0)
    if step.kind == steps.PER_TRAVELLED and learner.rounds > rounds:
        raise DataError("A step that adds up gradients can only be measured from the learner's first round on.")
    travelled = np.sqrt(np.cumsum((weights * gradient) ** 2))
    return np.array(
        [steps.size(step.kind, scale, normalised, *row) for row in zip(t, travelled, gradient, strict=True)]
    )
