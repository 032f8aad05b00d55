"""The messages of an Arrow file or stream: how many rows each batch says it has, whatever its content is.

PyArrow does not return this number for a batch that it cannot read. A message is a marker, the size of its header, the
header (a FlatBuffer), and its body; see "Encapsulated message format" in the specification of Arrow.
"""

from __future__ import annotations

import struct
from typing import Any

MARKER = b"\xff\xff\xff\xff"
RECORD_BATCH = 3
HEADER_TYPE, HEADER, BODY_LENGTH = 1, 2, 3
LENGTH = 0
"""Numbers of fields: of a message, and of a batch."""

MOST_ROWS = 2**40
"""A batch that says that it has more rows is not believed."""


def count_batch_rows(file: Any, size: int, offset: int) -> list[int]:
    """The rows that the batches of a file of `size` bytes declare, from `offset` up to a header that is damaged."""
    counts = []
    while 0 <= offset < size:
        file.seek(offset)
        try:
            marker, length = struct.unpack("<4si", file.read(8))
            if marker != MARKER or not 0 < length <= size - offset:
                break
            kind, body, rows = _parse_header(file.read(length))
        except (struct.error, IndexError):
            break
        if kind == RECORD_BATCH:
            if not 0 <= rows <= MOST_ROWS:
                break
            counts.append(rows)
        if body < 0:
            break
        offset += 8 + length + body
    return counts


def _parse_header(data: bytes) -> tuple[int, int, int]:
    """The type of a message, the size of its body, and its rows if it is a batch."""
    message = struct.unpack_from("<I", data, 0)[0]
    (kind,) = _read_field(data, message, HEADER_TYPE, "<B")
    (body,) = _read_field(data, message, BODY_LENGTH, "<q")
    if kind != RECORD_BATCH:
        return kind, body, 0
    place = _find_field(data, message, HEADER)
    header = place + struct.unpack_from("<I", data, place)[0]
    return kind, body, *_read_field(data, header, LENGTH, "<q")


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
