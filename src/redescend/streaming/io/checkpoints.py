"""Checkpoints: their content (`Checkpoint`) and their folder (`CheckpointFolder`).

A checkpoint atomically replaces the previous one, after the logs have been synchronized to disk. So there is always a
complete checkpoint, and the logs hold at least what it refers to.
"""

from __future__ import annotations

import io
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from redescend.checkpoint import load, save
from redescend.errors import DataError, ParameterError
from redescend.files import PART, lock_unless_in_use
from redescend.parameters import Component
from redescend.sources import Kind
from redescend.state import CORRUPT
from redescend.streaming.io.writers import FINAL, LOGS, RejectedBuffer
from redescend.streaming.keyed import ModelStore
from redescend.streaming.model import StreamModel
from redescend.streaming.summary import Summary

FILE, LOCK = "checkpoint.safetensors", "lock"
CHECKPOINT_FILES = (FILE, LOCK, *LOGS.values(), FINAL)
VERSION = 6  # raised whenever `Checkpoint` changes; checkpoints of other versions are refused

_LEFTOVER = re.compile(r"\.[0-9a-f]{16}" + re.escape(PART))
"""The name of a file that `redescend.files.replace_file` is writing."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Everything that a checkpoint stores, and where it comes from.

    - `FitConfig.to_dict`: `config`, the settings that determine the results.
    - `Source`: `kinds` of all columns, `files` read up to the current one, and their `beginning`: the columns, and the
      number and a digest of the first records. `position` is that of the next record; None before the first batch.
      `mark` is that of the position in a file that is followed.
    - `RunWriters.sync`: `logs`, their sizes, and the rejected records that are in memory.
    - `Run`: `counts` of records, the state of its `summary`, whether all records have been read (`ended`), and whether
      all outputs have been written, too (`finished`).
    """

    config: dict[str, Any]
    beginning: dict[str, Any]
    kinds: dict[str, str]
    model: StreamModel | ModelStore
    position: list[int] | None
    mark: str | None
    files: list[str]
    logs: dict[str, Any]
    counts: list[int]
    summary: dict[str, Any]
    ended: bool
    finished: bool

    def is_valid(self) -> bool:
        """Whether all parts are valid and consistent; an invalid part may also raise any error."""
        config, beginning, sizes = self.config, self.beginning, self.logs["sizes"]
        records, learned, quarantined, skipped = self.counts
        _, _, _, row = [0, 0, 0, 0] if self.position is None else self.position
        whole = (*self.counts, *(self.position or []), beginning["records"], *sizes.values())
        summary = Summary(self.model.schema, config["transform"], config["top"])
        summary.restore(self.summary)
        RejectedBuffer().restore(self.logs["rejected"])
        return (
            isinstance(self.model, StreamModel | ModelStore)
            and (self.model.schema.target, self.model.schema.by) == (config["target"], config["by"])
            and all(type(flag) is bool for flag in (self.ended, self.finished))
            and (self.ended or not self.finished)
            and all(type(count) is int and count >= 0 for count in whole)
            and records == learned + quarantined + skipped == row
            and learned == summary.learned
            and {name for name in ("rounds", "quarantine") if config[name] is not None} <= sizes.keys() <= LOGS.keys()
            and self.logs["rejected"].dtype == np.uint8
            and _is_comparable(list(config.values()))
            and all(isinstance(text, str) for text in (*config, *self.kinds, *self.files, *beginning["columns"]))
            and isinstance(self.files, list)
            and (self.mark is None or isinstance(self.mark, str))
            and isinstance(beginning["columns"], list)
            and isinstance(beginning["digest"], str)
            and all(Kind(kind) for kind in self.kinds.values())
        )


def _is_comparable(value: Any) -> bool:
    """Whether a setting can be compared with another."""
    if isinstance(value, list | tuple):
        return all(map(_is_comparable, value))
    return value is None or isinstance(value, bool | int | float | str | np.generic | Component)


class CheckpointFolder:
    """A folder with a checkpoint; it belongs to one run, and to one process at a time. Created if it does not exist."""

    def __init__(self, path: Path, resume: bool = False) -> None:
        self.path, self.last = path, None  # the checkpoint to resume from, if any
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(0o700, exist_ok=True)
            self._lock = io.FileIO(path / LOCK, "ab")
        except OSError as error:
            reason = f"cannot be used for checkpoints ({error.strerror})"
            raise DataError(f"The folder '{path}' {reason}; name another.") from None
        try:
            if not lock_unless_in_use(self._lock.fileno()):
                raise DataError(f"The folder '{path}' is in use by another run; wait until it ends, or name another.")
            self.last = self._read(resume)
            self._remove_leftovers()
        except BaseException:
            self.close()
            raise

    def write(self, checkpoint: Checkpoint) -> None:
        """Replace the previous checkpoint."""
        save({"version": VERSION, **vars(checkpoint)}, self.path / FILE)

    def close(self) -> None:
        """Release the folder."""
        self._lock.close()

    def _read(self, resume: bool) -> Checkpoint | None:
        path = self.path / FILE
        if not path.exists():
            return None
        if not resume:
            raise ParameterError(
                f"The folder '{self.path}' contains a checkpoint; resume from it, or name an empty folder."
            )
        content = load(path)
        with suppress(Exception):
            if content.pop("version") == VERSION and (checkpoint := Checkpoint(**content)).is_valid():
                return checkpoint
        raise DataError(f"The checkpoint '{path}': {CORRUPT}; start again with an empty folder.")

    def _remove_leftovers(self) -> None:
        """Remove the file that a killed process was writing."""
        for part in self.path.iterdir():
            if _LEFTOVER.fullmatch(part.name) and part.is_file() and not part.is_symlink():
                part.unlink(missing_ok=True)
