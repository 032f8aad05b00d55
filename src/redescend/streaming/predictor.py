"""`StreamPredictor`: predict and score the records of a table, with one model or with one per key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from redescend.belief import LabelBelief, Verdict, to_probability
from redescend.engines import Engine
from redescend.engines.config import FEATURES, Features, ModelConfig, ModelParameters
from redescend.engines.labels import count_losses
from redescend.errors import DataError, ParameterError
from redescend.numeric import Array
from redescend.parameters import check_instance
from redescend.sources import Bad, Batch
from redescend.state import corrupt_state
from redescend.streaming.belief import Belief, add_class, give_verdict, judge_chunk, predict_chunk, predict_labels
from redescend.streaming.encoding.encoder import EncodedBatch, EncodedChunk, to_record_batches
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.target import decode_predictions, encode_target, output_targets
from redescend.streaming.lags import LagHistory, LagOutcome, Undo, play_lagged
from redescend.streaming.report.formatting import format_count
from redescend.streaming.rounds import Judged, Rounds


class Learned(NamedTuple):
    """The outcome of a batch: the rounds, the indices of their records in the batch, and the rejected records."""

    rounds: Rounds
    indices: Array
    rejected: list[Bad]


class Played(NamedTuple):
    """A chunk of records, with outcomes from before the update.

    `shares` are calibrated probabilities of labels, a row for each label; None: those of the scores.
    """

    chunk: EncodedChunk
    scores: Array
    losses: Array
    weights: Array
    judged: Judged | None = None
    shares: Array | None = None

    @property
    def clean_probability(self) -> Array:
        """The probability that each record is clean; without a belief, its weight."""
        return self.weights if self.judged is None else to_probability(self.judged.clean_log_odds)


class StreamPredictor(ABC):
    """Base class of a model of a stream and of a store with one model per key."""

    _belief: Belief | None

    def __init__(self, schema: Schema, *, features: Features = FEATURES, **parameters: Any) -> None:
        owner = type(self).__name__
        if isinstance(schema, Mapping):
            schema = Schema.from_dict(schema)
        self.schema: Schema = check_instance(owner, "schema", schema, Schema, "a Schema")
        self._history = LagHistory(self.schema, 0 if self.schema.by else 1) if self.schema.lagged else None
        self._params = ModelParameters(**parameters).model_parameters() | {"features": features}
        self.config = ModelConfig.from_parameters(owner, self.schema.task, **self._params)
        obstacle = self.config.find_obstacle(self.schema.dim) if self.schema.by is None else "one model per key"
        if self.config.features == "auto" and obstacle is not None:
            raise ParameterError(f"Trees (--trees, linear=False, features='auto') cannot be combined with {obstacle}.")
        self._reset()

    def __repr__(self) -> str:
        what = [f"{self.schema.task} of '{self.schema.target}' on {format_count(len(self.schema.features), 'column')}"]
        if self.schema.by is not None:
            what.append(f"{format_count(len(self.keys), 'key')} of '{self.schema.by}'")
        return f"{type(self).__name__}({', '.join(what)}, {self.distinct_records:,} records)"

    def _repr_html_(self) -> str:
        """Show the model as a table in notebooks."""
        from redescend.streaming.report.describe import render_model

        return render_model(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the constructor, as plain values and components; `deep` is ignored."""
        return {"schema": self.schema.to_dict(), **self._params}

    @property
    @abstractmethod
    def records(self) -> int:
        """The number of records learned from."""

    @property
    def distinct_records(self) -> int:
        """The number of records learned from, counted once if there were several passes."""
        return self.records

    @property
    def keys(self) -> list[str]:
        """The keys, if there is one model per key."""
        return []

    @property
    def belief(self) -> Belief | None:
        """The belief about which records are clean; None with a fixed transform."""
        return self._belief

    def settle(self) -> None:  # noqa: B027
        """Fetch all models to this process."""

    @abstractmethod
    def _reset(self) -> None:
        """Forget everything that was learned."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Restore a state, or raise any error and change nothing."""

    @abstractmethod
    def _add_output(self) -> None:
        """Add an output for a label that was just added to the schema."""

    @abstractmethod
    def _encode(self, table: Any, target: bool) -> EncodedBatch:
        """Encode the records of a table."""

    @abstractmethod
    def _engines(self, chunk: EncodedChunk) -> Iterable[tuple[Engine, Any]]:
        """The engines for the records of a chunk, each with the indices of its records."""

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
        """The losses of records."""
        return count_losses(self.config.loss, scores, Y)

    def review(
        self, batch: Batch, *, target: bool = False, level: float | None = None, history: LagHistory | None = None
    ) -> Learned:
        """Predict the records of a `batch`, and with `target` score them, without learning from them.

        Without `target`, the targets, losses and weights of the rounds are NaN, and there are intervals if a `level` is
        given. Lagged features look back at `history`, to which the records are appended, by default a copy of the
        model's. The prediction stands in for an unknown target. With `target`, records of a table that trees have
        learned from are predicted by trees that were grown without them.
        """
        encoded = self._encode(batch.table, target)
        play = partial(self._review_chunk, target=target, level=level)
        return self._collect(batch, encoded, self._play(encoded, batch.table, play, target, history))

    def predict_without(self, chunk: EncodedChunk) -> Array:
        """The predictions of every output for the records of a `chunk` with targets, made without those records.

        Trees that have seen a record predict its noise.
        """
        return self._scores(chunk)

    def judge(self, chunk: EncodedChunk, scores: Array) -> Judged:
        """Judge the records of a chunk by their `scores`, without learning from them; needs a belief."""
        assert self.belief is not None
        return judge_chunk(self.belief, chunk, scores)

    def _review_chunk(self, chunk: EncodedChunk, *, target: bool, level: float | None = None) -> Played:
        scores = self.predict_without(chunk) if target else self._scores(chunk)
        losses = np.full(len(chunk.X), np.nan)
        weights, judged = losses, None
        if target:
            Y = output_targets(self.schema, chunk.targets)
            losses, weights = self._losses(scores, Y), self._weights(chunk, Y)
            judged = None if self.belief is None else self.judge(chunk, scores)
        elif level is not None:
            judged = predict_chunk(self.belief, chunk, scores, level)
        shares = predict_labels(self.belief, scores) if self.schema.classifies else None
        return Played(chunk, scores, losses, weights, judged, shares)

    # --- lagged features ---

    @property
    def history(self) -> LagHistory | None:
        """The values that lagged features of the next record look back at; None without lags."""
        return self._history

    def start_history(self, fresh: bool = False) -> LagHistory | None:
        """Return a copy of the history; an empty one if `fresh`."""
        history = None if self._history is None else self._history.copy()
        if history is not None and fresh:
            history.clear()
        return history

    def encode(self, table: Any, history: LagHistory | None = None) -> list[EncodedChunk]:
        """Encode the records of a table with targets; lagged features look back at `history`, as in `review`."""
        encoded, play = self._encode(table, True), partial(self._review_chunk, target=True)
        return [played.chunk for played in self._play(encoded, table, play, True, history)]

    def _play(
        self,
        encoded: EncodedBatch,
        table: Any,
        play: Callable[[EncodedChunk], Played],
        target: bool,
        history: LagHistory | None,
    ) -> list[Played]:
        """Play the records of a table without learning from them."""
        history = self.start_history() if history is None else history
        if history is None:
            return [play(chunk) for chunk in encoded.chunks()]
        if target:
            undo, attempt = Undo(lambda: None, lambda before: None), partial(self._play_known, play)
            return [one for chunk in encoded.chunks() for one in play_lagged(chunk, history, attempt, undo)]
        known = np.full(table.num_rows, np.nan)
        if self.schema.target in table.schema.names:
            known, unusable = encode_target(self.schema, table.column(self.schema.target))
            known = np.where(np.isin(np.arange(len(known)), list(unusable)), np.nan, known)
        attempt = partial(self._play_unknown, play)
        chunks = (chunk._replace(targets=known[chunk.indices]) for chunk in encoded.chunks())
        return [one for chunk in chunks for one in play_lagged(chunk, history, attempt)]

    def _play_known(self, play: Callable[[EncodedChunk], Played], chunk: EncodedChunk) -> LagOutcome:
        """Play records, and return what lagged features need."""
        played = play(chunk)
        predictions = np.nan_to_num(decode_predictions(self.schema, played.scores)[0])
        return LagOutcome(played, predictions, played.clean_probability)

    def _play_unknown(self, play: Callable[[EncodedChunk], Played], chunk: EncodedChunk) -> LagOutcome:
        """Play records of which some targets are known, for the history alone."""
        unknown = np.full(len(chunk.X), np.nan)
        played = play(chunk._replace(targets=unknown))
        predictions = np.nan_to_num(decode_predictions(self.schema, played.scores)[0])
        guessed = chunk._replace(targets=np.where(np.isnan(chunk.targets), predictions, chunk.targets))
        clean = self._review_chunk(guessed, target=True).clean_probability
        return LagOutcome(played, predictions, np.where(np.isnan(chunk.targets), 1.0, clean))

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
        """Predict the probability of each label to be the true one, in the order of ``schema.labels``.

        It is calibrated, except with a fixed transform: labels that are flipped do not pull it to ½. `table` is as in
        `predict`.

        Returns
        -------
        array of shape (records, labels)
        """
        if not self.schema.classifies:
            raise DataError(f"The model predicts numbers for '{self.schema.target}', which have no probabilities.")
        shares = predict_labels(self.belief, self._all_scores(table))[: len(self.schema.labels)]
        return np.ascontiguousarray(shares.T)

    def clean_probability(self, table: Any) -> Array:
        """Compute the probability that each record of a `table` with the target is clean, without learning from it.

        Returns
        -------
        array of shape (records,)
            Never exactly 0 or 1. With a fixed transform, the weight instead, the minimum over labels.
        """
        found = [np.empty(0)]
        for chunk in self._all_chunks(table, target=True):
            if self.belief is not None:
                found.append(to_probability(self.judge(chunk, self.predict_without(chunk)).clean_log_odds))
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
        """Compute the final verdict on `rounds` that were learned from, by everything learned so far."""
        if self.belief is None:
            raise DataError("A final verdict needs a model without a fixed transform.")
        return give_verdict(self.belief, rounds)

    def suspects(self, rounds: Rounds, fdr: float = 0.1) -> Array:
        """List the suspects: the largest list of `rounds` whose estimated share of false alarms is at most `fdr`.

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
        """The chunks of a table; raises if a record cannot be used."""
        before, history, play = 0, self.start_history(), partial(self._review_chunk, target=target)
        for batch in to_record_batches(self.schema, table, target):
            encoded = self._encode(batch, target)
            if encoded.rejected:
                first = min(encoded.rejected)
                raise DataError(f"Row {before + first + 1}: {encoded.rejected[first]}.")
            if history is None:
                yield from encoded.chunks()
            else:
                yield from (played.chunk for played in self._play(encoded, batch, play, target, history))
            before += batch.num_rows

    def _learn_batch(
        self, batch: Batch, encoded: EncodedBatch, learn: Callable[[EncodedChunk], Iterable[Played]]
    ) -> Learned:
        """Learn from the chunks of a batch; a label that first appears in a chunk is added before it."""
        new, played = {index: label for label, index in encoded.new_labels}, list[Played]()
        for chunk in encoded.chunks():
            if (index := int(chunk.indices[0])) in new:
                self.schema = self.schema.add_label(new[index], int(batch.rows[index]))
                if self.schema.outputs > 1:  # the second label is the other sign of the only output
                    self._belief = add_class(self._belief) if isinstance(self._belief, LabelBelief) else None
                    self._add_output()
            played += learn(chunk)
        return self._collect(batch, encoded, played)

    def _make_rounds(self, played: Played, rows: Array) -> Rounds:
        chunk, scores, losses, weights, judged, shares = played
        numbers = (chunk.targets, *decode_predictions(self.schema, scores, shares), losses, weights)
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
