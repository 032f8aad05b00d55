"""The files of a path, a folder or a pattern, and the unreadable entries of folders."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from redescend.errors import DataError

PATTERN = frozenset("*?[")

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
