"""Text files that another program writes to, and that are rotated meanwhile.

Where reading stopped is recognized by content: a mark is a digest of the last bytes before it. So a file that was
renamed, or copied and truncated, is read to its end before the new one is read from its beginning.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

WINDOW = 4096
"""The most bytes of a mark."""

BLOCK = 2**16
"""Bytes to read at a time: fewer records than a batch may have, so that every batch ends where a block does."""


def make_mark(data: bytes) -> str:
    """The mark of the bytes before a place.

    >>> make_mark(b"1,2")[:12]
    '3:17f8af97ad'
    """
    return f"{len(data)}:{hashlib.sha256(data).hexdigest()}"


def read_mark(file: Any, place: int) -> str:
    """The mark of a place in an open file."""
    size = min(place, WINDOW)
    return make_mark(os.pread(file.fileno(), size, place - size))


def has_mark(path: Path, place: int, mark: str) -> bool:
    """Whether this is the mark of a place in a file."""
    try:
        with open(path, "rb") as file:
            return read_mark(file, place) == mark
    except OSError:
        return False


def find_copy(path: Path, place: int, mark: str) -> Path | None:
    """The renamed or copied file that has this mark: its name begins with that of the file."""
    candidates = sorted(map(Path, glob.glob(glob.escape(str(path)) + "?*")))
    return next((other for other in candidates if other.is_file() and has_mark(other, place, mark)), None)


class FollowedFile:
    """A file that is read from a place on, to its end and beyond.

    `rotated` says whether the path names another file now, or whether the file has other content; then its `rest` is
    what was not read of it. `on_read` is called with the number of bytes of each read.
    """

    def __init__(self, path: Path, place: int, on_read: Callable[[int], None]) -> None:
        self.path, self.rotated, self._on_read = path, False, on_read
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 -- closed by `close`
        size = min(place, WINDOW)
        self._recent, self._taken = os.pread(self._file.fileno(), size, place - size), place
        self._file.seek(place)

    def read(self) -> bytes:
        data = self._file.read(BLOCK) or b""
        self._recent, self._taken = self._recent + data, self._taken + len(data)
        self._on_read(len(data))
        return data

    def mark(self, place: int) -> str:
        """The mark of a place up to which everything is read; places before it are no longer needed."""
        self._recent = self._recent[max(0, self._offset(place) - WINDOW) :]
        return make_mark(self._recent[: self._offset(place)])

    def wait(self, follow: Callable[[], bool]) -> bool:
        """Whether to try to read more of this file, after `follow` has waited."""
        if not follow():
            return False
        self.rotated = self._is_replaced() and _has_line(self.path)
        return not self.rotated

    def rest(self, place: int) -> Any:
        """What the file had after a place when it was rotated: itself, its copy, or what was read of it before."""
        if not os.path.samestat(os.fstat(self._file.fileno()), os.stat(self.path)):
            file: Any = open(os.dup(self._file.fileno()), "rb", buffering=0)  # noqa: SIM115
        elif (copy := find_copy(self.path, place, self.mark(place))) is not None:
            file = open(copy, "rb", buffering=0)  # noqa: SIM115
        else:
            return io.BytesIO(self._recent[self._offset(place) :])
        file.seek(place)
        return file

    def close(self) -> None:
        self._file.close()

    def _offset(self, place: int) -> int:
        return place - self._taken + len(self._recent)

    def _is_replaced(self) -> bool:
        try:
            current = os.stat(self.path)
        except FileNotFoundError:
            return False  # renamed, and not yet created
        if not os.path.samestat(current, os.fstat(self._file.fileno())) or current.st_size < self._taken:
            return True
        last = self._recent[-WINDOW:]
        return os.pread(self._file.fileno(), len(last), self._taken - len(last)) != last


def _has_line(path: Path) -> bool:
    """Whether a new file has its first line: until then its program may still write to the old one."""
    try:
        with open(path, "rb") as file:
            return any(b"\n" in block for block in iter(lambda: file.read(BLOCK), b""))
    except OSError:
        return False
