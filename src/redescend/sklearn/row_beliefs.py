"""Beliefs about the rows of an estimator: whether they are clean, and where clean targets lie.

Rows of `partial_fit` are judged by the predictions made before learning from them. `fit` passes over its rows several
times: only the first predictions are out of sample, and they come from a poor model. Instead each row is judged once,
after the last pass, by the leave-one-out prediction of the final model, so that the number of passes does not change
how many records a belief has seen. Logits are shrunk where the coefficients are uncertain. Rows of a model with trees
are judged by trees that were grown without them, and numbers by all members of the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.belief import LabelBelief, ResidualBelief, q_values, select_suspects, to_probability
from redescend.belief.deferred import COMPACT, DeferredBelief
from redescend.belief.suspects import HALF
from redescend.belief.verdicts import are_predicted
from redescend.engines import NonlinearEngine
from redescend.engines.members import judge_by_members
from redescend.engines.uncertainty import Uncertainty, leave_out_labels, leave_out_numbers, restore_uncertainty
from redescend.kernels.layout import Table
from redescend.numeric import Array, to_dense
from redescend.sklearn.stateful import StatefulEstimator
from redescend.state import ArraySpec, Stateful, read_arrays, require


class RowBeliefs(Stateful):
    """A belief for every output of a regressor, or one for the labels of a classifier, −1 and 1 for each output."""

    def __init__(self, dim: int, outputs: int, labels: bool) -> None:
        self._dim, self._outputs, self._labels = dim, outputs, labels
        self._columns = min(dim, COMPACT)
        self.start()

    def __getstate__(self) -> dict[str, Any]:
        return {"shape": (self._dim, self._outputs, self._labels), "state": self.state()}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        # Arrays that are mapped from a file are read-only; those of a restored state are copies.
        RowBeliefs.__init__(self, *pickled["shape"])
        self.restore(pickled["state"])

    @property
    def numbers(self) -> bool:
        """Whether targets are numbers, not labels."""
        return not self._labels

    def start(self) -> None:
        """Forget everything."""
        if self._labels:
            beliefs: list[Any] = [LabelBelief(max(self._outputs, 2))]
        else:
            beliefs = [ResidualBelief(self._columns) for _ in range(self._outputs)]
        self._beliefs = [DeferredBelief(belief) for belief in beliefs]
        self._places, self._count = np.empty(0, np.int64), 0
        self._log_odds: Array | None = np.empty(0)
        self._uncertainty: Uncertainty | None = None

    def fit(self, X: Any, Y: Array, predictions: Array, weights: Array, places: Array) -> None:
        """Forget everything, and learn from rows and the predictions of the linear model that learned from them."""
        self.start()
        uncertainty = None
        if self._labels:
            predictions, uncertainty = leave_out_labels(X, Y, predictions, weights)
        else:
            predictions = leave_out_numbers(X, Y, predictions, weights)
        self._add_rows(X, Y, predictions, places, in_order=False)
        self._uncertainty = uncertainty
        if not self._labels:
            verdicts, stuck = np.full((2, *Y.shape), np.nan)
            for k, deferred in enumerate(self._beliefs):
                verdicts[k, places], stuck[k, places], _ = deferred.give_verdict()
            self._conclude(verdicts, stuck, X, Y, predictions)

    def fit_members(self, engine: NonlinearEngine, rows: Table, predictions: Array, order: Array) -> None:
        """Forget everything, and learn from rows by trees that were grown without them.

        `predictions` are those of trees that were grown without the rows, and `order` looks random.
        """
        self.start()
        used = np.flatnonzero(rows.sample_weight > 0.0)
        order = order[rows.sample_weight[order] > 0.0]
        X, Y, weights = np.ascontiguousarray(to_dense(rows.X[order])), rows.Y[:, order], rows.sample_weight[order]
        self._add_rows(rows.X, rows.Y, predictions, used, in_order=False)
        if self._labels:
            return
        verdicts, stuck = np.full((2, *rows.Y.shape), np.nan)
        linear, narrow = engine.linear.predict(X), X[:, : self._columns]
        for k, deferred in enumerate(self._beliefs):
            belief: Any = deferred.belief
            verdicts[k, used], stuck[k, used], _ = deferred.give_verdict()
            own, told = verdicts[k, order], predictions[k, order]
            _, sizes = engine.fit_sizes(X, Y[k] - told, weights)
            judged = judge_by_members(own, narrow, Y[k], told, linear[k], sizes)
            # What is usual around a record does not excuse that it repeats the one before.
            repeats = stuck[k, order] > HALF
            repeats &= ~are_predicted(Y[k], told, *belief.predict_interval(told, narrow))
            verdicts[k, order] = np.where(repeats, np.minimum(judged, own), judged)
        self._conclude(verdicts, stuck, rows.X, rows.Y, predictions)

    def _conclude(self, verdicts: Array, stuck: Array, X: Any, Y: Array, predictions: Array) -> None:
        """Take the final verdict of every output, and fit intervals to the rows that are no suspects.

        Rows that only repeat the one before count for intervals: what is wrong with them is not their residual.
        """
        used, self._log_odds = self._places, verdicts.min(axis=0)
        records = self._make_records(X[used], Y[:, used], predictions[:, used])
        for k, (deferred, record) in enumerate(zip(self._beliefs, records, strict=True)):
            belief: Any = deferred.belief
            suspects = select_suspects(to_probability(verdicts[k, used]), numbers=True)
            belief.fit_intervals(*record, suspects[stuck[k, used[suspects]] <= HALF])

    def shrink(self, X: Any, predictions: Array) -> Array:
        """The predictions, a row for each output; those of labels are shrunk where the coefficients are uncertain."""
        return predictions if self._uncertainty is None else self._uncertainty.shrink(X, predictions)

    def add(self, X: Any, Y: Array, predictions: Array, places: Array | None = None) -> None:
        """Learn from rows and their predictions: from those at `places`, in this order, or from all."""
        self._add_rows(X, Y, self.shrink(X, predictions), places, in_order=True)

    def _add_rows(self, X: Any, Y: Array, predictions: Array, places: Array | None, in_order: bool) -> None:
        self._count, self._log_odds = Y.shape[1], None
        self._places = np.arange(self._count) if places is None else places
        if places is not None:
            X, Y, predictions = X[places], Y[:, places], predictions[:, places]
        for deferred, records in zip(self._beliefs, self._make_records(X, Y, predictions), strict=True):
            (deferred.add if in_order else deferred.add_table)(*records)

    def _make_records(self, X: Any, Y: Array, predictions: Array) -> list[tuple[Array, ...]]:
        """The records of every belief, as it takes them."""
        if not np.isfinite(predictions).all():  # nan_to_num of one row takes longer than learning from it
            predictions = np.nan_to_num(predictions)
        if self._labels:
            margins = np.ascontiguousarray(predictions.T)
            return [(margins, (Y[0] > 0.0).astype(np.int64) if len(Y) == 1 else Y.argmax(axis=0))]
        table = np.ascontiguousarray(to_dense(X[:, : self._columns]))
        return [(output, targets, table) for output, targets in zip(predictions, Y, strict=True)]

    @property
    def clean_log_odds(self) -> Array:
        """The final verdict on the rows that were added last; NaN for those that were not used."""
        if self._log_odds is None:
            verdicts = [deferred.give_verdict().clean_log_odds for deferred in self._beliefs]
            self._log_odds = np.full(self._count, np.nan)
            self._log_odds[self._places] = np.min(verdicts, axis=0)
        return self._log_odds

    def judge(self, X: Any, Y: Array, predictions: Array) -> Array:
        """The log-odds that each row is clean, the least over outputs; nothing is learned."""
        records = self._make_records(X, Y, self.shrink(X, predictions))
        log_odds = [deferred.belief.judge(*parts) for deferred, parts in zip(self._beliefs, records, strict=True)]
        return np.asarray(np.min(log_odds, axis=0))

    def predict_interval(self, X: Any, predictions: Array, level: float) -> tuple[Array, Array]:
        """The ends of intervals, a row for each output."""
        records = self._make_records(X, predictions, predictions)
        beliefs: list[Any] = [deferred.belief for deferred in self._beliefs]
        pairs = [
            belief.predict_interval(output, table, level)
            for belief, (output, _, table) in zip(beliefs, records, strict=True)
        ]
        low, high = (np.array([pair[end] for pair in pairs]) for end in range(2))
        return low, high

    def predict_proba(self, X: Any, predictions: Array) -> Array:
        """The calibrated probability of every label, a column each."""
        belief: Any = self._beliefs[0].belief
        return np.asarray(belief.predict_proba(np.nan_to_num(self.shrink(X, predictions)).T))

    def state(self) -> dict[str, Any]:
        return {
            "clean_log_odds": self.clean_log_odds.copy(),
            "beliefs": [deferred.state() for deferred in self._beliefs],
            "uncertainty": None if self._uncertainty is None else self._uncertainty.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        spec = ArraySpec("clean_log_odds", ("rows",), finite=False)
        log_odds = read_arrays([spec], {spec.name: state[spec.name]}, {}, self)[spec.name]
        require(not np.isinf(log_odds).any(), self, "log-odds that are infinite")
        require(len(state["beliefs"]) == len(self._beliefs), self, f"{len(state['beliefs'])} beliefs")
        self.start()
        for deferred, saved in zip(self._beliefs, state["beliefs"], strict=True):
            deferred.restore(saved)
        self._log_odds = log_odds
        if state["uncertainty"] is not None:
            self._uncertainty = restore_uncertainty(state["uncertainty"], self._dim, self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._dim}, {self._outputs}, {self._labels})"


class JudgingEstimator(StatefulEstimator):
    """An estimator with a final verdict on the rows of the last `fit` or `partial_fit`."""

    _beliefs: RowBeliefs | None

    @property
    def clean_probability_(self) -> Array:
        """For each row of the last call, the probability that it was clean, given everything learned so far.

        NaN for rows with a sample weight of 0. Only without a transform.
        """
        return np.where(np.isnan(self._final_log_odds()), np.nan, to_probability(self._final_log_odds()))

    @property
    def q_value_(self) -> Array:
        """For each row of the last call, the estimated share of false alarms in the list that ends with it."""
        probability = self.clean_probability_
        out, known = np.full(len(probability), np.nan), ~np.isnan(probability)
        out[known] = q_values(probability[known])
        return out

    @property
    def suspects_(self) -> Array:
        """The rows of the last call that are suspects: `suspects` with a tenth of false alarms."""
        return self.suspects()

    def suspects(self, fdr: float = 0.1) -> Array:
        """List the rows of the last call that are probably wrong.

        Parameters
        ----------
        fdr : float
            The estimated share of false alarms in the list, between 0 and 1.

        Returns
        -------
        indices : array of int
            The largest list with at most this share, the least likely clean first; `q_value_` has the share of each.

        Examples
        --------
        >>> from redescend.sklearn import RedescendingRegressor
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> y = X @ [1.0, 2.0] + 0.1 * np.random.default_rng(1).normal(size=300)
        >>> y[[50, 150]] += 9.0
        >>> np.sort(RedescendingRegressor().fit(X, y).suspects(fdr=0.1))
        array([ 50, 150])
        """
        probability = np.nan_to_num(self.clean_probability_, nan=1.0)
        return select_suspects(probability, fdr, numbers=self._beliefs is not None and self._beliefs.numbers)

    def _final_log_odds(self) -> Array:
        self._fitted()
        if self._beliefs is None:
            raise AttributeError(
                "A model with a fixed transform has no probabilities of clean rows; see inlier_weight_."
            )
        return self._beliefs.clean_log_odds
