"""Byte streams: the files of a path, a folder or a pattern, pipes and standard input, decompressed."""

from __future__ import annotations

import codecs
import glob
import io
import os
import re
import select
import stat
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote

from redescend.errors import DataError, ParameterError
from redescend.sources.compression import Damage, decompress

BLOCK = 2**21  # the number of bytes to read at a time
NAP = 0.01  # seconds between attempts to read a non-blocking pipe that has nothing yet
PATTERN = frozenset("*?[")

T = TypeVar("T")

_TABLE = re.compile(r"(?:sqlite|duckdb|excel):///(?P<file>[^?]+)(?:\?table=(?P<table>.+))?")


class Unread(NamedTuple):
    """An entry of a folder that is not read, and the reason.

    Attributes
    ----------
    path : str
        Its path.
    reason : str
        What is wrong with it.

    Examples
    --------
    >>> Unread("parts/old.csv", "it is a link to nothing").reason
    'it is a link to nothing'
    """

    path: str
    reason: str


def split_table(path: str | os.PathLike[str]) -> tuple[str | os.PathLike[str], str | None]:
    """The file and the table of a name like ``sqlite:///file.db?table=t``; any other path without a table.

    >>> split_table("sqlite:///data/shop.db?table=sales"), split_table("shop.db")
    (('data/shop.db', 'sales'), ('shop.db', None))
    """
    match = _TABLE.fullmatch(path) if isinstance(path, str) else None
    return (path, None) if match is None else (match["file"], match["table"] and unquote(match["table"]))


def find_files(path: str | os.PathLike[str], unread: list[Unread] | None = None) -> Iterator[Path]:
    """The files of a path, a folder (with its subfolders) or a pattern, sorted by name.

    In folders, empty files and files whose names begin with a dot or an underscore are skipped. What else is not read
    is appended to `unread`.
    """
    path = split_table(path)[0]
    place = Path(path)
    if place.is_dir():
        files = sorted(_scan_folder(place, [] if unread is None else unread))
        if not files:
            raise DataError(f"The folder {place} contains no files with data.")
        yield from files
    elif place.exists():
        yield place
    elif PATTERN & set(str(path)):
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)))
        if not matches:
            raise DataError(f"No file matches {path}.")
        for each in matches:
            yield from find_files(each, unread)
    else:
        raise DataError(f"There is no file {path}.")


def is_data_path(path: Path) -> bool:
    """Whether a path inside a folder is read with it: no part of it begins with a dot or an underscore."""
    return not any(part.startswith((".", "_")) for part in path.parts)


def _scan_folder(folder: Path, unread: list[Unread]) -> Iterator[Path]:
    """The files with data in a folder and its subfolders."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if is_data_path(Path(entry.name)))
    except OSError as error:
        unread.append(Unread(str(folder), f"the folder cannot be read: {error.strerror}"))
        return
    for name in names:
        path = folder / name
        try:
            status = path.stat()
        except OSError as error:
            reason = "it is a link to nothing" if path.is_symlink() else f"it cannot be read: {error.strerror}"
            unread.append(Unread(str(path), reason))
            continue
        if stat.S_ISREG(status.st_mode):
            if status.st_size:
                yield path
        elif not stat.S_ISDIR(status.st_mode):
            unread.append(Unread(str(path), "it is not a regular file"))
        elif path.is_symlink():
            unread.append(Unread(str(path), "it is a link to a folder; name that folder as well"))
        else:
            yield from _scan_folder(path, unread)


class FileOrigin:
    """A file on the disk."""

    seekable = True
    table: str | None = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.size: int | None = path.stat().st_size

    def read(self, block: int, offset: int, keep: bool) -> Generator[bytes, None, None]:
        """Its bytes from an offset, in blocks; empty ones at the end, because a file that grows has more after it."""
        with open(self.path, "rb", buffering=0) as file:
            file.seek(offset)
            while True:
                yield file.read(block)


class PipeOrigin:
    """A pipe, which can be read once from its first byte."""

    seekable = False
    table: str | None = None

    def __init__(self, name: str, file: Any, close: bool = False) -> None:
        self.name = name
        self.size: int | None = None
        self._file = file
        self._close = close
        self._tape: Tape[bytes] = Tape(
            f"A pipe can be read only once, and {name} was read before; write it to a file first."
        )

    def read(self, block: int, offset: int, keep: bool) -> Generator[bytes, None, None]:
        """Its bytes in blocks, and empty ones at the end: a terminal may send more after it."""
        try:
            yield from self._tape.replay(iter(lambda: read_available(self._file, block), None), keep)
        finally:
            if self._close and not keep:
                self._file.close()


Origin = FileOrigin | PipeOrigin  # a source of bytes; pass `keep` to `read` if they will be read again


class Tape(Generic[T]):
    """Items that can be read once. Items that are read before the run starts are recorded, and replayed."""

    def __init__(self, refusal: str) -> None:
        self._refusal = refusal
        self._recorded: deque[T] = deque()
        self._spent = False

    def replay(self, new: Iterator[T], keep: bool) -> Iterator[T]:
        """The recorded items, and new ones; `keep` if they will be read again."""
        if self._spent:
            raise DataError(self._refusal)
        self._spent = not keep
        if keep:
            yield from tuple(self._recorded)
        while self._recorded and not keep:
            yield self._recorded.popleft()
        for item in new:
            if keep:
                self._recorded.append(item)
            yield item


def read_available(file: Any, size: int) -> bytes:
    """Read the available bytes of a pipe, up to a size; wait only for the first."""
    while (data := file.read(size)) is None:
        # None is not the end: nothing is available yet.
        time.sleep(NAP)
    if isinstance(data, str):
        raise DataError("The file object returns text; open it in binary mode.")
    pieces = [data]
    if isinstance(file, io.FileIO) and os.name == "posix":
        while data and (size := size - len(data)) > 0 and select.select([file], [], [], 0)[0]:
            data = file.read(size) or b""
            pieces.append(data)
    return b"".join(pieces)


def open_origins(source: Any, unread: list[Unread]) -> Iterator[Origin]:
    """The files and pipes of a path, a folder, a pattern, ``-``, a binary file object, or a list of these.

    What is not read in a folder is appended to `unread`.
    """
    if isinstance(source, str) and source == "-":
        yield PipeOrigin("standard input", _open_standard_input())
    elif isinstance(source, str | os.PathLike):
        for origin in map(_open_path, find_files(source, unread)):
            origin.table = split_table(source)[1]
            yield origin
    elif isinstance(source, Sequence):
        for each in source:
            yield from open_origins(each, unread)
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
    if sys.stdin is None:
        raise DataError("Standard input is closed; name a file, or redirect one to it.")
    # Unbuffered: a thread that waits for it must not hold a lock that the interpreter needs to exit.
    try:
        return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    except (OSError, ValueError, AttributeError):
        return sys.stdin.buffer


class Text:
    """The decompressed text of a file, from an offset.

    `on_read` is called with the number of stored bytes of each read. After the end, `damage` is the reason why the text
    is incomplete; None if it is complete.
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
        self.name = origin.name
        self.damage: str | None = None
        self._compressed = compression is not None
        self._encoding = (compression or "").partition("+")[2]
        self._on_read = on_read
        begin = offset if origin.seekable and compression is None else 0
        on_read(begin)
        self._raw = origin.read(block, begin, keep)
        stored = self._count_stored_bytes()
        reread = (lambda: origin.read(block, 0, keep)) if origin.seekable else None
        self._pieces = stored if compression is None else decompress(stored, compression, block, reread)
        self._pending = b""
        self._skip_bytes(offset - begin)

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
        except UnicodeError:  # the mark, which tells the order of bytes, is missing
            encoding = codecs.lookup(self._encoding).name
            raise DataError(
                f"{self.name} does not begin with the mark of {encoding}; name the order of its bytes, "
                f"{encoding}-le or {encoding}-be."
            ) from None

    def push_back(self, data: bytes) -> None:
        """Return these bytes with the next read."""
        self._pending = data + self._pending

    def close(self) -> None:
        self._raw.close()

    def _count_stored_bytes(self) -> Iterator[bytes]:
        for data in self._raw:
            self._on_read(len(data))
            yield data

    def _skip_bytes(self, count: int) -> None:
        while count > 0 and (data := self.read()):
            self._pending = data[count:]
            count -= len(data)
