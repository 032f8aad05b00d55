"""`StreamModel`: learn from the records of a stream, and predict and score records of any table."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from redescend.belief import ResidualBelief, to_probability
from redescend.belief.suspects import HALF, select_suspects
from redescend.engines import Engine, NonlinearEngine
from redescend.engines.growing import add_label
from redescend.engines.members import TableBelief
from redescend.exclusive import exclusive
from redescend.numeric import Array
from redescend.sources import Batch
from redescend.state import ArraySpec, corrupt_state, read_arrays, require
from redescend.streaming.belief import Belief, learn_chunk, make_belief, predict_chunk, predict_labels, restore_belief
from redescend.streaming.encoding.encoder import EncodedBatch, EncodedChunk
from redescend.streaming.encoding.target import decode_predictions, output_targets
from redescend.streaming.importance import compute_effects
from redescend.streaming.lags import LagHistory, Undo, play_lagged
from redescend.streaming.predictor import Learned, Played, StreamPredictor
from redescend.streaming.rounds import Judged, Rounds

NO_ENDS = np.empty(0)


class Predicted(NamedTuple):
    """Predictions, as numbers or indices of labels, the probabilities of labels, and the ends of intervals."""

    predictions: Array
    probabilities: Array
    low: Array = NO_ENDS
    high: Array = NO_ENDS


class StreamModel(StreamPredictor):
    """A model of the records of a stream that outliers cannot move.

    Parameters
    ----------
    schema : Schema
        The target and the features; or its `to_dict`.
    features : 'linear' or 'auto'
        'auto': trees beside the linear model, for the squared and the logistic loss and at most 500 encoded features.
    **parameters
        `order`, `loss`, `transform` and `step`, as in `redescend.fit_stream`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from redescend.sources import open_source
    >>> from redescend.streaming.encoding.schema import Schema
    >>> x, noise = np.arange(500.0) % 7, 0.1 * np.random.default_rng(0).normal(size=500)
    >>> source = open_source(pa.table({"x": x, "y": np.where(np.arange(500) % 10, 2 * x + 1 + noise, 99.0)}))
    >>> model = StreamModel(Schema.infer(source.sample, source.kinds, "y"))
    >>> for batch in source.batches(model.schema.columns):
    ...     rounds, indices, rejected = model.learn(batch)
    >>> model.predict(pa.table({"x": [3.0]})).round(1)
    array([7.])
    >>> bool(rounds.weights[490] < 0.01)
    True
    """

    def _reset(self) -> None:
        self._engine: Engine | None = None
        self._belief = make_belief(self.schema) if self.config.transform is None and self.schema.by is None else None
        self._ones = np.zeros(len(self.schema.indicators))
        self._table: TableBelief | None = None
        self._repeated = 0

    @property
    def records(self) -> int:
        """The number of records learned from, counted in every pass."""
        return 0 if self._engine is None else self._engine.row_count

    @property
    def distinct_records(self) -> int:
        """The number of records learned from, counted once."""
        return self.records - self._repeated

    def count_repeated(self, distinct: int) -> None:
        """Note that only `distinct` records are different; the others were learned from again in later passes."""
        self._repeated = self.records - distinct

    @property
    def engine(self) -> Engine:
        """The engine; a new one before the first record."""
        if self._engine is not None:
            return self._engine
        engine = self.config.make_engine(self.schema.dim, self.schema.outputs, missing=True)
        engine.exclude_from_scaling(self.schema.indicators)
        return engine

    @exclusive
    def learn(self, batch: Batch) -> Learned:
        """Learn from the records of a `batch`, one after the other.

        The outcome of a record depends on earlier records alone, not on the sizes of batches.
        """
        encoded = EncodedBatch(self.schema, batch.table, True, add=True)
        self._engine, history = self.engine, self._history
        if history is None:
            return self._learn_batch(batch, encoded, lambda chunk: [self._learn_chunk(chunk)])
        undo, attempt = Undo(self.state, self.restore), partial(self._play_known, self._learn_chunk)
        return self._learn_batch(batch, encoded, lambda chunk: play_lagged(chunk, history, attempt, undo))

    @exclusive
    def learn_encoded(self, X: Array, targets: Array, rows: Array) -> Learned:
        """Learn from encoded records `X` with `targets` and their numbers in the stream, `rows`."""
        played = self._learn_chunk(EncodedChunk(X, targets, np.arange(len(X))))
        return Learned(self._make_rounds(played, rows), played.chunk.indices, [])

    def review_encoded(self, X: Array, targets: Array, rows: Array) -> Rounds:
        """Judge the encoded records `X` with these `targets` and `rows` as `review` does, not learning from them."""
        chunk = EncodedChunk(X, targets, np.arange(len(X)))
        rounds = self._make_rounds(self._review_chunk(chunk, target=True), rows)
        if rounds.judged is None or self.schema.classifies:
            return rounds
        return replace(rounds, judged=rounds.judged._replace(margin=0.5 * (rounds.high - rounds.low)))

    def predict_encoded(self, X: Array, level: float | None = None) -> Predicted:
        """Predict encoded records `X`, with intervals if a `level` is given."""
        scores = self.engine.predict(X)
        shares = predict_labels(self.belief, scores) if self.schema.classifies else None
        predictions, probabilities = decode_predictions(self.schema, scores, shares)
        if level is None:
            return Predicted(predictions, probabilities)
        judged = predict_chunk(self.belief, EncodedChunk(X, predictions, np.arange(len(X))), scores, level)
        return Predicted(predictions, probabilities, judged.low, judged.high)

    def _add_output(self) -> None:
        self._engine = add_label(self.engine)

    def _learn_chunk(self, chunk: EncodedChunk) -> Played:
        self._engine = engine = self.engine
        self._table = None  # it is no longer that of a whole table
        Y = output_targets(self.schema, chunk.targets)
        scores, weights = engine.learn_rounds(chunk.X, Y)
        if len(self._ones):
            self._ones += chunk.X[:, self.schema.indicators].sum(axis=0)
        judged = None if self._belief is None else learn_chunk(self._belief, chunk, scores)
        return Played(chunk, scores, self._losses(scores, Y), weights.min(axis=0), judged)

    def learn_anew(self, X: Array, targets: Array, rows: Array, passes: int) -> tuple[StreamModel, Rounds]:
        """Train a new model with the same parameters on the records of a table, in their order.

        Parameters
        ----------
        X, targets, rows
            As in `learn_encoded`.
        passes : int
            The number of passes over them.

        Returns
        -------
        StreamModel
            The new model.
        Rounds
            The rounds of its last pass.
        """
        fresh = type(self)(self.schema, **self._params)
        rounds = fresh.learn_encoded(X, targets, rows).rounds
        for _ in range(1, passes):
            fresh.begin_reading()
            rounds = fresh.learn_encoded(X, targets, rows).rounds
        return fresh, rounds

    def take_over(self, other: StreamModel, engine: bool = True) -> None:
        """Continue with the belief of a model `other` with the same parameters, and with its `engine`."""
        self._belief = other._belief
        if engine:
            self._engine, self._ones, self._table = other._engine, other._ones, other._table

    @exclusive
    def learn_belief(self, X: Array, targets: Array, scores: Array, order: Array) -> None:
        """Learn a new belief from the errors of scores for all records of a table.

        Parameters
        ----------
        X : array of floats, shape (records, features)
            The records, encoded.
        targets : array of floats, shape (records,)
            Their encoded targets.
        scores : array of floats, shape (outputs, records)
            What was predicted for them without them.
        order : array of ints, shape (records,)
            The order in which they are learned from.
        """
        self._belief = belief = make_belief(self.schema)
        X, targets, scores = X[order], targets[order], np.nan_to_num(scores[:, order])
        if isinstance(self.engine, NonlinearEngine):
            self._table = TableBelief(self.engine)
            self._table.learn(self.engine, X, targets, scores)
            scores = self._table.recall(X, targets, scores)
        if isinstance(belief, ResidualBelief):
            belief.learn_table(scores[0], targets, X=X[:, : belief.dim])
            verdict = self.judge(EncodedChunk(X, targets, np.arange(len(X))), scores)
            suspects = select_suspects(to_probability(verdict.clean_log_odds), numbers=True)
            belief.fit_intervals(scores[0], targets, X[:, : belief.dim], suspects)
        else:
            belief.learn_table(np.ascontiguousarray(scores.T), targets.astype(np.int64))

    def trim(self) -> None:
        """Forget what was predicted for most records of a large table without them."""
        if self._table is not None:
            self._table.trim()

    @exclusive
    def learn_belief_again(self, X: Array, rounds: Rounds) -> Rounds:
        """Let the belief of the last reading learn from its rounds again, with effects of features fitted to all.

        Parameters
        ----------
        X : array of floats, shape (rounds, features)
            The records, encoded.
        rounds : Rounds
            The rounds of the reading.

        Returns
        -------
        Rounds
            The same rounds with the new judgements.
        """
        belief = self._belief
        if not isinstance(belief, ResidualBelief):
            return rounds
        predictions = np.nan_to_num(rounds.predictions)
        return replace(rounds, judged=Judged(*belief.learn_again(predictions, rounds.targets, X[:, : belief.dim])))

    def begin_reading(self) -> dict[str, Any]:
        """Prepare for another pass over the same records: start a new belief and new trees, keep what else was learned.

        Returns the state before, for `return_to`.
        """
        learned = self.state()
        if self._engine is not None:
            self._engine.begin_pass()
        self._belief = None if self._belief is None else make_belief(self.schema)
        if self._history is not None:
            self._history.clear()
        return learned

    def return_to(self, learned: dict[str, Any]) -> None:
        """Return to the state `learned` before the last pass, but keep the belief of that pass."""
        belief = self._belief
        self.restore(learned)
        self._belief = belief

    def _encode(self, table: Any, target: bool) -> EncodedBatch:
        return EncodedBatch(self.schema, table, target)

    def predict_without(self, chunk: EncodedChunk) -> Array:
        scores = super().predict_without(chunk)
        return scores if self._table is None else self._table.recall(chunk.X, chunk.targets, scores)

    def judge(self, chunk: EncodedChunk, scores: Array) -> Judged:
        judged, engine = super().judge(chunk, scores), self.engine
        if self._table is None or not isinstance(engine, NonlinearEngine):
            return judged
        log_odds = self._table.judge(engine, judged.clean_log_odds, chunk.X, chunk.targets, scores[0])
        return judged._replace(clean_log_odds=log_odds, suspect=to_probability(log_odds) <= HALF)

    def _engines(self, chunk: EncodedChunk) -> Iterable[tuple[Engine, Any]]:
        return [(self.engine, slice(None))]

    def explain(self) -> dict[str, float]:
        """Compute feature importance: the share of each column in the effects of all, the largest first.

        The effect of a column of numbers is its coefficient times its scale; that of a text or of missing values is the
        standard deviation of its contribution, as in a model with trees for all columns. With three or more labels,
        effects are summed.
        """
        effects = compute_effects(self.schema, self.engine, self._ones / max(1, self.records))
        total = sum(effects.values())
        ordered = sorted(effects.items(), key=lambda effect: -effect[1])
        return {name: effect / total if total > 0.0 else 0.0 for name, effect in ordered}

    def coefficients(self) -> tuple[Array, Array]:
        """Coefficients of ``schema.encoded``, a row for each output, and intercepts; only for linear models."""
        return self.engine.coefficients()

    # --- persistence ---

    def adopt(
        self, engine: Engine | None, ones: Array, belief: Belief | None = None, history: LagHistory | None = None
    ) -> StreamModel:
        """Continue from an engine, its counts `ones` of how often each of ``schema.indicators`` was 1, a belief, and
        the `history` that lagged features look back at.
        """
        self._engine, self._ones, self._belief, self._history = engine, ones, belief, history
        self._table = None
        return self

    def __deepcopy__(self, memo: Any) -> StreamModel:
        # A schema and the parameters never change; one with more labels is another schema.
        parts = deepcopy(self._engine, memo), self._ones.copy(), deepcopy(self._belief, memo), self.start_history()
        other = copy(self).adopt(*parts)
        other._table = deepcopy(self._table, memo)
        return other

    def state(self) -> dict[str, Any]:
        """Return a copy of everything that was learned, as arrays and plain values."""
        learned: dict[str, Any] = {"engine": None if self._engine is None else self._engine.state()}
        learned |= {"ones": self._ones.copy(), "belief": None if self._belief is None else self._belief.state()}
        # Left out if there is none, so that older versions can read the file.
        learned |= {"repeated": self._repeated} if self._repeated else {}
        learned |= {} if self._table is None else {"table": self._table.state()}
        return learned if self._history is None else learned | {"history": self._history.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        stored, engine = state["engine"], None
        if stored is not None:
            size = (stored["dim"], stored["outputs"])
            require(size == (self.schema.dim, self.schema.outputs), type(self).__name__, "the size of another schema")
            engine = self.config.restore_engine(stored, missing=True)
        spec = ArraySpec("ones", (len(self._ones),), kind="count", high=0 if engine is None else engine.row_count)
        ones = read_arrays([spec], {"ones": state["ones"]}, {}, type(self).__name__)["ones"]
        belief = restore_belief(self.schema, self.config, state.get("belief"), type(self).__name__)
        if self._history is not None:
            self._history.restore(self._history.read(state["history"], 1, type(self).__name__))
        repeated, records = state.get("repeated", 0), 0 if engine is None else engine.row_count
        valid = type(repeated) is int and 0 <= repeated <= records
        require(valid, type(self).__name__, f"{repeated!r} of {records:,} records repeated")
        table = None
        if state.get("table") is not None:
            if belief is None or not isinstance(engine, NonlinearEngine):
                raise corrupt_state(type(self).__name__, "what trees have learned from a table, but no trees")
            table = TableBelief(engine)
            table.restore(state["table"])
        self.adopt(engine, ones, belief, self._history)._repeated = repeated
        self._table = table
