"""Which files a path, a folder or a pattern stands for."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from redescend.errors import DataError

PATTERN = frozenset("*?[")


def files_of(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The files, in the order of their names; in a folder, those of folders in it as well.

    Files whose names begin with a dot or an underscore are not data, and neither are files without a byte.
    """
    place = Path(path)
    if place.is_dir():
        yield from _nonempty(place, (file for file in place.rglob("*") if _is_data(file.relative_to(place))))
    elif place.exists():
        yield place
    elif PATTERN & set(str(path)):
        found = [Path(name) for name in glob.glob(str(path), recursive=True)]
        if not found:
            raise DataError(f"No file is called like {path}.")
        for each in sorted(found):
            yield from files_of(each)
    else:
        raise DataError(f"There is no file {path}.")


def _is_data(path: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in path.parts)


def _nonempty(folder: Path, files: Iterator[Path]) -> list[Path]:
    found = sorted(file for file in files if file.is_file() and file.stat().st_size)
    if not found:
        raise DataError(f"The folder {folder} has no files with data in it.")
    return found
