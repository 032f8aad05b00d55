"""The self-tuning learner as an engine: a row of floats for every output, for tables and for sparse rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, Literal, Self

import numpy as np

from redescend.engines import labels
from redescend.engines.engine import Engine, RowOutcomes, Shape
from redescend.engines.uncertainty import leave_out_numbers
from redescend.kernels.layout import SparseTable, Table
from redescend.kernels.selftuning import layout, sparse
from redescend.kernels.selftuning.calls import EMPTY, FIRST, NO_ACTIONS, judge, make_config, new_work, read_actions
from redescend.kernels.selftuning.imputation import impute_values
from redescend.kernels.selftuning.rounds import LONG
from redescend.kernels.selftuning.tables import Models, Outcomes, learn
from redescend.kernels.tabular.fleet import Runs
from redescend.numeric import Array
from redescend.state import ArraySpec, check_arrays, corrupt_state, require, unpack

SCORED_ROWS = 64  # sparse rows that are scored at a time, as a table of the features that they have

_learn: Any = learn
_learn_sparse: Any = sparse.learn


class SelfTuningEngine(Engine):
    """`SelfTuning` for every output. Nothing depends on the units of features, so there is nothing to standardize.

    Of order 1 the covariance of the posterior is a diagonal, of order 2 a matrix. NaN may be a `missing` value, which
    the mean of its feature replaces. If they are `linked`, outputs are the classes of a classifier, whose scores a
    `link` makes logits of all classes together.
    """

    SPECS = (
        ArraySpec("means", ("averaged", lambda dims: dims["width"] + 1)),
        ArraySpec("states", ("outputs", "length"), finite=False),
        labels.LINK,
    )
    ATTRIBUTES = {"states": "models"}

    def __init__(self, shape: Shape, order: Literal[1, 2], missing: bool = False, linked: bool = False) -> None:
        super().__init__(shape)
        self.link = labels.make_link(self.outputs, self.loss) if linked else np.empty(0)
        self.order, self.missing = order, missing
        self.models = np.tile(layout.new_row(self.width, order, self.intercept), (self.outputs, 1))
        self.means = np.zeros((0 if self.average is None else self.outputs, self.width + 1))
        self.means[:, -1] = self.average or 0
        self.sparse = False
        self.config, self.work = self._make_config(), np.empty(0)

    def _make_config(self, width: int | None = None, offset: int = 0) -> layout.Config:
        name, width = type(self).__name__, width or self.width
        options: dict[str, Any] = {"missing": self.missing, "intercept": self.intercept, "offset": offset}
        # Beliefs calibrate scores of labels, and tell more apart if they are not limited.
        return make_config(name, self.loss, width, self.order, limited=False, **options)

    def __deepcopy__(self, memo: Any) -> Self:
        other = copy(self)
        other.models, other.means, other.link = self.models.copy(), self.means.copy(), self.link.copy()
        other.work = np.empty(0)
        return other

    @property
    def row_count(self) -> int:
        return int(self.models[0, layout.ROUNDS - layout.SCALARS])

    # --- learning ---

    def _learn_table(
        self,
        rows: Table,
        weights: Array,
        predictions: Array | None,
        *,
        unchecked: bool = False,
        first: int = 0,
        counts: Array = EMPTY,
    ) -> bool:
        self._set_layout(sparse=False)
        count = len(rows.X)
        predicted = weights.copy() if predictions is None else predictions
        out = Outcomes(weights, predicted, EMPTY, NO_ACTIONS, self.means, EMPTY, counts)
        models = Models(self.models.reshape(1, -1), np.array([0, count]), FIRST)
        if _learn(models, rows, self.config, out, self._get_work()) < count:
            return False
        labels.learn_scores(self.link, rows.Y, rows.sample_weight, predicted)
        return True

    def learn_counted(self, rows: Table) -> tuple[RowOutcomes, Array]:
        """Learn from a table; returns the outcomes of rows, and how far they count: one over their leverage."""
        predictions, weights, counts = np.zeros((3, *rows.Y.shape))
        self._coefficients = None
        self._learn_table(rows, weights, predictions, counts=counts)
        return RowOutcomes(predictions, weights), counts

    def _learn_sparse(self, rows: SparseTable, weights: Array, predictions: Array | None) -> bool:
        if self.order == 2 or self.average is not None:
            return False
        self._set_layout(sparse=True)
        longest = int(np.diff(rows.starts).max(initial=0))
        scalars = self.models[:, -layout.SCALARS :]
        starting = scalars[:, layout.LAST].min() < layout.FEW
        # After a restart, all features that were seen are needed.
        seen = int(scalars[:, layout.KNOWN].max()) + layout.FEW * longest if starting else longest
        capacity = min(seen + 3, self.width)
        sizes = sparse.buffer_sizes(capacity, self.width)
        places, mark = np.empty(sizes[0], np.int64), np.zeros(sizes[2], np.int64)
        buffers = sparse.Buffers(places, np.empty(sizes[1]), mark, np.zeros(sizes[3]), np.empty(sizes[4]))
        predicted = weights.copy() if predictions is None else predictions
        _learn_sparse(self.models, rows, self.config, (weights, predicted), buffers)
        labels.learn_scores(self.link, rows.Y, rows.sample_weight, predicted)
        return True

    def learn_packed(
        self, rows: Array, spans: Mapping[str, slice], indicators: Array, runs: Runs
    ) -> tuple[Array, Array]:
        predictions, weights = np.empty(runs.Y.shape), np.empty(runs.Y.shape)
        config = self._make_config(offset=spans["states"].start)
        table = Table(runs.X, runs.Y, np.ones(len(runs.X)))
        out = Outcomes(weights, predictions, EMPTY, NO_ACTIONS, EMPTY, EMPTY, EMPTY)
        _learn(Models(rows, runs.starts, runs.places), table, config, out, new_work(config))
        if len(self.link):
            places = (runs.starts, runs.places)
            labels.learn_packed_scores(rows, spans["link"].start, places, runs.Y, table.sample_weight, predictions)
        if len(indicators) and len(runs.X):
            ones = np.add.reduceat(runs.X[:, indicators], runs.starts[:-1], axis=0)
            rows[runs.places, spans["ones"]] += ones
        return predictions, weights

    def packed_row_counts(self, rows: Array, spans: Mapping[str, slice]) -> Array:
        return rows[:, spans["states"].start + self.models.shape[1] - layout.SCALARS + layout.ROUNDS].copy()

    def _get_work(self) -> Array:
        if not len(self.work):
            self.work = new_work(self.config)
        return self.work

    def _set_layout(self, sparse: bool) -> None:
        """Store the arrays of features by feature, for sparse rows, or by array."""
        if self.sparse != sparse:
            self.models, self.sparse = self._transpose_states(self.models, sparse), sparse
            self._coefficients = None

    def _transpose_states(self, models: Array, to_sparse: bool) -> Array:
        out, size = models.copy(), sparse.COLUMNS * self.width
        shape = (sparse.COLUMNS, self.width) if to_sparse else (self.width, sparse.COLUMNS)
        out[:, :size] = models[:, :size].reshape(-1, *shape).swapaxes(1, 2).reshape(len(models), size)
        return out

    def _table_states(self) -> Array:
        """The states, arranged for tables."""
        return self._transpose_states(self.models, False) if self.sparse else self.models

    def _unpack_states(self) -> dict[str, Array]:
        """The arrays of all outputs by name."""
        return unpack(layout.SPECS, self._table_states(), layout.dims_of(self.width, self.order))

    # --- predicting and scoring ---

    def _compute_coefficients(self) -> tuple[Array, Array]:
        if len(self.means) and self.row_count > self.means[0, -1]:
            actions = self.means[:, :-1]
        else:
            actions = read_actions(self._table_states().reshape(1, -1), self.config, self.outputs, self.dim)
        actions = np.nan_to_num(actions)
        intercepts = actions[:, -1:] if self.intercept else np.zeros((self.outputs, 1))
        coefficients = labels.apply_link(self.link, actions[:, : self.dim], constant=0.0)
        return coefficients.copy(), labels.apply_link(self.link, intercepts)[:, 0].copy()

    def predict_unseen(self, X: Array, Y: Array, sample_weight: Array) -> Array:
        """Predict each row without what it has told about itself; logits are those of the model as it is."""
        predictions = self.predict(X)
        if self.loss.margin:
            return predictions
        filled = np.where(np.isnan(X), self._centres(), X)
        return leave_out_numbers(filled, Y, predictions, sample_weight * self.score(X, Y))

    def clip(self, predictions: Array) -> Array:
        if self.loss.margin:
            return predictions
        low, high = layout.prediction_range(False, self.models[:, -layout.SCALARS :])
        return np.minimum(np.maximum(predictions, low[:, None]), high[:, None])

    def _centres(self) -> Array:
        feature, scalar = (self._unpack_states()[name][0] for name in ("feature", "scalar"))
        return impute_values(self.order, feature, scalar)[: self.dim]

    def score(self, X: Any, Y: Array) -> Array:
        return self._judge_rows(X, Y)[::2]

    def score_features(self, X: Any) -> Array:
        return self._judge_rows(X, np.ones((self.outputs, X.shape[0])))[1]

    def count_rows(self, X: Array) -> Array:
        """How far rows count, one over their leverage."""
        return np.minimum(1.0, LONG * self._judge_rows(X, np.ones((self.outputs, len(X))))[1::2])

    def _judge_rows(self, X: Any, Y: Array) -> Array:
        out = np.ones((2 * self.outputs, X.shape[0]))
        for rows, table, models, config in self._split_rows(X):
            out[:, rows] = judge(models, table, np.ascontiguousarray(Y[:, rows]), config)
        return out

    def _split_rows(self, X: Any) -> Iterator[tuple[slice, Array, Array, layout.Config]]:
        """Split rows into tables, each with the states of the features that it has: sparse rows have few."""
        if isinstance(X, np.ndarray):
            table = np.require(X, np.float64, ["C", "A", "W"])
            yield slice(None), table, self._table_states().reshape(1, -1), self.config
            return
        parts = self._unpack_states()
        for first in range(0, X.shape[0], SCORED_ROWS):
            rows = slice(first, first + SCORED_ROWS)
            some = X[rows].tocsr()
            features = np.unique(some.indices) if self.order == 1 else np.arange(self.dim)
            chosen = np.append(features, self.width - 1) if self.intercept else features
            config = self._make_config(width=max(len(chosen), 1))
            table = np.ascontiguousarray(some[:, features].toarray(), dtype=np.float64)
            yield rows, table, self._select_features(parts, chosen), config

    def _select_features(self, parts: Mapping[str, Array], chosen: Array) -> Array:
        """Select the states of some features; they predict the same where the others are 0."""
        if self.order == 2:
            return self._table_states().reshape(1, -1)
        width = max(len(chosen), 1)
        out = np.tile(layout.new_row(width, self.order), (self.outputs, 1))
        small = unpack(layout.SPECS, out, layout.dims_of(width, self.order))
        for name in ("weight", "played", "scale", "cells", "scalar"):
            small[name][...] = parts[name]
        for name in ("theta", "feature", "P"):
            small[name][..., : len(chosen)] = parts[name][..., chosen]
        constants = parts["scalar"][:, layout.CONSTANT]
        places = np.searchsorted(chosen, constants)
        here = (constants >= 0) & (places < len(chosen)) & (chosen[np.minimum(places, len(chosen) - 1)] == constants)
        small["scalar"][:, layout.CONSTANT] = np.where(here, places, -1)
        return out.reshape(1, -1)

    def scales(self) -> Array:
        feature = self._unpack_states()["feature"][0]
        # Long records count less: the intercept's mean square is the mean of their weights.
        mean = feature[layout.SQUARE, -1] if self.intercept and feature[layout.SQUARE, -1] > 0.0 else 1.0
        with np.errstate(over="ignore"):
            scales = np.sqrt(feature[layout.SQUARE] / mean) * feature[layout.UNIT]
        return np.where(feature[layout.COUNT] > 0, scales, np.inf)[: self.dim]

    def estimate_noise(self) -> tuple[Array, Array]:
        """The scale of the noise (its mean on a log scale) and the share of outliers that every output assumes."""
        parts = self._unpack_states()
        cells, scalar = parts["cells"][:, : layout.SCALES], parts["scalar"]
        octaves = cells @ np.arange(layout.SCALES) / np.maximum(cells.sum(axis=1), 1e-300)
        scales = scalar[:, layout.LOW] * 2.0**octaves * scalar[:, layout.TARGET]
        return scales, scalar[:, layout.RATE] + (0.0 if self.loss.margin else scalar[:, layout.MIRRORED])

    # --- persistence ---

    def dims(self) -> dict[str, int]:
        return super().dims() | {"averaged": len(self.means), "linked": len(self.link)}

    def _plain_state(self) -> dict[str, Any]:
        return {"order": self.order, "sparse": self.sparse}

    def restore(self, state: dict[str, Any]) -> None:
        sparse = state.get("sparse") if isinstance(state, dict) else None
        if not isinstance(sparse, bool) or (sparse and self.order == 2):
            raise corrupt_state(type(self).__name__, f"{sparse!r} for 'sparse'")
        before, self.sparse = self.sparse, sparse
        try:
            super().restore(state)
        except Exception:
            self.sparse = before
            raise

    def check(self, arrays: Mapping[str, Array]) -> None:
        owner, models = type(self).__name__, arrays["states"]
        require((arrays["means"][..., -1] == (self.average or 0)).all(), owner, "another 'average'")
        flat = models.reshape(-1, models.shape[-1])
        dims = layout.dims_of(self.width, self.order)
        parts = unpack(layout.SPECS, self._transpose_states(flat, False) if self.sparse else flat, dims)
        check_arrays(layout.SPECS, parts, dims, owner)
        layout.check_state(parts, self.order, owner)
        labels.check_link(arrays["link"], self.outputs, owner)
        rounds = models[..., layout.ROUNDS - layout.SCALARS]
        require((rounds == rounds[..., :1]).all(), owner, "outputs that have not seen the same rows")
