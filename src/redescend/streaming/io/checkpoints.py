"""A folder that a run can be resumed from: one file with all that the pass knows, and the ledgers that it speaks of.

The file takes the place of the one before in a single step and only once the ledgers are on the disk, so that at any
moment there is a whole checkpoint, and its ledgers hold at least what it says.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from redescend.checkpoint import load, save
from redescend.errors import DataError, ParameterError
from redescend.files import PART
from redescend.parameters import Component
from redescend.sources import Kind
from redescend.streaming.io.quarantine import Kept
from redescend.streaming.io.writers import LEDGERS
from redescend.streaming.keyed import ModelStore
from redescend.streaming.model import StreamModel
from redescend.streaming.summary.summary import Summary

FILE = "checkpoint.safetensors"
LOCK = "lock"
VERSION = 1
"""Raised when the pass writes checkpoints that an older one would misread."""

_LEFT = re.compile(r"\.[0-9a-f]{16}" + re.escape(PART))
"""What `redescend.files.replacing` calls a file that it is writing."""


class Checkpoints:
    """The checkpoint in a folder.

    Parameters
    ----------
    folder
        Made if it is not there. It belongs to one run, and to one process at a time.
    resume
        Whether to go on from the checkpoint in it, if there is one.

    Attributes
    ----------
    content
        What the checkpoint holds; None if there is none.

    Raises
    ------
    DataError
        There is a checkpoint and it is not to be resumed; or it cannot be read; or another run is using the folder.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Checkpoints(Path(folder.name)) as fresh:
    ...     fresh.content is None
    ...     fresh.write({"records": 5})
    True
    >>> with Checkpoints(Path(folder.name), resume=True) as again:
    ...     again.content["records"]
    5
    >>> folder.cleanup()
    """

    def __init__(self, folder: Path, resume: bool = False) -> None:
        self.folder, self.content = folder, None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = io.FileIO(folder / LOCK, "ab")
        except OSError as error:
            raise DataError(
                f"The folder '{folder}' cannot be used for checkpoints ({error.strerror}); name another."
            ) from None
        try:
            _lock(self._lock, folder)
            self.content = self._read(resume)
            self._sweep()
        except BaseException:
            self.close()
            raise

    def write(self, content: Mapping[str, Any]) -> None:
        """Take the place of the checkpoint before."""
        save({"pass_version": VERSION, **content}, self.folder / FILE)

    def close(self) -> None:
        """Let another process use the folder."""
        self._lock.close()

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, resume: bool) -> dict[str, Any] | None:
        path = self.folder / FILE
        if not path.exists():
            return None
        if not resume:
            raise ParameterError(
                f"The folder '{self.folder}' holds a checkpoint; resume from it, or name an empty folder."
            )
        content = load(path)
        version = content.get("pass_version") if isinstance(content, dict) else None
        if type(version) is not int:
            raise DataError(f"'{path}' is not a checkpoint of a pass over a stream; name another folder.")
        if version > VERSION:
            raise DataError(f"'{path}' was written by a newer version; update with: pip install --upgrade redescend")
        return dict(content)

    def _sweep(self) -> None:
        """A process that was killed leaves the file that it was writing."""
        for part in self.folder.iterdir():
            if _LEFT.fullmatch(part.name) and part.is_file() and not part.is_symlink():
                part.unlink(missing_ok=True)


def check_content(content: Mapping[str, Any], folder: Path) -> None:
    """Refuse what no pass wrote: a file that was made or altered by someone may hold anything."""
    try:
        sound = _is_sound(**{name: value for name, value in content.items() if name != "pass_version"})
    except Exception:  # what is put in the place of a part can make any use of it fail in any way
        sound = False
    if not sound:
        raise DataError(
            f"The checkpoint in '{folder}' does not hold what a run writes, so it is damaged or has been altered; "
            "start afresh with an empty folder."
        )


def _is_sound(
    *,
    settings: dict[str, Any],
    beginning: dict[str, Any],
    kinds: dict[str, str],
    model: StreamModel | ModelStore,
    position: list[int] | None,
    files: list[str],
    books: dict[str, Any],
    counts: list[int],
    summary: dict[str, Any],
    ended: bool,
    finished: bool,
) -> bool:
    """Whether the parts of a checkpoint are what they should be, and agree."""
    records, learned, quarantined, skipped = counts
    _, _, _, row = [0, 0, 0, 0] if position is None else position
    found = Summary(model.schema, settings["transform"])
    found.restore(summary)
    Kept().restore(books["kept"])
    return (
        isinstance(model, StreamModel | ModelStore)
        and (model.schema.target, model.schema.by) == (settings["target"], settings["by"])
        and all(type(flag) is bool for flag in (ended, finished))
        and (ended or not finished)
        and _are_counts([*counts, *(position or []), beginning["records"], *books["sizes"].values()])
        and records == learned + quarantined + skipped == row
        and learned == found.learned
        and books["sizes"].keys() == {name for name in LEDGERS if settings[name] is not None}
        and books["kept"].dtype == np.uint8
        and _is_plain(list(settings.values()))
        and all(isinstance(text, str) for text in (*settings, *kinds, *files, *beginning["columns"]))
        and isinstance(files, list)
        and isinstance(beginning["columns"], list)
        and isinstance(beginning["digest"], str)
        and all(Kind(kind) for kind in kinds.values())
    )


def _are_counts(values: list[Any]) -> bool:
    return all(type(value) is int and value >= 0 for value in values)


def _is_plain(value: Any) -> bool:
    """Whether a setting can be compared with another."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str | np.generic | Component)


def compare(request: Mapping[str, Any], before: Mapping[str, Any], folder: Path) -> None:
    """Refuse to resume a run that was asked for something else.

    Examples
    --------
    >>> compare({"target": "price", "order": 1}, {"target": "price", "order": 2}, Path("run"))
    Traceback (most recent call last):
        ...
    redescend.errors.ParameterError: The run in 'run' was started with order = 2, and cannot be resumed with order = 1;
    ask for the same, or name an empty folder.
    """
    for name, now in request.items():
        then = before.get(name)
        if then != now:
            raise ParameterError(
                f"The run in '{folder}' was started with {name} = {then!r}, and cannot be resumed with "
                f"{name} = {now!r}; ask for the same, or name an empty folder."
            )


def _lock(file: io.FileIO, folder: Path) -> None:
    """One process at a time; the system lets go of the lock when the process ends, however it ends."""
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataError(f"The folder '{folder}' is in use by another run; wait for its end, or name another.") from None
    except OSError:
        # Some network file systems have no locks.
        return
