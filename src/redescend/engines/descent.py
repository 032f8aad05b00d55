"""Descent behind the gate of a transform, with running standardization of the features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from redescend import steps, transforms
from redescend.engines.engine import Engine, Shape
from redescend.errors import DivergenceError
from redescend.kernels import layout
from redescend.kernels.layout import SparseTable, Table
from redescend.kernels.tabular import dense, fleet, sparse
from redescend.kernels.tabular import standardize as scaling
from redescend.kernels.tabular.fleet import Runs
from redescend.learners.recipes import Robust
from redescend.numeric import Array
from redescend.state import ArraySpec, check_arrays, corrupt_state, require, unpack

EMPTY = np.empty((0, 0))

LONGEST = 1.01e150  # the largest entry of a model, apart from rounding

PARTS = ("sample", "units", "clock", "states", "seen", "standing", "ones")
"""The arrays of an engine in the row of a fleet, in the order of `SPECS` and of the kernel."""

_learn: Any = dense.learn
_learn_sparse: Any = sparse.learn
_learn_fleet: Any = fleet.learn


def make_stats_spec(name: str, features: Any) -> ArraySpec:
    """The spec of running statistics; see `kernels.tabular.standardize`."""
    rules = {
        scaling.COUNT: ArraySpec("count", kind="count"),
        scaling.INVERSE: ArraySpec("inverse scale", low=0.0, high=scaling.LARGEST / scaling.SMALLEST),
    }
    return ArraySpec(name, (scaling.STATISTICS, features), parts=rules)


class DescentEngine(Engine):
    """Descent behind the gate of a transform.

    `method` is how features are standardized: UNSCALED, SCALED, CENTRED or WITH_MISSING. The default step does not
    depend on units; see `kernels.tabular.dense.default_step`.
    """

    SPECS = (
        ArraySpec("sample", ("sampled", scaling.SAMPLE)),
        make_stats_spec("units", "dim"),
        ArraySpec("means", ("averaged", "width"), low=-LONGEST, high=LONGEST),
        ArraySpec("clock", (2,), kind="count"),
        ArraySpec("states", ("outputs", "length")),
        ArraySpec("seen", (lambda dims: dims["outputs"] + 1, scaling.SAMPLE)),
        make_stats_spec("standing", lambda dims: dims["outputs"] + 1),
    )
    ATTRIBUTES = {
        "units": "stats",
        "clock": "progress",
        "states": "models",
        "seen": "target_sample",
        "standing": "target_stats",
    }

    MODEL = (
        ArraySpec("raw", ("width",)),
        ArraySpec("shrink", low=np.finfo(float).tiny, high=1.0),
        ArraySpec("size2"),
        ArraySpec("travelled", low=0.0),
        ArraySpec("touched", low=0.0),
    )
    """The state of an output, a row of `models`."""

    _table_arguments: tuple[Any, ...] = (None,)
    """The arguments of the kernel for tables, preceded by the models they belong to."""

    def __init__(
        self, shape: Shape, method: int, transform: transforms.Transform, step: steps.Step | None = None
    ) -> None:
        super().__init__(shape)
        dim, outputs, loss, _, average = shape
        self.method, self.transform = method, transform
        self.sample = np.zeros((dim if method else 0, scaling.SAMPLE))
        due = scaling.READY_SCALED if method == scaling.SCALED else scaling.READY
        self.stats = scaling.new_statistics(dim, due)
        self.stats[scaling.INVERSE] = 0.0 if method else 1.0
        self.means = np.zeros((0 if average is None else outputs, self.width))
        self.progress = np.array([0.0, 0.0 if average is None else average])
        self.work = np.empty(self.width + 2 * dim)
        self.settings = Robust(1, loss=loss, transform=transform, step=step or steps.Constant(1.0)).kernel_settings
        self.settings[layout.SCALE] *= step is not None
        self.target_sample = np.zeros((outputs + 1, scaling.SAMPLE))
        self.target_stats = scaling.new_statistics(outputs + 1)
        self.models = np.zeros((outputs, self.width + dense.SCALARS))
        self.models[:, self.width + dense.SHRINK] = 1.0
        self.models[:, self.width + dense.SIZE2] = -1.0

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_table_arguments"}

    @property
    def row_count(self) -> int:
        return int(self.progress[dense.ROW_COUNT])

    # --- learning ---

    def exclude_from_scaling(self, features: Sequence[int]) -> None:
        self.stats[np.ix_((scaling.WAKE, scaling.NEXT, scaling.DUE), features)] = scaling.NEVER
        self.stats[scaling.INVERSE, features] = 1.0
        self._coefficients = None

    def _learn_table(
        self, rows: Table, weights: Array, predictions: Array | None, *, unchecked: bool = False, first: int = 0
    ) -> bool:
        if self._table_arguments[0] is not self.models:
            # Made once: making the tuples takes as long as learning from a short row.
            self._table_arguments = self.models, self._kernel_state(), (self.method, self.settings, False)
        _, state, config = self._table_arguments
        out = (weights, EMPTY if predictions is None else predictions)
        config = (self.method, self.settings, True) if unchecked else config
        learned = _learn(rows, state, config, out, self.work)
        if 0 <= learned < len(rows.X):
            raise _divergence_error(first + learned)
        return bool(learned >= 0)

    def _learn_sparse(self, rows: SparseTable, weights: Array, predictions: Array | None) -> bool:
        if self.method == scaling.CENTRED or len(self.means):
            return False
        longest, config = int(np.diff(rows.starts).max(initial=0)) + 1, (self.method, self.settings, False)
        places = (np.empty(longest, np.int64), np.empty(longest), np.empty(longest, np.int64), np.empty(longest))
        buffers = (*places, np.empty(longest))
        learned = _learn_sparse(rows, self._kernel_state(), config, (weights, EMPTY), buffers)
        if learned < len(rows.sample_weight):
            raise _divergence_error(learned)
        return True

    def learn_packed(
        self, rows: Array, spans: Mapping[str, slice], indicators: Array, runs: Runs
    ) -> tuple[Array, Array]:
        predictions, weights = np.empty(runs.Y.shape), np.empty(runs.Y.shape)
        ends = np.array([0, *(spans[name].stop for name in PARTS)])
        config = (self.method, self.settings, False)
        _learn_fleet((rows, ends, indicators), tuple(runs), config, (weights, predictions), len(self.work))
        return predictions, weights

    def packed_row_counts(self, rows: Array, spans: Mapping[str, slice]) -> Array:
        return rows[:, spans["clock"].start + dense.ROW_COUNT].copy()

    def _kernel_state(self) -> tuple[Array, ...]:
        """The fields of `kernels.tabular.dense.TableState`."""
        scales = (self.sample, self.stats, self.target_sample, self.target_stats)
        return (self.models, self.means, self.progress, *scales)

    # --- predicting and scoring ---

    def _compute_coefficients(self) -> tuple[Array, Array]:
        averaged = len(self.means) and self.progress[dense.ROW_COUNT] > self.progress[dense.AVERAGE_FROM]
        theta = self.means if averaged else self._multiply_out(self.models)
        with np.errstate(over="ignore", invalid="ignore"):
            coefficients = np.nan_to_num(theta[:, : self.dim] * self.stats[scaling.INVERSE])
            intercepts = theta[:, self.dim] if self.width > self.dim else np.zeros(self.outputs)
            return coefficients, np.nan_to_num(intercepts - coefficients @ self.stats[scaling.CENTRE])

    def _multiply_out(self, models: Array) -> Array:
        actions = models[..., : self.width].copy()
        actions[..., : self.dim] *= models[..., [self.width + dense.SHRINK]]
        return actions

    def _centres(self) -> Array:
        return self.stats[scaling.CENTRE].copy()

    def score(self, X: Any, Y: Array) -> Array:
        predictions = self.predict(X) if isinstance(X, np.ndarray) else self._predict_sparse(X)
        norms2 = np.square(self._multiply_out(self.models)[:, : self.dim]).sum(axis=1)
        paid = self.loss.of_prediction(predictions, Y) + 0.5 * self.loss.l2 * norms2[:, None]
        return np.asarray(self.transform.weight(np.minimum(paid, np.finfo(float).max)))

    def _predict_sparse(self, X: Any) -> Array:
        coefficients, intercepts = self.coefficients()
        with np.errstate(over="ignore", invalid="ignore"):
            return np.nan_to_num(X @ coefficients.T + intercepts).T

    def score_features(self, X: Any) -> Array:
        inverse, centre = self.stats[scaling.INVERSE], self.stats[scaling.CENTRE]
        # What overflows is infinitely long.
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(X, np.ndarray):
                lengths = np.square((X - centre) * inverse).sum(axis=1)
            else:
                from scipy.sparse import diags_array

                Z, middle = X.astype(np.float64) @ diags_array(inverse), centre * inverse
                lengths = Z.power(2) @ np.ones(self.dim) - 2.0 * (Z @ middle) + np.square(middle).sum()
            lengths = np.nan_to_num(lengths + (self.width - self.dim), nan=np.inf, posinf=np.inf)
            typical = float(self.target_stats[scaling.CENTRE, self.outputs])
            scores = np.minimum(1.0, typical / np.maximum(lengths, np.finfo(float).tiny))
        return scores if typical > 0.0 else np.ones(len(lengths))

    def scales(self) -> Array:
        with np.errstate(divide="ignore"):
            return 1.0 / self.stats[scaling.INVERSE]

    # --- persistence ---

    def dims(self) -> dict[str, int]:
        return super().dims() | {"sampled": len(self.sample), "averaged": len(self.means)}

    def _plain_state(self) -> dict[str, Any]:
        return {"standard": self.method}

    def restore(self, state: dict[str, Any]) -> None:
        if not isinstance(state, dict) or state.get("standard") != self.method:
            raise corrupt_state(type(self).__name__, "another 'standardize'")
        super().restore(state)

    def set_arrays(self, arrays: Mapping[str, Array]) -> None:
        super().set_arrays(arrays)
        self._table_arguments = (None,)

    def check(self, arrays: Mapping[str, Array]) -> None:
        models, owner = arrays["states"], type(self).__name__
        same = arrays["clock"][..., dense.AVERAGE_FROM] == self.progress[dense.AVERAGE_FROM]
        require(same.all(), owner, "another 'average'")
        check_arrays(self.MODEL, unpack(self.MODEL, models, self.dims()), self.dims(), owner)
        spec = ArraySpec("coefficients", ("width",), low=-LONGEST, high=LONGEST)
        check_arrays([spec], {"coefficients": self._multiply_out(models)}, {}, owner)


def _divergence_error(row: int) -> DivergenceError:
    return DivergenceError(
        f"Row {row}: the update overflowed, so the model is unchanged since the row before. "
        "Try a smaller step, or a transform that closes, such as Learn."
    )
