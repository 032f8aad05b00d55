"""Columnar files, tables in memory and streams of Arrow batches: rows in groups, some of which may be damaged."""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from redescend.errors import DataError
from redescend.resources import usable_memory
from redescend.sources.batch import Bad, Piece, empty_table
from redescend.sources.formats import Columns, Follow, Jobs, ReadOptions, SourceFile, check_names
from redescend.sources.kinds import Kind, convert_column, format_json, infer_type_kind
from redescend.sources.readers import FileOrigin, Origin, Tape, Text

SLICE, SLICE_BYTES = 65_536, 2**24  # the number of rows to convert at a time, and of bytes of their texts

UNREADABLE = (pa.ArrowException, OSError, ValueError, IndexError, KeyError, MemoryError)
"""Errors of PyArrow for damaged files, and for failures of the machine; `check_damage` tells them apart."""

IMPLAUSIBLE = 1 << 30, 1000
"""Bytes, and times the size of the file: a file that claims to need more than both is damaged."""

MOST_MEMORY = usable_memory() // 2  # bytes that a page of each column, or a batch, may take

EXPANDED, TIMES = 500 << 20, 100
"""A part that takes more bytes than the first may take at most this many times its stored size."""


class RowGroup(NamedTuple):
    """Consecutive rows: the first, the one after the last, and their content, or the error if they are damaged."""

    start: int
    stop: int
    content: pa.RecordBatch | Exception


class ColumnarFile(SourceFile):
    """A file that is read as Arrow record batches.

    A format defines `read_batches`, which reads the file at `path`, or, if it can start at any row, `read_rows` and
    `read_schema`: each is by default made from the other.

    Parameters
    ----------
    name : str
        The name of the file.
    damage : str or None
        Why the file is incomplete; None if it is complete, as far as is known.

    Examples
    --------
    See `register_format`.

    >>> from redescend.sources.formats import FORMATS
    >>> issubclass(FORMATS["parquet"], ColumnarFile), issubclass(FORMATS["csv"], ColumnarFile)
    (True, False)
    """

    path: Path
    size: int

    def __init__(self, name: str, damage: str | None = None) -> None:
        self.name = name
        self.damage = damage
        self._looked_up: RowGroup | None = None

    @classmethod
    def open(cls, origin: Origin, compression: str | None, options: ReadOptions) -> Self:
        if isinstance(origin, FileOrigin) and compression is None:
            file = cls(origin.name)
            file.path = origin.path
        else:
            path, damage = _copy_to_file(origin, compression)
            file = cls(origin.name, damage)
            file.path = path
            weakref.finalize(file, path.unlink, missing_ok=True)
        file.size = file.path.stat().st_size
        return file

    def read_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the whole file, up to the first damage."""
        for group in self.read_rows(None, 0):
            if isinstance(group.content, Exception):
                return
            yield group.content

    def read_schema(self) -> pa.Schema:
        """Read the names and types of the columns."""
        batch = next(iter(self.read_batches()), None)
        return pa.schema([]) if batch is None else batch.schema

    def read_rows(self, columns: list[str] | None, start: int) -> Iterator[RowGroup]:
        """Read `columns`, or all if None, from the row `start` on. The groups must be the same each time."""
        return group_rows(self.read_batches(), columns, start)

    def infer_columns(self, files: Sequence[Self]) -> Columns:
        check_names(self.name, self.names)
        kinds = {field.name: infer_type_kind(field.type) for field in self.schema}
        others = {field.name: str(field.type) for field in self.schema if kinds[field.name] is None}
        return {name: kind for name, kind in kinds.items() if kind is not None}, others

    @cached_property
    def schema(self) -> pa.Schema:
        """The names and types of its columns."""
        try:
            return self.read_schema()
        except UNREADABLE as error:
            check_damage(error, self.size)
            raise DataError(f"{self.name} cannot be read: {self.damage or format_error(error)}.") from None

    @cached_property
    def names(self) -> list[str]:
        try:
            return list(self.schema.names)
        except UnicodeDecodeError:
            raise DataError(f"{self.name} cannot be read: the name of a column is not UTF-8.") from None

    def read_head(self, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        return (job() for job in self._jobs(kinds, self.read_rows(list(kinds), 0), 0))

    def jobs(
        self, kinds: Mapping[str, Kind], start: int, follow: Follow | None = None, mark: str | None = None
    ) -> Jobs:
        return self._jobs(kinds, self.read_rows(list(kinds), start), start)

    def _jobs(self, kinds: Mapping[str, Kind], groups: Iterator[RowGroup], start: int) -> Jobs:
        for group in groups:
            if isinstance(group.content, Exception):
                yield partial(_make_damaged_piece, kinds, group)
                continue
            for at, stop in cut_rows(group.content, max(start - group.start, 0)):
                rows, first = group.content.slice(at, stop - at), group.start + at
                yield partial(convert_rows, rows, kinds, first, self._recall(first, rows))

    def _recall(self, start: int, rows: pa.RecordBatch) -> Callable[[int], bytes]:
        """A function that returns one of these rows with all its columns, which are read again."""
        return partial(self._read_record, rows.schema.names, start)

    def _read_record(self, columns: list[str], start: int, index: int) -> bytes:
        """Read one record again, with all its columns."""
        row = start + index
        # A local name: another thread may look up another group at any time.
        group = self._looked_up
        if group is None or not group.start <= row < group.stop:
            group = self._looked_up = self._look_up(columns, row)
        return b"" if isinstance(group.content, Exception) else format_json(group.content, row - group.start)

    def _look_up(self, columns: list[str], row: int) -> RowGroup:
        """The group of a row with all columns; with these columns if others are damaged."""
        group = next(group for group in self.read_rows(None, row) if row < group.stop)
        if isinstance(group.content, Exception):
            group = next(group for group in self.read_rows(columns, row) if row < group.stop)
        return group


def cut_rows(rows: pa.RecordBatch, start: int) -> Iterator[tuple[int, int]]:
    """Cut rows from `start` on into slices of few rows and few bytes: a text stored once may be in every row."""
    sizes = np.zeros(rows.num_rows)
    for column in rows.columns:
        if pa.types.is_dictionary(column.type) and infer_type_kind(column.type) is Kind.TEXT:
            words = pc.fill_null(pc.binary_length(column.dictionary), 0).to_numpy(zero_copy_only=False)
            indices = pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
            sizes += np.append(words, 0)[indices]
    ends = np.cumsum(sizes)
    while start < rows.num_rows:
        most = (ends[start - 1] if start else 0.0) + SLICE_BYTES
        stop = max(start + 1, int(np.searchsorted(ends, most, side="right")))
        stop = min(stop, start + SLICE, rows.num_rows)
        yield start, stop
        start = stop


def group_rows(batches: Iterator[pa.RecordBatch], columns: list[str] | None, start: int) -> Iterator[RowGroup]:
    """Number the rows of batches, and skip batches before `start`."""
    row, batches = 0, iter(batches)
    while True:
        try:
            batch = next(batches, None)
            if batch is None:
                return
            batch = batch if columns is None else batch.select(columns)
        except UNREADABLE as error:
            check_damage(error)
            yield RowGroup(row, row + 1, error)
            return
        if row + batch.num_rows > start:
            yield RowGroup(row, row + batch.num_rows, batch)
        row += batch.num_rows


def _copy_to_file(origin: Origin, compression: str | None) -> tuple[Path, str | None]:
    """Copy to a temporary file, because columns need random access; also returns why the copy is incomplete."""
    handle, path = tempfile.mkstemp(prefix="redescend-")
    try:
        with open(handle, "wb") as file, closing(Text(origin, compression, 0, keep=False)) as text:
            while data := text.read():
                file.write(data)
    except BaseException:
        os.unlink(path)
        raise
    return Path(path), text.damage


def convert_rows(
    rows: pa.RecordBatch, kinds: Mapping[str, Kind], offset: int, read_raw: Callable[[int], bytes]
) -> Piece:
    """Convert columns to their kinds; a record with a value that is not of its column's kind is bad."""
    arrays: list[pa.Array] = []
    wrong: dict[int, str] = {}
    for name, kind in kinds.items():
        values, errors = convert_column(rows.column(name), kind)
        arrays.append(values)
        for index, error in errors.items():
            wrong.setdefault(index, f"column {name!r}: {error}")
    table = pa.RecordBatch.from_arrays(arrays, names=list(kinds))
    places = np.arange(rows.num_rows)
    if wrong:
        places = np.delete(places, list(wrong))
        table = table.take(pa.array(places))
    bad = [Bad(index, "", wrong[index], read_raw(index)) for index in sorted(wrong)]
    return Piece(offset, offset + rows.num_rows, table, places, bad, read_raw)


def _make_damaged_piece(kinds: Mapping[str, Kind], rows: RowGroup) -> Piece:
    """The rows that are lost."""
    assert isinstance(rows.content, Exception)
    count = rows.stop - rows.start
    lost = "" if count == 1 else f", and {count:,} rows are lost"
    bad = Bad(0, "", f"the file is damaged here{lost}: {format_error(rows.content)}", b"", count)
    return Piece(rows.start, rows.stop, empty_table(kinds), np.empty(0, np.int64), [bad], lambda place: b"")


def check_damage(error: Exception, size: int = 0) -> None:
    """Raise the error again unless it means that a file of `size` bytes is damaged.

    If a file vanishes, or the disk or the memory fails, the run ends and can be resumed. PyArrow's errors about content
    have no errno; and a damaged file may request any amount of memory, even more than can be addressed.
    """
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    if isinstance(error, MemoryError) and "capacity too large" not in str(error):
        wanted = re.search(r"of size (\d+)", str(error))
        most, times = IMPLAUSIBLE
        if wanted is None or int(wanted[1]) <= max(most, times * size):
            raise error


def format_error(error: Exception) -> str:
    """The first line of an error's message, printable: it may quote bytes of a damaged file."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)


def check_expansion(name: str, what: str, stored: int, needed: int) -> None:
    """Raise if a part of a file, `what`, takes too much memory: a few bytes may expand to gigabytes.

    Pages of Parquet and batches of Arrow are read as a whole, so their sizes are looked up first.

    >>> check_expansion("a.arrow", "the batch of row 1", stored=2_000, needed=6_000_000_000)
    Traceback (most recent call last):
    redescend.errors.DataError: a.arrow: the batch of row 1 takes 5.6 GiB of memory, though 2,000 bytes are stored.
    Write the file again in smaller parts.
    """
    if needed > MOST_MEMORY or (needed > EXPANDED and needed > TIMES * stored):
        raise DataError(
            f"{name}: {what} takes {needed / 2**30:.1f} GiB of memory, though {stored:,} bytes are stored. Write the "
            "file again in smaller parts."
        )


class MemoryTable(ColumnarFile):
    """A table, or a stream of tables, read like a file.

    `batches(keep)` returns its rows from the first on; `keep` if they will be read again.
    """

    format = "memory"

    def __init__(self, name: str, schema: pa.Schema, batches: Callable[[bool], Iterator[pa.RecordBatch]]) -> None:
        super().__init__(name)
        self.schema = schema
        self._batches = batches

    def read_head(self, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        return (job() for job in self._jobs(kinds, group_rows(self._batches(True), None, 0), 0))

    def read_rows(self, columns: list[str] | None, start: int) -> Iterator[RowGroup]:
        return group_rows(map(self._count, self._batches(False)), None, start)

    def _count(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.taken += batch.get_total_buffer_size()
        return batch

    def _recall(self, start: int, rows: pa.RecordBatch) -> Callable[[int], bytes]:
        return partial(format_json, rows)


def open_table(source: Any) -> MemoryTable | None:
    """Open a table, a data frame or a stream of Arrow batches; None if it is none of these."""
    name = f"the {type(source).__name__}"
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        try:
            # The index of a data frame is not one of its columns.
            source = pa.Table.from_pandas(source, preserve_index=False)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise DataError(
                f"The data frame has a column with values of several types: {format_error(error)}."
            ) from None
    if not isinstance(source, pa.Table | pa.RecordBatchReader):
        if not hasattr(source, "__arrow_c_stream__"):
            return None
        source = pa.table(source) if hasattr(source, "columns") else pa.RecordBatchReader.from_stream(source)
    if isinstance(source, pa.Table):
        return MemoryTable(name, source.schema, lambda keep: iter(source.to_batches()))
    tape: Tape[pa.RecordBatch] = Tape(
        f"A stream can be read only once, and {name} was read before; make a table of it."
    )
    stream = MemoryTable(name, source.schema, partial(tape.replay, source))
    stream.can_reread = False
    return stream
