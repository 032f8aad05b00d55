"""What a run writes stays apart: from what else is written, from its checkpoint, and from all that is read."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from redescend.errors import ParameterError
from redescend.sources import Source
from redescend.sources.readers import PATTERN, is_data_path
from redescend.streaming.io.checkpoints import FILE, LOCK
from redescend.streaming.io.writers import LEDGERS

FOLDER = "the folder of checkpoints"


def files_of(source: Source, count: int | None = None) -> list[str]:
    """The names of the first files of a source: a position in one means nothing where another has taken its place."""
    return source.files[:count]


def check_apart(
    written: Mapping[str, Path], read: Iterable[str | Path] = (), checkpoint: str | os.PathLike[str] | None = None
) -> None:
    """No file is written over another, over one of the checkpoint, and least of all over one that is read.

    Examples
    --------
    >>> check_apart({"the model": Path("run", "lock")}, checkpoint="run")
    Traceback (most recent call last):
        ...
    redescend.errors.ParameterError: 'run/lock' cannot be the model and a file of the checkpoint too; name another file.
    """
    seen = {os.path.realpath(path): "what is read" for path in read}
    if checkpoint is not None:
        kept = (FILE, LOCK, *LEDGERS.values())
        seen |= {os.path.realpath(Path(checkpoint, name)): "a file of the checkpoint" for name in kept}
    for what, path in written.items():
        other = seen.setdefault(os.path.realpath(path), what)
        if other != what:
            raise ParameterError(f"'{path}' cannot be {what} and {other} too; name another file.")


def check_outside(written: Mapping[str, Path], source: Any) -> None:
    """Nothing is written to a folder that is read as a whole: the next run would take it for records."""
    for folder in _folders(source):
        whole = Path(os.path.realpath(folder))
        for what, path in written.items():
            inside = Path(os.path.realpath(path))
            if inside.is_relative_to(whole) and is_data_path(inside.relative_to(whole)):
                raise ParameterError(
                    f"'{path}' cannot be {what}, because everything in the folder '{folder}' is read; name a place "
                    "outside it."
                )


def _folders(source: Any) -> Iterator[Path]:
    if isinstance(source, str | os.PathLike):
        place = Path(source)
        if place.is_dir():
            yield place
        elif not place.exists() and PATTERN & set(str(source)):
            yield from filter(Path.is_dir, map(Path, glob.glob(str(source), recursive=True)))
    elif isinstance(source, Sequence):
        for each in source:
            yield from _folders(each)
