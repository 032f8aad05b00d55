"""The round log: entries of fixed width while the run is in progress, then a Parquet file.

The Parquet file is made from the whole log at the end, so that its bytes depend on the rounds alone, not on where
batches ended or the run was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from redescend.files import replace_file
from redescend.numeric import Array
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Rounds

NUMBERS = ("target", "prediction", "probability", "loss", "weight")
ENTRY = np.dtype([("row", "<i8"), *((name, "<f8") for name in NUMBERS)])
"""A round in the log; labels are stored as their index."""

KEYED_ENTRY = np.dtype([*ENTRY.descr, ("key", "<i8")])
"""A round of one of many models; its key is stored as its index."""

GROUP = 131_072
"""Rounds in a row group of the Parquet file."""


def pack(rounds: Rounds) -> Array:
    """Pack rounds into entries of the log."""
    entries = np.empty(len(rounds), ENTRY if rounds.keys is None else KEYED_ENTRY)
    for name, values in zip(("row", *NUMBERS), rounds.arrays(), strict=True):
        entries[name] = values
    if rounds.keys is not None:
        entries["key"] = rounds.keys
    return entries


def write_parquet(log: Path, schema: Schema, target: Path, keys: Sequence[str] = ()) -> None:
    """Convert a log to a Parquet file, with labels and keys as texts."""
    fields = _fields(schema)
    texts = {field.name: pa.array(schema.labels, pa.string()) for field in fields if field.type == pa.string()}
    texts |= {"key": pa.array(keys, pa.string())} if schema.by is not None else {}
    options = {"compression": "zstd", "compression_level": 1, "use_dictionary": list(texts)}
    with replace_file(target) as file, parquet.ParquetWriter(file, fields, **options) as writer:
        for entries in _groups(log, ENTRY if schema.by is None else KEYED_ENTRY):
            columns = [_column(entries[field.name], texts.get(field.name)) for field in fields]
            writer.write_table(pa.table(columns, schema=fields), row_group_size=GROUP)


def _fields(schema: Schema) -> pa.Schema:
    answer = pa.string() if schema.classifies else pa.float64()
    types = {"row": pa.int64(), "key": pa.string(), "target": answer, "prediction": answer}
    names = ["row", *NUMBERS] if schema.by is None else ["row", "key", *NUMBERS]
    if not schema.classifies:
        names.remove("probability")
    return pa.schema([pa.field(name, types.get(name, pa.float64()), nullable=False) for name in names])


def _groups(log: Path, entry: np.dtype[np.void]) -> Iterator[Array]:
    with open(log, "rb") as file:
        while len(entries := np.fromfile(file, entry, GROUP)):
            yield entries


def _column(values: Array, texts: pa.Array | None) -> pa.Array:
    if texts is None:
        return pa.array(np.ascontiguousarray(values))
    return texts.take(pa.array(values.astype(np.int64)))
