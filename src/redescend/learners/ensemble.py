"""What learners that combine many iterates share: their state is a few named arrays of floats, and a loop plays rows.

They compute in double precision, whatever the precision of the records.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from redescend import losses
from redescend.errors import DataError
from redescend.learners.base import Learner, Round, Trouble, check_record, checked_dim, float_array, float_number
from redescend.numeric import Array
from redescend.parameters import check_instance


class Ensemble(Learner):
    """A learner whose whole state is `_arrays`."""

    dtype = np.dtype(np.float64)
    loss: losses.Loss

    def __init__(self, dim: int, loss: losses.Loss) -> None:
        name = type(self).__name__
        self.dim = checked_dim(name, dim)
        self.loss = check_instance(name, "loss", loss, losses.Loss, "a loss, such as Squared()")
        self._arrays: dict[str, Any] = {}

    @abstractmethod
    def _play(self, X: Array, y: Array, losses: Array, weights: Array, actions: Array) -> int:
        """Play rows by the compiled loop until one cannot be played; returns how many were."""

    @abstractmethod
    def _carefully(self, x: Array, y: float) -> Round:
        """Play a sound record that the compiled loop could not."""

    @abstractmethod
    def _sound(self, arrays: dict[str, Any]) -> bool:
        """Whether finite arrays of these names could be a state of this learner."""

    def update(self, x: Any, y: float) -> Round:
        y = float_number("y", y)
        x = float_array("x", x, 1)
        if len(x) != self.dim:
            raise DataError(f"x must have {self.dim} features. Got {len(x)} instead.")
        X = np.ascontiguousarray(x, dtype=np.float64).reshape(1, -1)
        loss, weight = np.zeros(1), np.zeros(1)
        trouble = self.learn_rows(X, np.array([y]), loss, weight, np.empty((0, self.dim)))
        if trouble is not None:
            raise trouble.error
        return Round(float(loss[0]), float(weight[0]))

    def learn_rows(self, X: Array, y: Array, losses: Array, weights: Array, actions: Array) -> Trouble | None:
        self.expect(len(X))
        at = 0
        while at < len(X):
            rows = slice(at, None)
            at += self._play(X[rows], y[rows], losses[rows], weights[rows], actions[rows])
            if at == len(X):
                break
            try:
                check_record(X[at], y[at], self.loss)
                if len(actions):
                    actions[at] = self.theta
                losses[at], weights[at] = self._carefully(X[at], float(y[at]))
            except DataError as error:
                return Trouble(at, error)
            at += 1
        return None

    def settle_precision(self, dtype: np.dtype[Any]) -> None:
        """Nothing to settle: it computes in double precision."""

    def state(self) -> dict[str, Any]:
        return {"learner": repr(self), **{name: array.copy() for name, array in self._arrays.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        expected = ["learner", *self._arrays]
        if not isinstance(state, dict) or sorted(state) != sorted(expected):
            raise DataError(f"The state of {self!r} must be a dict with the keys {', '.join(expected)}.")
        if state["learner"] != repr(self):
            raise DataError(f"The state belongs to {state['learner']}, not to {self!r}; make a learner like that one.")
        try:
            arrays = {name: np.array(state[name], dtype=np.float64, order="C") for name in self._arrays}
            whole = all(np.isfinite(array).all() for array in arrays.values()) and self._sound(arrays)
        except (TypeError, ValueError, IndexError):
            whole = False
        if not whole:
            raise DataError(f"The state of {self!r} has missing, misshapen or impossible numbers; it has been altered.")
        self._arrays = arrays
