"""Certificates: the inequality of the proof, evaluated on a game."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from redescend.bounds.measurements import Measurements, measure_game
from redescend.game import Stream, Trace
from redescend.learners.descent import Descent
from redescend.losses import LinearLoss
from redescend.numeric import LARGEST
from redescend.regret import clean_dynamic

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
