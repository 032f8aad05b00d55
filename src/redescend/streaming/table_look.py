"""The final look at a table that fits in memory: its model, and the verdicts on its records, do not depend on its order.

What a model has learned at the end of a stream depends on the order of records: where they are sorted or in groups, it
is that of the last ones. So the records of a table are held in memory, and learned from anew in an order that only
their contents decide:

- in an order that looks random. The belief is learned from all records at once, by the errors of the final model, and
  each record is judged as `score` would judge it, but by trees that were grown without it;
- or by time, if there is a column of dates, or numbers named year, month and so on, and if a model that follows the time
  makes smaller errors. Each record is then judged by the model around its time.

Without such a column, the order of the table itself is followed if that makes errors smaller, and if it is not the order
of a column. A sensor that is stuck is found in the order of the table, by the reading before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from redescend.belief import Verdict
from redescend.belief.suspects import HALF
from redescend.numeric import Array
from redescend.sources import Batch
from redescend.streaming.encoding.encoder import EncodedChunk
from redescend.streaming.encoding.target import decode_predictions, output_targets
from redescend.streaming.model import StreamModel
from redescend.streaming.predictor import Learned
from redescend.streaming.record_order import explains, find_time, has_time_order, order_by, order_by_content, pays, sort_orders
from redescend.streaming.rounds import Judged, Rounds

PREDICTED = 0.01
"""A target that the final model predicts up to this part of half an interval is not stuck."""

MOST_CELLS = 1 << 23
"""Encoded numbers of a table that is held in memory; of larger ones, the order matters less."""


class OrderedLook(NamedTuple):
    """What the reading before, in the order of the table, gives: all rounds, the rows that are probably stuck, and how
    these were judged.
    """

    rounds: Rounds
    rows: Array
    verdict: Verdict

    @classmethod
    def collect(cls, parts: Iterator[tuple[Rounds, Verdict]]) -> OrderedLook:
        """From the rounds of all parts, with their verdicts."""
        rows, odds, stuck, played = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0)], []
        for rounds, verdict in parts:
            played.append(rounds)
            which = verdict.stuck > HALF
            for found, values in ((rows, rounds.rows), (odds, verdict.clean_log_odds), (stuck, verdict.stuck)):
                found.append(values[which])
        verdict = Verdict(np.concatenate(odds), np.concatenate(stuck))
        return cls(Rounds.concatenate(played), np.concatenate(rows), verdict)

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


class TableView(NamedTuple):
    """Batches with rounds that have final verdicts, and what the model follows: 'time', 'order' or nothing."""

    outcomes: Iterator[tuple[Batch, Learned]]
    follows: str = ""


def judge_table(
    model: StreamModel, batches: list[Batch], ordered: OrderedLook, *, passes: int, by_time: bool = True
) -> TableView:
    """Learn from a table anew, in an order that its contents decide, and judge all its records by the result.

    Parameters
    ----------
    model : StreamModel
        The model that has learned from the table. After several passes, it is replaced by what is learned anew; after a
        single one, only its belief is.
    batches : list of Batch
        All records of the table.
    ordered : OrderedLook
        The reading before, in the order of the table.
    passes : int
        The number of passes. With a single one, the order of the table is followed, unless it is in time.
    by_time : bool
        Whether the time may be followed.
    """
    encoded = [(batch, chunk) for batch in batches for chunk in model.encode(batch.table)]
    if not encoded:
        return TableView(_spread_rounds(model, batches, ordered.rounds, ordered))
    X, targets = (np.concatenate([chunk[place] for _, chunk in encoded]) for place in (0, 1))
    rows = np.concatenate([batch.rows[chunk.indices] for batch, chunk in encoded])
    by_content, time = order_by_content(X, targets), find_time(model.schema, X) if by_time else []

    def follow(order: Array) -> tuple[StreamModel, Rounds]:
        """A model that has learned in this order, and its last rounds, in the order of the table."""
        fresh, rounds = model.learn_anew(X[order], targets[order], rows[order], max(passes, 2))
        return fresh, rounds[np.argsort(order)]

    def follow_table() -> TableView:
        rounds = _give_verdict(model, X, ordered.rounds)
        return TableView(_spread_rounds(model, batches, rounds, ordered), "order")

    if passes == 1 and not (time and np.array_equal(np.lexsort(time[::-1]), np.arange(len(rows)))):
        return follow_table()
    fresh, rounds = follow(by_content)
    scores, Y = np.empty((model.schema.outputs, len(X))), output_targets(model.schema, targets)
    scores[:, by_content] = fresh.engine.predict_unseen(X[by_content], np.ascontiguousarray(Y[:, by_content]))
    predictions, _ = decode_predictions(model.schema, scores)
    plain = [_find_errors(model, targets, predictions), _find_errors(model, targets, rounds.predictions)]

    def is_followed(rounds: Rounds) -> bool:
        """Whether these rounds of a model that follows an order have smaller errors than without that order."""
        errors = _find_errors(model, targets, rounds.predictions)
        if not all(pays(errors, others) for others in plain):
            return False
        # What is learned may depend much on the order, even if it is random.
        others = (by_content[::-1], np.roll(by_content, len(rows) // 2))
        return all(pays(errors, _find_errors(model, targets, follow(order)[1].predictions)) for order in others)

    if time:
        order = order_by(time, by_content)
        dated, rounds = follow(order)
        if is_followed(rounds):
            rounds = _give_verdict(dated, X[order], rounds[order])[np.argsort(order)]
            model.take_over(dated, engine=passes > 1)
            return TableView(_spread_rounds(model, batches, rounds, ordered), "time")
    elif has_time_order(targets) and is_followed(ordered.rounds):
        errors = _find_errors(model, targets, ordered.rounds.predictions)
        others = (follow(order)[1].predictions for order in sort_orders(model.schema, X, by_content))
        if not any(explains(_find_errors(model, targets, other), errors, plain[1]) for other in others):
            return follow_table()
    fresh.learn_belief(X, targets, scores, by_content)
    if passes > 1:
        model.take_over(fresh)
    return TableView(_review(fresh, _spread_scores(batches, encoded, scores), ordered))


def _find_errors(model: StreamModel, targets: Array, predictions: Array) -> Array:
    """Errors of predictions: differences of numbers, whether labels are wrong."""
    if model.schema.classifies:
        return targets != predictions
    return np.nan_to_num(targets - predictions, nan=np.inf)


def _give_verdict(model: StreamModel, X: Array, rounds: Rounds) -> Rounds:
    """The rounds of a model that has followed their order, with final verdicts."""
    rounds = model.learn_belief_again(X, rounds)
    verdict, judged = model.give_verdict(rounds), rounds.judged
    assert judged is not None
    return replace(rounds, judged=judged._replace(clean_log_odds=verdict.clean_log_odds, stuck=verdict.stuck))


def _spread_rounds(
    model: StreamModel, batches: list[Batch], rounds: Rounds, ordered: OrderedLook
) -> Iterator[tuple[Batch, Learned]]:
    """The batches with their rounds, which are in the order of the table."""
    first = 0
    for batch in batches:
        reviewed = model.review(batch, target=True)
        last = first + len(reviewed.rounds)
        yield batch, reviewed._replace(rounds=_add_stuck(model, rounds[first:last], ordered))
        first = last


def _spread_scores(
    batches: list[Batch], encoded: list[tuple[Batch, EncodedChunk]], scores: Array
) -> list[tuple[Batch, Array]]:
    """The batches with the scores of their records; those of records that cannot be used are NaN."""
    spread, first = {id(batch): np.full((len(scores), batch.table.num_rows), np.nan) for batch in batches}, 0
    for batch, chunk in encoded:
        spread[id(batch)][:, chunk.indices] = scores[:, first : first + len(chunk.X)]
        first += len(chunk.X)
    return [(batch, spread[id(batch)]) for batch in batches]


def _review(
    model: StreamModel, batches: list[tuple[Batch, Array]], ordered: OrderedLook
) -> Iterator[tuple[Batch, Learned]]:
    for batch, scores in batches:
        rounds, indices, rejected = model.review(batch, target=True, scores=scores)
        if rounds.judged is not None and not model.schema.classifies:
            # A batch of which all records are rejected has no verdicts.
            margin = 0.5 * (rounds.judged.high - rounds.judged.low)
            rounds = replace(rounds, judged=rounds.judged._replace(margin=margin))
        yield batch, Learned(_add_stuck(model, rounds, ordered), indices, rejected)


def _add_stuck(model: StreamModel, rounds: Rounds, ordered: OrderedLook) -> Rounds:
    """The rounds with the verdicts on stuck records of the reading in order, if there are any."""
    judged = rounds.judged
    if judged is None or model.schema.classifies:
        return rounds
    half = np.maximum(0.5 * (judged.high - judged.low), np.finfo(float).tiny)
    errors = (rounds.targets - rounds.predictions) / half
    return replace(rounds, judged=ordered.apply(rounds.rows, judged, errors))
