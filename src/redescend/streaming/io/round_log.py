"""The round of every record that was learned from: a ledger of fixed width while the pass runs, then a Parquet file.

The Parquet file is made of the whole ledger at the end, so that its bytes depend on the rounds alone, and not on where
batches ended or a run was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from redescend.files import replacing
from redescend.numeric import Array
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Rounds

ENTRY = np.dtype(
    [
        ("row", "<i8"),
        ("target", "<f8"),
        ("prediction", "<f8"),
        ("probability", "<f8"),
        ("loss", "<f8"),
        ("weight", "<f8"),
    ]
)
"""A round in the ledger. Labels are kept by their index."""

KEYED = np.dtype([*ENTRY.descr, ("key", "<i8")])
"""A round of one of many models; its key, too, is kept by its index."""

GROUP = 131_072
"""Rounds in a row group of the Parquet file."""


def packed(rounds: Rounds) -> Array:
    """Rounds as they are in the ledger."""
    entries = np.empty(len(rounds.rows), ENTRY if rounds.keys is None else KEYED)
    entries["row"], entries["target"], entries["prediction"] = rounds.rows, rounds.targets, rounds.predictions
    entries["probability"], entries["loss"], entries["weight"] = rounds.probabilities, rounds.losses, rounds.weights
    if rounds.keys is not None:
        entries["key"] = rounds.keys
    return entries


def write(ledger: Path, schema: Schema, target: Path, names: Sequence[str] = ()) -> None:
    """Turn a ledger into a Parquet file with a column for each part of a round.

    Of a classification, targets and predictions are labels, and there is the probability of the predicted one. Of many
    models, there is the key, one of these names.
    """
    keyed = schema.by is not None
    labels, keys = pa.array(schema.labels, pa.string()), pa.array(names, pa.string())
    fields = _fields(schema.classifies, keyed)
    texts = [field.name for field in fields if field.type == pa.string()]
    with (
        replacing(target) as file,
        parquet.ParquetWriter(file, fields, compression="zstd", compression_level=1, use_dictionary=texts) as writer,
    ):
        words = {name: keys if name == "key" else labels for name in texts}
        for entries in _groups(ledger, KEYED if keyed else ENTRY):
            columns = [_column(entries[field.name], words.get(field.name)) for field in fields]
            writer.write_table(pa.table(columns, schema=fields), row_group_size=GROUP)


def _fields(classification: bool, keyed: bool) -> pa.Schema:
    answer = pa.string() if classification else pa.float64()
    types = {"row": pa.int64(), "key": pa.string(), "target": answer, "prediction": answer}
    names = [name for name in ENTRY.names or () if classification or name != "probability"]
    names[1:1] = ["key"] if keyed else []
    return pa.schema([pa.field(name, types.get(name, pa.float64()), nullable=False) for name in names])


def _groups(ledger: Path, entry: np.dtype[np.void]) -> Iterator[Array]:
    with open(ledger, "rb") as file:
        while len(entries := np.fromfile(file, entry, GROUP)):
            yield entries


def _column(values: Array, labels: pa.Array | None) -> pa.Array:
    if labels is None:
        return pa.array(np.ascontiguousarray(values))
    return labels.take(pa.array(values.astype(np.int64)))
