"""Linear models of several outputs that learn from tables and from sparse rows: what an estimator has learned.

Engines compute in double precision, whatever the precision of the records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array

from redescend import losses, steps, transforms
from redescend.errors import DivergenceError
from redescend.kernels import layout
from redescend.kernels.selftuning.layout import FARTHEST
from redescend.kernels.tabular import dense, sparse
from redescend.kernels.tabular import standardize as scaling
from redescend.learners.recipes import Robust
from redescend.numeric import Array
from redescend.state import ArraySpec, check_arrays, corrupt_state, read_arrays, require, unpack

DENSE_ROWS = 256
"""Sparse rows that are converted to a table at a time, where they cannot be learned from directly."""

SHORT = 64
ONES = np.ones(SHORT)
"""Sample weights of short tables."""

EMPTY = np.empty((0, 0))

LONGEST = 1.01 * FARTHEST
"""No part of a model is larger than this, apart from rounding."""


class RowOutcomes(NamedTuple):
    """What happened in every row, a row of each array for every output: before anything was learned from it."""

    predictions: Array
    losses: Array
    weights: Array


def stats_spec(name: str, features: Any) -> ArraySpec:
    """The spec of running statistics; see `kernels.tabular.standardize`."""
    rules = {
        scaling.COUNT: ArraySpec("count", kind="count"),
        scaling.INVERSE: ArraySpec("inverse scale", low=0.0, high=scaling.LARGEST / scaling.SMALLEST),
    }
    return ArraySpec(name, (scaling.STATISTICS, features), parts=rules)


class Engine(ABC):
    """What all engines share.

    Parameters
    ----------
    dim, outputs : int
        Number of features and of outputs.
    loss : LinearLoss
    intercept : bool
        Whether there is a constant feature behind the others, which l2 spares.
    method : int
        How features are standardized: UNSCALED, SCALED, CENTRED or WITH_MISSING.
    average : int or None
        Number of rows after which models are averaged. None: they are not.
    """

    SPECS: tuple[ArraySpec, ...] = (
        ArraySpec("sample", ("sampled", scaling.SAMPLE)),
        stats_spec("units", "dim"),
        ArraySpec("means", ("averaged", "width"), low=-LONGEST, high=LONGEST),
        ArraySpec("clock", (2,), kind="count"),
        ArraySpec("states", ("outputs", "length")),
    )
    """The arrays of a saved state."""

    ATTRIBUTES = {"units": "stats", "clock": "progress", "states": "models"}
    """Attributes that have other names than their arrays in saved states."""

    KERNELS: tuple[Any, Any]
    """The compiled functions that learn from tables and from sparse rows."""

    _table_arguments: tuple[Any, ...] = (None,)
    """What the kernel for tables is called with, behind the models that it was made for; see `_learn_table`."""

    def __init__(
        self, dim: int, outputs: int, loss: losses.LinearLoss, intercept: bool, method: int, average: int | None
    ) -> None:
        self.dim, self.outputs, self.loss, self.method = dim, outputs, loss, method
        self.width = dim + intercept
        self.sample = np.zeros((dim if method else 0, scaling.SAMPLE))
        due = scaling.READY_SCALED if method == scaling.SCALED else scaling.READY
        self.stats = scaling.new_statistics(dim, due)
        self.stats[scaling.INVERSE] = 0.0 if method else 1.0
        self.means = np.zeros((0 if average is None else outputs, self.width))
        self.progress = np.array([0.0, 0.0 if average is None else average])
        self.models = np.zeros((outputs, 0))
        self.target_sample = self.target_stats = EMPTY
        self.work = np.empty(self.width + 2 * dim)
        self._coefficients: tuple[Array, Array] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_table_arguments"}

    @property
    def row_count(self) -> int:
        """Number of rows learned from."""
        return int(self.progress[dense.ROW_COUNT])

    # --- learning ---

    def learn(self, X: Any, Y: Array, sample_weight: Array) -> Array:
        """Learn from a C-ordered table of doubles or CSR rows; returns the weight of every row for every output."""
        weights = np.zeros(Y.shape)
        self._coefficients = None
        if not isinstance(X, np.ndarray):
            self._learn_csr(X, Y, sample_weight, weights)
        else:
            self._learn_table((X, Y, sample_weight), (weights, EMPTY))
        return weights

    def learn_rounds(self, X: Array, Y: Array) -> RowOutcomes:
        """Learn from a C-ordered table of doubles; returns the prediction, loss and weight of every row."""
        weights, predictions = np.zeros(Y.shape), np.zeros(Y.shape)
        self._coefficients = None
        self._learn_table((X, Y, np.ones(len(X))), (weights, predictions))
        paid = np.minimum(self.loss.of_prediction(predictions, Y), np.finfo(float).max)
        return RowOutcomes(predictions, paid, weights)

    def learn_unchecked(self, X: Array, Y: Array) -> Array | None:
        """Learn from a table that was not checked; returns None, and learns nothing, if it may not be finite."""
        count = len(X)
        if count <= SHORT:
            return self.learn(X, Y, ONES[:count]) if scaling.all_finite(X, Y) else None
        before, weights = self.state(), np.zeros(Y.shape)
        self._coefficients = None
        if self._learn_table((X, Y, np.ones(count)), (weights, EMPTY), unchecked=True) < 0:
            self.restore(before)
            return None
        return weights

    def exclude_from_scaling(self, features: Sequence[int]) -> None:
        """Do not standardize these features, such as indicators; to be called before the first row."""
        self.stats[np.ix_((scaling.WAKE, scaling.NEXT, scaling.DUE), features)] = scaling.NEVER
        self.stats[scaling.INVERSE, features] = 1.0
        self._coefficients = None

    def _learn_csr(self, X: Any, Y: Array, sample_weight: Array, weights: Array) -> None:
        if self.method != scaling.CENTRED and not len(self.means) and self.takes_sparse_rows:
            indices, starts = X.indices.astype(np.int64), X.indptr.astype(np.int64)
            longest = int(np.diff(starts).max(initial=0)) + 1
            rows = (X.data, indices, starts, Y, sample_weight)
            self._learn_sparse(rows, (weights, EMPTY), longest)
            return
        for first in range(0, X.shape[0], DENSE_ROWS):
            part = slice(first, first + DENSE_ROWS)
            table = csr_array(X[part]).toarray()
            some = np.zeros((len(Y), len(table)))
            dense_rows = (table, Y[:, part].copy(), sample_weight[part])
            self._learn_table(dense_rows, (some, EMPTY), first=first)
            weights[:, part] = some

    @property
    @abstractmethod
    def takes_sparse_rows(self) -> bool:
        """Whether sparse rows can be learned from without converting them to a table."""

    def _learn_table(self, rows: tuple[Any, ...], out: tuple[Any, ...], unchecked: bool = False, first: int = 0) -> int:
        """Learn from `kernels.tabular.dense.TableRows`; returns their number, or −1 if one may not be finite."""
        if self._table_arguments[0] is not self.models:
            state = self._kernel_state(sparse=False)
            # Made once: making the tuples takes as long as learning from a short row.
            self._table_arguments = self.models, self.KERNELS[0], state, self.kernel_config()
        _, learn, state, config = self._table_arguments
        learned = learn(rows, state, self.kernel_config(True) if unchecked else config, out, self.work)
        if 0 <= learned < len(rows[0]):
            raise _divergence(first + learned)
        return learned

    def _learn_sparse(self, rows: tuple[Any, ...], out: tuple[Any, ...], longest: int) -> None:
        """Learn from `kernels.tabular.sparse.SparseRows` with fewer than `longest` non-zeros each."""
        state = self._kernel_state(sparse=True)
        places = (np.empty(longest, np.int64), np.empty(longest), np.empty(longest, np.int64), np.empty(longest))
        buffers = (*places, np.empty(longest + self._sparse_work()))
        learned = self.KERNELS[1](rows, state, self.kernel_config(), out, buffers)
        if learned < len(rows[-1]):
            raise _divergence(learned)

    def _kernel_state(self, sparse: bool) -> tuple[Array, ...]:
        """The fields of `kernels.tabular.dense.TableState`, with models laid out for sparse rows or for tables."""
        scales = (self.sample, self.stats, self.target_sample, self.target_stats)
        return (self.models, self.means, self.progress, *scales)

    @abstractmethod
    def kernel_config(self, unchecked: bool = False) -> tuple[Any, ...]:
        """The settings, as the kernels take them."""

    def _sparse_work(self) -> int:
        """How many more floats the kernel for sparse rows needs."""
        return 0

    # --- predicting and scoring ---

    def coefficients(self) -> tuple[Array, Array]:
        """Coefficients and intercepts of every output, for features that are not standardized."""
        if self._coefficients is None:
            averaged = len(self.means) and self.progress[dense.ROW_COUNT] > self.progress[dense.AVERAGE_FROM]
            self._coefficients = self._unscale(self.means if averaged else self._actions())
        return self._coefficients

    def scoring_coefficients(self) -> tuple[Array, Array]:
        """The coefficients and intercepts whose predictions records are scored by."""
        return self.coefficients()

    def predict(self, X: Array) -> Array:
        """Predictions of every output for the rows of a table."""
        return self._predict_linear(X, *self.coefficients())

    def score(self, X: Array, Y: Array) -> Array:
        """The weight that every output would give to each row of a table; nothing is learned."""
        return self.score_predictions(Y, np.ascontiguousarray(self._predict_linear(X, *self.scoring_coefficients())))

    @abstractmethod
    def score_predictions(self, Y: Array, predictions: Array) -> Array:
        """The weight of records with these targets and predictions."""

    def score_features(self, X: Any) -> Array:
        """How typical rows are by their features alone: min(1, N/‖z‖²), with N the median of ‖z‖²."""
        inverse, centre = self.stats[scaling.INVERSE], self.stats[scaling.CENTRE]
        # What overflows is infinitely long.
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(X, np.ndarray):
                lengths = np.square((X - centre) * inverse).sum(axis=1)
            else:
                Z, middle = X.astype(np.float64) @ diags_array(inverse), centre * inverse
                lengths = Z.power(2) @ np.ones(self.dim) - 2.0 * (Z @ middle) + np.square(middle).sum()
            lengths = np.nan_to_num(lengths + (self.width - self.dim), nan=np.inf, posinf=np.inf)
            typical = self._typical_norm2()
            scores = np.minimum(1.0, typical / np.maximum(lengths, np.finfo(float).tiny))
        return scores if typical > 0.0 else np.ones(len(lengths))

    def scales(self) -> Array:
        """The scale of every feature; infinite where it is not known yet."""
        with np.errstate(divide="ignore"):
            return 1.0 / self.stats[scaling.INVERSE]

    @abstractmethod
    def _actions(self) -> Array:
        """The model of every output, for standardized features."""

    @abstractmethod
    def _typical_norm2(self) -> float:
        """The median ‖z‖² of the rows so far; 0 if that is not known."""

    def _predict_linear(self, X: Array, coefficients: Array, intercepts: Array) -> Array:
        X = np.require(X, np.float64, ["C", "A", "W"])
        return np.asarray(dense.predict(X, coefficients, intercepts, self.stats[scaling.CENTRE].copy()))

    def _unscale(self, theta: Array) -> tuple[Array, Array]:
        with np.errstate(over="ignore", invalid="ignore"):
            coefficients = np.nan_to_num(theta[:, : self.dim] * self.stats[scaling.INVERSE])
            intercepts = theta[:, self.dim] if self.width > self.dim else np.zeros(self.outputs)
            return coefficients, np.nan_to_num(intercepts - coefficients @ self.stats[scaling.CENTRE])

    def _norms2(self) -> Array:
        """‖θ‖² of every output without its intercept."""
        return np.square(self._actions()[:, : self.dim]).sum(axis=1)

    # --- persistence ---

    def arrays(self) -> dict[str, Array]:
        """The arrays of the state by their saved names."""
        return {spec.name: getattr(self, self.ATTRIBUTES.get(spec.name, spec.name)) for spec in self.SPECS}

    def dims(self) -> dict[str, int]:
        """The named dimensions of the specs."""
        sizes = {"sampled": len(self.sample), "averaged": len(self.means), "length": self.models.shape[1]}
        return {"dim": self.dim, "outputs": self.outputs, "width": self.width} | sizes

    def state(self) -> dict[str, Any]:
        """All that was learned, as arrays and plain values; copies."""
        shape = {"dim": self.dim, "outputs": self.outputs, "standard": self.method}
        return shape | {name: array.copy() for name, array in self.arrays().items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state that an engine with the same settings gave."""
        others = state.keys() - self.arrays().keys() if isinstance(state, dict) else ()
        arrays = read_arrays(self.SPECS, state, self.dims(), type(self).__name__, others)
        self.check(arrays)
        self.set_arrays(arrays)

    def set_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Take over arrays that were checked, by their saved names."""
        for name, array in arrays.items():
            setattr(self, self.ATTRIBUTES.get(name, name), array)
        self._coefficients, self._table_arguments = None, (None,)

    def check(self, arrays: Mapping[str, Array]) -> None:
        """Raise if arrays within their specs are still no state of this engine; those of many may be stacked."""
        expected = self.progress[dense.AVERAGE_FROM]
        require((arrays["clock"][..., dense.AVERAGE_FROM] == expected).all(), type(self).__name__, "another 'average'")


def _divergence(row: int) -> DivergenceError:
    return DivergenceError(
        f"Row {row}: the update overflowed, so the model is unchanged since the row before. "
        "Try a smaller step, or a transform that closes, such as Learn."
    )


def read_shape(state: dict[str, Any], intercept: bool, second: bool) -> tuple[int, int]:
    """The number of features and outputs of a saved state, if its arrays are large enough: nothing larger is made."""
    dim, outputs = state["dim"], state["outputs"]
    if not all(type(count) is int and count >= 1 for count in (dim, outputs)):
        raise corrupt_state("an engine", f"{dim!r} features and {outputs!r} outputs")
    stats, models = np.shape(state["units"]), np.shape(state["states"])
    width = dim + intercept
    if stats[1:] != (dim,) or models[:1] != (outputs,) or models[1:] < (width * width if second else width,):
        raise corrupt_state("an engine", f"arrays too small for {dim} features and {outputs} outputs")
    return dim, outputs


class DescentEngine(Engine):
    """Descent behind the gate of a transform.

    Without a step it has one that depends on no unit; see `kernels.tabular.dense.default_step`.
    """

    SPECS = (
        *Engine.SPECS,
        ArraySpec("seen", (lambda dims: dims["outputs"] + 1, scaling.SAMPLE)),
        stats_spec("standing", lambda dims: dims["outputs"] + 1),
    )
    KERNELS = (dense.learn, sparse.learn)
    takes_sparse_rows = True
    ATTRIBUTES = {**Engine.ATTRIBUTES, "seen": "target_sample", "standing": "target_stats"}

    MODEL = (
        ArraySpec("raw", ("width",)),
        ArraySpec("shrink", low=np.finfo(float).tiny, high=1.0),
        ArraySpec("size2"),
        ArraySpec("travelled", low=0.0),
        ArraySpec("touched", low=0.0),
    )
    """The state of an output, a row of `models`."""

    def __init__(
        self,
        dim: int,
        outputs: int,
        loss: losses.LinearLoss,
        intercept: bool,
        method: int,
        average: int | None,
        transform: transforms.Transform,
        step: steps.Step | None,
    ) -> None:
        super().__init__(dim, outputs, loss, intercept, method, average)
        self.transform = transform
        self.settings = Robust(1, loss=loss, transform=transform, step=step or steps.Constant(1.0)).kernel_settings
        self.settings[layout.SCALE] *= step is not None
        self.target_sample = np.zeros((outputs + 1, scaling.SAMPLE))
        self.target_stats = scaling.new_statistics(outputs + 1)
        self.models = np.zeros((outputs, self.width + dense.SCALARS))
        self.models[:, self.width + dense.SHRINK] = 1.0
        self.models[:, self.width + dense.SIZE2] = -1.0

    def kernel_config(self, unchecked: bool = False) -> tuple[Any, ...]:
        return (self.method, self.settings, unchecked)

    def _actions(self) -> Array:
        return self._multiply_out(self.models)

    def _multiply_out(self, models: Array) -> Array:
        actions = models[..., : self.width].copy()
        actions[..., : self.dim] *= models[..., [self.width + dense.SHRINK]]
        return actions

    def _typical_norm2(self) -> float:
        return float(self.target_stats[scaling.CENTRE, self.outputs])

    def score_predictions(self, Y: Array, predictions: Array) -> Array:
        paid = self.loss.of_prediction(predictions, Y) + 0.5 * self.loss.l2 * self._norms2()[:, None]
        return np.asarray(self.transform.weight(np.minimum(paid, np.finfo(float).max)))

    def check(self, arrays: Mapping[str, Array]) -> None:
        super().check(arrays)
        models, owner = arrays["states"], type(self).__name__
        check_arrays(self.MODEL, unpack(self.MODEL, models, self.dims()), self.dims(), owner)
        spec = ArraySpec("coefficients", ("width",), low=-LONGEST, high=LONGEST)
        check_arrays([spec], {"coefficients": self._multiply_out(models)}, {}, owner)
