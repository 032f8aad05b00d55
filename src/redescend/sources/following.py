"""Growing text files, which another program writes to and may rotate.

The place where reading stopped is recognized by its mark, a digest of the last bytes before it. So a file that was
renamed, or copied and truncated, is read to its end before the new file is read from its beginning.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

WINDOW = 4096  # the most bytes of a mark

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
    """A growing file that is read from a given place on.

    `rotated` is whether the path now names another file, or the file has other content; `rest` is then the unread part
    of the old file. `on_read` is called with the number of bytes of each read.
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
        """Return the mark of a place, and forget the bytes that only earlier marks need."""
        self._recent = self._recent[max(0, self._offset(place) - WINDOW) :]
        return make_mark(self._recent[: self._offset(place)])

    def wait(self, follow: Callable[[], bool]) -> bool:
        """Whether to try to read more of this file, after `follow` has waited."""
        if not follow():
            return False
        self.rotated = self._is_replaced() and _has_line(self.path)
        return not self.rotated

    def rest(self, place: int) -> Any:
        """The unread content after a place when the file was rotated: from the file, its copy, or the buffer."""
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
