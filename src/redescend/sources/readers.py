"""Bytes to read: from files, from pipes, and from what has been decompressed."""

from __future__ import annotations

import io
import os
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from redescend.errors import DataError
from redescend.sources.compression import Damage, decompressed

BLOCK = 2**21
"""How many bytes are read at a time."""

NAP = 0.01
"""Seconds after which a pipe is asked again, where the system cannot wait for it."""


class Raw(Protocol):
    """Bytes as they are stored."""

    def read(self, size: int, /) -> bytes:
        """Up to so many bytes; none at the end."""

    def close(self) -> None:
        """Nothing more is read."""


class Origin(Protocol):
    """Where bytes come from."""

    name: str
    size: int | None
    seekable: bool

    def open(self, keep: bool) -> Raw:
        """Its bytes from the first on; `keep` if they will be asked for again."""


class FileOrigin:
    """A file on the disk."""

    seekable = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.size: int | None = path.stat().st_size

    def open(self, keep: bool) -> Raw:
        return open(self.path, "rb", buffering=0)


class PipeOrigin:
    """Bytes that come once. Those that were looked at before the pass are kept until it begins."""

    seekable = False

    def __init__(self, name: str, file: Any, ours: bool = False) -> None:
        self.name = name
        self.size: int | None = None
        self._file = file
        self._ours = ours
        self._tape: list[bytes] = []
        self._spent = False

    def open(self, keep: bool) -> Raw:
        if self._spent:
            raise DataError(f"A pipe can be read only once, and {self.name} has been; write it to a file before.")
        self._spent = not keep
        return _Replay(self._file, self._tape, keep, self._ours and not keep)


class _Replay:
    """What is on the tape, then what the pipe brings: which goes on the tape if it is to be kept."""

    def __init__(self, file: Any, tape: list[bytes], keep: bool, closing: bool) -> None:
        self._file = file
        self._closing = closing
        self._tape = tape
        self._keep = keep
        self._at = 0
        self._inside = 0

    def read(self, size: int, /) -> bytes:
        if self._at < len(self._tape):
            piece = self._tape[self._at]
            data = piece[self._inside : self._inside + size]
            self._inside += len(data)
            if self._inside == len(piece):
                if not self._keep:
                    self._tape[self._at] = b""
                self._at, self._inside = self._at + 1, 0
            return data
        data = available(self._file, size)
        if self._keep:
            # The end is on the tape as well: a terminal may bring more after it.
            self._tape.append(data)
            self._at += 1
        return data

    def close(self) -> None:
        if self._closing:
            self._file.close()


def available(file: Any, size: int) -> bytes:
    """What a pipe has for us now, up to so many bytes; waits for the first of them alone."""
    while (data := file.read(size)) is None:
        # A pipe that does not block has nothing yet, which is no end.
        _wait(file)
    if isinstance(data, str):
        raise DataError("The file object gives text; open it in binary mode.")
    pieces = [data]
    if isinstance(file, io.FileIO) and os.name == "posix":
        while data and (size := size - len(data)) > 0 and select.select([file], [], [], 0)[0]:
            data = file.read(size) or b""
            pieces.append(data)
    return b"".join(pieces)


def _wait(file: Any) -> None:
    """Until there is something to read, or nothing more to come."""
    try:
        waiting = select.poll()
        waiting.register(file, select.POLLIN)
    except (AttributeError, TypeError, ValueError, OSError):
        # Windows knows no such thing, and not all that can be read has a number that the system knows.
        time.sleep(NAP)
    else:
        waiting.poll()


class Text:
    """The text of a file, decompressed, from a byte of it on.

    Parameters
    ----------
    origin
        Where it comes from.
    compression
        How it is compressed; None if it is not.
    offset
        Where to begin.
    keep
        Whether it will be read again.
    block
        How many bytes are read at a time.
    told
        Called with the number of stored bytes of each read.

    Attributes
    ----------
    damage : after the end, why it is not all there; None if it is.
    """

    def __init__(
        self,
        origin: Origin,
        compression: str | None,
        offset: int,
        keep: bool,
        block: int = BLOCK,
        told: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.damage: str | None = None
        self._raw = origin.open(keep)
        self._block = block
        self._compressed = compression is not None
        self._told = told
        if compression is None and origin.seekable:
            self._raw.seek(offset)  # type: ignore[attr-defined]
            told(offset)
            offset = 0
        self._pieces = self._stored() if compression is None else decompressed(self._stored(), compression, block)
        self._waiting = b""
        self._pass_over(offset)

    def read(self) -> bytes:
        """The next bytes; none at the end."""
        if self._waiting:
            data, self._waiting = self._waiting, b""
            return data
        try:
            # A block of nothing is no end yet.
            return next(filter(None, self._pieces), b"") if self._compressed else next(self._pieces)
        except Damage as error:
            self.damage = f"the file ends in the middle: {error}"
            return b""

    def close(self) -> None:
        self._raw.close()

    def _stored(self) -> Iterator[bytes]:
        # An end may be followed by more, where a file grows.
        while True:
            data = self._raw.read(self._block)
            self._told(len(data))
            yield data

    def _pass_over(self, count: int) -> None:
        while count > 0 and (data := self.read()):
            self._waiting = data[count:]
            count -= len(data)
