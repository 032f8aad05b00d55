"""The messages of an Arrow file or stream: how many rows each batch declares, and how much memory it takes.

PyArrow does not return the number of rows of a batch that it cannot read. A message is a marker, the size of its
header, the header (a FlatBuffer), and its body; see "Encapsulated message format" in the specification of Arrow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

MARKER = b"\xff\xff\xff\xff"
DICTIONARY, RECORD_BATCH = 2, 3
HEADER_TYPE, HEADER, BODY_LENGTH = 1, 2, 3
CONTENT = 1
LENGTH, BUFFERS, COMPRESSION = 0, 2, 3
"""Numbers of fields: of a message, of a dictionary, and of a batch."""

MOST_ROWS = 2**40
"""A batch that declares more rows is taken to be damaged."""


class Message(NamedTuple):
    """A batch, or a dictionary, which is a batch with one column; other messages have no rows and no buffers."""

    kind: int
    rows: int
    body: int
    """Its size in the file, in bytes."""
    compressed: list[int]
    """Where each compressed buffer begins in the body; none if they are not compressed."""


def count_batch_rows(file: Any, size: int, offset: int) -> list[int]:
    """The rows that the batches of a file of `size` bytes declare, from `offset` up to a header that is damaged."""
    return [message.rows for message, _ in _read_messages(file, size, offset) if message.kind == RECORD_BATCH]


def measure_batches(file: Any, size: int, offset: int) -> Iterator[tuple[int, int]]:
    """The bytes of every batch in the file and in memory, with the dictionaries that are read before it."""
    stored = needed = 0
    for message, start in _read_messages(file, size, offset):
        body = range(start, min(start + message.body, size))  # as much of it as the file has
        stored, needed = stored + len(body), needed + _measure(file, message, body)
        if message.kind == RECORD_BATCH:
            yield stored, needed
            stored = needed = 0


def _measure(file: Any, message: Message, body: range) -> int:
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
        file.seek(offset)
        try:
            marker, length = struct.unpack("<4si", file.read(8))
            if marker != MARKER or not 0 < length <= size - offset:
                return
            message = _parse_header(file.read(length))
        except (struct.error, IndexError):
            return
        if not 0 <= message.rows <= MOST_ROWS:
            return
        yield message, offset + 8 + length
        if message.body < 0:
            return
        offset += 8 + length + message.body


def _parse_header(data: bytes) -> Message:
    message = struct.unpack_from("<I", data, 0)[0]
    (kind,) = _read_field(data, message, HEADER_TYPE, "<B")
    (body,) = _read_field(data, message, BODY_LENGTH, "<q")
    if kind not in (RECORD_BATCH, DICTIONARY):
        return Message(kind, 0, body, [])
    batch = _follow(data, _find_field(data, message, HEADER))
    if kind == DICTIONARY:
        batch = _follow(data, _find_field(data, batch, CONTENT))
    (rows,) = _read_field(data, batch, LENGTH, "<q")
    return Message(kind, rows, body, _find_buffers(data, batch))


def _find_buffers(data: bytes, batch: int) -> list[int]:
    """Where the compressed buffers of a batch begin; empty ones are not compressed."""
    place = _find_field(data, batch, BUFFERS)
    if not place or not _find_field(data, batch, COMPRESSION):
        return []
    vector = _follow(data, place)
    (count,) = struct.unpack_from("<I", data, vector)
    if vector + 4 + 16 * count > len(data):
        raise IndexError
    buffers = struct.iter_unpack("<qq", data[vector + 4 : vector + 4 + 16 * count])
    return [start for start, length in buffers if length > 0]


def _follow(data: bytes, place: int) -> int:
    """Where a table or a vector is to which there is an offset at a place."""
    return place + int(struct.unpack_from("<I", data, place)[0])


def _read_field(data: bytes, table: int, number: int, format: str) -> tuple[int]:
    place = _find_field(data, table, number)
    return struct.unpack_from(format, data, place) if place else (0,)


def _find_field(data: bytes, table: int, number: int) -> int:
    """The place of a field of a FlatBuffer's table; 0 if it has its default value."""
    offsets = table - struct.unpack_from("<i", data, table)[0]
    if offsets < 0:
        raise IndexError
    (size,) = struct.unpack_from("<H", data, offsets)
    if 4 + 2 * number + 2 > size:
        return 0
    (offset,) = struct.unpack_from("<H", data, offsets + 4 + 2 * number)
    return table + offset if offset else 0
