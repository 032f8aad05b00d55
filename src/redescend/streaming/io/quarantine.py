"""Bad records as they came: one JSON object a line, with the row, the file and the reason."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from redescend.files import replacing
from redescend.numeric import Array
from redescend.sources import Bad

MOST_KEPT = 1000
"""Bad records that are kept in memory where no file takes them."""

MOST_BYTES = 1 << 22
"""Bytes of all the lines that are kept in memory."""


def line(bad: Bad) -> bytes:
    r"""One line of a quarantine file.

    The record is a text where it is one, and else in base 64, so that not a byte of it is lost.

    Examples
    --------
    >>> line(Bad(7, "prices.csv", "3 values where the header has 2", b"1,2,3"))
    b'{"row": 7, "file": "prices.csv", "reason": "3 values where the header has 2", "record": "1,2,3"}\n'
    >>> line(Bad(8, "prices.csv", "invalid UTF-8 at byte 1", b"\xff"))
    b'{"row": 8, "file": "prices.csv", "reason": "invalid UTF-8 at byte 1", "record_base64": "/w=="}\n'
    """
    content = {"row": bad.row, "file": bad.file, "reason": bad.reason}
    try:
        content["record"] = bad.raw.decode()
    except UnicodeDecodeError:
        content["record_base64"] = base64.b64encode(bad.raw).decode()
    # Names of files may hold bytes that are no UTF-8; escaped with a backslash they are JSON.
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def read(text: bytes) -> Bad:
    r"""The bad record of a line.

    Examples
    --------
    >>> bad = Bad(8, "prices.csv", "invalid UTF-8 at byte 1", b"\xff")
    >>> read(line(bad)) == bad
    True
    """
    content = json.loads(text)
    coded = content.get("record_base64")
    raw = content["record"].encode() if coded is None else base64.b64decode(coded)
    return Bad(content["row"], content["file"], content["reason"], raw)


def write(ledger: Path, target: Path) -> None:
    """Turn a ledger of lines into the quarantine file."""
    with replacing(target) as file, open(ledger, "rb") as lines:
        shutil.copyfileobj(lines, file, 1 << 20)


class Kept:
    """The first bad records, in memory: at most `MOST_KEPT` of them, and `MOST_BYTES` in all."""

    def __init__(self) -> None:
        self.records: list[Bad] = []
        self._size = 0

    def add(self, records: Iterable[Bad]) -> None:
        for bad in records:
            if len(self.records) >= MOST_KEPT:
                return
            size = len(line(bad))
            if self._size + size <= MOST_BYTES:
                self.records.append(bad)
                self._size += size

    def state(self) -> Array:
        """The lines, as an array of bytes."""
        return np.frombuffer(b"".join(map(line, self.records)), np.uint8)

    def restore(self, state: Array) -> None:
        self.records = [read(text) for text in state.tobytes().split(b"\n")[:-1]]
        self._size = len(state)
