"""Where bytes come from: files, folders and patterns of them, pipes and standard input; decompressed."""

from __future__ import annotations

import glob
import io
import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from redescend.errors import DataError, ParameterError
from redescend.sources.compression import Damage, decompress

BLOCK = 2**21
"""The number of bytes to read at a time."""

NAP = 0.01
"""Seconds between attempts to read a pipe where the system cannot wait for it."""

PATTERN = frozenset("*?[")


class Origin(Protocol):
    """Where bytes come from."""

    name: str
    size: int | None
    seekable: bool

    def open(self, keep: bool) -> Any:
        """Open it as a binary file, at its first byte; `keep` if it will be opened again."""


class FileOrigin:
    """A file on the disk."""

    seekable = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.size: int | None = path.stat().st_size

    def open(self, keep: bool) -> Any:
        return open(self.path, "rb", buffering=0)


class PipeOrigin:
    """A pipe, which can be read once. What is read before the run starts is recorded, and replayed."""

    seekable = False

    def __init__(self, name: str, file: Any, close: bool = False) -> None:
        self.name = name
        self.size: int | None = None
        self._file = file
        self._close = close
        self._tape: list[bytes] = []
        self._spent = False

    def open(self, keep: bool) -> Any:
        if self._spent:
            raise DataError(f"A pipe can be read only once, and {self.name} was read before; write it to a file first.")
        self._spent = not keep
        return _Replay(self._file, self._tape, keep, self._close and not keep)


class _Replay:
    """The tape, then the rest of the pipe, which is recorded if `keep`."""

    def __init__(self, file: Any, tape: list[bytes], keep: bool, close: bool) -> None:
        self._file = file
        self._close = close
        self._tape = tape
        self._keep = keep
        self._at = 0
        self._inside = 0

    def read(self, size: int) -> bytes:
        if self._at < len(self._tape):
            piece = self._tape[self._at]
            data = piece[self._inside : self._inside + size]
            self._inside += len(data)
            if self._inside == len(piece):
                if not self._keep:
                    self._tape[self._at] = b""
                self._at, self._inside = self._at + 1, 0
            return data
        data = read_available(self._file, size)
        if self._keep:
            # The end is recorded as well: a terminal may send more after it.
            self._tape.append(data)
            self._at += 1
        return data

    def close(self) -> None:
        if self._close:
            self._file.close()


def read_available(file: Any, size: int) -> bytes:
    """Read what a pipe has now, up to this many bytes; wait only for the first."""
    while (data := file.read(size)) is None:
        # A non-blocking pipe has nothing yet; this is not its end.
        _wait(file)
    if isinstance(data, str):
        raise DataError("The file object returns text; open it in binary mode.")
    pieces = [data]
    if isinstance(file, io.FileIO) and os.name == "posix":
        while data and (size := size - len(data)) > 0 and select.select([file], [], [], 0)[0]:
            data = file.read(size) or b""
            pieces.append(data)
    return b"".join(pieces)


def _wait(file: Any) -> None:
    try:
        waiting = select.poll()
        waiting.register(file, select.POLLIN)
    except (AttributeError, TypeError, ValueError, OSError):
        # Windows has no poll, and not every file object has a descriptor.
        time.sleep(NAP)
    else:
        waiting.poll()


def open_origins(source: Any) -> Iterator[Origin]:
    """The files and pipes of a path, a folder, a pattern, ``-``, a binary file object, or a list of these."""
    if isinstance(source, str) and source == "-":
        yield PipeOrigin("standard input", _open_standard_input())
    elif isinstance(source, str | os.PathLike):
        yield from map(_open_path, find_files(source))
    elif isinstance(source, Sequence):
        for each in source:
            yield from open_origins(each)
    elif hasattr(source, "read"):
        yield PipeOrigin(str(getattr(source, "name", "the file object")), source)
    else:
        raise ParameterError(
            "The 'source' parameter of open_source must be a path, '-', a binary file, a table, or a list of paths. "
            f"Got {type(source).__name__} instead."
        )


def _open_path(path: Path) -> Origin:
    if path.is_file():
        return FileOrigin(path)
    # A named pipe, or what a shell substitutes for a process.
    return PipeOrigin(str(path), open(path, "rb", buffering=0), close=True)


def _open_standard_input() -> Any:
    # Unbuffered: a thread that waits for it must not hold a lock that the interpreter needs to exit.
    try:
        return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    except (OSError, ValueError, AttributeError):
        return sys.stdin.buffer


def find_files(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The files of a path, a folder (with its subfolders) or a pattern, sorted by name.

    In folders, empty files and files whose names begin with a dot or an underscore are skipped.
    """
    place = Path(path)
    if place.is_dir():
        files = (file for file in place.rglob("*") if is_data_path(file.relative_to(place)))
        found = sorted(file for file in files if file.is_file() and file.stat().st_size)
        if not found:
            raise DataError(f"The folder {place} contains no files with data.")
        yield from found
    elif place.exists():
        yield place
    elif PATTERN & set(str(path)):
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)))
        if not matches:
            raise DataError(f"No file matches {path}.")
        for each in matches:
            yield from find_files(each)
    else:
        raise DataError(f"There is no file {path}.")


def is_data_path(path: Path) -> bool:
    """Whether a path inside a folder is read with it: no part of it begins with a dot or an underscore."""
    return not any(part.startswith((".", "_")) for part in path.parts)


class Text:
    """The decompressed text of a file, from an offset.

    `on_read` is called with the number of stored bytes of each read. After the end, `damage` says why the text is
    incomplete; None if it is complete.
    """

    def __init__(
        self,
        origin: Origin,
        compression: str | None,
        offset: int,
        keep: bool,
        block: int = BLOCK,
        on_read: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.damage: str | None = None
        self._raw = origin.open(keep)
        self._block = block
        self._compressed = compression is not None
        self._on_read = on_read
        if compression is None and origin.seekable:
            self._raw.seek(offset)
            on_read(offset)
            offset = 0
        self._pieces = self._stored() if compression is None else decompress(self._stored(), compression, block)
        self._pending = b""
        self._skip(offset)

    def read(self) -> bytes:
        """The next bytes; none at the end."""
        if self._pending:
            data, self._pending = self._pending, b""
            return data
        try:
            # An empty decompressed block is not the end.
            return next(filter(None, self._pieces), b"") if self._compressed else next(self._pieces)
        except Damage as error:
            self.damage = f"the file is incomplete: {error}"
            return b""

    def push_back(self, data: bytes) -> None:
        """Return these bytes with the next read."""
        self._pending = data + self._pending

    def close(self) -> None:
        self._raw.close()

    def _stored(self) -> Iterator[bytes]:
        # A file that grows has more after its end.
        while True:
            data = self._raw.read(self._block)
            self._on_read(len(data))
            yield data

    def _skip(self, count: int) -> None:
        while count > 0 and (data := self.read()):
            self._pending = data[count:]
            count -= len(data)
