"""Records that are kept by columns: rows in groups, some of which may be damaged."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from redescend.errors import DataError
from redescend.sources.batch import Fault, Piece
from redescend.sources.conversion import as_json, as_kind, kind_of
from redescend.sources.kinds import TYPES, Kind

SLICE = 65_536
"""How many rows are turned into columns of the four kinds at a time."""

UNREADABLE = (pa.ArrowException, OSError, ValueError, IndexError, KeyError, MemoryError)
"""What PyArrow raises when a file is damaged."""

Follow = Callable[[], bool]


class Rows(NamedTuple):
    """Some rows: the numbers of the first and of the one after the last, and what they hold or what is wrong."""

    start: int
    stop: int
    held: pa.RecordBatch | Exception


class ColumnarPart:
    """A file or a table that is kept by columns.

    Parameters
    ----------
    name
        What it is called.
    damage
        Why it is not all there; None if it is, as far as is known.
    """

    can_grow = False

    def __init__(self, name: str, damage: str | None = None) -> None:
        self.name = name
        self.damage = damage
        self.taken = 0
        self._looked_up: Rows | None = None

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """Its columns."""
        try:
            return self.read_schema()
        except UNREADABLE as error:
            raise DataError(f"{self.name} cannot be read: {self.damage or said(error)}.") from None

    @functools.cached_property
    def names(self) -> list[str]:
        try:
            return list(self.schema.names)
        except UnicodeDecodeError:
            raise DataError(f"{self.name} cannot be read: the name of a column is not UTF-8.") from None

    def read_schema(self) -> pa.Schema:
        raise NotImplementedError

    def rows(self, columns: list[str] | None, start: int, keep: bool) -> Iterator[Rows]:
        """Its rows from this one on; all columns if None. How they are grouped depends on nothing but the file."""
        raise NotImplementedError

    def jobs(
        self, kinds: Mapping[str, Kind], start: int, *, keep: bool = False, follow: Follow | None = None
    ) -> Iterator[Callable[[], Piece]]:
        """What is to be done to read it from a row on."""
        for group in self.rows(list(kinds), start, keep):
            low = max(start - group.start, 0)
            if isinstance(group.held, Exception):
                yield functools.partial(_damaged, kinds, group)
                continue
            for at in range(low, group.held.num_rows, SLICE):
                rows = group.held.slice(at, SLICE)
                yield functools.partial(read_rows, rows, kinds, group.start + at, self.recall(group.start + at, rows))

    def recall(self, start: int, rows: pa.RecordBatch) -> Callable[[int], bytes]:
        """How one of these rows is brought back with all its columns: they are read again."""
        return functools.partial(self.record, rows.schema.names, start)

    def record(self, columns: list[str], start: int, index: int) -> bytes:
        """The record so many rows after this one, with all its columns; read again."""
        row = start + index
        # Held here: another thread may look up another group at any time.
        group = self._looked_up
        if group is None or not group.start <= row < group.stop:
            group = self._looked_up = self.look_up(columns, row)
        return b"" if isinstance(group.held, Exception) else as_json(group.held, row - group.start)

    def look_up(self, columns: list[str], row: int) -> Rows:
        """The group that a row is in: with all columns or, where others are damaged, with these that were read."""
        group = next(group for group in self.rows(None, row, True) if row < group.stop)
        if isinstance(group.held, Exception):
            group = next(group for group in self.rows(columns, row, True) if row < group.stop)
        return group


def read_rows(rows: pa.RecordBatch, kinds: Mapping[str, Kind], offset: int, raw: Callable[[int], bytes]) -> Piece:
    """The columns asked for; a record with a value that is not of its column's kind is bad."""
    arrays: list[pa.Array] = []
    wrong: dict[int, str] = {}
    for name, kind in kinds.items():
        values, complaints = as_kind(rows.column(name), kind)
        arrays.append(values)
        for index, complaint in complaints.items():
            wrong.setdefault(index, f"column {name!r}: {complaint}")
    table = pa.RecordBatch.from_arrays(arrays, names=list(kinds))
    places = np.arange(rows.num_rows)
    if wrong:
        places = np.delete(places, list(wrong))
        table = table.take(pa.array(places))
    faults = [Fault(index, wrong[index], raw(index)) for index in sorted(wrong)]
    return Piece(offset, offset + rows.num_rows, table, places, faults, raw)


def _damaged(kinds: Mapping[str, Kind], rows: Rows) -> Piece:
    """One bad record in the place of those that are lost."""
    assert isinstance(rows.held, Exception)
    empty = pa.RecordBatch.from_pylist([], pa.schema([(name, TYPES[kind]) for name, kind in kinds.items()]))
    fault = Fault(0, f"the file is damaged here: {said(rows.held)}", b"")
    return Piece(rows.start, rows.stop, empty, np.empty(0, np.int64), [fault], lambda place: b"")


def said(error: Exception) -> str:
    """The first line of what an error says, to be put in a sentence: it may quote bytes of a damaged file."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)


def kinds_of(part: ColumnarPart) -> tuple[dict[str, Kind], dict[str, str]]:
    """The kinds of its columns by their types; and the columns that have no kind, with their types."""
    kinds, others = {}, {}
    for field in part.schema:
        kind = kind_of(field.type)
        if kind is None:
            others[field.name] = str(field.type)
        else:
            kinds[field.name] = kind
    return kinds, others
