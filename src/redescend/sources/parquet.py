"""Parquet files, read a group of rows at a time.

PyArrow reads pages as a whole, and aborts the process on some damaged footers. So the sizes of pages, in the file and
in memory, are looked up first in the footer and the headers of pages: structs in Thrift's compact protocol; see
"Metadata" in the specification of Parquet.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from redescend.sources.arrow import MOST_ROWS
from redescend.sources.batch import Piece
from redescend.sources.columnar import SLICE, UNREADABLE, ColumnarFile, RowGroup, check_damage, check_expansion
from redescend.sources.kinds import Kind

BUFFER = 2**16  # bytes of a column to read at a time: a row group may not fit in memory
SPREAD = 16  # places in a large file from which records are sampled
WHOLE = 2**23  # the most values of a file that is read as a whole for a sample

FEWER = "there are fewer rows than in its index"
MAGIC = b"PAR1"


class ParquetFile(ColumnarFile):
    """A Parquet file. Row groups before the first row that is needed are not read."""

    format = "parquet"
    suffixes = ("parquet", "pq")
    magic = (MAGIC,)

    def read_schema(self) -> pa.Schema:
        return pq.read_schema(self.path)

    def read_spread(self, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        count = pq.read_metadata(self.path).num_rows if self.damage is None else 0
        if count * len(kinds) <= WHOLE:
            yield from super().read_spread(kinds)
            return
        for places in self._choose_places():
            for rows in self.read_rows(list(kinds), places[0]):
                while places and places[0] < rows.stop:
                    # The rows of a place are its first slice.
                    if (job := next(self._jobs(kinds, iter([rows]), places[0]), None)) is not None:
                        yield job()
                    places = [place for place in places if place >= min(rows.stop, places[0] + SLICE)]
                if not places:
                    break

    def _choose_places(self) -> Iterator[list[int]]:
        """Rows at which to sample a large file, by row group.

        The rows of a group before a place must be read, too: with n groups, places are in the first 1/n of each, so
        that together no more is read than one group.
        """
        metadata = pq.read_metadata(self.path)
        counts = [max(metadata.row_group(group).num_rows, 0) for group in range(metadata.num_row_groups)]
        firsts = np.cumsum([0, *counts]).tolist()
        chosen = np.unique(np.linspace(0, len(counts) - 1, min(SPREAD, len(counts))).astype(int)).tolist()
        for group in chosen:
            ends = np.linspace(0, counts[group] / len(counts), -(-SPREAD // len(chosen)), endpoint=False)
            yield [firsts[group] + place for place in np.unique(ends.astype(int)).tolist()]

    @cached_property
    def _chunks(self) -> list[list[Chunk]]:
        with open(self.path, "rb") as file:
            return read_chunks(file, self.size)

    def read_rows(self, columns: list[str] | None, start: int) -> Iterator[RowGroup]:
        try:
            file = pq.ParquetFile(
                self.path,
                pre_buffer=False,
                buffer_size=BUFFER,
                page_checksum_verification=True,
                # A long text that is repeated is stored once: it stays so until a few rows are converted.
                read_dictionary=[field.name for field in self.schema if pa.types.is_string(field.type)],
            )
        except UNREADABLE as error:
            check_damage(error, self.size)
            yield RowGroup(0, 1, error)
            return
        with file, open(self.path, "rb") as pages:
            row, total = 0, max(file.metadata.num_rows, 1)
            for group in range(file.num_row_groups):
                count = min(max(file.metadata.row_group(group).num_rows, 0), MOST_ROWS)
                if row + count > start:
                    sizes = measure_pages(pages, self._chunks[group] if group < len(self._chunks) else [], columns)
                    check_expansion(self.name, f"a page of each column from row {row + 1:,} on", *sizes)
                    yield from self._read_group(file, group, columns, range(row, row + count), start)
                row += count
                if columns is not None:
                    self.taken = self.size * row // total
            declared = min(file.metadata.num_rows, MOST_ROWS)
            if declared > max(row, start):
                yield RowGroup(max(row, start), declared, Exception(FEWER))
                row = declared
            if self.damage is not None and row >= start:
                yield RowGroup(row, row + 1, pa.ArrowInvalid(self.damage))

    def _read_group(
        self, file: pq.ParquetFile, group: int, columns: list[str] | None, rows: range, start: int
    ) -> Iterator[RowGroup]:
        row, error = rows.start, Exception(FEWER)
        try:
            for batch in file.iter_batches(SLICE, row_groups=[group], columns=columns):
                if row + batch.num_rows > start:
                    yield RowGroup(row, row + batch.num_rows, check_indices(batch))
                row += batch.num_rows
        except UNREADABLE as damage:
            check_damage(damage, self.size)
            error = damage
        if row < rows.stop:
            yield RowGroup(row, rows.stop, error)


LARGEST_FOOTER = 4 << 20  # longer ones are not parsed; a file with one is not small
HEADS = (1 << 10, 1 << 16, 1 << 20)  # bytes to read of a page for its header, which may contain long texts

BOOLEANS, BYTE, INTEGERS, DOUBLE, BINARY, LISTS, STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
"""Types of the compact protocol."""

ROW_GROUPS = 4  # number of the field of a footer
COLUMNS = 1  # of a row group
META_DATA = 3  # of a column chunk
PATH, STORED, DATA_PAGE, DICTIONARY_PAGE = 3, 7, 9, 11  # of the metadata of a column chunk
PAGE_NEEDED, PAGE_STORED = 2, 3  # of the header of a page

DEPTH = 16  # the most structs and lists inside each other


class Chunk(NamedTuple):
    """A column of a row group: its name, where its pages begin, and how many bytes they have."""

    name: bytes
    start: int
    size: int


class Compact:
    """Reads values of the compact protocol one after the other; raises `IndexError` at the end of the data."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def read_unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise KeyError(shift)

    def read_integer(self) -> int:
        """A signed number, in zigzag form."""
        value = self.read_unsigned()
        return (value >> 1) ^ -(value & 1)

    def read_binary(self) -> bytes:
        size = self.read_unsigned()
        self.at += size
        if self.at > len(self.data):
            raise IndexError
        return self.data[self.at - size : self.at]

    def read_value(self, kind: int = STRUCT, depth: int = 0, listed: bool = False) -> Any:
        """Read a value of a type: a struct as a dict by the numbers of its fields; None for what is not needed."""
        if kind in INTEGERS:
            return self.read_integer()
        if kind == BINARY:
            return self.read_binary()
        if kind in LISTS and depth < DEPTH:
            return [self.read_value(element, depth + 1, listed=True) for element in self.read_list()]
        if kind == STRUCT and depth < DEPTH:
            return {number: self.read_value(field, depth + 1) for number, field in self.read_fields()}
        if kind not in (*BOOLEANS, BYTE, DOUBLE):
            raise KeyError(kind)
        if kind not in BOOLEANS or listed:  # otherwise the type is the value
            self.at += 8 if kind == DOUBLE else 1
        return None

    def read_fields(self) -> Iterator[tuple[int, int]]:
        """The number and type of every field of a struct; the caller reads its value."""
        number = 0
        while (head := self.data[self.at]) != 0:
            self.at += 1
            number = number + (head >> 4) if head >> 4 else self.read_integer()
            yield number, head & 15
        self.at += 1

    def read_list(self) -> Iterator[int]:
        """The type of every element of a list; the caller reads its value."""
        head = self.data[self.at]
        self.at += 1
        for _ in range(head >> 4 if head >> 4 < 15 else self.read_unsigned()):
            if self.at >= len(self.data):
                raise IndexError
            yield head & 15


T = TypeVar("T")


def get_field(struct: Any, number: int, default: T) -> T:
    """The field of a struct with this number; the default unless it is there and of the same type."""
    value = struct.get(number) if isinstance(struct, dict) else None
    return value if isinstance(value, type(default)) else default


def read_chunks(file: Any, size: int) -> list[list[Chunk]]:
    """The columns of every row group of a file of `size` bytes; none if its footer cannot be parsed, or is long."""
    file.seek(max(size - 8, 0))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != MAGIC or not 0 < length <= min(size - 8, LARGEST_FOOTER):
        return []
    file.seek(size - 8 - length)
    try:
        footer = Compact(file.read(length)).read_value()
    except (IndexError, KeyError):
        return []
    groups = get_field(footer, ROW_GROUPS, list[Any]())
    return [[_make_chunk(column) for column in get_field(group, COLUMNS, list[Any]())] for group in groups]


def _make_chunk(column: Any) -> Chunk:
    known = get_field(column, META_DATA, dict[int, Any]())
    first, dictionary = get_field(known, DATA_PAGE, 0), get_field(known, DICTIONARY_PAGE, 0)
    names = [part for part in get_field(known, PATH, list[Any]()) if isinstance(part, bytes)]
    start = min(first, dictionary) if dictionary > 0 else first
    return Chunk(names[0] if names else b"", start, get_field(known, STORED, 0))


def measure_pages(file: Any, chunks: list[Chunk], columns: list[str] | None) -> tuple[int, int]:
    """The total size, in the file and in memory, of the largest page of each of `columns`, or of all if None."""
    names = None if columns is None else {name.encode() for name in columns}
    size = file.seek(0, os.SEEK_END)
    stored = needed = 0
    for chunk in chunks:
        if names is None or chunk.name in names:
            pages = list(_read_pages(file, size, chunk))
            stored += max((page[0] for page in pages), default=0)
            needed += max((page[1] for page in pages), default=0)
    return stored, needed


def _read_pages(file: Any, size: int, chunk: Chunk) -> Iterator[tuple[int, int]]:
    """The size of every page in the file and in memory, up to a header that cannot be parsed or is beyond the file."""
    at = chunk.start
    while 0 <= at < min(chunk.start + chunk.size, size):
        found = _read_header(file, at)
        if found is None:
            return
        stored, needed, length = found
        yield stored, needed
        at += length + stored


def _read_header(file: Any, at: int) -> tuple[int, int, int] | None:
    for size in HEADS:
        file.seek(at)
        data = file.read(size)
        header = Compact(data)
        try:
            found = header.read_value()
        except KeyError:
            return None
        except IndexError:
            if len(data) < size:
                return None
            continue
        stored, needed = get_field(found, PAGE_STORED, -1), get_field(found, PAGE_NEEDED, -1)
        return (stored, needed, header.at) if min(stored, needed) >= 0 else None
    return None


def check_indices(batch: pa.RecordBatch) -> pa.RecordBatch | Exception:
    """The batch, or an error if a text is not in its dictionary: pages need not have a checksum."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            least, most = pc.min_max(column.indices).as_py().values()
            if most is not None and not 0 <= least <= most < len(column.dictionary):
                return pa.ArrowInvalid(f"Indices of column {name!r} are out of bounds")
    return batch
