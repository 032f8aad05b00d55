"""What clients are told of each record, and model files in memory."""

from __future__ import annotations

from typing import Any

from redescend.checkpoint import container
from redescend.checkpoint.serialization import Serializer
from redescend.numeric import Array
from redescend.serve.numbers import NumericBatch
from redescend.sources import Bad, Batch
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.predictor import Learned
from redescend.streaming.rounds import Rounds

Outcome = dict[str, Any]


def describe_rounds(rounds: Rounds, schema: Schema, suspects: Array, status: str) -> list[Outcome]:
    """The values of each round by their names. NaN becomes null in JSON."""
    rows, targets, predictions, *others = (array.tolist() for array in rounds.arrays())
    if schema.classifies:
        targets, predictions = (list(map(schema.decode_value, each)) for each in (targets, predictions))
    said = (array.tolist() for array in (rounds.clean_probability, rounds.low, rounds.high, suspects))
    # A literal is much faster than a loop over names.
    described: list[Outcome] = [
        {
            "status": status,
            "row": row,
            "target": target,
            "prediction": prediction,
            "probability": probability,
            "loss": loss,
            "weight": weight,
            "clean_probability": clean,
            "low": low,
            "high": high,
            "suspect": suspect,
        }
        for row, target, prediction, probability, loss, weight, clean, low, high, suspect in zip(
            rows, targets, predictions, *others, *said, strict=True
        )
    ]
    if rounds.keys is not None:
        for outcome, key in zip(described, rounds.keys.tolist(), strict=True):
            outcome["key"] = rounds.names[key]
    return described


def describe_batch(
    batch: Batch | NumericBatch, learned: Learned, schema: Schema, suspects: Array, status: str
) -> list[Outcome]:
    """The outcome of each record of a batch, in order; `suspects` says which of its rounds are of suspects."""
    described = describe_rounds(learned.rounds, schema, suspects, status)
    if len(described) == batch.count:
        return described
    first = batch.end.row - batch.count + 1
    outcomes: list[Outcome] = [{}] * batch.count
    for values in described:
        outcomes[values["row"] - first] = values
    for bad in (*batch.bad, *learned.rejected):
        outcomes[bad.row - first] = reject(bad)
    return outcomes


def reject(bad: Bad) -> Outcome:
    """The outcome of a record that is set aside."""
    return {"status": "rejected", "row": bad.row, "reason": bad.reason}


def dump_model(model: Any) -> bytes:
    """The bytes that `redescend.save` writes."""
    serializer = Serializer()
    description = serializer.serialize(model)
    return b"".join(container.write_chunks(description, serializer.arrays))
