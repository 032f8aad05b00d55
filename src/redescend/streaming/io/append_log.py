"""A file that only grows, and of which a checkpoint holds the size.

What was written after a checkpoint is cut off when a run resumes from it, so every line is there once.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from redescend.errors import DataError

BUFFER = 1 << 18
"""Bytes that gather before they are handed to the system."""


class Ledger:
    """An append-only file.

    Parameters
    ----------
    path
        Where; made if it is not there.
    size
        How many of its bytes count. The rest is cut off.

    Raises
    ------
    DataError
        The file is shorter than what counts.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "ledger")
    >>> with Ledger(path) as ledger:
    ...     ledger.append(b"kept")
    ...     size = ledger.settled()
    ...     ledger.append(b" and lost")
    >>> with Ledger(path, size) as ledger:
    ...     ledger.append(b" for good")
    >>> path.read_bytes()
    b'kept for good'
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, size: int = 0) -> None:
        self.path = path
        there = path.stat().st_size if path.exists() else 0
        if there < size:
            raise DataError(
                f"'{path}' is shorter than when the checkpoint was written ({there} of {size} bytes), so the run "
                "cannot be resumed; start it afresh with an empty folder."
            )
        self._file = io.BufferedWriter(io.FileIO(path, "ab"), BUFFER)
        self._file.truncate(size)
        # Cutting a file does not move the place in it, by which `settled` tells its size.
        self._file.seek(size)

    def append(self, content: Any) -> None:
        """Add bytes, or the bytes of an array."""
        with self._writing():
            self._file.write(content)

    def settled(self) -> int:
        """How many bytes there are, now that all of them are on the disk."""
        self.flush()
        with self._writing():
            os.fsync(self._file.fileno())
        return self._file.tell()

    def flush(self) -> None:
        """What was appended can be read through the path from now on."""
        with self._writing():
            self._file.flush()

    def close(self) -> None:
        # What cannot be written any more is counted by no checkpoint.
        with suppress(OSError):
            self._file.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError(
                f"'{self.path}' cannot be written ({error.strerror}); make room for it, and resume from the last "
                "checkpoint."
            ) from None

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
