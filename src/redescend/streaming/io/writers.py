"""What a run writes record by record: append-only logs that a checkpoint can be resumed from, and the final files.

A checkpoint stores the size of each log. Whatever was appended later is cut off when the run resumes, so that every
record is written once.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from redescend.errors import DataError
from redescend.files import PART
from redescend.sources import Bad
from redescend.streaming.config import Outputs
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.io import quarantine, round_log
from redescend.streaming.rounds import Rounds

LOGS = {"rounds": "rounds.log", "quarantine": "quarantine.log"}
"""File names of the logs."""

BUFFER = 1 << 18
"""Bytes that are collected before they are written."""


class AppendLog:
    """An append-only file; what is in it after `size` bytes is cut off.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "log")
    >>> with AppendLog(path) as log:
    ...     log.append(b"stored")
    ...     size = log.sync()
    ...     log.append(b" and lost")
    >>> with AppendLog(path, size) as log:
    ...     log.append(b" safely")
    >>> path.read_bytes()
    b'stored safely'
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, size: int = 0) -> None:
        self.path = path
        found = path.stat().st_size if path.exists() else 0
        if found < size:
            raise DataError(
                f"'{path}' is shorter than when the checkpoint was written ({found} of {size} bytes), so the run "
                "cannot be resumed; start again with an empty folder."
            )
        self._file = io.BufferedWriter(io.FileIO(path, "ab"), BUFFER)
        self._file.truncate(size)
        # Truncating does not move the position, which `sync` returns as the size.
        self._file.seek(size)

    def append(self, content: Any) -> None:
        """Add bytes, or the bytes of an array."""
        with self._writing():
            self._file.write(content)

    def sync(self) -> int:
        """Write everything to disk and return the size."""
        self.flush()
        with self._writing():
            os.fsync(self._file.fileno())
        return self._file.tell()

    def flush(self) -> None:
        """Make everything that was appended readable through the path."""
        with self._writing():
            self._file.flush()

    def close(self) -> None:
        # What cannot be written at this point belongs to no checkpoint.
        with suppress(OSError):
            self._file.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError(
                f"'{self.path}' cannot be written ({error.strerror}); free some space, and resume from the last "
                "checkpoint."
            ) from None

    def __enter__(self) -> AppendLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RunWriters:
    """Writes the rounds and the rejected records of a run.

    Parameters
    ----------
    outputs : Outputs
        The final files. If there is none for rejected records, the first of them are buffered in memory.
    folder : Path or None
        Where the logs are while the run is in progress. None: a temporary folder next to the final files.
    state : dict or None
        What `sync` returned when a checkpoint was written, to resume from there.
    """

    def __init__(self, outputs: Outputs, folder: Path | None = None, state: dict[str, Any] | None = None) -> None:
        self._outputs, self._logs = outputs, dict[str, AppendLog]()
        self.buffer = quarantine.RejectedBuffer()
        if state is not None:
            self.buffer.restore(state["rejected"])
        targets = {name: path for name in LOGS if (path := getattr(outputs, name)) is not None}
        self._temporary = None
        if folder is None and targets:
            # It is named before it is made, so that `close` removes it whenever this is interrupted.
            parent = next(iter(targets.values())).absolute().parent
            folder = self._temporary = parent / f".{secrets.token_hex(8)}{PART}"
        self._folder = folder
        try:
            if self._temporary is not None:
                self._temporary.mkdir(0o700)
            for name in targets:
                size = 0 if state is None else state["sizes"][name]
                self._logs[name] = AppendLog(Path(folder or "", LOGS[name]), size)
        except BaseException:
            self.close()
            raise

    def write(self, rounds: Rounds, rejected: Sequence[Bad]) -> None:
        """Append rounds and rejected records to the logs."""
        if "rounds" in self._logs:
            self._logs["rounds"].append(round_log.pack(rounds))
        if "quarantine" in self._logs:
            self._logs["quarantine"].append(b"".join(map(quarantine.format_line, rejected)))
        else:
            self.buffer.add(rejected)

    def sync(self) -> dict[str, Any]:
        """Write the logs to disk and return what a checkpoint stores of them."""
        return {"sizes": {name: log.sync() for name, log in self._logs.items()}, "rejected": self.buffer.state()}

    def publish(self, schema: Schema, keys: Sequence[str] = ()) -> None:
        """Write the final files from the logs."""
        for log in self._logs.values():
            log.flush()
        outputs = self._outputs
        if outputs.rounds is not None:
            round_log.write_parquet(self._logs["rounds"].path, schema, outputs.rounds, keys)
        if outputs.quarantine is not None:
            path = self._logs["quarantine"].path
            if outputs.keep_empty_quarantine or path.stat().st_size:
                quarantine.write_file(path, outputs.quarantine)

    def close(self) -> None:
        """Close the logs; those of a checkpoint stay."""
        with ExitStack() as stack:
            if self._temporary is not None:
                stack.callback(shutil.rmtree, self._temporary, ignore_errors=True)
            for log in self._logs.values():
                stack.callback(log.close)

    def discard(self) -> None:
        """Remove the logs of a finished run."""
        self.close()
        if self._folder is not None:
            for name in LOGS.values():
                (self._folder / name).unlink(missing_ok=True)

    def __enter__(self) -> RunWriters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
