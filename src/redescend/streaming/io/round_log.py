"""The rounds of a run, read from the Parquet file that it wrote."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from redescend.errors import DataError
from redescend.numeric import Array
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Judged, Rounds


def read_rounds(path: str | os.PathLike[str], schema: Schema) -> Rounds:
    """Read the rounds of a model with this schema and a belief; all of them are in memory then."""
    table = parquet.read_table(path)
    if "clean_log_odds" not in table.column_names:
        raise DataError(f"'{path}' has no judgements of a belief: its model has a fixed transform.")

    def numbers(name: str) -> Array:
        if name not in table.column_names:
            return np.zeros(len(table)) if name == "stuck" else np.full(len(table), np.nan)
        return table[name].to_numpy()

    def answers(name: str) -> Array:
        if not schema.classifies:
            return numbers(name)
        return compute.index_in(table[name], value_set=pa.array(schema.labels)).to_numpy().astype(np.float64)

    judged = Judged(
        numbers("clean_log_odds"),
        numbers("low"),
        numbers("high"),
        numbers("margin" if schema.classifies else "scale"),
        numbers("stuck"),
        numbers("suspect"),
    )
    outcomes = (numbers("probability"), numbers("loss"), numbers("weight"))
    keys, names = _read_keys(table["key"]) if "key" in table.column_names else (None, [])
    said = (numbers("row"), answers("target"), answers("prediction"), *outcomes)
    return Rounds(*said, keys=keys, names=names, judged=judged)


def _read_keys(column: Any) -> tuple[Array, list[str]]:
    """The keys of all records, in the order in which they first came, as in the model."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist()
