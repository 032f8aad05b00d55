"""What became of records, as columns by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from redescend.numeric import Array
from redescend.serve.numbers import NumericBatch
from redescend.sources import Batch
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.predictor import Learned
from redescend.streaming.rounds import Rounds

Outcomes = dict[str, Any]
"""Columns by their names: arrays or lists with a value for each record. NaN becomes null in JSON."""

Outcome = dict[str, Any]  # the values of one record by their names


def describe_rounds(rounds: Rounds, schema: Schema, suspects: Array, status: str) -> Outcomes:
    """The outcomes of rounds; `suspects` says which of them are of suspects."""
    outcomes: Outcomes = {
        "status": [status] * len(rounds),
        "row": rounds.rows,
        "target": rounds.targets,
        "prediction": rounds.predictions,
        "loss": rounds.losses,
        "weight": rounds.weights,
        "clean_probability": rounds.clean_probability,
        "suspect": suspects,
    }
    if schema.classifies:
        decoded = {name: list(map(schema.decode_value, outcomes[name].tolist())) for name in ("target", "prediction")}
        outcomes |= {**decoded, "probability": rounds.probabilities}
    elif rounds.judged is not None:
        outcomes |= {"low": rounds.low, "high": rounds.high}
    if rounds.keys is not None:
        outcomes["key"] = [rounds.names[key] for key in rounds.keys.tolist()]
    return outcomes


def add_rejected(batch: Batch | NumericBatch, learned: Learned, outcomes: Outcomes) -> Outcomes:
    """Add the rejected records of a batch to the outcomes of its rounds, in the order of its records."""
    if len(learned.rounds) == batch.count:
        return outcomes
    first = batch.end.row - batch.count + 1
    rejected = {
        bad.row - first: {"status": "rejected", "row": bad.row, "reason": bad.reason}
        for bad in (*batch.bad, *learned.rejected)
    }
    return merge_outcomes(outcomes, (learned.rounds.rows - first).tolist(), rejected, batch.count)


def merge_outcomes(outcomes: Outcomes, places: Sequence[int], others: Mapping[int, Outcome], count: int) -> Outcomes:
    """Columns of `count` records: `outcomes` of those at some places and `others` by theirs, with None elsewhere.

    >>> merge_outcomes({"status": ["learned"], "loss": [0.5]}, [1], {0: {"status": "rejected", "reason": "empty"}}, 2)
    {'status': ['rejected', 'learned'], 'loss': [None, 0.5], 'reason': ['empty', None]}
    """
    columns: dict[str, list[Any]] = {}
    for name, column in outcomes.items():
        columns[name] = [None] * count
        for place, value in zip(places, _to_list(column), strict=True):
            columns[name][place] = value
    for place, values in others.items():
        for name, value in values.items():
            columns.setdefault(name, [None] * count)[place] = value
    return columns


def slice_outcomes(outcomes: Outcomes, start: int, stop: int) -> Outcomes:
    """The outcomes of consecutive records."""
    return {name: column[start:stop] for name, column in outcomes.items()}


def outcome_at(outcomes: Outcomes, place: int) -> Outcome:
    """The outcome of one record."""
    return {name: _to_list(column[place : place + 1])[0] for name, column in outcomes.items()}


def _to_list(column: Any) -> list[Any]:
    """A column as a list of plain values."""
    return column.tolist() if isinstance(column, np.ndarray) else column
