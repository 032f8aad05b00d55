"""What clients are told of their records, as columns, and model files in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from redescend.checkpoint import container
from redescend.checkpoint.serialization import Serializer
from redescend.numeric import Array
from redescend.serve.numbers import NumericBatch
from redescend.sources import Bad, Batch
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.predictor import Learned
from redescend.streaming.rounds import Rounds

Outcomes = dict[str, Any]
"""Columns by their names: arrays or lists with a value for each record. NaN becomes null in JSON."""

Outcome = dict[str, Any]
"""The values of one record by their names."""


def describe_rounds(rounds: Rounds, schema: Schema, suspects: Array, status: str) -> Outcomes:
    """What is said of rounds; `suspects` says which of them are of suspects."""
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


def complete(batch: Batch | NumericBatch, learned: Learned, outcomes: Outcomes) -> Outcomes:
    """The outcomes of a batch, in the order of its records, from those of its rounds."""
    if len(learned.rounds) == batch.count:
        return outcomes
    first = batch.end.row - batch.count + 1
    rejected = {bad.row - first: reject(bad) for bad in (*batch.bad, *learned.rejected)}
    return insert(outcomes, (learned.rounds.rows - first).tolist(), rejected, batch.count)


def insert(outcomes: Outcomes, places: Sequence[int], others: Mapping[int, Outcome], count: int) -> Outcomes:
    """Columns of `count` records: `outcomes` of those at some places and `others` by theirs, with None elsewhere.

    >>> insert({"status": ["learned"], "loss": [0.5]}, [1], {0: {"status": "rejected", "reason": "empty"}}, 2)
    {'status': ['rejected', 'learned'], 'loss': [None, 0.5], 'reason': ['empty', None]}
    """
    columns: dict[str, list[Any]] = {}
    for name, column in outcomes.items():
        columns[name] = [None] * count
        for place, value in zip(places, to_list(column), strict=True):
            columns[name][place] = value
    for place, values in others.items():
        for name, value in values.items():
            columns.setdefault(name, [None] * count)[place] = value
    return columns


def select(outcomes: Outcomes, start: int, stop: int) -> Outcomes:
    """Some consecutive records."""
    return {name: column[start:stop] for name, column in outcomes.items()}


def pick(outcomes: Outcomes, place: int) -> Outcome:
    """One record."""
    return {name: to_list(column[place : place + 1])[0] for name, column in outcomes.items()}


def to_list(column: Any) -> list[Any]:
    """A column as a list of plain values."""
    return column.tolist() if isinstance(column, np.ndarray) else column


def reject(bad: Bad) -> Outcome:
    """What is said of a record that is set aside."""
    return {"status": "rejected", "row": bad.row, "reason": bad.reason}


def dump_model(model: Any) -> bytes:
    """The bytes that `redescend.save` writes."""
    serializer = Serializer()
    description = serializer.serialize(model)
    return b"".join(container.write_chunks(description, serializer.arrays))
