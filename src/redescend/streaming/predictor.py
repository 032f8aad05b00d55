"""`StreamPredictor`: what predicts and scores the records of a table, with one model or with one per key."""

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
from redescend.state import corrupt_state
from redescend.streaming.belief import Belief, give_verdict, judge_chunk, predict_chunk
from redescend.streaming.encoding.encoder import EncodedBatch, EncodedChunk, to_record_batches
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.target import decode_predictions, output_targets
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

    def _repr_html_(self) -> str:
        """Show the model as a table in notebooks."""
        from redescend.streaming.report.notebook import render_model

        return render_model(self)

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
