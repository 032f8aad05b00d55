"""Append-only logs in blocks with checksums, so that damage is detected when a log is read."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from redescend.errors import DataError

BLOCK = 1 << 18  # the least bytes that are written as a block
MOST = 1 << 30  # the most bytes of a block
HEAD = struct.Struct("<II")  # ahead of a block: the number of its bytes, and their checksum


class AppendLog:
    """An append-only file. An existing file is checked, and truncated to `size` bytes."""

    def __init__(self, path: Path, size: int = 0) -> None:
        self.path = path
        found = path.stat().st_size if path.exists() else 0
        if found < size:
            raise DataError(
                f"'{path}' is shorter than when the checkpoint was written ({found} of {size} bytes), so the run "
                "cannot be resumed; start again with an empty folder."
            )
        if size:
            for _ in read_blocks(path, size):
                pass
        self._file = io.FileIO(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
        self._file.truncate(size)
        self._size, self._pending, self._waiting = size, list[bytes](), 0

    def append(self, content: Any) -> None:
        """Add bytes, or the bytes of an array."""
        data = bytes(content)
        self._pending.append(data)
        self._waiting += len(data)
        if self._waiting >= BLOCK:
            self.flush()

    def sync(self) -> int:
        """Write everything to disk and return the size."""
        self.flush()
        with self._explain_errors():
            os.fsync(self._file.fileno())
        return self._size

    def flush(self) -> None:
        """Make everything that was appended readable through the path."""
        data = b"".join(self._pending)
        self._pending, self._waiting = [], 0
        for at in range(0, len(data), MOST):
            self._write(data[at : at + MOST])

    def close(self) -> None:
        # Content that cannot be written now is not part of a checkpoint.
        with suppress(DataError):
            self.flush()
        self._file.close()

    def _write(self, data: bytes) -> None:
        block = memoryview(HEAD.pack(len(data), zlib.crc32(data)) + data)
        self._size += len(block)
        with self._explain_errors():
            while block:
                block = block[self._file.write(block) or 0 :]

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError(
                f"'{self.path}' cannot be written ({error.strerror}); free some space, and start again, or resume from "
                "the last checkpoint if there is one."
            ) from None


def read_blocks(path: Path, size: int | None = None) -> Iterator[bytes]:
    """Read a log block by block, up to a size; raises if a block is damaged."""
    end = path.stat().st_size if size is None else size
    with open(path, "rb") as file:
        while (place := file.tell()) < end:
            head = file.read(HEAD.size)
            count, checksum = HEAD.unpack(head) if len(head) == HEAD.size else (0, -1)
            data = file.read(count) if 0 < count <= end - place - HEAD.size else b""
            if not data or zlib.crc32(data) != checksum:
                raise DataError(
                    f"'{path}' is damaged: the checksum of its block at byte {place} is wrong. Start again with an "
                    "empty folder."
                )
            yield data
