"""`StreamModel`: learn from the records of a stream, and predict and score records of any table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from redescend.belief import Verdict, to_probability
from redescend.engines import Engine
from redescend.engines.config import FEATURES, Features, ModelConfig
from redescend.engines.one_vs_rest import label_probabilities, sum_outputs
from redescend.errors import DataError
from redescend.numeric import Array
from redescend.parameters import Order, check_instance
from redescend.sources import Bad, Batch
from redescend.state import ArraySpec, corrupt_state, read_arrays, require
from redescend.streaming.belief import (
    Belief,
    give_verdict,
    judge_chunk,
    learn_chunk,
    make_belief,
    predict_chunk,
    restore_belief,
)
from redescend.streaming.encoding.encoder import EncodedBatch, EncodedChunk, to_record_batches
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.target import decode_predictions, output_targets
from redescend.streaming.importance import compute_effects
from redescend.streaming.report.formatting import format_count
from redescend.streaming.rounds import Judged, Rounds


class Learned(NamedTuple):
    """The outcome of a batch: the rounds, the indices of their records in the batch, and the rejected records."""

    rounds: Rounds
    indices: Array
    rejected: list[Bad]


class Played(NamedTuple):
    """A chunk of records, and what was said of them before anything was learned from them."""

    chunk: EncodedChunk
    scores: Array
    losses: Array
    weights: Array
    judged: Judged | None = None


class StreamPredictor(ABC):
    """What a model of a stream and a store of one model per key have in common."""

    def __init__(
        self,
        schema: Schema,
        order: Order = "auto",
        loss: Any = None,
        transform: Any = None,
        step: Any = None,
        features: Features = FEATURES,
    ) -> None:
        owner = type(self).__name__
        if isinstance(schema, Mapping):
            schema = Schema.from_dict(schema)
        self.schema: Schema = check_instance(owner, "schema", schema, Schema, "a Schema")
        self._params = {"order": order, "loss": loss, "transform": transform, "step": step, "features": features}
        self.config = ModelConfig.from_parameters(owner, self.schema.task, **self._params)
        self._reset()

    def __repr__(self) -> str:
        what = [f"{self.schema.task} of '{self.schema.target}' on {format_count(len(self.schema.features), 'column')}"]
        if self.schema.by is not None:
            what.append(f"{format_count(len(self.keys), 'key')} of '{self.schema.by}'")
        return f"{type(self).__name__}({', '.join(what)}, {self.records:,} records)"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the constructor, as plain values and components; `deep` is ignored."""
        return {"schema": self.schema.to_dict(), **self._params}

    @property
    @abstractmethod
    def records(self) -> int:
        """How many records were learned from."""

    @property
    def keys(self) -> list[str]:
        """The keys, if there is one model per key."""
        return []

    @property
    def belief(self) -> Belief | None:
        """What it has learned about which records are clean; None with a fixed transform."""
        return None

    def settle(self) -> None:  # noqa: B027
        """Fetch everything that was learned elsewhere to this process."""

    @abstractmethod
    def _reset(self) -> None:
        """Forget everything that was learned."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Restore a state, or raise any error and change nothing."""

    @abstractmethod
    def _encode(self, table: Any, target: bool) -> EncodedBatch:
        """Encode the records of a table."""

    @abstractmethod
    def _engines(self, chunk: EncodedChunk) -> Iterable[tuple[Engine, Any]]:
        """The engines that are responsible for the records of a chunk, each with the indices of its records."""

    def _scores(self, chunk: EncodedChunk) -> Array:
        """The predictions of every output."""
        scores = np.empty((self.schema.outputs, len(chunk.X)))
        for engine, which in self._engines(chunk):
            scores[:, which] = engine.predict(chunk.X[which])
        return scores

    def _weights(self, chunk: EncodedChunk, Y: Array) -> Array:
        """The minimum over outputs of the weights of records."""
        weights = np.empty(len(chunk.X))
        for engine, which in self._engines(chunk):
            weights[which] = engine.score(chunk.X[which], np.ascontiguousarray(Y[:, which])).min(axis=0)
        return weights

    def _losses(self, scores: Array, Y: Array) -> Array:
        """The losses summed over outputs, at most the largest float."""
        return sum_outputs(np.minimum(self.config.loss.of_prediction(scores, Y), np.finfo(float).max))

    def review(self, batch: Batch, *, target: bool = False, level: float | None = None) -> Learned:
        """Predict the records of a `batch`, and with `target` score them, without learning from them.

        Without `target`, the targets, losses and weights of the rounds are NaN, and there are intervals if a `level` is
        given.
        """
        encoded, played, belief = self._encode(batch.table, target), [], self.belief
        for chunk in encoded.chunks():
            scores, losses = self._scores(chunk), np.full(len(chunk.X), np.nan)
            weights, judged = losses, None
            if target:
                Y = output_targets(self.schema, chunk.targets)
                losses, weights = self._losses(scores, Y), self._weights(chunk, Y)
                judged = None if belief is None else judge_chunk(belief, chunk, scores)
            elif level is not None:
                judged = predict_chunk(belief, chunk, scores, level)
            played.append(Played(chunk, scores, losses, weights, judged))
        return self._collect(batch, encoded, played)

    def predict(self, table: Any) -> Array:
        """Predict a number or a label for each record of a table.

        Parameters
        ----------
        table : pyarrow Table or RecordBatch, pandas or Polars DataFrame, or Batch
            With the columns of the features; others are ignored.

        Returns
        -------
        array of shape (records,)

        Raises
        ------
        DataError
            A column is missing, or a record cannot be used; the message says which and why.
        """
        predictions, _ = decode_predictions(self.schema, self._all_scores(table))
        return self.schema.label_values[predictions.astype(np.intp)] if self.schema.classifies else predictions

    def predict_proba(self, table: Any) -> Array:
        """Predict the probability of each label, in the order of ``schema.labels``; `table` is as in `predict`.

        Returns
        -------
        array of shape (records, labels)
        """
        if not self.schema.classifies:
            raise DataError(f"The model predicts numbers for '{self.schema.target}', which have no probabilities.")
        return np.ascontiguousarray(label_probabilities(self._all_scores(table)).T)

    def clean_probability(self, table: Any) -> Array:
        """Compute the probability that each record of a `table` with the target is clean, without learning from it.

        Returns
        -------
        array of shape (records,)
            Never exactly 0 or 1. With a fixed transform, the weight instead, the minimum over labels.
        """
        belief, found = self.belief, [np.empty(0)]
        for chunk in self._all_chunks(table, target=True):
            if belief is not None:
                found.append(to_probability(judge_chunk(belief, chunk, self._scores(chunk)).clean_log_odds))
            else:
                found.append(self._weights(chunk, output_targets(self.schema, chunk.targets)))
        return np.concatenate(found)

    def predict_interval(self, table: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Predict the interval in which a share `level` of clean targets lies, for each record of a table.

        Returns
        -------
        low, high : arrays of shape (records,)
        """
        chunks = self._all_chunks(table, target=False)
        found = [predict_chunk(self.belief, chunk, self._scores(chunk), level) for chunk in chunks]
        low, high = (np.concatenate([np.empty(0), *(part[end] for part in found)]) for end in (1, 2))
        return low, high

    def give_verdict(self, rounds: Rounds) -> Verdict:
        """Judge `rounds` that it has learned from once more, by all that was learned by now: the final verdict."""
        if self.belief is None:
            raise DataError("A final verdict needs a model without a fixed transform.")
        return give_verdict(self.belief, rounds)

    def suspects(self, rounds: Rounds, fdr: float = 0.1) -> Array:
        """The rows of the largest list of `rounds` whose estimated share of false alarms is at most `fdr`.

        Returns
        -------
        array of int64
            Numbers of records in the stream, the least likely clean first.
        """
        return rounds.rows[self.give_verdict(rounds).suspects(fdr)]

    def _all_scores(self, table: Any) -> Array:
        scores = [self._scores(chunk) for chunk in self._all_chunks(table, target=False)]
        return np.concatenate([np.empty((self.schema.outputs, 0)), *scores], axis=1)

    def _all_chunks(self, table: Any, target: bool) -> Iterator[EncodedChunk]:
        """The chunks of a table in which every record must be usable."""
        before = 0
        for batch in to_record_batches(self.schema, table, target):
            encoded = self._encode(batch, target)
            if encoded.rejected:
                first = min(encoded.rejected)
                raise DataError(f"Row {before + first + 1}: {encoded.rejected[first]}.")
            yield from encoded.chunks()
            before += batch.num_rows

    def _make_rounds(self, played: Played, rows: Array) -> Rounds:
        chunk, scores, losses, weights, judged = played
        numbers = (chunk.targets, *decode_predictions(self.schema, scores), losses, weights)
        return Rounds(rows, *numbers, keys=chunk.keys if chunk.names else None, names=chunk.names, judged=judged)

    def _collect(self, batch: Batch, encoded: EncodedBatch, played: list[Played]) -> Learned:
        """Collect the rounds of a batch from its chunks, and its rejected records."""
        rounds, indices = [], [np.empty(0, np.intp)]
        for each in played:
            rounds.append(self._make_rounds(each, batch.rows[each.chunk.indices]))
            indices.append(each.chunk.indices)
        rejected = [
            Bad(int(batch.rows[index]), batch.files, reason, batch.raw(index))
            for index, reason in sorted(encoded.rejected.items())
        ]
        return Learned(Rounds.concatenate(rounds), np.concatenate(indices), rejected)

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the `state` of a model with the same parameters; it continues to the last bit."""
        try:
            self._restore(state)
        except DataError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise corrupt_state(type(self).__name__, f"invalid parts ({error})") from None


class StreamModel(StreamPredictor):
    """A model of the records of a stream that outliers cannot move.

    Parameters
    ----------
    schema : Schema
        What is predicted from what; or its `to_dict`.
    order : 'auto', 1 or 2
        The order of the self-tuning learner. 2: O(d²) per record, but fewer records to learn from. 'auto': 2 for at
        most 150 encoded features, otherwise 1.
    loss : str, LinearLoss or None
        None: 'squared' in regression, 'logistic' in classification.
    transform : Transform or None
        A fixed transform of the loss: faster, but chosen by hand. None: self-tuning.
    step : Step or None
        The step size that goes with a transform. None: one that needs no tuning.
    features : 'linear' or 'auto'
        'auto': trees beside the linear model, for the squared and the logistic loss and at most 500 encoded features.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from redescend.sources import open_source
    >>> x = np.arange(500.0) % 7
    >>> source = open_source(pa.table({"x": x, "y": np.where(np.arange(500) % 10, 2 * x + 1, 99.0)}))
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

    @property
    def records(self) -> int:
        """How many records it has learned from; in several passes, each counts."""
        return 0 if self._engine is None else self._engine.row_count

    @property
    def belief(self) -> Belief | None:
        return self._belief

    @property
    def engine(self) -> Engine:
        """What it has learned; a fresh engine before the first record."""
        if self._engine is not None:
            return self._engine
        engine = self.config.make_engine(self.schema.dim, self.schema.outputs, missing=True)
        engine.exclude_from_scaling(self.schema.indicators)
        return engine

    def learn(self, batch: Batch) -> Learned:
        """Learn from the records of a `batch`, one after the other.

        The outcome for a record depends on the records before it alone, not on the sizes of batches.
        """
        encoded = self._encode(batch.table, target=True)
        self._engine = self.engine
        return self._collect(batch, encoded, [self._learn_chunk(chunk) for chunk in encoded.chunks()])

    def learn_encoded(self, X: Array, targets: Array, rows: Array) -> Learned:
        """Learn from encoded records: rows of `X`, `targets`, and the numbers of the records in the stream, `rows`."""
        played = self._learn_chunk(EncodedChunk(X, targets, np.arange(len(X))))
        return Learned(self._make_rounds(played, rows), played.chunk.indices, [])

    def predict_encoded(self, X: Array, level: float | None = None) -> Rounds:
        """Predict records that are encoded already, as rows of `X`; with intervals if a `level` is given."""
        unknown = np.full(len(X), np.nan)
        chunk = EncodedChunk(X, unknown, np.arange(len(X)))
        scores = self._scores(chunk)
        judged = None if level is None else predict_chunk(self.belief, chunk, scores, level)
        return self._make_rounds(Played(chunk, scores, unknown, unknown, judged), chunk.indices + 1)

    def _learn_chunk(self, chunk: EncodedChunk) -> Played:
        self._engine = engine = self.engine
        scores, losses, weights = engine.learn_rounds(chunk.X, output_targets(self.schema, chunk.targets))
        if len(self._ones):
            self._ones += chunk.X[:, self.schema.indicators].sum(axis=0)
        judged = None if self._belief is None else learn_chunk(self._belief, chunk, scores)
        return Played(chunk, scores, sum_outputs(losses), weights.min(axis=0), judged)

    def begin_reading(self) -> dict[str, Any]:
        """Prepare to read the same records again: what was learned stays, what is believed of them begins anew.

        Returns what was learned, for `return_to`.
        """
        learned = self.state()
        self._belief = None if self._belief is None else make_belief(self.schema)
        return learned

    def return_to(self, learned: dict[str, Any]) -> None:
        """Return to what was `learned` before the records were read once more, but keep what is believed of them."""
        belief = self._belief
        self.restore(learned)
        self._belief = belief

    def _encode(self, table: Any, target: bool) -> EncodedBatch:
        return EncodedBatch(self.schema, table, target)

    def _engines(self, chunk: EncodedChunk) -> Iterable[tuple[Engine, Any]]:
        return [(self.engine, slice(None))]

    def explain(self) -> dict[str, float]:
        """Compute feature importance: the share of each column in the effects of all, the largest first.

        The effect of a column of numbers is its coefficient times its scale; that of a text, or of missing values, is
        the standard deviation of its contribution, as are all effects in a model with trees. With three or more labels,
        effects are summed.
        """
        effects = compute_effects(self.schema, self.engine, self._ones / max(1, self.records))
        total = sum(effects.values())
        ordered = sorted(effects.items(), key=lambda effect: -effect[1])
        return {name: effect / total if total > 0.0 else 0.0 for name, effect in ordered}

    def coefficients(self) -> tuple[Array, Array]:
        """Coefficients of ``schema.encoded``, a row for each output, and intercepts; only of a linear model."""
        return self.engine.coefficients()

    # --- persistence ---

    def adopt(self, engine: Engine | None, ones: Array) -> StreamModel:
        """Continue from an engine and its counts `ones` of how often each of ``schema.indicators`` was 1."""
        self._engine, self._ones, self._belief = engine, ones, None
        return self

    def state(self) -> dict[str, Any]:
        """What was learned, as arrays and plain values; copies."""
        learned = {"engine": None if self._engine is None else self._engine.state(), "ones": self._ones.copy()}
        return learned | {"belief": None if self._belief is None else self._belief.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        stored, engine = state["engine"], None
        if stored is not None:
            size = (stored["dim"], stored["outputs"])
            require(size == (self.schema.dim, self.schema.outputs), type(self).__name__, "the size of another schema")
            engine = self.config.restore_engine(stored, missing=True)
        spec = ArraySpec("ones", (len(self._ones),), kind="count", high=0 if engine is None else engine.row_count)
        ones = read_arrays([spec], {"ones": state["ones"]}, {}, type(self).__name__)["ones"]
        belief = restore_belief(self.schema, self.config, state.get("belief"), type(self).__name__)
        self.adopt(engine, ones)._belief = belief
