"""Standard output of the command: every write is complete, or the command fails.

Python ignores short writes if its output is unbuffered (PYTHONUNBUFFERED, as in most containers): a full disk or a pipe
that does not block would lose output without an error.
"""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

NAME = "standard output"


class CompleteWriter(io.RawIOBase):
    """Writes all bytes to a file descriptor, or raises an OSError; waits for a pipe that does not block."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: Any, /) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except BrokenPipeError:
                raise
            except OSError as error:
                raise OSError(error.errno, error.strerror, NAME) from None
        return size


@contextmanager
def ensure_complete_output() -> Iterator[None]:
    """Make all writes to standard output complete, and end with an error if the last of them fails."""
    before: Any = sys.stdout
    real: Any = sys.__stdout__
    _occupy_descriptors()
    if before is None:
        _fail("is closed; redirect it to a file, or to the null device")
    if before is not real or os.name != "posix":
        yield  # replaced by the caller
        return
    writer = io.BufferedWriter(CompleteWriter(before.fileno()))
    sys.stdout = io.TextIOWrapper(writer, before.encoding, before.errors, line_buffering=before.isatty())
    try:
        yield
    finally:
        _flush()


def discard_output() -> None:
    """Discard buffered and further output, because nobody reads it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _flush() -> None:
    end = sys.exception()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        discard_output()
        if not (isinstance(end, SystemExit) and end.code):
            _fail(f"cannot be written: {error.strerror}")


def _fail(sentence: str) -> NoReturn:
    from redescend.cli.exit_codes import Code

    with suppress(OSError, AttributeError):
        sys.stderr.write(f"{NAME.capitalize()} {sentence}.\n")
    raise SystemExit(int(Code.INVALID))


def _occupy_descriptors() -> None:
    """Open closed standard descriptors on the null device, so that no file gets their numbers."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
