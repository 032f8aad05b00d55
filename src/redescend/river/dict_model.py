"""A linear model of records that are dicts, in which features come and go.

A name gets a fixed place in the learner's vector with the first record that has it. A feature that is missing from a
record is 0. When new names appear, the vector grows: first to the size of the first record, then to twice its size, so
that growing costs no more than learning. It does not change what was learned, because to the learner a feature that
was never present was always 0. The number of names is limited (`MOST_FEATURES`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
from scipy.special import expit

from redescend.engines.config import ModelConfig
from redescend.errors import DataError
from redescend.kernels.layout import Outcomes
from redescend.learners.selftuning import SelfTuning, resolve_order
from redescend.numeric import Array, dot
from redescend.river import records
from redescend.river.row_learner import RecordBelief, RowLearner, infer_dim, make_row_learner, widen_state
from redescend.state import Stateful, check_keys, corrupt_state, count_values, require

MOST_FEATURES = {1: 200_000, 2: 4_000}
"""The most names that a model remembers, by its order: a stream may have ever new ones."""


class DictModel(Stateful):
    """Names, their places, and a learner: learns from dicts and from tables of numbers."""

    _learner: RowLearner

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._constant = (1.0,) if config.fit_intercept else ()
        self._features: dict[Any, float] = {}
        self._is_fresh = True
        self.belief = self._make_belief() if config.transform is None else None
        self._use_learner(make_row_learner(config.make_learner(1)))
        self.frames = records.FrameReader()
        self._columns: list[Any] = []
        self._places_of_columns: Array = np.empty(0, dtype=np.intp)

    def __getstate__(self) -> dict[str, Any]:
        return {"config": self._config, "state": self.state()}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        DictModel.__init__(self, pickled["config"])
        self.restore(pickled["state"])

    def _make_belief(self) -> RecordBelief:
        return RecordBelief(self._config.loss.margin)

    # --- one record ---

    def learn(self, x: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from one record of weight w."""
        if w != 1.0:
            self._learn_weighted(x, y, w)
            return
        self._write_record(x, y)
        if self._learner.learn() < 0.0:
            records.check_record(x, y)
            self._learner.learn_carefully()
        elif self.belief is not None:
            self._update_belief()

    def _learn_weighted(self, x: Any, y: Any, w: Any) -> None:
        if (w := records.check_weight(w)) > 0.0:
            records.check_record(x, y)
            self._write_record(x, y)
            if self._learner.learn_weighted(w) and self.belief is not None:
                self._update_belief()

    def _update_belief(self) -> None:
        """Let the belief learn from the record that was learned from last."""
        row: Any = self._learner
        self.belief.add(row.last_prediction, row.record[0], row.x)  # type: ignore[union-attr]

    def clean_probability(self, x: Any, y: Any) -> float:
        """The probability that a record is clean; with a transform, its weight. Nothing is learned."""
        self._write_record(x, y, learn=False)
        if self.belief is not None:
            target = float(self._learner.record[0])
            if not math.isfinite(target):
                records.check_record(x, y)
            prediction = self.predict(x)
            return self.belief.clean_probability(prediction, target, self._learner.x)
        probability = self._learner.clean_probability()
        if not probability > 0.0:
            records.check_record(x, y)
        return probability

    def predict(self, x: Any) -> float:
        """Predict ⟨x, θ⟩; unknown features are ignored."""
        self._write_record(x, 0.0, learn=False)
        prediction = self._learner.predict()
        if math.isfinite(prediction):
            return prediction
        records.check_record(x)
        return dot(self._learner.learner.theta, self._learner.x)

    def predict_interval(self, x: Any, level: float) -> tuple[float, float]:
        """The interval in which a share of clean targets lies."""
        if self.belief is None:
            raise DataError("Intervals need a model without a fixed transform.")
        return self.belief.predict_interval(self.predict(x), self._learner.x, level)

    def _write_record(self, x: Any, y: Any, learn: bool = True) -> None:
        """Write the record into the row of the learner; only learning gives new features a place."""
        try:
            # A subclass of dict may return a default for a name that it does not have.
            is_usual = type(x) is dict and len(x) == self._count
            values = self._get_values(x) if is_usual else self._collect_values(x, y, learn)
        except KeyError:
            values = self._collect_values(x, y, learn)
        try:
            self._write(self._bytes, 0, y, *self._constant, *values)
        except (struct.error, OverflowError):
            records.check_record(x, y)
            raise

    def _collect_values(self, x: Any, y: Any, learn: bool) -> Iterable[Any]:
        """The values of all features in the order of their places."""
        if not isinstance(x, Mapping):
            records.check_record(x, y)
        values = {**self._features, **x}
        if len(values) != self._count:
            if learn:
                records.check_record(x, y)
                self._add_features(x)
            values = {name: values[name] for name in self._features}
        return values.values()

    # --- many records ---

    def learn_rows(self, columns: list[Any], values: Array, y: Array, weights: list[float] | None = None) -> None:
        """Learn from the rows of a table in turn; from none of them if a value is not finite."""
        if weights is not None:
            values = records.zero_out_rows(values, weights)
        if len(values) == 0 or (weights is not None and not any(weights)):
            return
        if self._is_fresh or columns != self._columns:
            records.check_table(columns, values)
            self._add_features(columns)
            self._columns, self._places_of_columns = columns, self._find_places(columns)
        row = self._learner
        X = np.zeros((len(values), row.learner.dim))
        X[:, : len(self._constant)] = 1.0
        X[:, self._places_of_columns] = values
        if not records.has_finite_square(X):
            records.check_table(columns, values)
        if weights is None:
            # A column of a frame may be read-only, for which the loop would be compiled once more.
            y = np.require(y, np.float64, ["C", "A", "W"])
            out = Outcomes(np.zeros(len(X)), np.zeros(len(X)), np.zeros(len(X)), np.empty((0, X.shape[1])))
            failure = row.learner.learn_rows(X, y, out)
            if failure is not None:
                raise failure.error
            if self.belief is not None:
                self.belief.add_rows(out.predictions, y, X)
            return
        for x, target, w in zip(X, y, weights, strict=True):
            if w > 0.0:
                row.record[0], row.x[:] = target, x
                if row.learn_weighted(w) and self.belief is not None:
                    self._update_belief()

    def predict_rows(self, columns: list[Any], values: Array) -> Array:
        """⟨x, θ⟩ of every row; unknown features are ignored."""
        places = [place for place, name in enumerate(columns) if name in self._features]
        names = [columns[place] for place in places]
        if len(places) < len(columns):
            values = values[:, places]
        theta, intercept = self._learner.learner.theta[self._find_places(names)], self.intercept
        with np.errstate(over="ignore", invalid="ignore"):
            predictions = values @ theta + intercept
        if not np.isfinite(predictions).all():
            records.check_table(names, values)
            for row in np.flatnonzero(~np.isfinite(predictions)):
                predictions[row] = dot(np.append(values[row], 1.0), np.append(theta, intercept))
        learner = self._learner.learner
        return learner.clip(predictions) if isinstance(learner, SelfTuning) else predictions

    def predict_shares(self, margins: Array) -> Array:
        """The probability of the label 1 at every margin."""
        return expit(margins) if self.belief is None else self.belief.predict_proba(margins)

    def _find_places(self, names: Iterable[Any]) -> Array:
        places = {name: place for place, name in enumerate(self._features, len(self._constant))}
        return np.array([places[name] for name in names], dtype=np.intp)

    # --- coefficients and state ---

    @property
    def intercept(self) -> float:
        return float(self._learner.learner.theta[0]) if self._constant else 0.0

    @property
    def weights(self) -> dict[Any, float]:
        theta = self._learner.learner.theta[self._find_places(self._features)]
        return dict(zip(self._features, theta.tolist(), strict=True))

    def state(self) -> dict[str, Any]:
        learned = None if self._is_fresh else self._learner.learner.state()
        belief = None if self.belief is None else self.belief.state()
        return {
            "features": [records.key_to_plain(name) for name in self._features],
            "learner": learned,
            "belief": belief,
        }

    def restore(self, state: Any) -> None:
        check_keys(state, ("features", "learner", "belief"), "a linear model")
        try:
            features = dict.fromkeys((records.plain_to_key(name) for name in state["features"]), 0.0)
            learned, needed = state["learner"], len(features) + len(self._constant)
            dim = 1 if learned is None else infer_dim(learned)
            is_valid = len(features) == len(state["features"]) and dim >= needed and not (learned is None and features)
            order = 1 if self._config.transform is not None else resolve_order(self._config.order, dim)
            is_valid = is_valid and (learned is None or count_values(learned) >= dim * (dim if order == 2 else 1))
        except (TypeError, LookupError, AttributeError):
            is_valid = False
        if not is_valid:
            raise corrupt_state("a linear model", "features that do not match its learner")
        learner, belief = self._config.make_learner(dim), None
        if learned is not None:
            learner.restore(learned)
        if state["belief"] is not None:
            require(self._config.transform is None, "a linear model", "a belief in spite of its transform")
            belief = self._make_belief()
            belief.restore(state["belief"])
        self.belief = belief
        self._features, self._is_fresh, self._columns = features, learned is None, []
        self._use_learner(make_row_learner(learner))

    # --- growing ---

    def _add_features(self, names: Iterable[Any]) -> None:
        """Give every new name a place, in an order that does not depend on that of the record."""
        new = {name for name in names if name not in self._features}
        most = MOST_FEATURES[2 if self._config.order == 2 else 1]
        if len(self._features) + len(new) > most:
            raise DataError(
                f"A model has at most {most:,} features, and this record has more new ones; hash the names of "
                "features, for instance with river.preprocessing.FeatureHasher, or leave rare ones out."
            )
        self._features |= dict.fromkeys(sorted(new, key=lambda name: (type(name).__name__, str(name))), 0.0)
        needed, row = max(len(self._features) + len(self._constant), 1), self._learner
        if self._is_fresh:
            row = make_row_learner(self._config.make_learner(needed))
        elif needed > row.learner.dim:
            # At order 2 a spare feature costs as much as one in use.
            learner = self._config.make_learner(needed)
            if not isinstance(learner, SelfTuning) or learner.order == 1:
                learner = self._config.make_learner(max(needed, 2 * row.learner.dim))
            learner.restore(widen_state(row.learner.state(), learner.state()))
            row = make_row_learner(learner)
        self._is_fresh = False
        self._use_learner(row)

    def _use_learner(self, learner: RowLearner) -> None:
        """Write records into the row of this learner from now on."""
        self._learner = learner
        self._count = -1 if self._is_fresh else len(self._features)
        self._get_values = _make_getter(list(self._features))
        self._write = struct.Struct(f"{1 + len(self._constant) + len(self._features)}d").pack_into
        row: Any = learner.record
        self._bytes = memoryview(row).cast("B")


def _make_getter(names: list[Any]) -> Callable[[Any], Iterable[Any]]:
    """A function that takes the values of all these names from a dict."""
    return itemgetter(*names) if len(names) > 1 else lambda x: [x[name] for name in names]
