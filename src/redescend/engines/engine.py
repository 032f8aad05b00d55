"""Linear models of several outputs that learn from tables and from rows of non-zeros.

An engine is what an estimator has learned. It computes in double precision, whatever the precision of the records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array

from redescend import losses, steps, transforms
from redescend.engines import validation
from redescend.errors import DataError, DivergenceError
from redescend.kernels import layout
from redescend.kernels.tabular import dense, predict, sparse
from redescend.kernels.tabular import standardize as unit
from redescend.learners.recipes import Robust
from redescend.numeric import Array

_learn_table: Any = dense.learn
_learn_rows: Any = sparse.learn

DENSE_ROWS = 256
"""Rows of non-zeros that are made into a table at a time, where there is no other way."""

ONCE = np.ones(64)
"""That each row counts once, for short tables."""

UNASKED = np.empty((0, 0))
"""Where nobody wants to know what was predicted."""


class Rounds(NamedTuple):
    """What happened in every row, a row of each array for every output: before anything was learned from it."""

    predictions: Array
    losses: Array
    weights: Array


class Engine(ABC):
    """What all engines share.

    Parameters
    ----------
    dim, outputs : int
        Number of features and of outputs.
    loss : LinearLoss
    intercept : bool
        Whether there is a constant feature behind the others, which l2 spares.
    standard : int
        How features are standardised, one of the constants of `kernels.tabular.standardize`.
    average : int or None
        After how many rows the mean of the actions is taken; None: not at all.
    """

    ARRAYS: tuple[str, ...] = ("sample", "units", "means", "clock", "states")

    def __init__(
        self, dim: int, outputs: int, loss: losses.LinearLoss, intercept: bool, standard: int, average: int | None
    ) -> None:
        self.dim, self.outputs, self.loss, self.standard = dim, outputs, loss, standard
        self.width = dim + intercept
        self.sample = np.zeros((dim if standard else 0, unit.SAMPLE))
        self.units = unit.fresh(dim, unit.READY_SCALED if standard == unit.SCALED else unit.READY)
        self.units[unit.INVERSE] = 0.0 if standard else 1.0
        self.means = np.zeros((0 if average is None else outputs, self.width))
        self.clock = np.array([0.0, 0.0 if average is None else average])
        self.states = np.zeros((outputs, 0))
        self.work = np.empty(self.width + 2 * dim)
        self._known: tuple[float, Any] = (-1.0, None)

    def learn(self, X: Any, Y: Array, times: Array) -> Array:
        """Learn from a C-ordered table of doubles or CSR rows; returns how much of each was believed."""
        believed = np.zeros(Y.shape)
        self._known = (-1.0, None)
        if not isinstance(X, np.ndarray):
            self._learn_sparse(X, Y, times, believed)
        else:
            self._count(self._table(X, Y, times, believed), len(X))
        return believed

    def rounds(self, X: Array, Y: Array) -> Rounds:
        """Learn from a C-ordered table of doubles; returns what was predicted of each row, paid, and believed."""
        believed, predicted = np.zeros(Y.shape), np.zeros(Y.shape)
        self._known = (-1.0, None)
        self._count(self._table(X, Y, np.ones(len(X)), believed, predicted), len(X))
        paid = np.minimum(self.loss.of_prediction(predicted, Y), np.finfo(float).max)
        return Rounds(predicted, paid, believed)

    def learn_unseen(self, X: Array, Y: Array) -> Array | None:
        """Learn from rows that nobody has looked at; None, and nothing is learned, if a number may not be finite."""
        if len(X) <= len(ONCE):
            return self.learn(X, Y, ONCE[: len(X)]) if unit.finite(X, Y) else None
        before, believed = self.state(), np.zeros(Y.shape)
        learned = self._table(X, Y, np.ones(len(X)), believed, unseen=True)
        self._known = (-1.0, None)
        if learned < 0:
            self.restore(before)
            return None
        self._count(learned, len(X))
        return believed

    def _learn_sparse(self, X: Any, Y: Array, times: Array, believed: Array) -> None:
        if self.standard != unit.CENTRED and not len(self.means) and self._takes_rows():
            rows = [X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)]
            most = int(np.diff(rows[2]).max(initial=0)) + 1
            self._count(self._rows(rows, np.empty(2 * most, np.int64), Y, times, believed), X.shape[0])
            return
        for first in range(0, X.shape[0], DENSE_ROWS):
            part = slice(first, first + DENSE_ROWS)
            table = csr_array(X[part]).toarray()
            shown = np.zeros((len(Y), len(table)))
            self._count(self._table(table, Y[:, part].copy(), times[part], shown), len(table), first)
            believed[:, part] = shown

    def _count(self, learned: int, rows: int, before: int = 0) -> None:
        if learned < rows:
            raise DivergenceError(
                f"Row {before + learned}: the model would move beyond all numbers, so it stays as it was before. "
                "Try a smaller step, or a transform that closes, such as Learn."
            )

    @abstractmethod
    def _takes_rows(self) -> bool:
        """Whether rows of non-zeros can be learned from as they are."""

    @abstractmethod
    def _table(
        self, X: Array, Y: Array, times: Array, believed: Array, predicted: Array = UNASKED, unseen: bool = False
    ) -> int:
        """Learn from a table; see `kernels.tabular.dense.learn`."""

    @abstractmethod
    def _rows(self, rows: list[Array], places: Array, Y: Array, times: Array, believed: Array) -> int:
        """Learn from the values, indices and starts of CSR rows; `places` is room for twice the longest."""

    @abstractmethod
    def _actions(self) -> Array:
        """What every output plays now, in the units of the features."""

    @abstractmethod
    def score(self, Y: Array, predictions: Array) -> Array:
        """How much of each record would be believed."""

    @abstractmethod
    def _typical(self) -> float:
        """The median ‖z‖² of the rows so far; 0 if that is not known."""

    def usual(self, X: Any) -> Array:
        """How usual rows are by their features alone: min(1, N/‖z‖²), with N the median."""
        inverse, centre = self.units[unit.INVERSE], self.units[unit.CENTRE]
        # Whatever overflows is as long as can be.
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(X, np.ndarray):
                lengths = np.square((X - centre) * inverse).sum(axis=1)
            else:
                Z, middle = X.astype(np.float64) @ diags_array(inverse), centre * inverse
                lengths = Z.power(2) @ np.ones(self.dim) - 2.0 * (Z @ middle) + np.square(middle).sum()
            lengths = np.nan_to_num(lengths + (self.width - self.dim), nan=np.inf, posinf=np.inf)
            typical = self._typical()
            usual = np.minimum(1.0, typical / np.maximum(lengths, np.finfo(float).tiny))
        return usual if typical > 0.0 else np.ones(len(lengths))

    def coefficients(self) -> tuple[Array, Array]:
        """Coefficients and intercepts of every output, in the features as they were given."""
        if self._known[0] != self.clock[0]:
            averaged = len(self.means) and self.clock[0] > self.clock[1]
            theta = self.means if averaged else self._actions()
            self._known = (float(self.clock[0]), self._in_features(theta))
        return self._known[1]

    def judged_at(self) -> tuple[Array, Array]:
        """The coefficients and intercepts at whose predictions records are judged."""
        return self.coefficients()

    def predicted(self, X: Array) -> Array:
        """What every output predicts of the rows of a table."""
        return self._linear(X, *self.coefficients())

    def judged(self, X: Array, Y: Array) -> Array:
        """How much of each row of a table would be believed by every output; nothing is learned."""
        return self.score(Y, np.ascontiguousarray(self._linear(X, *self.judged_at())))

    def _linear(self, X: Array, coefficients: Array, intercepts: Array) -> Array:
        X = np.require(X, np.float64, ["C", "A", "W"])
        return np.asarray(predict.predict(X, coefficients, intercepts, self.units[unit.CENTRE].copy()))

    def scales(self) -> Array:
        """The scale of every feature; infinite where it is not known yet."""
        with np.errstate(divide="ignore"):
            return 1.0 / self.units[unit.INVERSE]

    def leave(self, features: Sequence[int]) -> None:
        """Take these features as they are, such as 0 and 1; to be said before the first row."""
        self.units[np.ix_((unit.WAKE, unit.NEXT, unit.DUE), features)] = unit.NEVER
        self.units[unit.INVERSE, features] = 1.0

    def _in_features(self, theta: Array) -> tuple[Array, Array]:
        with np.errstate(over="ignore", invalid="ignore"):
            coefficients = np.nan_to_num(theta[:, : self.dim] * self.units[unit.INVERSE])
            intercepts = theta[:, self.dim] if self.width > self.dim else np.zeros(self.outputs)
            return coefficients, np.nan_to_num(intercepts - coefficients @ self.units[unit.CENTRE])

    def _sizes2(self) -> Array:
        """‖θ‖² of every output without its intercept."""
        return np.square(self._actions()[:, : self.dim]).sum(axis=1)

    def state(self) -> dict[str, Any]:
        return {"dim": self.dim, "outputs": self.outputs, "standard": self.standard} | {
            name: getattr(self, name).copy() for name in self.ARRAYS
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state, if it could be one: compiled loops look at nothing twice."""
        arrays = {name: np.array(state[name], dtype=np.float64, order="C") for name in self.ARRAYS}
        for name, array in arrays.items():
            if array.shape != (shape := getattr(self, name).shape):
                raise DataError(f"The state has {name} of shape {array.shape}, not {shape}; it has been altered.")
        if not (all(np.isfinite(array).all() for array in arrays.values()) and self._sound(arrays)):
            raise DataError("The state has impossible numbers; it has been altered.")
        for name, array in arrays.items():
            setattr(self, name, array)
        self._known = (-1.0, None)

    def _sound(self, arrays: dict[str, Array]) -> bool:
        """Whether finite arrays of the right shapes could be a state of this engine."""
        clock, means = arrays["clock"], arrays["means"]
        return (
            validation.sound_units(arrays["units"])
            and validation.whole(clock[:1], 0.0, validation.COUNTABLE)
            and bool(clock[1] == self.clock[1])
            and validation.within(means, -validation.LONGEST, validation.LONGEST)
        )


class DescentEngine(Engine):
    """Descent behind the gate of a transform.

    Without a step it has one of its own, in which no unit matters; see `kernels.tabular.dense.own_scale`.
    """

    ARRAYS = (*Engine.ARRAYS, "seen", "standing")

    def __init__(
        self,
        dim: int,
        outputs: int,
        loss: losses.LinearLoss,
        intercept: bool,
        standard: int,
        average: int | None,
        transform: transforms.Transform,
        step: steps.Step | None,
    ) -> None:
        super().__init__(dim, outputs, loss, intercept, standard, average)
        self.transform = transform
        self.numbers = Robust(1, loss=loss, transform=transform, step=step or steps.Constant(1.0))._numbers
        self.numbers[layout.SCALE] *= step is not None
        self.seen = np.zeros((outputs + 1, unit.SAMPLE))
        self.standing = unit.fresh(outputs + 1)
        self.states = np.zeros((outputs, self.width + dense.LIVE))
        self.states[:, self.width + dense.KEPT] = 1.0
        self.states[:, self.width + dense.SIZE2] = -1.0

    def _takes_rows(self) -> bool:
        return True

    def _table(
        self, X: Array, Y: Array, times: Array, believed: Array, predicted: Array = UNASKED, unseen: bool = False
    ) -> int:
        units = (self.sample, self.units, self.seen, self.standing)
        rest = (self.states, self.numbers, self.means, self.clock, believed, predicted, self.work, unseen)
        return int(_learn_table(X, Y, times, self.standard, *units, *rest))

    def _rows(self, rows: list[Array], places: Array, Y: Array, times: Array, believed: Array) -> int:
        units = (self.sample, self.units, self.seen, self.standing)
        rest = (self.states, self.numbers, self.clock, believed, np.empty(len(places)), places)
        return int(_learn_rows(*rows, self.dim, Y, times, self.standard, *units, *rest))

    def _sound(self, arrays: dict[str, Array]) -> bool:
        live, kept = arrays["states"][:, self.width :], arrays["states"][:, self.width + dense.KEPT]
        return (
            super()._sound(arrays)
            and validation.sound_units(arrays["standing"])
            and validation.within(live[:, [dense.TRAVELLED, dense.TOUCHED]], 0.0, np.inf)
            and validation.within(kept, np.finfo(float).tiny, 1.0)
            and validation.within(self._multiplied_out(arrays["states"]), -validation.LONGEST, validation.LONGEST)
        )

    def _actions(self) -> Array:
        return self._multiplied_out(self.states)

    def _multiplied_out(self, states: Array) -> Array:
        actions = states[:, : self.width].copy()
        actions[:, : self.dim] *= states[:, [self.width + dense.KEPT]]
        return actions

    def _typical(self) -> float:
        return float(self.standing[unit.CENTRE, self.outputs])

    def score(self, Y: Array, predictions: Array) -> Array:
        paid = self.loss.of_prediction(predictions, Y) + 0.5 * self.loss.l2 * self._sizes2()[:, None]
        return np.asarray(self.transform.weight(np.minimum(paid, np.finfo(float).max)))
