"""A piece of text becomes typed columns; where it cannot as a whole, record by record, to the same end.

What a record becomes is what the parser makes of it alone. That a whole piece is parsed at once is for speed: the
parse of many records is the parse of each, put together.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from redescend.numeric import Array
from redescend.sources.batch import Fault, Piece
from redescend.sources.splitter import Chunk, Grammar


class Parser(Protocol):
    """How the text of one file is read."""

    grammar: Grammar

    def empty(self) -> pa.RecordBatch:
        """The columns, without a record."""

    def parse(self, data: bytes) -> pa.RecordBatch | None:
        """The columns of whole records; None unless all of them are good."""

    def doubtful(self, records: list[bytes]) -> Array:
        """Which of the records may be bad, at a quick look: a wrong answer costs time and nothing else."""

    def single(self, record: bytes) -> pa.RecordBatch | str:
        """What `parse` makes of a record alone; where that is nothing, the same in another way, or what is wrong."""


def read_chunk(parser: Parser, chunk: Chunk) -> Piece:
    """Parse a chunk: its good records in columns, the others with what is wrong with them."""
    if chunk.reason is not None:
        return _piece(chunk, parser.empty(), [], [Fault(0, chunk.reason, chunk.data)], [chunk.data])
    table = parser.parse(chunk.data)
    if table is not None:
        return _piece(chunk, table, np.arange(table.num_rows), [], _Records(parser.grammar, chunk.data))
    records = parser.grammar.records(chunk.data)
    tables, places, faults = _one_by_one(parser, records)
    return _piece(chunk, tables, places, faults, records)


class _Records:
    """The records of a text, found when one is asked for."""

    def __init__(self, grammar: Grammar, data: bytes) -> None:
        self.grammar = grammar
        self.data = data
        self.bounds: Array | None = None

    def __getitem__(self, place: int) -> bytes:
        if self.bounds is None:
            self.bounds = self.grammar.bounds(np.frombuffer(self.data, np.uint8))[0]
        low, high, _ = self.bounds[place].tolist()
        return self.data[low:high]


def _piece(
    chunk: Chunk, table: pa.RecordBatch, places: object, faults: list[Fault], records: _Records | list[bytes]
) -> Piece:
    indices = np.asarray(places, np.int64)
    return Piece(chunk.offset, chunk.stop, table, indices, faults, records.__getitem__)


def _one_by_one(parser: Parser, records: list[bytes]) -> tuple[pa.RecordBatch, Array, list[Fault]]:
    """Halve what is refused, until it is a single record; those in doubt are tried alone at once."""
    doubtful = parser.doubtful(records)
    pending = [*np.flatnonzero(doubtful)[:, None]]
    if not doubtful.all():
        pending.append(np.flatnonzero(~doubtful))
    tables, places, faults = [parser.empty()], [np.empty(0, np.int64)], []
    while pending:
        group = pending.pop()
        if len(group) == 1:
            place = int(group[0])
            table = parser.single(records[place])
            if isinstance(table, str):
                faults.append(Fault(place, table, records[place]))
                continue
        else:
            table = parser.parse(b"\n".join(records[place] for place in group))
            if table is None:
                pending += np.array_split(group, 2)
                continue
        tables.append(table)
        places.append(group)
    order = np.argsort(np.concatenate(places))
    whole = pa.concat_batches(tables)
    return whole.take(pa.array(order)), np.concatenate(places)[order], sorted(faults)
