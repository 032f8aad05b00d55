r"""Journals: records that a server has acknowledged, as JSON lines between the lines that commit them.

A journal begins with the line ``#redescend-journal 1``. A frame is a line and its payload::

    #commit CHECKSUM BYTES [[RECORDS, KEY, DIGEST], ...]\n    the records of one or more requests, one a line
    #schema CHECKSUM BYTES []\n                               the schema, once it is inferred

The checksum is the CRC-32 of the rest of the line and of the payload. An incomplete frame at the end was never
acknowledged, and is not read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, Self
from zlib import crc32

from redescend.errors import DataError
from redescend.sources.formats import Columns, ReadOptions
from redescend.sources.jsonl import JsonLinesFile
from redescend.sources.kinds import Kind
from redescend.sources.readers import FileOrigin, Origin

MAGIC = b"#redescend-journal 1\n"
COMMIT, SCHEMA = "commit", "schema"
LONGEST_LINE = 1 << 24  # bytes of the line of a frame: some for each of its requests


class Frame(NamedTuple):
    """A frame: its kind, its requests (number of records, key, digest), its payload, and where it begins and ends."""

    kind: str
    requests: list[tuple[int, str | None, int]]
    payload: bytes
    start: int
    end: int

    def records(self) -> list[bytes]:
        """The records of a commit."""
        return self.payload.split(b"\n")[:-1]


def encode_frame(
    kind: str, requests: Sequence[tuple[int, str | None, int]], payload: Sequence[bytes | memoryview]
) -> bytearray:
    r"""A frame, whose payload may be in parts.

    >>> bytes(encode_frame("commit", [(1, "a", 7)], [b'{"x": ', b"1}\n"]))
    b'#commit 59e6d9f9 9 [[1,"a",7]]\n{"x": 1}\n'
    """
    start = b"#%s 00000000 " % kind.encode()
    rest = f"{sum(map(len, payload))} {json.dumps(requests, separators=(',', ':'))}\n".encode()
    frame = bytearray().join((start, rest, *payload))
    checksum = crc32(memoryview(frame)[len(start) :])
    frame[len(start) - 9 : len(start) - 1] = b"%08x" % checksum
    return frame


def read_frames(file: BinaryIO, start: int = 0) -> Iterator[Frame]:
    """The frames of an open journal from an offset on, up to the first that is incomplete.

    Raises an error if it is not a journal, or if it is damaged before its last frame.
    """
    file.seek(0)
    begin = file.read(len(MAGIC))
    if begin != MAGIC:
        if MAGIC.startswith(begin):
            return  # the process was killed while it created the journal
        raise DataError(f"'{file.name}' is not a journal.")
    place = file.seek(max(start, len(MAGIC)))
    while (frame := _read_frame(file, place)) is not None:
        place = frame.end
        yield frame
    _check_nothing_follows(file, place)


def _read_frame(file: BinaryIO, place: int) -> Frame | None:
    file.seek(place)
    line = file.readline(LONGEST_LINE)
    try:
        name, checksum, size, text = line.split(b" ", 3)
        kind, length = name[1:].decode(), int(size)
        if name[:1] != b"#" or kind not in (COMMIT, SCHEMA) or not 0 <= length <= os.fstat(file.fileno()).st_size:
            return None
        payload = file.read(length)
        rest = b"%s %s" % (size, text)
        if len(payload) < length or int(checksum, 16) != crc32(payload, crc32(rest)):
            return None
        requests = [(int(count), key, int(digest)) for count, key, digest in json.loads(text)]
    except ValueError:
        return None
    return Frame(kind, requests, payload, place, place + len(line) + length)


def _check_nothing_follows(file: BinaryIO, place: int) -> None:
    """Raise if a complete frame follows an incomplete one: then the file is damaged."""
    file.seek(place)
    rest, at = file.read(), -1
    while (at := rest.find(b"\n#", at + 1)) >= 0:
        if _read_frame(file, place + at + 1) is not None:
            raise DataError(
                f"'{file.name}' is damaged at byte {place}, before its last record; restore it from a copy, or "
                "truncate it there and lose the records after it."
            )


class JournalOrigin(FileOrigin):
    """The records of a journal, as a text without the lines that commit them."""

    def read(self, block: int, offset: int, keep: bool) -> Generator[bytes, None, None]:
        with open(self.path, "rb") as file:
            parts, size = [], 0
            for frame in read_frames(file):
                if frame.kind == COMMIT:
                    skip = min(offset, len(frame.payload))
                    offset -= skip
                    parts.append(frame.payload[skip:])
                    size += len(parts[-1])
                    if size >= block:
                        yield b"".join(parts)
                        parts, size = [], 0
            if size:
                yield b"".join(parts)
        while True:
            yield b""


class JournalFile(JsonLinesFile):
    """A journal of `redescend serve`, with the schema of the server."""

    format = "journal"
    suffixes: ClassVar[tuple[str, ...]] = ("journal",)
    magic = (MAGIC[:18],)

    @classmethod
    def recognizes(cls, first: bytes) -> bool:
        return first.startswith(cls.magic)

    @classmethod
    def open(cls, origin: Origin, compression: str | None, options: ReadOptions) -> Self:
        if not isinstance(origin, FileOrigin) or compression is not None:
            raise DataError(f"{origin.name} is a journal in a pipe or compressed; write it to an uncompressed file.")
        file = cls(JournalOrigin(Path(origin.path)), None, options)
        file.can_grow = False
        # A run over it must give the model that is served, which makes one pass.
        file.can_reread = False
        with open(origin.path, "rb") as content:
            declared = next((frame for frame in read_frames(content) if frame.kind == SCHEMA), None)
        file.declared = None if declared is None else json.loads(declared.payload)
        return file

    def infer_columns(self, files: Sequence[Self]) -> Columns:
        kinds, others = super().infer_columns(files)
        declared: Mapping[str, Any] = {} if self.declared is None else self.declared["kinds"]
        kinds |= {name: Kind(kind) for name, kind in declared.items()}
        return kinds, {name: others[name] for name in others.keys() - kinds.keys()}
