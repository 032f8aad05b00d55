"""The messages of an Arrow file or stream: how many rows each batch declares, and how much memory it takes.

PyArrow does not return the number of rows of a batch that it cannot read. A message is a marker, the size of its
header, the header (a FlatBuffer), and its body; see "Encapsulated message format" in the specification of Arrow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

MARKER = b"\xff\xff\xff\xff"
END = MARKER + bytes(4)  # behind the last message of a stream

DICTIONARY, RECORD_BATCH = 2, 3
HEADER_TYPE, HEADER, BODY_LENGTH = 1, 2, 3  # numbers of fields of a message
CONTENT = 1  # of a dictionary
LENGTH, BUFFERS, COMPRESSION = 0, 2, 3  # of a batch
DICTIONARIES, BATCHES = 2, 3  # of an index

BLOCK = struct.Struct("<qi4xq")
"""An entry of an index: where a message begins, the size of all before its body, and the size of its body."""

MOST_ROWS = 2**40  # a batch that declares more rows is taken to be damaged


class Message(NamedTuple):
    """A batch, or a dictionary, which is a batch with one column; other messages have no rows and no buffers."""

    kind: int
    rows: int
    body: int
    """Its size in the file, in bytes."""
    compressed: list[int]
    """The offsets of compressed buffers in the body; none if they are not compressed."""
    inside: bool = True
    """Whether all buffers are inside of the body. PyArrow 19 crashes on some that are not."""


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
    except (struct.error, IndexError):
        return []
    dictionaries, batches = ([_measure_entry(file, size, *entry) for entry in entries] for entries in index)
    known = [sizes for sizes in dictionaries if sizes is not None]
    if len(known) < len(dictionaries):
        return [None] * len(batches)
    if batches and batches[0] is not None:
        known.append(batches[0])
        batches[0] = sum(stored for stored, _ in known), sum(needed for _, needed in known)
    return batches


def _measure_entry(file: Any, size: int, offset: int, head: int, _: int) -> tuple[int, int] | None:
    """The bytes of the message of an entry in the file and in memory; None if it is damaged."""
    if not 0 <= offset < size or head < 0:
        return None
    try:
        message, _ = _read_message(file, size, offset)
    except (struct.error, IndexError):
        return None
    if not message.inside:
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
        except (struct.error, IndexError):
            return
        yield message, start
        if message.body < 0:
            return
        offset = start + message.body


def _read_message(file: Any, size: int, offset: int) -> tuple[Message, int]:
    """The message at a place, and where its body begins; raises if it is damaged."""
    file.seek(offset)
    marker, length = struct.unpack("<4si", file.read(8))
    start = offset + 8
    if marker != MARKER:  # before 2019 there was none
        (length,), start = struct.unpack("<i", marker), offset + 4
        file.seek(start)
    if not 0 < length <= size - offset:
        raise IndexError
    message = _parse_header(file.read(length))
    if not 0 <= message.rows <= MOST_ROWS:
        raise IndexError
    return message, start + length


def _read_index(file: Any, size: int) -> tuple[list[Any], list[Any]]:
    """The entries of dictionaries and of batches in the index of a file."""
    file.seek(max(size - 10, 0))
    (length,) = struct.unpack("<i", file.read(4))
    if not 0 < length <= size - 10:
        raise IndexError
    file.seek(size - 10 - length)
    data = file.read(length)
    index, found = _follow_offset(data, 0), list[list[Any]]()
    for number in (DICTIONARIES, BATCHES):
        place = _find_field(data, index, number)
        vector = _follow_offset(data, place) if place else 0
        (count,) = struct.unpack_from("<I", data, vector) if place else (0,)
        if vector + 4 + BLOCK.size * count > len(data):
            raise IndexError
        found.append(list(BLOCK.iter_unpack(data[vector + 4 : vector + 4 + BLOCK.size * count])))
    return found[0], found[1]


def _parse_header(data: bytes) -> Message:
    message = struct.unpack_from("<I", data, 0)[0]
    (kind,) = _read_field(data, message, HEADER_TYPE, "<B")
    (body,) = _read_field(data, message, BODY_LENGTH, "<q")
    if kind not in (RECORD_BATCH, DICTIONARY):
        return Message(kind, 0, body, [])
    batch = _follow_offset(data, _find_field(data, message, HEADER))
    if kind == DICTIONARY:
        batch = _follow_offset(data, _find_field(data, batch, CONTENT))
    (rows,) = _read_field(data, batch, LENGTH, "<q")
    buffers = _find_buffers(data, batch)
    inside = all(0 <= start <= start + length <= body for start, length in buffers)
    compressed = [start for start, length in buffers if length > 0] if _find_field(data, batch, COMPRESSION) else []
    return Message(kind, rows, body, compressed, inside)  # empty buffers are not compressed


def _find_buffers(data: bytes, batch: int) -> list[tuple[int, int]]:
    """The offsets of the buffers of a batch in the body, and their sizes."""
    place = _find_field(data, batch, BUFFERS)
    if not place:
        return []
    vector = _follow_offset(data, place)
    (count,) = struct.unpack_from("<I", data, vector)
    if vector + 4 + 16 * count > len(data):
        raise IndexError
    return list(struct.iter_unpack("<qq", data[vector + 4 : vector + 4 + 16 * count]))


def _follow_offset(data: bytes, place: int) -> int:
    """Follow the offset at a place to its table or vector."""
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
