"""Tables of every kind of column, as batches made by hand."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from redescend.sources import Batch, Kind, Position
from redescend.streaming.encoding.schema import Schema

TYPES = {Kind.NUMBER: pa.float64(), Kind.BOOLEAN: pa.bool_(), Kind.DATE: pa.timestamp("us"), Kind.TEXT: pa.string()}
KINDS = {bool: Kind.BOOLEAN, float: Kind.NUMBER, int: Kind.NUMBER, str: Kind.TEXT, datetime.datetime: Kind.DATE}


def kinds_of(columns: dict[str, list[Any]]) -> dict[str, Kind]:
    """The kind of the first value of each column; a column of none has numbers."""
    firsts = {name: next((value for value in values if value is not None), 0.0) for name, values in columns.items()}
    return {name: KINDS[type(first)] for name, first in firsts.items()}


def batch_of(columns: dict[str, list[Any]], kinds: dict[str, Kind] | None = None, first: int = 1) -> Batch:
    """A batch whose records come as their row numbers."""
    kinds = kinds or kinds_of(columns)
    arrays = [pa.array(values, TYPES[kinds[name]]) for name, values in columns.items()]
    return batch_with(pa.record_batch(arrays, names=list(columns)), first)


def batch_with(table: Any, first: int = 1) -> Batch:
    rows = np.arange(first, first + table.num_rows)
    end = Position(0, 0, 0, first - 1 + table.num_rows)
    return Batch(table, rows, [], "records.csv", end, lambda row: f"record {row}".encode())


def decided(columns: dict[str, list[Any]], target: str, **settings: Any) -> Schema:
    """What a table is taken for, by all of its records."""
    return Schema.infer(batch_of(columns), kinds_of(columns), target, **settings)
