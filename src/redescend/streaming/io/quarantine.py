"""The quarantine: rejected records as they came, one JSON object per line, with row, file and reason."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from redescend.files import replace_file
from redescend.numeric import Array
from redescend.sources import Bad

MAX_BUFFERED, MAX_BYTES = 1000, 1 << 22
"""Limits of the rejected records that are buffered in memory if no file takes them."""


def format_line(bad: Bad) -> bytes:
    r"""Format a rejected record as one line of a quarantine file; a record that is not UTF-8 is encoded in base 64.

    >>> format_line(Bad(7, "prices.csv", "3 values where the header has 2", b"1,2,3"))
    b'{"row": 7, "file": "prices.csv", "reason": "3 values where the header has 2", "record": "1,2,3"}\n'
    >>> format_line(Bad(8, "prices.csv", "invalid UTF-8 at byte 1", b"\xff"))
    b'{"row": 8, "file": "prices.csv", "reason": "invalid UTF-8 at byte 1", "record_base64": "/w=="}\n'
    """
    content = {"row": bad.row, "file": bad.file, "reason": bad.reason}
    try:
        content["record"] = bad.raw.decode()
    except UnicodeDecodeError:
        content["record_base64"] = base64.b64encode(bad.raw).decode()
    # File names may contain bytes that are not UTF-8; escaped with a backslash they are valid JSON.
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def parse_line(text: bytes) -> Bad:
    r"""Parse a line of a quarantine file.

    >>> bad = Bad(8, "prices.csv", "invalid UTF-8 at byte 1", b"\xff")
    >>> parse_line(format_line(bad)) == bad
    True
    """
    content = json.loads(text)
    encoded = content.get("record_base64")
    raw = content["record"].encode() if encoded is None else base64.b64decode(encoded)
    return Bad(content["row"], content["file"], content["reason"], raw)


def write_file(log: Path, target: Path) -> None:
    """Copy the lines of a log to the quarantine file."""
    with replace_file(target) as file, open(log, "rb") as lines:
        shutil.copyfileobj(lines, file, 1 << 20)


class RejectedBuffer:
    """The first rejected records, in memory: at most `MAX_BUFFERED` of them, and `MAX_BYTES` in all."""

    def __init__(self) -> None:
        self.records: list[Bad] = []
        self._size = 0

    def add(self, records: Iterable[Bad]) -> None:
        for bad in records:
            if len(self.records) >= MAX_BUFFERED:
                return
            size = len(format_line(bad))
            if self._size + size <= MAX_BYTES:
                self.records.append(bad)
                self._size += size

    def state(self) -> Array:
        """The lines, as an array of bytes."""
        return np.frombuffer(b"".join(map(format_line, self.records)), np.uint8)

    def restore(self, state: Array) -> None:
        self.records = [parse_line(text) for text in state.tobytes().split(b"\n")[:-1]]
        self._size = len(state)
