"""The final look at a table that fits in memory: neither its model nor the verdicts depend on the order of its records.

What a model has learned at the end of a stream depends on the order of records: where they are sorted or in groups, it
is that of the last ones. So the records of a table are held in memory, and learned from anew in an order that only
their contents decide:

- in an order that looks random. The belief is learned from all records at once, by the errors of the final model, and
  each record is judged by trees that were grown without it, and in models with trees by all members, see
  `engines.members`. What that takes is part of the model, so that `score` gives the same verdicts;
- or by time, if there is a column of dates, or numbers named year, month and so on, and if a model that follows the
  time makes smaller errors. Each record is then judged by the model around its time.

Otherwise, the order of the table itself is followed if that makes errors smaller, and if it is not the order of a
column. A sensor that is stuck is found in the order of the table, by the reading before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from redescend.belief import Verdict
from redescend.belief.suspects import HALF
from redescend.belief.verdicts import are_predicted
from redescend.numeric import Array
from redescend.sources import Batch
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.target import decode_predictions, output_targets
from redescend.streaming.model import StreamModel
from redescend.streaming.predictor import Learned
from redescend.streaming.record_order import (
    explains,
    find_times,
    has_time_order,
    measure_error,
    order_by,
    order_by_content,
    pays,
    sort_orders,
)
from redescend.streaming.rounds import Rounds

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
    def from_parts(cls, parts: Iterator[tuple[Rounds, Verdict]]) -> OrderedLook:
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

    def apply(self, rounds: Rounds, schema: Schema) -> Rounds:
        """These rounds, with the verdicts of the reading in order on stuck records, unless the model predicts them."""
        judged = rounds.judged
        if judged is None or schema.classifies or not len(self.rows):
            return rounds
        places = np.minimum(np.searchsorted(self.rows, rounds.rows), len(self.rows) - 1)
        which = self.rows[places] == rounds.rows
        which &= ~are_predicted(rounds.targets, rounds.predictions, judged.low, judged.high)
        odds, stuck = judged.clean_log_odds.copy(), judged.stuck.copy()
        odds[which] = np.minimum(odds[which], self.verdict.clean_log_odds[places[which]])
        stuck[which] = self.verdict.stuck[places[which]]
        return replace(rounds, judged=judged._replace(clean_log_odds=odds, stuck=stuck))


class TableLook(NamedTuple):
    """The model that judges a table, its rounds with final verdicts, in the order of the table, and what the model
    follows: 'time', the 'order' of the table, or nothing.
    """

    model: StreamModel
    rounds: Rounds
    follows: str = ""


class EncodedTable(NamedTuple):
    """The encoded records of a table, their targets and their rows."""

    X: Array
    targets: Array
    rows: Array

    @staticmethod
    def encode(model: StreamModel, batches: list[Batch]) -> EncodedTable | None:
        """Encode all records of these batches for a model; None if there is none that can be used."""
        parts = [(batch.rows[chunk.indices], chunk) for batch in batches for chunk in model.encode(batch.table)]
        if not parts:
            return None
        X, targets = (np.concatenate([chunk[place] for _, chunk in parts]) for place in (0, 1))
        return EncodedTable(X, targets, np.concatenate([rows for rows, _ in parts]))


def look_at_table(
    model: StreamModel,
    table: EncodedTable,
    read: Callable[[], tuple[StreamModel, Rounds]],
    *,
    passes: int = 2,
    by_time: bool = True,
) -> TableLook:
    """Learn from a table anew, in an order that its contents decide, and judge all its records by the result.

    The model has the parameters to use, and is not changed; `read` returns one that has learned in the order of the
    table, and its last rounds. With a single pass, the order of the table is followed, unless it is in time, which may
    be followed if `by_time`.
    """
    X, targets, rows = table
    by_content, times = order_by_content(X, targets), find_times(model.schema, X) if by_time else []

    def follow(order: Array) -> tuple[StreamModel, Rounds]:
        """A model that has learned in this order, and its last rounds, in the order of the table."""
        fresh, rounds = model.learn_anew(X[order], targets[order], rows[order], max(passes, 2))
        return fresh, rounds[np.argsort(order)]

    def find_errors(predictions: Array) -> Array:
        """Errors of predictions: differences of numbers, whether labels are wrong."""
        wrong: Array = targets != predictions
        return wrong if model.schema.classifies else np.nan_to_num(targets - predictions, nan=np.inf)

    if passes == 1 and not any(np.array_equal(np.lexsort(time[::-1]), np.arange(len(rows))) for time in times):
        own, rounds = read()
        return TableLook(own, give_verdict(own, X, rounds), "order")
    fresh, rounds = follow(by_content)
    scores, Y = np.empty((model.schema.outputs, len(X))), output_targets(model.schema, targets)
    scores[:, by_content] = fresh.engine.conclude(X[by_content], Y[:, by_content], np.ones(len(X)))
    plain = [find_errors(one) for one in (decode_predictions(model.schema, scores)[0], rounds.predictions)]

    def is_followed(errors: Array) -> bool:
        """Whether a model that follows an order has smaller errors than those that do not."""
        if not all(pays(errors, others) for others in plain):
            return False
        # What is learned may depend much on the order, even if it is random.
        others = (by_content[::-1], np.roll(by_content, len(rows) // 2))
        return all(pays(errors, find_errors(follow(order)[1].predictions)) for order in others)

    followed = [(order, *follow(order)) for order in (order_by(time, by_content) for time in times)]
    for order, dated, rounds in sorted(followed, key=lambda one: measure_error(find_errors(one[2].predictions))):
        if is_followed(find_errors(rounds.predictions)):
            return TableLook(dated, give_verdict(dated, X[order], rounds[order])[np.argsort(order)], "time")
    if has_time_order(targets, model.schema.classifies):
        own, rounds = read()
        errors = find_errors(rounds.predictions)
        if is_followed(errors):
            others = (follow(order)[1].predictions for order in sort_orders(model.schema, X, by_content))
            if not any(explains(find_errors(other), errors, plain[1]) for other in others):
                return TableLook(own, give_verdict(own, X, rounds), "order")
    fresh.learn_belief(X, targets, scores, by_content)
    rounds = fresh.review_encoded(X, targets, rows)
    fresh.trim()
    return TableLook(fresh, rounds)


def judge_table(
    model: StreamModel, batches: list[Batch], ordered: OrderedLook, *, passes: int, by_time: bool = True
) -> tuple[Iterator[tuple[Batch, Learned]], str]:
    """Judge the records of a table by a model that learns from it anew, as `look_at_table` does.

    After several passes, the model that has learned from the table is replaced by the new one; after a single one, only
    its belief is. Returns the batches, with rounds that have final verdicts, and what the model follows.
    """
    table = EncodedTable.encode(model, batches)
    if table is None:
        return _spread(model, batches, ordered.rounds), ""
    look = look_at_table(model, table, lambda: (model, ordered.rounds), passes=passes, by_time=by_time)
    if look.model is not model:
        model.take_over(look.model, engine=passes > 1)
    return _spread(model, batches, ordered.apply(look.rounds, model.schema)), look.follows


def give_verdict(model: StreamModel, X: Array, rounds: Rounds) -> Rounds:
    """The rounds of a model that has followed their order, with final verdicts by a belief that knows all of them."""
    return apply_verdict(model, model.learn_belief_again(X, rounds))


def apply_verdict(model: StreamModel, rounds: Rounds) -> Rounds:
    """The rounds with final verdicts."""
    verdict, judged = model.give_verdict(rounds), rounds.judged
    assert judged is not None
    return replace(rounds, judged=judged._replace(clean_log_odds=verdict.clean_log_odds, stuck=verdict.stuck))


def _spread(model: StreamModel, batches: list[Batch], rounds: Rounds) -> Iterator[tuple[Batch, Learned]]:
    """The batches with their rounds, which are in the order of the table."""
    first = 0
    for batch in batches:
        reviewed = model.review(batch, target=True)
        last = first + len(reviewed.rounds)
        yield batch, reviewed._replace(rounds=rounds[first:last])
        first = last
