r"""LEARN that learns its own scale and step: nothing to tune."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from redescend import losses
from redescend.kernels import layout as table
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.calls import Caller, make_config
from redescend.learners.learner import Ensemble, Round, check_features, float_array, float_number, read_state
from redescend.numeric import Array
from redescend.parameters import Order, check_instance, check_order
from redescend.state import unpack

WIDEST_FULL = 150  # up to this number of features the order is 2 unless it is given


def resolve_order(order: Order, width: int, sparse: bool = False) -> Literal[1, 2]:
    """The order of a model of this width: 'auto' is 2 for at most 150 features that are not sparse, otherwise 1."""
    if order == "auto":
        return 2 if width <= WIDEST_FULL and not sparse else 1
    return order


class SelfTuning(Ensemble):
    r"""LEARN with nothing to tune: it learns the scale of clean records, the share of outliers and its own steps.

    A Gaussian posterior N(θ, P) of the model learns from every record as a mixture of clean records and outliers: its
    mean moves by g·Px, and P shrinks by h·Px(Px)', where g and h are derivatives of the logarithm of the record's
    density. The variance x'Px of a prediction separates rare features and the start of a stream from outliers. The
    scale of the noise and the share of outliers have posteriors of their own. Followers, the origin, a snapshot and the
    posterior before its last restart are played beside it, weighted by Bayes' rule: after a jump a follower leads and
    the posterior restarts there, and after a burst of outliers the snapshot is restored.

    Multiplying a feature or the target by a constant changes no weight: without l2, results do not depend on units.

    Predictions are ⟨x, θ⟩, but numbers not farther outside the range of the clean targets so far than half of that
    range, and logits of n labels at most ln(n + 2). Losses are those of the predictions.

    Parameters
    ----------
    dim : int
        Number of features.
    loss : LinearLoss
        A loss of the prediction, such as ``losses.Squared()`` or ``losses.Hinge(l2=1e-4)``. l2 spares a feature that is
        constant from the first record on.
    order : 'auto', 1 or 2
        2: P is a matrix, and a round costs O(d²). 1: a diagonal, and O(d). 'auto': 2 for at most 150 features.

    Examples
    --------
    >>> from redescend import adversaries, play, streams
    >>> stream = adversaries.UniformResponse(0, 1).corrupt(streams.ridge(2000, seed=0, dim=5), k=200, seed=1)
    >>> learner = SelfTuning(5, loss=losses.Squared())
    >>> trace = play(learner, stream)
    >>> suspects = np.argsort(trace.weights[200:])[:150] + 200
    >>> bool(np.mean(~stream.clean[suspects]) > 0.9), learner.order
    (True, 2)
    """

    order: Literal[1, 2]
    loss: losses.LinearLoss
    limited: ClassVar[bool] = True  # whether logits are

    def __init__(self, dim: int, *, loss: losses.LinearLoss, order: Order = "auto") -> None:
        super().__init__(dim, loss)
        name = type(self).__name__
        check_instance(name, "loss", loss, losses.LinearLoss, "a loss of the prediction, such as Squared()")
        self.order = resolve_order(check_order(name, order), self.dim)
        self._set_row(layout.new_row(self.dim, self.order))

    def _set_row(self, row: Array) -> None:
        self._row = row
        self._arrays = unpack(layout.SPECS, row, layout.dims_of(self.dim, self.order))
        config = make_config(type(self).__name__, self.loss, self.dim, self.order, limited=self.limited)
        self._caller = Caller(config, row)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_arrays", "_caller")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._set_row(np.array(self._row))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim}, {self.loss}, order={self.order})"

    @property
    def kernel_state(self) -> layout.State:
        """The arrays of its state that the compiled loop changes; not copies."""
        return layout.State(**self._arrays)

    @property
    def caller(self) -> Caller:
        """The compiled round with its state and a record of its own."""
        return self._caller

    @property
    def rounds(self) -> int:
        return int(self._arrays["scalar"][layout.ROUNDS])

    @property
    def theta(self) -> Array:
        return self._caller.action()

    def predict(self, x: Any) -> Any:
        return self.clip(super().predict(x))

    def clip(self, predictions: Any) -> Any:
        """Keep numbers near the range of clean targets, and logits within what labels so far can tell.

        Parameters
        ----------
        predictions : float or array
            Predictions ⟨x, θ⟩.

        Returns
        -------
        float or array
            The same, within the limits.
        """
        if not self.limited and self.loss.margin:
            return predictions
        low, high = layout.prediction_range(self.loss.margin, self._arrays["scalar"])
        return np.clip(predictions, low, high) if np.ndim(predictions) else float(min(max(predictions, low), high))

    def skip(self) -> None:
        self._arrays["scalar"][layout.ROUNDS] += 1

    def update(self, x: Any, y: float) -> Round:
        caller = self._caller
        if type(x) is not np.ndarray or x.dtype != np.float64 or x.ndim != 1:
            x = float_array("x", x, 1)
        if len(x) != self.dim:
            check_features(x, self.dim)
        y = y if type(y) is float else float_number("y", y)
        if self._is_playing:
            raise self._concurrent_use_error()
        self._is_playing = True
        try:
            caller.x[:] = x
            caller.y[0] = y
            learned = caller.learn()
        finally:
            self._is_playing = False
        if not learned:
            return super().update(x, y)  # raises an error about the record
        return Round(*caller.outcome.tolist())

    def _play_rows(self, X: Array, y: Array, out: table.Outcomes) -> int:
        return self._caller.learn_rows(X, y, out)

    def _play_safely(self, x: Array, y: float) -> Round:
        """Count a record that the compiled loop refuses although it is valid; there is none."""
        self.skip()
        return Round(self.loss.value(self.theta, x, y), 0.0)

    def restore(self, state: dict[str, Any]) -> None:
        arrays = self._read_state(state)
        for name, array in self._arrays.items():
            array[...] = arrays[name]

    def _read_state(self, state: dict[str, Any]) -> dict[str, Array]:
        dims = layout.dims_of(self.dim, self.order)
        arrays = read_state(layout.SPECS, state, repr(self), dims)
        layout.check_state(arrays, self.order, repr(self))
        return arrays


class Scorer(SelfTuning):
    """`SelfTuning` with logits that are not limited: scores that a belief calibrates, and tells more apart."""

    limited = False
