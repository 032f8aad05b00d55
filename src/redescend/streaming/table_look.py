"""The final look at a table whose order says nothing: its model, and the verdicts on its records, do not depend on it.

What a model has learned at the end of a stream depends on the order of records: where they are sorted or in groups, it
is that of the last ones. So the records are held in memory, and learned from anew as often as before, in an order that
looks random and that only their contents decide. That is the model of the table. What is believed of records begins
anew, too: it is learned from all of them at once, by the errors of this model. Each is then judged as `score` would
judge it, but by trees that were grown without it, which excuse it only a little if the linear model doubts it. Only a
sensor that is stuck is found in the order of the table, by the reading before.

A table whose order says something is judged by the model that followed it, in the reading before. What is believed
begins anew there, too, with what all records say about how the noise depends on the features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from redescend.belief import Verdict
from redescend.belief.suspects import HALF
from redescend.numeric import Array, mix_bits
from redescend.sources import Batch
from redescend.streaming.belief import judge_chunk
from redescend.streaming.encoding.encoder import EncodedChunk
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.target import decode_predictions, output_targets
from redescend.streaming.model import StreamModel
from redescend.streaming.predictor import Learned
from redescend.streaming.rounds import Judged, Rounds

FOLLOWED = 0.8
"""The order says something if a model that follows it has at most this share of the errors of one that does not."""

PREDICTED = 0.01
"""A target that the final model predicts up to this part of half an interval is not stuck."""

EXCUSED = 1.0
"""Log-odds by which trees may excuse a number that the linear model doubts: they also fit groups of similar errors."""

MOST_CELLS = 1 << 23
"""Encoded numbers of a table that is held in memory; of larger ones, the order matters less."""


class OrderedLook(NamedTuple):
    """What the reading before, in the order of the table, says: which rows are probably stuck and how they were judged,
    the typical error of a model that follows the order, and all rounds.
    """

    rows: Array
    verdict: Verdict
    error: float
    rounds: Rounds

    @classmethod
    def collect(cls, parts: Iterator[tuple[Rounds, Verdict]], schema: Schema) -> OrderedLook:
        """From the rounds of all parts, with their verdicts."""
        rows, odds, stuck, errors, played = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0)], [np.empty(0)], []
        for rounds, verdict in parts:
            played.append(rounds)
            which = verdict.stuck > HALF
            for found, values in ((rows, rounds.rows), (odds, verdict.clean_log_odds), (stuck, verdict.stuck)):
                found.append(values[which])
            errors.append(rounds.targets - rounds.predictions)
        error = measure_error(np.concatenate(errors), schema)
        verdict = Verdict(np.concatenate(odds), np.concatenate(stuck))
        return cls(np.concatenate(rows), verdict, error, Rounds.concatenate(played))

    def without_stuck(self) -> OrderedLook:
        """The same without stuck records."""
        return self._replace(rows=self.rows[:0], verdict=Verdict(np.empty(0), np.empty(0)))

    def apply(self, rows: Array, judged: Judged, errors: Array) -> Judged:
        """The belief in these records; that of stuck ones is from the reading in order, unless the final model predicts
        them. `errors` are its errors, in units of half an interval.
        """
        places = np.minimum(np.searchsorted(self.rows, rows), max(len(self.rows) - 1, 0))
        which = self.rows[places] == rows if len(self.rows) else np.zeros(len(rows), bool)
        which &= np.abs(errors) > PREDICTED
        odds, stuck = judged.clean_log_odds.copy(), judged.stuck.copy()
        odds[which] = np.minimum(odds[which], self.verdict.clean_log_odds[places[which]])
        stuck[which] = self.verdict.stuck[places[which]]
        return judged._replace(clean_log_odds=odds, stuck=stuck)


def order_by_content(X: Array, targets: Array) -> Array:
    """An order of records that looks random, and is the same in whatever order they are."""
    total = np.zeros(len(targets), np.uint64)
    for column in (targets, *X.T):
        total = mix_bits(total ^ (column + 0.0).view(np.uint64))
    return np.lexsort((targets, total))


def measure_error(differences: Array, schema: Schema) -> float:
    """The typical error: the median of numbers, the share of wrong labels."""
    if not len(differences):
        return 0.0
    return float(np.mean(differences != 0.0) if schema.classifies else np.median(np.abs(differences)))


def judge_table(
    model: StreamModel, batches: list[Batch], ordered: OrderedLook, follow: bool = False
) -> tuple[Iterator[tuple[Batch, Learned]], bool]:
    """Learn from a table anew, in an order that its contents decide, and judge all its records by the result.

    If `follow` or the order of the table says something, the rounds of the model that followed it are judged again
    instead. It does if that model errs less than the other, although the other has learned from all records. The second
    result says whether verdicts are final.
    """
    encoded = [(batch, chunk) for batch in batches for chunk in model.encode(batch.table)]
    if not encoded:
        return _follow(model, batches, ordered.rounds), False
    X, targets = (np.concatenate([chunk[place] for _, chunk in encoded]) for place in (0, 1))
    if follow:
        return _follow(model, batches, model.learn_belief_again(X, ordered.rounds)), False
    order, scores = order_by_content(X, targets), np.empty((model.schema.outputs, len(X)))
    shuffled, Y = X[order], np.ascontiguousarray(output_targets(model.schema, targets)[:, order])
    engine = model.train_engine(shuffled, Y)
    scores[:, order] = engine.predict_unseen(shuffled, Y)
    predictions, _ = decode_predictions(model.schema, scores)
    if ordered.error < FOLLOWED * measure_error(targets - predictions, model.schema):
        return _follow(model, batches, model.learn_belief_again(X, ordered.rounds)), False
    model.replace_engine(engine)
    limits = _limit_log_odds(model, EncodedChunk(X, targets, np.arange(len(X))), order)
    model.learn_belief(X, targets, scores, order)
    return _review(model, _spread(batches, encoded, np.vstack([scores, limits])), ordered), True


def _limit_log_odds(model: StreamModel, table: EncodedChunk, order: Array) -> Array:
    """The largest log-odds that every record can have; infinite in linear models and for labels."""
    linear = model.engine.predict_linear(table.X)
    if linear is None or model.schema.classifies:
        return np.full(len(table.X), np.inf)
    model.learn_belief(table.X, table.targets, linear, order)
    assert model.belief is not None
    return judge_chunk(model.belief, table, linear).clean_log_odds + EXCUSED


def _follow(model: StreamModel, batches: list[Batch], rounds: Rounds) -> Iterator[tuple[Batch, Learned]]:
    first = 0
    for batch in batches:
        reviewed = model.review(batch, target=True)
        last = first + len(reviewed.rounds)
        yield batch, reviewed._replace(rounds=rounds[first:last])
        first = last


def _spread(
    batches: list[Batch], encoded: list[tuple[Batch, EncodedChunk]], scores: Array
) -> list[tuple[Batch, Array]]:
    """The batches with the scores of their records, and further rows; those of records that cannot be used are NaN."""
    spread, first = {id(batch): np.full((len(scores), batch.table.num_rows), np.nan) for batch in batches}, 0
    for batch, chunk in encoded:
        spread[id(batch)][:, chunk.indices] = scores[:, first : first + len(chunk.X)]
        first += len(chunk.X)
    return [(batch, spread[id(batch)]) for batch in batches]


def _review(
    model: StreamModel, batches: list[tuple[Batch, Array]], ordered: OrderedLook
) -> Iterator[tuple[Batch, Learned]]:
    for batch, (*scores, limits) in batches:
        rounds, indices, rejected = model.review(batch, target=True, scores=np.stack(scores))
        judged = rounds.judged
        if judged is not None:  # a batch of which all records are rejected has no verdicts
            judged = judged._replace(clean_log_odds=np.minimum(judged.clean_log_odds, limits[indices]))
            errors = np.ones(len(rounds))
            if not model.schema.classifies:
                judged = judged._replace(margin=0.5 * (judged.high - judged.low))
                errors = (rounds.targets - rounds.predictions) / np.maximum(judged.margin, np.finfo(float).tiny)
            rounds = replace(rounds, judged=ordered.apply(rounds.rows, judged, errors))
        yield batch, Learned(rounds, indices, rejected)
