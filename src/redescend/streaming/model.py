"""`StreamModel`: learn from the records of a stream, and predict and score records of any table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from redescend.engines import Engine, read_shape
from redescend.engines.config import ModelConfig
from redescend.engines.one_vs_rest import label_probabilities, sum_outputs
from redescend.errors import DataError
from redescend.numeric import Array
from redescend.parameters import check_instance
from redescend.sources import Bad, Batch
from redescend.state import ArraySpec, corrupt_state, read_arrays, require
from redescend.streaming.encoding.encoder import Chunk, EncodedBatch, to_record_batches
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.target import decode_predictions, output_targets
from redescend.streaming.importance import compute_effects
from redescend.streaming.rounds import Rounds


class Learned(NamedTuple):
    """The outcome of a batch: the rounds, the indices of their records in the batch, and the rejected records."""

    rounds: Rounds
    indices: Array
    rejected: list[Bad]


class StreamPredictor(ABC):
    """What a model of a stream and a store of one model per key have in common."""

    def __init__(self, schema: Any, params: dict[str, Any]) -> None:
        owner = type(self).__name__
        if isinstance(schema, Mapping):
            schema = Schema.from_dict(schema)
        self.schema: Schema = check_instance(owner, "schema", schema, Schema, "a Schema")
        self.config = ModelConfig.from_parameters(owner, self.schema.task, **params)
        self._params = params

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the constructor, as plain values and components.

        Parameters
        ----------
        deep : bool
            Ignored; there are no nested models.

        Returns
        -------
        dict
        """
        return {"schema": self.schema.to_dict(), **self._params}

    @abstractmethod
    def _encode(self, table: Any, target: bool) -> EncodedBatch:
        """Encode the records of a table."""

    @abstractmethod
    def _scores(self, chunk: Chunk) -> Array:
        """The predictions of every output."""

    @abstractmethod
    def _weights(self, chunk: Chunk, Y: Array) -> Array:
        """The minimum over outputs of the weights of records."""

    def _losses(self, scores: Array, Y: Array) -> Array:
        """The losses summed over outputs, at most the largest float."""
        return sum_outputs(np.minimum(self.config.loss.of_prediction(scores, Y), np.finfo(float).max))

    def review(self, batch: Batch, *, target: bool = False) -> Learned:
        """Predict the records of a batch as they are now, without learning from them.

        Parameters
        ----------
        batch : Batch
        target : bool
            Whether to score the records, too, for which the batch must have the target. Otherwise targets, losses and
            weights are NaN.

        Returns
        -------
        Learned
        """
        encoded, rounds = self._encode(batch.table, target), []
        for chunk in encoded.chunks():
            scores, losses = self._scores(chunk), np.full(len(chunk.X), np.nan)
            weights = losses
            if target:
                Y = output_targets(self.schema, chunk.targets)
                losses, weights = self._losses(scores, Y), self._weights(chunk, Y)
            rounds.append((chunk, self._make_rounds(batch, chunk, scores, losses, weights)))
        return collect(batch, encoded, rounds)

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
        """Predict the probability of each label.

        Parameters
        ----------
        table : as in `predict`

        Returns
        -------
        array of shape (records, labels)
            With the labels in the order of ``schema.labels``.
        """
        if not self.schema.classifies:
            raise DataError(f"The model predicts numbers for '{self.schema.target}', which have no probabilities.")
        return np.ascontiguousarray(label_probabilities(self._all_scores(table)).T)

    def judge(self, table: Any) -> Array:
        """Compute the probability that each record of a table is clean, without learning from it.

        Parameters
        ----------
        table : as in `predict`
            With the target, too.

        Returns
        -------
        array of shape (records,)
            With three or more labels, the minimum over labels; with a transform, its weight.
        """
        chunks = self._all_chunks(table, target=True)
        weights = [self._weights(chunk, output_targets(self.schema, chunk.targets)) for chunk in chunks]
        return np.concatenate([np.empty(0), *weights])

    def _all_scores(self, table: Any) -> Array:
        scores = [self._scores(chunk) for chunk in self._all_chunks(table, target=False)]
        return np.concatenate([np.empty((self.schema.outputs, 0)), *scores], axis=1)

    def _all_chunks(self, table: Any, target: bool) -> Iterator[Chunk]:
        """The chunks of a table in which every record must be usable."""
        before = 0
        for batch in to_record_batches(self.schema, table, target):
            encoded = self._encode(batch, target)
            if encoded.rejected:
                first = min(encoded.rejected)
                raise DataError(f"Row {before + first + 1}: {encoded.rejected[first]}.")
            yield from encoded.chunks()
            before += batch.num_rows

    def _make_rounds(self, batch: Batch, chunk: Chunk, scores: Array, losses: Array, weights: Array) -> Rounds:
        numbers = (chunk.targets, *decode_predictions(self.schema, scores), losses, weights)
        keys = chunk.keys if chunk.names else None
        return Rounds(batch.rows[chunk.indices], *numbers, keys=keys, names=chunk.names)


def collect(batch: Batch, encoded: EncodedBatch, rounds: list[tuple[Chunk, Rounds]]) -> Learned:
    """Collect the rounds of the chunks of a batch, and its rejected records."""
    indices = np.concatenate([np.empty(0, np.intp), *(chunk.indices for chunk, _ in rounds)])
    rejected = [
        Bad(int(batch.rows[index]), batch.files, reason, batch.raw(index))
        for index, reason in sorted(encoded.rejected.items())
    ]
    return Learned(Rounds.concatenate(part for _, part in rounds), indices, rejected)


class StreamModel(StreamPredictor):
    """A model of the records of a stream that outliers cannot move.

    Parameters
    ----------
    schema : Schema
        What is predicted from what; or its `to_dict`.
    order : 1 or 2
        2 adds a second-order follower to the self-tuning learner: O(d²) per record, but fewer records to learn from.
    loss : str, LinearLoss or None
        None: 'squared' in regression, 'logistic' in classification.
    transform : Transform or None
        A fixed transform of the loss: faster, but chosen by hand. None: self-tuning.
    step : Step or None
        The step size that goes with a transform. None: one that needs no tuning.

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

    def __init__(
        self, schema: Schema, order: int = 1, loss: Any = None, transform: Any = None, step: Any = None
    ) -> None:
        super().__init__(schema, {"order": order, "loss": loss, "transform": transform, "step": step})
        self._engine: Engine | None = None
        self._ones = np.zeros(len(self.schema.indicators))

    def __repr__(self) -> str:
        return f"StreamModel({describe_task(self.schema)}, {self.records:,} records)"

    @property
    def records(self) -> int:
        """How many records it has learned from."""
        return 0 if self._engine is None else self._engine.row_count

    @property
    def engine(self) -> Engine:
        """What it has learned; a fresh engine before the first record."""
        if self._engine is not None:
            return self._engine
        engine = self.config.make_engine(self.schema.dim, self.schema.outputs, missing=True)
        engine.exclude_from_scaling(self.schema.indicators)
        return engine

    def learn(self, batch: Batch) -> Learned:
        """Learn from the records of a batch, one after the other.

        The outcome for a record depends on the records before it alone, not on the sizes of batches.

        Parameters
        ----------
        batch : Batch

        Returns
        -------
        Learned
        """
        encoded, rounds = self._encode(batch.table, target=True), []
        self._engine = engine = self.engine
        for chunk in encoded.chunks():
            scores, losses, weights = engine.learn_rounds(chunk.X, output_targets(self.schema, chunk.targets))
            self._ones += chunk.X[:, self.schema.indicators].sum(axis=0)
            played = self._make_rounds(batch, chunk, scores, sum_outputs(losses), weights.min(axis=0))
            rounds.append((chunk, played))
        return collect(batch, encoded, rounds)

    def _encode(self, table: Any, target: bool) -> EncodedBatch:
        return EncodedBatch(self.schema, table, target)

    def _scores(self, chunk: Chunk) -> Array:
        return self.engine.predict(chunk.X)

    def _weights(self, chunk: Chunk, Y: Array) -> Array:
        return self.engine.score(chunk.X, Y).min(axis=0)

    def explain(self) -> dict[str, float]:
        """Compute feature importance: how much each column changes the prediction.

        Returns
        -------
        dict of str to float
            Shares of 1, the largest first. The effect of a column of numbers is its coefficient times its scale; that
            of a text, or of missing values, is the standard deviation of its contribution. With three or more labels,
            effects are summed.
        """
        effects = compute_effects(self.schema, self.engine, self._ones / max(1, self.records))
        total = sum(effects.values())
        ordered = sorted(effects.items(), key=lambda effect: -effect[1])
        return {name: effect / total if total > 0.0 else 0.0 for name, effect in ordered}

    def coefficients(self) -> tuple[Array, Array]:
        """Coefficients of ``schema.encoded``, a row for each output, and intercepts."""
        return self.engine.coefficients()

    # --- persistence ---

    def adopt(self, engine: Engine | None, ones: Array) -> StreamModel:
        """Continue from an engine and its counts `ones` of how often each of ``schema.indicators`` was 1."""
        self._engine, self._ones = engine, ones
        return self

    def state(self) -> dict[str, Any]:
        """What was learned, as arrays and plain values; copies."""
        return {"engine": None if self._engine is None else self._engine.state(), "ones": self._ones.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of a model with the same parameters; it continues to the last bit."""
        owner = type(self).__name__
        try:
            stored, ones = state["engine"], state["ones"]
            engine = None if stored is None else self._restore_engine(stored)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise error if isinstance(error, DataError) else corrupt_state(owner, f"invalid parts ({error})") from None
        records = 0 if engine is None else engine.row_count
        spec = ArraySpec("ones", (len(self._ones),), kind="count", high=records)
        self.adopt(engine, read_arrays([spec], {"ones": ones}, {}, owner)["ones"])

    def _restore_engine(self, state: dict[str, Any]) -> Engine:
        size = read_shape(state, True, self.config.order == 2)
        require(size == (self.schema.dim, self.schema.outputs), type(self).__name__, "the size of another schema")
        engine = self.config.make_engine(*size, missing=True)
        engine.restore(state)
        return engine


def describe_task(schema: Schema) -> str:
    """The task of a model in a few words."""
    columns = len(schema.features)
    return f"{schema.task} of '{schema.target}' on {columns} column{'s' * (columns != 1)}"
