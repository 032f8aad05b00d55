"""An adversary that sees the learner's action before it corrupts a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from redescend.adversaries.oblivious import chosen_rounds, mark_corrupted
from redescend.errors import DataError, DivergenceError
from redescend.game import Stream, Trace
from redescend.learners.learner import Learner
from redescend.losses import Loss
from redescend.numeric import Array, dot
from redescend.parameters import AT_LEAST_ONE, Component, Interval, Scale, bad_parameter, check_instance


@dataclass(frozen=True)
class Adaptive(Component):
    r"""Sees the action before it chooses a record, and tries its choices on the learner itself.

    In each of its rounds it plays every candidate record on the learner, restores the learner, and chooses the one
    after which the loss on the original record is largest: the greedy choice, which needs no truth. In regression the
    response is the prediction plus a residual of either sign on a geometric grid, so that a learner that ignores
    large residuals is met with medium ones. Labels −1 and +1 are flipped.

    Parameters
    ----------
    loss : Loss
        The loss to make large, usually that of the learner.
    smallest, largest : float, default 0.01 and 100.0
        Ends of the grid of residuals.
    sizes : int, default 9
        Number of residuals on the grid; each is tried with both signs.
    x_scales : tuple of floats, default (1.0,)
        Multiples of x that may be played.

    Examples
    --------
    >>> from redescend import OGD, losses, steps
    >>> learner = OGD(1, loss=losses.Squared(), step=steps.Constant(0.25))
    >>> trace, played = Adaptive(losses.Squared(), largest=8.0).play(learner, Stream([[1.0]], [2.0]), k=1, seed=0)
    >>> played.y, learner.theta
    (array([-8.]), array([-4.]))
    """

    loss: Loss
    smallest: Scale = 0.01
    largest: Scale = 100.0
    sizes: Annotated[int, AT_LEAST_ONE] = 9
    x_scales: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_instance("Adaptive", "loss", self.loss, Loss, "a loss, such as Squared()")
        if self.largest < self.smallest:
            raise bad_parameter("Adaptive", "largest", f"at least 'smallest', which is {self.smallest}", self.largest)
        rule = Interval(-1e150, 1e150)
        if not isinstance(self.x_scales, tuple) or not self.x_scales or any(s not in rule for s in self.x_scales):
            raise bad_parameter("Adaptive", "x_scales", f"a tuple of numbers, each {rule}", self.x_scales)

    def play(
        self,
        learner: Learner,
        stream: Stream,
        k: int | None,
        seed: Any,
        when: Any = "random",
        *,
        keep_actions: bool = False,
    ) -> tuple[Trace, Stream]:
        """Play `stream` against `learner`, replace k of its records on the way, and return the game and that stream.

        `k`, `seed` and `when` are as in `Adversary.corrupt`. The learner plays on from its current state; if
        `keep_actions`, the trace has θ_t of every round.
        """
        check_instance("Adaptive.play", "stream", stream, Stream, "a Stream")
        check_instance("Adaptive.play", "learner", learner, Learner, "a learner, such as OGD(...)")
        if stream.dim != learner.dim:
            raise DataError(f"The learner has {learner.dim} features and the stream has {stream.dim}; they must agree.")
        rows = chosen_rounds("Adaptive.play", len(stream), k, when, np.random.default_rng(seed))
        before = learner.state()
        learner.settle_precision(stream.X.dtype)
        nature = stream if stream.originals is None else stream.uncorrupted()
        X = stream.X if self.x_scales == (1.0,) else stream.X.copy()
        y = stream.y.copy()
        outcome = np.empty((len(stream), 3))
        actions = np.empty((len(stream) if keep_actions else 0, learner.dim), learner.dtype)
        budget = set(rows.tolist())
        for row in range(len(stream)):
            try:
                theta = learner.theta
                if keep_actions:
                    actions[row] = theta
                if row in budget:
                    natural = nature.X[row], float(nature.y[row])
                    x_played, y[row] = self._find_worst(learner, natural, X[row], y[row])
                    if X is not stream.X:
                        X[row] = x_played
                outcome[row, :2] = learner.update(X[row], float(y[row]))
                outcome[row, 2] = dot(X[row].astype(np.float64), theta.astype(np.float64))
            except DataError as error:
                learner.restore(before)
                raise DataError(f"Row {row}: {error}") from None
        losses, weights, predictions = outcome.T.copy()
        skipped = np.empty(0, dtype=np.intp)
        trace = Trace(losses, weights, actions if keep_actions else None, learner.theta, skipped, predictions)
        return trace, mark_corrupted(stream, rows, X, y)

    def _find_worst(self, learner: Learner, natural: tuple[Array, float], x: Array, y: Any) -> tuple[Array, Any]:
        """Return the candidate after which the loss on the natural record is largest; the learner is unchanged."""
        before = learner.state()
        worst, most = None, -np.inf
        for candidate in self._list_candidates(learner.theta, x, y):
            try:
                learner.update(candidate[0], float(candidate[1]))
                left = self.loss.value(learner.theta, *natural)
            except DivergenceError:
                continue  # the learner refuses the record and is unchanged
            finally:
                learner.restore(before)
            if left > most:
                worst, most = candidate, left
        if worst is None:
            raise DivergenceError("Every record that Adaptive could play makes the action overflow.")
        return worst

    def _list_candidates(self, theta: Array, x: Array, y: Any) -> list[tuple[Array, Any]]:
        played = [x if scale == 1.0 else (scale * x).astype(x.dtype) for scale in self.x_scales]
        if getattr(self.loss, "margin", False):
            return [(x_new, -y) for x_new in played]
        residuals = np.geomspace(self.smallest, self.largest, self.sizes)
        offsets = np.concatenate([residuals, -residuals])
        kind = type(y)  # candidates have the precision of the stream
        return [(x_new, kind(float(x_new @ theta) + offset)) for x_new in played for offset in offsets]
