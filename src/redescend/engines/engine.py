"""The interface of engines: models of several outputs that learn from tables and from sparse rows.

Engines compute in double precision, whatever the precision of the records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from redescend import losses
from redescend.kernels.layout import SparseTable, Table
from redescend.kernels.tabular import dense
from redescend.kernels.tabular import standardize as scaling
from redescend.kernels.tabular.fleet import Runs
from redescend.numeric import Array
from redescend.state import ArraySpec, corrupt_state, read_arrays

DENSE_ROWS = 256  # sparse rows that are converted to a table at a time, where they cannot be learned from directly

SHORT = 64
ONES = np.ones(SHORT)  # sample weights of short tables


class RowOutcomes(NamedTuple):
    """The outcome of every row before the update; arrays have a row for every output."""

    predictions: Array
    weights: Array


class LinearForm(NamedTuple):
    """A linear prediction: missing values are replaced by `centres`, and the sum is clipped to `low` and `high`.

    `coefficients` has a row for each output; `intercepts`, `low` and `high` have a number for each.
    """

    coefficients: Array
    intercepts: Array
    centres: Array
    low: Array
    high: Array


class Shape(NamedTuple):
    """The shape of an engine: its numbers of features and of outputs, and the loss of every output.

    With an `intercept`, the last feature is a constant, which l2 does not penalize. Models are averaged after the
    number of rows `average`, if any.
    """

    dim: int
    outputs: int
    loss: losses.LinearLoss
    intercept: bool = True
    average: int | None = None


class Engine(ABC):
    """Base class of engines."""

    SPECS: tuple[ArraySpec, ...]
    """The arrays of a saved state."""

    ATTRIBUTES: Mapping[str, str]
    """Attributes that have other names than their arrays in saved states."""

    models: Array
    """The models, a row for each output."""

    work: Array
    """Buffers of the kernels."""

    def __init__(self, shape: Shape) -> None:
        self.dim, self.outputs, self.loss, self.intercept, self.average = shape
        self.width = self.dim + self.intercept
        self._coefficients: tuple[Array, Array] | None = None
        self._used_centres: tuple[Any, Array] | None = None
        """The centres of these coefficients."""

    @property
    @abstractmethod
    def row_count(self) -> int:
        """Number of rows learned from."""

    # --- learning ---

    def learn(self, X: Any, Y: Array, sample_weight: Array, predictions: Array | None = None) -> Array:
        """Learn from a C-ordered table of doubles or CSR rows; returns the weight of every row for every output.

        `predictions`, if given, receives the predictions from before each update.
        """
        weights = np.zeros(Y.shape)
        self._coefficients = None
        if isinstance(X, np.ndarray):
            self._learn_table(Table(X, Y, sample_weight), weights, predictions)
        elif not self._learn_sparse(_to_sparse_table(X, Y, sample_weight), weights, predictions):
            from scipy.sparse import csr_array

            for first in range(0, X.shape[0], DENSE_ROWS):
                part = slice(first, first + DENSE_ROWS)
                some, table = np.zeros((len(Y), len(sample_weight[part]))), csr_array(X[part]).toarray()
                predicted = np.empty_like(some)
                self._learn_table(Table(table, Y[:, part].copy(), sample_weight[part]), some, predicted, first=first)
                weights[:, part] = some
                if predictions is not None:
                    predictions[:, part] = predicted
        return weights

    def learn_rounds(self, X: Array, Y: Array, sample_weight: Array | None = None) -> RowOutcomes:
        """Learn from a C-ordered table of doubles; returns the prediction and weight of every row."""
        predictions, counts = np.zeros(Y.shape), np.ones(len(X)) if sample_weight is None else sample_weight
        return RowOutcomes(predictions, self.learn(X, Y, counts, predictions))

    def learn_unchecked(self, X: Array, Y: Array, predictions: Array | None = None) -> Array | None:
        """Learn from a table that was not checked; returns None, and learns nothing, if it may not be finite."""
        count = len(X)
        if count <= SHORT:
            return self.learn(X, Y, ONES[:count], predictions) if scaling.all_finite(X, Y) else None
        before, weights = self.state(), np.zeros(Y.shape)
        self._coefficients = None
        if not self._learn_table(Table(X, Y, np.ones(count)), weights, predictions, unchecked=True):
            self.restore(before)
            return None
        return weights

    @abstractmethod
    def _learn_table(
        self, rows: Table, weights: Array, predictions: Array | None, *, unchecked: bool = False, first: int = 0
    ) -> bool:
        """Learn from a table that begins at row `first`; returns False if an unchecked number is not finite."""

    def _learn_sparse(self, rows: SparseTable, weights: Array, predictions: Array | None) -> bool:
        """Learn from CSR rows; returns False, and learns nothing, if they have to be converted to a table."""
        return False

    @abstractmethod
    def learn_packed(
        self, rows: Array, spans: Mapping[str, slice], indicators: Array, runs: Runs
    ) -> tuple[Array, Array]:
        """Learn from runs of records of many engines like this one, each packed in a row.

        `spans` are the places of an engine's arrays in its row, and of the counts of how often each of `indicators` was
        1. Returns predictions and weights; NaN where an update overflowed.
        """

    @abstractmethod
    def packed_row_counts(self, rows: Array, spans: Mapping[str, slice]) -> Array:
        """The number of rows that each of many packed engines has learned from."""

    def exclude_from_scaling(self, features: Sequence[int]) -> None:  # noqa: B027
        """Do not standardize these features, such as indicators; call it before the first row."""

    def begin_pass(self) -> None:  # noqa: B027
        """Prepare for learning from the same rows once more: forget whatever would remember single rows."""

    # --- predicting and scoring ---

    def coefficients(self) -> tuple[Array, Array]:
        """Coefficients and intercepts of every output, in the units of the features."""
        if self._coefficients is None:
            self._coefficients = self._compute_coefficients()
        return self._coefficients

    @abstractmethod
    def _compute_coefficients(self) -> tuple[Array, Array]:
        """Compute the coefficients and intercepts of the current models."""

    def predict_unseen(self, X: Array, Y: Array, sample_weight: Array) -> Array:
        """Predict rows that were learned from as if their targets were not known, as far as that makes a difference."""
        return self.predict(X)

    def conclude(self, X: Array, Y: Array, sample_weight: Array) -> Array:
        """Learn what only a table as a whole tells, after the last pass over it; returns `predict_unseen`."""
        return self.predict_unseen(X, Y, sample_weight)

    def predict(self, X: Array) -> Array:
        """Predictions of every output for the rows of a table."""
        X = np.require(X, np.float64, ["C", "A", "W"])
        coefficients = self.coefficients()
        # Both belong to one state; single predictions would spend most of their time on the centres.
        if self._used_centres is None or self._used_centres[0] is not coefficients:
            self._used_centres = coefficients, self._centres()
        out = np.empty((len(coefficients[0]), len(X)))
        dense.predict(X, *coefficients, self._used_centres[1], out)
        return self.clip(out)

    def contributions(self, X: Array) -> Array:
        """Compute the contribution of every feature to each prediction, of shape (outputs, rows, dim + 1).

        The last column is the same for all rows: the prediction for a typical record, whose values replace missing
        ones. Rows add up to the prediction before `clip`.
        """
        coefficients, intercepts = self.coefficients()
        typical = self._centres()
        constants = np.broadcast_to((intercepts + coefficients @ typical)[:, None, None], (len(intercepts), len(X), 1))
        return np.concatenate([coefficients[:, None] * np.nan_to_num(X - typical), constants], axis=2)

    def clip(self, predictions: Array) -> Array:
        """Clip predictions, a row for each output, to the range that the engine allows."""
        return predictions

    @abstractmethod
    def _centres(self) -> Array:
        """The values that replace missing ones, by feature."""

    def linear_form(self) -> LinearForm:
        """Return the coefficients, centres and limits of predictions, for exports."""
        low, high = (self.clip(np.full((self.outputs, 1), end))[:, 0] for end in (-np.inf, np.inf))
        return LinearForm(*self.coefficients(), self._centres(), low, high)

    @abstractmethod
    def score(self, X: Any, Y: Array) -> Array:
        """Compute the weight of each row of a table or of CSR rows for every output, without learning."""

    @abstractmethod
    def score_features(self, X: Any) -> Array:
        """Score rows by their features alone: the typical squared length over that of the row, at most 1."""

    @abstractmethod
    def scales(self) -> Array:
        """The scale of every feature; infinite where it is not known yet."""

    # --- persistence ---

    def arrays(self) -> dict[str, Array]:
        """The arrays of the state by their saved names."""
        return {spec.name: getattr(self, self.ATTRIBUTES.get(spec.name, spec.name)) for spec in self.SPECS}

    def dims(self) -> dict[str, int]:
        """The named dimensions of the specs."""
        return {"dim": self.dim, "outputs": self.outputs, "width": self.width, "length": self.models.shape[1]}

    def state(self) -> dict[str, Any]:
        """Return a copy of everything that was learned, as arrays and plain values."""
        shape = {"dim": self.dim, "outputs": self.outputs, **self._plain_state()}
        return shape | {name: array.copy() for name, array in self.arrays().items()}

    def _plain_state(self) -> dict[str, Any]:
        """Plain values of the state."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of an engine with the same settings."""
        others = state.keys() - self.arrays().keys() if isinstance(state, dict) else ()
        arrays = read_arrays(self.SPECS, state, self.dims(), type(self).__name__, others)
        self.check(arrays)
        self.set_arrays(arrays)

    def set_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Take over arrays that were checked, by their saved names."""
        for name, array in arrays.items():
            setattr(self, self.ATTRIBUTES.get(name, name), array)
        self._coefficients = None

    def check(self, arrays: Mapping[str, Array]) -> None:  # noqa: B027
        """Check what the specs of arrays cannot express, or raise; arrays of many engines may be stacked."""


def _to_sparse_table(X: Any, Y: Array, sample_weight: Array) -> SparseTable:
    return SparseTable(X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64), Y, sample_weight)


def read_shape(state: Any) -> tuple[int, int]:
    """The number of features and outputs of a saved state."""
    try:
        dim, outputs = state["dim"], state["outputs"]
    except (TypeError, LookupError):
        raise corrupt_state("an engine", "no shape") from None
    if not all(type(count) is int and count >= 1 for count in (dim, outputs)):
        raise corrupt_state("an engine", f"{dim!r} features and {outputs!r} outputs")
    return dim, outputs
