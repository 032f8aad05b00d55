"""Arrow IPC files and streams, read a batch at a time.

PyArrow does not return the number of rows of a batch that it cannot read, so the headers of messages are parsed here. A
message is a marker, the size of its header, the header (a FlatBuffer), and its body; see "Encapsulated message format"
in the specification of Arrow.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, zip_longest
from typing import Any, NamedTuple

import pyarrow as pa

from redescend.sources.columnar import UNREADABLE, ColumnarFile, RowGroup, check_damage, check_expansion

INDEXED = b"ARROW1"
BODY = 8  # the offset of the first message of an indexed file
MARKER = b"\xff\xff\xff\xff"
END = MARKER + bytes(4)  # behind the last message of a stream

DAMAGED = pa.ArrowInvalid("a message is damaged")

Batches = Iterator[tuple[pa.RecordBatch | Exception, int, float]]
"""Every batch, or its error, its number of rows, and the share of the file that is read."""


class ArrowFile(ColumnarFile):
    """A file of Arrow batches, with an index at its end or, as a stream, without."""

    format = "arrow"
    suffixes = ("arrow", "arrows", "feather", "ipc")
    magic = (INDEXED, MARKER)
    _declared: list[int] | None = None

    def read_schema(self) -> pa.Schema:
        with pa.OSFile(str(self.path)) as file:
            return self._open_batches(file, None)[0]

    def read_rows(self, columns: list[str] | None, start: int) -> Iterator[RowGroup]:
        row = 0
        with pa.OSFile(str(self.path)) as file:
            places = {name: place for place, name in enumerate(self.names)}
            try:
                _, batches = self._open_batches(file, None if columns is None else [places[name] for name in columns])
            except UNREADABLE as error:
                check_damage(error, self.size)
                yield RowGroup(0, 1, error)
                return
            for batch, rows, share in batches:
                if row + rows > start:
                    yield RowGroup(row, row + rows, batch)
                row += rows
                if columns is not None:
                    self.taken = int(share * self.size)
            if columns is not None:
                self.taken = self.size

    def _look_up(self, columns: list[str], row: int) -> RowGroup:
        # Batch by batch: the columns that were read give the number of rows of a batch whose other columns are damaged.
        pairs = zip_longest(self.read_rows(columns, -1), self.read_rows(None, -1))
        group, whole = next((group, whole) for group, whole in pairs if group is not None and row < group.stop)
        return group if whole is None or isinstance(whole.content, Exception) else group._replace(content=whole.content)

    def _open_batches(self, file: Any, fields: list[int] | None) -> tuple[pa.Schema, Batches]:
        """The schema and the batches, read by the index of the file if that is whole."""
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        indexed = file.read(len(INDEXED)) == INDEXED
        file.seek(BODY)
        # A size without a marker before it: from before 2019. PyArrow up to 21 cannot select columns by its index.
        old = 0 < int.from_bytes(file.read(len(MARKER)), "little", signed=True) < self.size
        file.seek(max(self.size - len(INDEXED), 0))
        complete = not indexed or file.read(len(INDEXED)) == INDEXED
        file.seek(0)
        if indexed and not old:
            try:
                reader = pa.ipc.open_file(file, options=options)
            except UNREADABLE as error:
                check_damage(error, self.size)
                complete = False
            else:
                return reader.schema, self._read_indexed(reader)
        # Without its index it is still a stream, after eight bytes.
        offset = BODY if indexed else 0
        file.seek(offset)
        stream = pa.ipc.open_stream(file, options=options)
        return stream.schema, self._read_stream(file, stream, offset, complete)

    def _read_indexed(self, reader: pa.ipc.RecordBatchFileReader) -> Batches:
        with open(self.path, "rb") as file:
            measured = dict(enumerate(measure_indexed(file, self.size)))
        for number in range(reader.num_record_batches):
            batch: Any = DAMAGED
            if (sizes := measured.get(number)) is not None:
                check_expansion(self.name, f"batch {number + 1:,}", *sizes)
                batch = self._read_checked(partial(reader.get_batch, number))
            rows = self._count_rows(batch, number, BODY)
            yield batch, 1 if rows is None else rows, (number + 1) / reader.num_record_batches
        if self.damage is not None:
            yield pa.ArrowInvalid(self.damage), 1, 1.0

    def _read_stream(self, file: Any, stream: pa.ipc.RecordBatchStreamReader, offset: int, complete: bool) -> Batches:
        end: Exception | None = None if complete else pa.ArrowInvalid("the end of the file is missing")
        with open(self.path, "rb") as headers:
            for number in count():
                if (sizes := next(measure_batches(headers, self.size, file.tell()), None)) is not None:
                    check_expansion(self.name, f"batch {number + 1:,}", *sizes)
                elif not _ends_at(headers, file.tell()):
                    end = end or DAMAGED
                    break
                batch = self._read_checked(stream.read_next_batch)
                if batch is None:
                    break
                rows = self._count_rows(batch, number, offset)
                if rows is None:
                    end = batch  # the start of the next batch is unknown
                    break
                yield batch, rows, file.tell() / max(self.size, 1)
        if self.damage is not None:
            end = pa.ArrowInvalid(self.damage)
        if end is not None:
            yield end, 1, 1.0

    def _count_rows(self, batch: pa.RecordBatch | Exception, number: int, offset: int) -> int | None:
        """The rows of a batch; of a damaged one, those that it declares, or 1. None if its header is damaged, too."""
        if not isinstance(batch, Exception):
            return batch.num_rows
        if self._declared is None:
            with open(self.path, "rb") as file:
                self._declared = count_batch_rows(file, self.size, offset)
        return max(self._declared[number], 1) if number < len(self._declared) else None

    def _read_checked(self, read: Callable[[], pa.RecordBatch]) -> pa.RecordBatch | Exception | None:
        """A batch, its error, or None at the end. A batch that is not validated may point anywhere in memory."""
        try:
            batch = read()
            batch.validate(full=True)
        except StopIteration:
            return None
        except UNREADABLE as error:
            check_damage(error, self.size)
            return error
        return batch


def _ends_at(file: Any, offset: int) -> bool:
    file.seek(offset)
    following = file.read(len(END))
    return following in (b"", END) or following[:4] == bytes(4)  # without a marker before 2019


DICTIONARY, RECORD_BATCH = 2, 3
HEADER_TYPE, HEADER, BODY_LENGTH = 1, 2, 3  # numbers of fields of a message
CONTENT = 1  # of a dictionary
LENGTH, BUFFERS, COMPRESSION = 0, 2, 3  # of a batch
DICTIONARIES, BATCHES = 2, 3  # of an index

BUFFER = struct.Struct("<qq")  # the offset of a buffer in the body, and its size
BLOCK = struct.Struct("<qi4xq")
"""An entry of an index: where a message begins, the size of all before its body, and the size of its body."""

INDEX_END = 4 + len(INDEXED)  # bytes behind an index: its size, and the mark of the format

MOST_ROWS = 2**40  # a batch that declares more rows is taken to be damaged


class DamagedError(Exception):
    """A header or an index that cannot be parsed."""


class Message(NamedTuple):
    """A batch, or a dictionary, which is a batch with one column; other messages have no rows and no buffers."""

    kind: int
    rows: int
    body: int  # its size in the file, in bytes
    compressed: list[int]  # the offsets of compressed buffers in the body; none if they are not compressed
    inside: bool = True  # whether all buffers are inside of the body. PyArrow 19 crashes on some that are not.


def count_batch_rows(file: Any, size: int, offset: int) -> list[int]:
    """The rows that the batches of a file of `size` bytes declare, from `offset` up to a header that is damaged."""
    return [message.rows for message, _ in _read_messages(file, size, offset) if message.kind == RECORD_BATCH]


def measure_batches(file: Any, size: int, offset: int) -> Iterator[tuple[int, int]]:
    """The bytes of every batch in the file and in memory, with the dictionaries that are read before it."""
    stored = needed = 0
    for message, start in _read_messages(file, size, offset):
        body = range(start, min(start + message.body, size))  # as much of it as the file has
        stored, needed = stored + len(body), needed + _measure_body(file, message, body)
        if message.kind == RECORD_BATCH:
            yield stored, needed
            stored = needed = 0


def measure_indexed(file: Any, size: int) -> list[tuple[int, int] | None]:
    """Measure the batches in the index at the end of a file, which may refer to any offset; None if damaged.

    All dictionaries are read before the first batch.
    """
    try:
        index = _read_index(file, size)
    except DamagedError:
        return []
    dictionaries, batches = ([_measure_entry(file, size, *entry) for entry in entries] for entries in index)
    first = [sizes for sizes in (*dictionaries, *batches[:1]) if sizes is not None]
    if None in dictionaries:
        return [None] * len(batches)
    if batches and batches[0] is not None:
        batches[0] = sum(stored for stored, _ in first), sum(needed for _, needed in first)
    return batches


def _measure_entry(file: Any, size: int, offset: int, head: int, _: int) -> tuple[int, int] | None:
    """The bytes of the message of an entry in the file and in memory; None if it is damaged."""
    message, _ = next(_read_messages(file, size, offset), (None, 0))
    if message is None or not message.inside or head < 0:
        return None
    body = range(offset + head, min(offset + head + message.body, size))
    return len(body), _measure_body(file, message, body)


def _measure_body(file: Any, message: Message, body: range) -> int:
    """The bytes that the body of a message takes in memory: a compressed buffer begins with its size.

    A buffer that begins outside of the body is damaged, and never read.
    """
    total = 0
    for place in message.compressed:
        if body.start + place in body:
            file.seek(body.start + place)
            (needed,) = struct.unpack("<q", file.read(8).ljust(8, b"\0"))
            total += max(needed, 0)
    return max(total, len(body))


def _read_messages(file: Any, size: int, offset: int) -> Iterator[tuple[Message, int]]:
    """Messages, and where their bodies begin, up to one that is damaged."""
    while 0 <= offset < size:
        try:
            message, start = _read_message(file, size, offset)
        except DamagedError:
            return
        yield message, start
        if message.body < 0:
            return
        offset = start + message.body


def _read_message(file: Any, size: int, offset: int) -> tuple[Message, int]:
    """The message at a place, and where its body begins."""
    file.seek(offset)
    marker, length = _unpack("<4si", file.read(8))
    start = offset + 8
    if marker != MARKER:  # before 2019 there was none
        (length,), start = _unpack("<i", marker), offset + 4
        file.seek(start)
    if not 0 < length <= size - offset:
        raise DamagedError
    message = _parse_header(file.read(length))
    if not 0 <= message.rows <= MOST_ROWS:
        raise DamagedError
    return message, start + length


def _read_index(file: Any, size: int) -> tuple[list[Any], list[Any]]:
    """The entries of dictionaries and of batches in the index of a file."""
    end = size - INDEX_END
    file.seek(max(end, 0))
    (length,) = _unpack("<i", file.read(4))
    if not 0 < length <= end:
        raise DamagedError
    file.seek(end - length)
    data = file.read(length)
    index = _follow_offset(data, 0)
    return _read_vector(data, index, DICTIONARIES, BLOCK), _read_vector(data, index, BATCHES, BLOCK)


def _parse_header(data: bytes) -> Message:
    message = _follow_offset(data, 0)
    (kind,) = _read_field(data, message, HEADER_TYPE, "<B")
    (body,) = _read_field(data, message, BODY_LENGTH, "<q")
    if kind not in (RECORD_BATCH, DICTIONARY):
        return Message(kind, 0, body, [])
    batch = _follow_offset(data, _find_field(data, message, HEADER))
    if kind == DICTIONARY:
        batch = _follow_offset(data, _find_field(data, batch, CONTENT))
    (rows,) = _read_field(data, batch, LENGTH, "<q")
    buffers = _read_vector(data, batch, BUFFERS, BUFFER)
    inside = all(0 <= start <= start + length <= body for start, length in buffers)
    compressed = [start for start, length in buffers if length > 0] if _find_field(data, batch, COMPRESSION) else []
    return Message(kind, rows, body, compressed, inside)  # empty buffers are not compressed


def _read_vector(data: bytes, table: int, number: int, entry: struct.Struct) -> list[Any]:
    """The entries of a vector, a field of a FlatBuffer's table."""
    place = _find_field(data, table, number)
    if not place:
        return []
    vector = _follow_offset(data, place)
    start = vector + 4
    stop = start + entry.size * _unpack("<I", data, vector)[0]
    if stop > len(data):
        raise DamagedError
    return list(entry.iter_unpack(data[start:stop]))


def _unpack(format: str, data: bytes, place: int = 0) -> tuple[Any, ...]:
    try:
        return struct.unpack_from(format, data, place)
    except struct.error:
        raise DamagedError from None


def _follow_offset(data: bytes, place: int) -> int:
    """Follow the offset at a place to its table or vector."""
    return place + int(_unpack("<I", data, place)[0])


def _read_field(data: bytes, table: int, number: int, format: str) -> tuple[Any, ...]:
    place = _find_field(data, table, number)
    return _unpack(format, data, place) if place else (0,)


def _find_field(data: bytes, table: int, number: int) -> int:
    """The place of a field of a FlatBuffer's table; 0 if it has its default value."""
    offsets = table - _unpack("<i", data, table)[0]
    if offsets < 0:
        raise DamagedError
    (size,) = _unpack("<H", data, offsets)
    if 4 + 2 * number + 2 > size:
        return 0
    (offset,) = _unpack("<H", data, offsets + 4 + 2 * number)
    return table + offset if offset else 0
