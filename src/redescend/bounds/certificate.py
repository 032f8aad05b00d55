"""Certificates: the inequality of the proof, evaluated on a game whose quantities are measured in every round."""

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
from redescend.regret import BLOCK, check_game, clean_dynamic
from redescend.regret.hindsight import best_actions, row_inner_products


@dataclass(frozen=True, eq=False)
class Measurements:
    """Lengths, distances and products of the action θ, the gradient g = ∇f(θ), u and ω in every round that was played.

    u minimizes the loss of the original record (the paper's θ*), ω that of the record as it was played. What overflows
    is the largest float.
    """

    clean: Array
    losses: Array
    weights: Array
    steps: Array
    gradient: Array  # ‖g‖
    slack: Array  # ⟨g, θ − u⟩: the largest regret of a clean round that convexity allows
    squared_after: Array  # ‖θ_{t+1} − u_t‖²
    squared_next: Array  # ‖θ_{t+1} − u_{t+1}‖², and in the last round ‖θ_{t+1} − u_t‖²
    squared_decrease: Array  # ‖θ_t − u_t‖² − ‖θ_{t+1} − u_t‖², to full precision
    error: Array  # ‖θ_{t+1} − Π(θ_t − α_t·w_t·g_t)‖: the rounding error of the step
    path: Array  # ‖u_t − u_{t+1}‖; 0 in the last round
    path_all: Array  # ‖ω_t − ω_{t+1}‖; 0 in the last round
    deviation: Array  # ‖ω − u‖
    reach: Array  # max(‖θ_t‖, ‖θ_{t+1}‖, ‖u‖, ‖ω‖)
    comparator: Array  # ‖u‖
    rest: Array  # ‖∇f(ω)‖ plus the jump of ∇f: what G must cover
    record: Array  # ‖x‖ of the record as it was played


DIGITS = 4.0 * float(np.finfo(np.float64).eps)
FROM_TRACE = ("clean", "losses", "weights", "steps")


def measure_game(trace: Trace, stream: Stream, learner: Descent) -> Measurements:
    """Measure the game that `learner` has just played; the trace must have its actions."""
    loss, nature, domain = _check_game(trace, stream, learner), stream.uncorrupted(), learner.domain
    assert trace.actions is not None
    # A row that was skipped left the action where it was: without it the game is the same.
    played = np.setdiff1d(np.arange(len(stream)), trace.skipped)
    actions = np.vstack([trace.actions[played], trace.theta[None]])
    weights, rounds = trace.weights[played], len(played)
    out = {name: np.zeros(rounds) for name in Measurements.__annotations__ if name not in FROM_TRACE}
    size = max(1, BLOCK // stream.dim)
    with np.errstate(all="ignore"):
        alpha = _compute_step_sizes(learner, stream, actions, played, weights)
        for first in range(0, rounds, size):
            rows, last = slice(first, first + size), min(first + size, rounds)
            count, wide = last - first, played[first : last + 1]
            X, y = stream.X[played[rows]].astype(np.float64), stream.y[played[rows]]
            theta, after = (actions[at : at + count].astype(np.float64) for at in (first, first + 1))
            seen = best_actions(loss, nature.X[wide].astype(np.float64), nature.y[wide], domain)
            u, ahead = _pair_with_next(seen.copy(), count)
            changed = wide[~stream.clean[wide]]
            if len(changed):
                X_seen = stream.X[changed].astype(np.float64)
                seen[~stream.clean[wide]] = best_actions(loss, X_seen, stream.y[changed], domain)
            omega, beyond = _pair_with_next(seen, count)
            g = _compute_gradients(loss, theta, X, y)
            out["gradient"][rows] = _row_norms(g)
            rate = np.where(weights[rows] > 0.0, alpha[rows] * weights[rows], 0.0)[:, None]
            exact = _project(domain, np.where(rate > 0.0, theta - rate * g, theta))
            out["record"][rows] = _row_norms(X)
            out["slack"][rows] = row_inner_products(g, theta - u)
            for name, point in (("squared_after", u), ("squared_next", ahead)):
                out[name][rows] = row_inner_products(after - point, after - point)
            out["squared_decrease"][rows] = row_inner_products(theta - after, theta + after - 2.0 * u)
            # `exact` itself has the rounding error of its terms.
            out["error"][rows] = _row_norms(after - exact) + DIGITS * (_row_norms(theta) + _row_norms(after))
            out["path"][rows], out["path_all"][rows] = _row_norms(u - ahead), _row_norms(omega - beyond)
            out["deviation"][rows], out["comparator"][rows] = _row_norms(omega - u), _row_norms(u)
            out["reach"][rows] = np.maximum.reduce([_row_norms(points) for points in (theta, after, omega, u)])
            # Without constraints 0 is a subgradient at ω.
            still = 0.0 if isinstance(domain, Reals) else _row_norms(_compute_gradients(loss, omega, X, y))
            out["rest"][rows] = still + jump(loss.kind) * out["record"][rows]
    finite = {name: np.nan_to_num(value, nan=LARGEST, posinf=LARGEST) for name, value in out.items()}
    return Measurements(clean=stream.clean[played], losses=trace.losses[played], weights=weights, steps=alpha, **finite)


def _pair_with_next(points: Array, count: int) -> tuple[Array, Array]:
    """The first `count` points, and the one after each; the last is followed by itself."""
    return points[:count], np.vstack([points, points[-1:]])[1 : count + 1]


def _row_norms(vectors: Array) -> Array:
    return np.minimum(np.sqrt(row_inner_products(vectors, vectors)), LARGEST)


def _project(domain: Domain, points: Array) -> Array:
    if isinstance(domain, Reals):
        return points
    if isinstance(domain, Ball):
        return points * np.minimum(1.0, domain.radius / np.maximum(_row_norms(points), 1e-300))[:, None]
    return np.array([domain.project(point) for point in points])


def _check_game(trace: Trace, stream: Stream, learner: Descent) -> LinearLoss:
    check_game("bounds", trace, stream)
    check_instance("bounds", "learner", learner, Descent, "a learner that descends, such as Learn(...)")
    loss = learner.loss
    if not isinstance(loss, LinearLoss):
        raise DataError(
            "Only losses of a linear prediction can be measured; for a Custom loss make a Setting(...) by hand."
        )
    if trace.actions is None:
        raise DataError("The trace has no actions to measure; play the game with keep_actions=True.")
    if stream.dim != learner.dim or trace.actions.shape[1] != learner.dim:
        raise DataError(
            f"The learner has {learner.dim} features and the stream {stream.dim}; they must be of one game."
        )
    if learner.rounds < len(trace) or not np.array_equal(trace.theta, learner.theta):
        raise DataError("The trace is not of the learner's last game; measure a game before the learner plays another.")
    return loss


def _compute_gradients(loss: LinearLoss, theta: Array, X: Array, y: Array) -> Array:
    theta, X = theta.astype(np.float64), X.astype(np.float64)
    return loss.slope(row_inner_products(X, theta), y)[:, None] * X + loss.l2 * theta


def _compute_step_sizes(learner: Descent, stream: Stream, actions: Array, played: Array, weights: Array) -> Array:
    """α_t of every round that was played."""
    kind, (scale, normalised), rounds = learner.step.kind, learner.step.settings, len(stream)
    t: Any = learner.rounds - rounds + 1.0 + played
    if kind != steps.PER_TRAVELLED and not normalised:
        return np.broadcast_to(steps.size(kind, scale, 0.0, t, 0.0, 0.0), len(played)).astype(np.float64)
    if kind == steps.PER_TRAVELLED and learner.rounds > rounds:
        raise DataError("A step that sums gradients can only be measured in the learner's first game.")
    assert isinstance(learner.loss, LinearLoss)
    gradient = _row_norms(_compute_gradients(learner.loss, actions[:-1], stream.X[played], stream.y[played]))
    travelled = np.sqrt(np.cumsum(np.where(weights > 0.0, weights * gradient, 0.0) ** 2))
    rows = zip(t, travelled, gradient, strict=True)
    return np.array([steps.size(kind, scale, normalised, *map(float, row)) for row in rows])


ROUNDING = 1e-9  # the relative rounding error, of sums of absolute values


@dataclass(frozen=True)
class Certificate:
    r"""A bound on the clean regret of one game: measured ≤ convexity ≤ value.

    Attributes
    ----------
    measured : float
        Clean dynamic regret against the minimizers of the rounds.
    convexity : float
        Σ over the clean rounds of ⟨∇f_t(θ_t), θ_t − u_t⟩: the first inequality of the proof.
    start, gradients, outliers, path : float
        The four parts of the proof's sum: Σ(‖θ_t − u_t‖² − ‖θ_{t+1} − u_{t+1}‖²)/2α_t; Σα_t·(w_t‖∇f_t‖)²/2;
        −Σ over the corrupted rounds of w_t·⟨∇f_t, θ_t − u_t⟩; and Σ(‖θ_{t+1} − u_{t+1}‖² − ‖θ_{t+1} − u_t‖²)/2α_t.
    errors : float
        What the rounding of actions adds: Σ e_t·‖θ_{t+1} − u_t‖/α_t, with e_t the distance from the exact step.
    weakest : float
        1/w of the clean round with the least positive weight; the paper's ξ bounds it.
    filtered : float
        The part of `convexity` that belongs to clean rounds of weight 0.
    rounding : float
        Bound on the rounding errors of `measured` and `convexity`.

    Examples
    --------
    >>> Certificate(1.0, 2.0, 1.0, 0.5, 0.0, 0.5, 0.0, 2.0, 0.0, 1e-12).value
    4.0
    """

    measured: float
    convexity: float
    start: float
    gradients: float
    outliers: float
    path: float
    errors: float
    weakest: float
    filtered: float
    rounding: float

    @property
    def value(self) -> float:
        """weakest·(start + gradients + outliers + path + errors) + filtered: a bound on the clean regret."""
        inside = self.start + self.gradients + self.outliers + self.path + self.errors
        return min(self.weakest * inside + self.filtered, LARGEST)

    @property
    def holds(self) -> bool:
        """Whether measured ≤ convexity ≤ value, up to rounding errors of the sums."""
        inside = sum(map(abs, (self.start, self.gradients, self.outliers, self.path)))
        error = self.rounding + ROUNDING * self.weakest * inside
        return self.measured <= self.convexity + self.rounding and self.convexity <= self.value + error


def certify(trace: Trace, stream: Stream, learner: Descent) -> Certificate:
    r"""Evaluate the proof of Theorem 3.3 on one game, with its own weights, gradients, steps and distances.

    It holds for every learner that descends, whatever its gate, step and domain, if the losses are convex.

    Parameters
    ----------
    trace : Trace
        Of a game played with ``keep_actions=True``.
    stream : Stream
        The stream, with the originals of its corrupted rounds.
    learner : Descent
        The learner that played it, with a loss of a linear prediction.

    Returns
    -------
    Certificate
        The bound and its parts.

    Notes
    -----
    In a round, 2α·w·⟨∇f, θ − u⟩ ≤ ‖θ − u‖² − ‖θ' − u‖² + α²w²‖∇f‖², because projection on a convex set brings θ' no
    farther from u. Sum over all rounds and move the corrupted ones to the other side. The clean products are at least w
    times a regret that is not negative, so they may be divided by the smallest w.

    Examples
    --------
    >>> import redescend as rd
    >>> stream = rd.streams.ridge(200, seed=0, dim=3)
    >>> learner = rd.Learn(3, loss=rd.losses.Squared(l2=0.1), a=1.0, b=1.0, step=rd.steps.Horizon(200))
    >>> certify(rd.play(learner, stream, keep_actions=True), stream, learner).holds
    True
    """
    return make_certificate(measure_game(trace, stream, learner), trace, stream, learner)


def make_certificate(game: Measurements, trace: Trace, stream: Stream, learner: Descent) -> Certificate:
    """Return the certificate of a measured game."""
    assert isinstance(learner.loss, LinearLoss)
    weighted = game.clean & (game.weights > 0.0)
    # A round with step 0 moves nothing: its distances cancel.
    double = 2.0 * np.where(game.steps > 0.0, game.steps, np.inf)
    with np.errstate(over="ignore"):
        pull = np.where(game.weights > 0.0, game.weights * game.gradient, 0.0)
        path = float(((game.squared_next - game.squared_after) / double).sum())
        against = np.where(game.weights > 0.0, game.weights * game.slack, 0.0)
        return Certificate(
            measured=float(clean_dynamic(trace, stream, learner.loss, domain=learner.domain)[-1]),
            convexity=float(game.slack[game.clean].sum()),
            start=float((game.squared_decrease / double).sum()) - path,
            gradients=float((0.5 * game.steps * pull * pull).sum()),
            outliers=-float(against[~game.clean].sum()),
            path=path,
            errors=float((2.0 * game.error * np.sqrt(game.squared_after) / double).sum()),
            weakest=float(1.0 / game.weights[weighted].min()) if weighted.any() else 1.0,
            filtered=float(game.slack[game.clean & ~weighted].sum()),
            rounding=ROUNDING * float((game.gradient * game.reach + game.losses)[game.clean].sum()),
        )
