"""Batches of records: good records as typed columns, bad records as bytes, and the position of the next one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from redescend.numeric import Array
from redescend.sources.kinds import TYPES, Kind


class Bad(NamedTuple):
    """A record that could not be read, or consecutive ones that are lost in a damaged file.

    Attributes
    ----------
    row : int
        Its row number, or that of the first, from 1, over the whole source.
    file : str
        The name of its file.
    reason : str
        What is wrong with it.
    raw : bytes
        The bytes of the record; none if it is lost.
    rows : int
        How many records they are.

    Examples
    --------
    >>> Bad(7, "prices.csv", "2 values where the header has 3", b"1,2").row
    7
    """

    row: int
    file: str
    reason: str
    raw: bytes
    rows: int = 1


def count_bad(records: Iterable[Bad]) -> int:
    """Count the records.

    >>> count_bad([Bad(7, "a.csv", "1 value", b"1"), Bad(9, "a.parquet", "the file is damaged here", b"", 300)])
    301
    """
    return sum(bad.rows for bad in records)


class Position(NamedTuple):
    """The position of the next record.

    Attributes
    ----------
    file, offset : int
        The index of its file, and the byte offset in its (decompressed) text, or the row in a columnar file.
    skip : int
        The number of records after the offset that come before it, good or bad.
    row : int
        The number of all records before it, in all files.

    Examples
    --------
    >>> Position(file=0, offset=4096, skip=2, row=100).row
    100
    """

    file: int
    offset: int
    skip: int
    row: int


START = Position(0, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive records.

    Attributes
    ----------
    table : pyarrow.RecordBatch
        The good records: the requested columns, in that order, null where a value is missing.
    rows : array of int64
        The row number of each good record.
    bad : list of Bad
        The bad records; their row numbers and those of the good records interleave.
    files : str
        The name of the file of the first.
    end : Position
        The position after the last record.
    read_raw : callable
        Returns the bytes of a good record by its row number.
    mark : str or None
        Of a followed file: identifies the end in a renamed or copied file.

    Examples
    --------
    >>> from redescend.sources import open_source
    >>> batch = next(open_source(pa.table({"x": [1.5, 2.5]})).batches(["x"]))
    >>> batch.rows.tolist(), batch.table.to_pydict(), batch.raw(1)
    ([1, 2], {'x': [1.5, 2.5]}, b'{"x": 2.5}')
    """

    table: pa.RecordBatch
    rows: Array
    bad: list[Bad]
    files: str
    end: Position
    read_raw: Callable[[int], bytes]
    mark: str | None = None

    def raw(self, index: int) -> bytes:
        """The bytes of the good record at this index: its text, or all of its values as a JSON object."""
        return self.read_raw(int(self.rows[index]))

    @property
    def count(self) -> int:
        """The number of records, good and bad."""
        return len(self.rows) + count_bad(self.bad)


def concat_batches(batches: Sequence[Batch]) -> Batch:
    """Concatenate consecutive batches; the result has the file name of the first."""
    ends = [batch.end.row for batch in batches]
    return Batch(
        table=pa.concat_batches([batch.table for batch in batches]),
        rows=np.concatenate([batch.rows for batch in batches]),
        bad=[bad for batch in batches for bad in batch.bad],
        files=batches[0].files,
        end=batches[-1].end,
        read_raw=lambda row: batches[bisect_left(ends, row)].read_raw(row),
    )


def limit_rows(batch: Batch, last: int) -> Batch:
    """The records of a batch up to the row `last`.

    >>> from redescend.sources import open_source
    >>> batch = next(open_source(pa.table({"x": [1.5, 2.5, 3.5]})).batches(["x"]))
    >>> limit_rows(batch, 2).table.to_pydict()
    {'x': [1.5, 2.5]}
    """
    within = np.flatnonzero(batch.rows <= last)
    return replace(
        batch,
        table=batch.table.take(pa.array(within)),
        rows=batch.rows[within],
        bad=[bad._replace(rows=min(bad.rows, last + 1 - bad.row)) for bad in batch.bad if bad.row <= last],
    )


def empty_table(kinds: Mapping[str, Kind]) -> pa.RecordBatch:
    """Columns of these kinds without a record."""
    return pa.RecordBatch.from_pylist([], pa.schema([(name, TYPES[kind]) for name, kind in kinds.items()]))


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive records of one file, numbered from 0, before they get their row numbers.

    `offset` is that of the first record, `stop` that of the record after the last; `table` has the good records and
    `places` their numbers; `read_raw` returns the bytes of a record by its number.
    """

    offset: int
    stop: int
    table: pa.RecordBatch
    places: Array
    bad: list[Bad]
    read_raw: Callable[[int], bytes]
    mark: str | None = None

    @property
    def count(self) -> int:
        return len(self.places) + count_bad(self.bad)

    def find_end(self, low: int, most: int) -> int:
        """The end of a batch of `most` records from `low` on; of all if some are lost, which take no memory."""
        return min(low + most, self.count) if all(bad.rows == 1 for bad in self.bad) else self.count

    def slice(self, low: int, high: int, file: int, name: str, row: int) -> Batch:
        """The records from `low` up to `high`; `row` is the number of records before them over the whole source."""
        first, last = np.searchsorted(self.places, (low, high))
        shift = row - low + 1
        end = Position(file, self.offset, high, row + high - low)
        # A damaged end has no bytes to skip, only a record.
        if high == self.count and self.stop > self.offset:
            end = end._replace(offset=self.stop, skip=0)
        return Batch(
            table=self.table.slice(first, last - first),
            rows=self.places[first:last] + shift,
            bad=[
                bad._replace(row=first + shift, file=name, rows=last - first)
                for bad in self.bad
                if (first := max(bad.row, low)) < (last := min(bad.row + bad.rows, high))
            ],
            files=name,
            end=end,
            read_raw=lambda number: self.read_raw(number - shift),
            mark=self.mark if high == self.count else None,
        )
