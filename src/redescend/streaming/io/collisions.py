"""The one check of output paths: writable, distinct, and apart from the checkpoint and from everything that is read."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from redescend.errors import DataError, ParameterError
from redescend.files import check_writable
from redescend.sources.readers import PATTERN, find_files, is_data_path
from redescend.streaming.io.checkpoints import CHECKPOINT_FILES


def check_outputs(
    outputs: Mapping[str, Path | None], source: Any, checkpoint: Path | None = None, also_read: Iterable[Path] = ()
) -> None:
    """Raise an error if a file cannot be written, or would overwrite another output, the checkpoint or the input.

    `outputs` are the files to write, by content; None is not written. Nothing may be written to a folder that is read,
    because the next run would read it as records. Other files that are read, such as the model, are in `also_read`.

    >>> check_outputs({"model": Path("lock")}, "prices.csv", checkpoint=Path("."))
    Traceback (most recent call last):
        ...
    redescend.errors.ParameterError: 'lock' cannot be both the model and a file of the checkpoint; name another file.
    """
    seen = {os.path.realpath(path): "the input" for path in (*also_read, *_list_files(source))}
    if checkpoint is not None:
        seen |= {os.path.realpath(checkpoint / name): "a file of the checkpoint" for name in CHECKPOINT_FILES}
    written = {f"the {content}": path for content, path in outputs.items() if path is not None}
    for content, path in written.items():
        other = seen.setdefault(os.path.realpath(path), content)
        if other != content:
            raise ParameterError(f"'{path}' cannot be both {content} and {other}; name another file.")
    folders = {} if checkpoint is None else {"the folder of checkpoints": checkpoint}
    for folder, (content, path) in itertools.product(_list_folders(source), (written | folders).items()):
        whole, inside = Path(os.path.realpath(folder)), Path(os.path.realpath(path))
        if inside.is_relative_to(whole) and is_data_path(inside.relative_to(whole)):
            reason = f"because every file in the folder '{folder}' is read"
            raise ParameterError(f"'{path}' cannot be {content} {reason}; name a path outside it.")
    for path in written.values():
        # The folder of checkpoints is made if it does not exist.
        if checkpoint is None or checkpoint.exists() or path.absolute().parent != checkpoint.absolute():
            check_writable(path)


def _list_files(source: Any) -> Iterator[str | Path]:
    """The files that a source consists of, as far as they can be known before it is opened."""
    for part in _flatten(source):
        if isinstance(part, str | os.PathLike):
            with suppress(DataError):  # a missing file is reported when it is opened
                yield from find_files(part)
        elif isinstance(name := getattr(part, "name", None), str):
            yield name


def _list_folders(source: Any) -> Iterator[Path]:
    for part in _flatten(source):
        if isinstance(part, str | os.PathLike):
            is_pattern = not Path(part).exists() and PATTERN & set(str(part))
            found = glob.glob(str(part), recursive=True) if is_pattern else [part]
            yield from filter(Path.is_dir, map(Path, found))


def _flatten(source: Any) -> Iterator[Any]:
    """The paths and file objects of a source, which may be a list of lists."""
    if isinstance(source, Sequence) and not isinstance(source, str):
        for part in source:
            yield from _flatten(part)
    else:
        yield source
