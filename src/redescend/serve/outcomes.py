"""What clients are told of each record, and model files in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redescend.checkpoint import container
from redescend.checkpoint.serialization import Serializer
from redescend.serve.statistics import Statistics
from redescend.sources import Bad, Batch
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.model import Learned
from redescend.streaming.rounds import RoundRecord, Rounds
from redescend.streaming.summary.suspects import read_values

Outcome = dict[str, Any]


def describe_rounds(rounds: Rounds, schema: Schema, statistics: Statistics, status: str) -> Iterator[Outcome]:
    """The values of each round by their names. NaN becomes null in JSON."""
    suspects = statistics.are_suspects(rounds).tolist()
    names = ("status", *RoundRecord._fields)
    for record, suspect in zip(rounds.records(schema), suspects, strict=True):
        values = dict(zip(names, (status, *record), strict=True))
        if record.key is None:
            del values["key"]
        if "clean_probability" not in values:
            values["clean_probability"] = record.weight
        values["suspect"] = suspect
        yield values


def describe_batch(
    batch: Batch, learned: Learned, schema: Schema, statistics: Statistics, status: str
) -> list[Outcome]:
    """The outcome of each record of a batch, in order."""
    first = batch.end.row - batch.count + 1
    outcomes: list[Outcome] = [{}] * batch.count
    for values in describe_rounds(learned.rounds, schema, statistics, status):
        outcomes[values["row"] - first] = values
    for bad in (*batch.bad, *learned.rejected):
        outcomes[bad.row - first] = reject(bad)
    return outcomes


def reject(bad: Bad) -> Outcome:
    """The outcome of a record that is set aside."""
    return {"status": "rejected", "row": bad.row, "reason": bad.reason}


def find_suspects(batch: Batch, learned: Learned, schema: Schema, outcomes: list[Outcome]) -> Iterator[Outcome]:
    """The suspects of a batch with their values."""
    first = batch.end.row - batch.count + 1
    for row, index in zip(learned.rounds.rows.tolist(), learned.indices.tolist(), strict=True):
        outcome = outcomes[row - first]
        if outcome["suspect"]:
            yield {**outcome, "values": read_values(schema, batch, index)}


def dump_model(model: Any) -> bytes:
    """The bytes that `redescend.save` writes."""
    serializer = Serializer()
    description = serializer.serialize(model)
    return b"".join(container.write_chunks(description, serializer.arrays))
