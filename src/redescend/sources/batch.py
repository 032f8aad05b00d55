"""What one read brings: good records as typed columns, bad ones as they came, and where the next one is."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from redescend.numeric import Array


class Bad(NamedTuple):
    """A record that could not be read.

    Attributes
    ----------
    row : the number of the record, from 1, over the whole source.
    file : the file that it is in.
    reason : why, in words.
    raw : the record as it came.
    """

    row: int
    file: str
    reason: str
    raw: bytes


class Position(NamedTuple):
    """Where the next record is.

    Attributes
    ----------
    file : the number of the file, from 0.
    offset : the byte of its (decompressed) text, or its row where it has rows.
    skip : how many records after that to pass over, good or bad.
    row : how many records there are before it, over the whole source.
    """

    file: int
    offset: int
    skip: int
    row: int


START = Position(0, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class Batch:
    """Records in the order in which they came.

    Attributes
    ----------
    table : the good records; one typed column for each that was asked for, in that order, null where it is missing.
    rows : the row number of each good record.
    bad : the others; their rows and those of the good records interleave.
    files : the name of the file that they are from.
    end : where the record after the last one is.
    """

    table: pa.RecordBatch
    rows: Array
    bad: list[Bad]
    files: str
    end: Position
    _raw: Callable[[int], bytes]

    @property
    def count(self) -> int:
        """How many records there are, good and bad."""
        return len(self.rows) + len(self.bad)

    def raw(self, index: int) -> bytes:
        """The good record at this index as it came: its text, or all of its values as a JSON object."""
        return self._raw(int(self.rows[index]))


def joined(batches: Sequence[Batch]) -> Batch:
    """Batches that follow each other as one, under the name of the first."""
    ends = [batch.end.row for batch in batches]
    return Batch(
        table=pa.concat_batches([batch.table for batch in batches]),
        rows=np.concatenate([batch.rows for batch in batches]),
        bad=[bad for batch in batches for bad in batch.bad],
        files=batches[0].files,
        end=batches[-1].end,
        _raw=lambda row: batches[bisect_left(ends, row)]._raw(row),
    )


class Fault(NamedTuple):
    """A record of a piece that could not be read: which, why, and its bytes."""

    place: int
    reason: str
    raw: bytes


@dataclass(frozen=True, eq=False)
class Piece:
    """Some records of one file, counted from 0, before they are numbered over the whole source.

    Attributes
    ----------
    offset, stop : where in the file they begin and where the next begin.
    table : the good ones.
    places : which records these are.
    faults : the others.
    raw : the bytes of a record.
    """

    offset: int
    stop: int
    table: pa.RecordBatch
    places: Array
    faults: list[Fault]
    raw: Callable[[int], bytes]

    @property
    def count(self) -> int:
        return len(self.places) + len(self.faults)

    def cut(self, low: int, high: int, file: int, name: str, row: int) -> Batch:
        """Its records from `low` up to `high`, the first of which has `row` records before it over the whole source."""
        first, last = np.searchsorted(self.places, (low, high))
        base = row - low + 1
        end = Position(file, self.offset, high, row + high - low)
        # A damaged end has no bytes that could be passed over, only a record.
        if high == self.count and self.stop > self.offset:
            end = end._replace(offset=self.stop, skip=0)
        return Batch(
            table=self.table.slice(first, last - first),
            rows=self.places[first:last] + base,
            bad=[Bad(f.place + base, name, f.reason, f.raw) for f in self.faults if low <= f.place < high],
            files=name,
            end=end,
            _raw=lambda number: self.raw(number - base),
        )
