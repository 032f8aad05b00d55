"""The process of the command: a short run takes about a second, and every write to standard output is complete.

Python ignores short writes if its output is unbuffered (PYTHONUNBUFFERED, as in most containers): a full disk or a pipe
that does not block would lose output without an error.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from typing import Any, NoReturn


class _NoPandas(MetaPathFinder):
    """Acts as if pandas were not installed."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("The command does not use pandas.", name=name)


def start_fast() -> None:
    """Leave out work that has no use in a process of our own."""
    # The many objects of imported modules are no garbage, and need not be searched for it again and again.
    gc.set_threshold(100_000, 20, 20)
    atexit.register(_skip_last_search)
    # Where pandas is installed, PyArrow would import it to recognize its objects.
    allow_pandas()
    sys.meta_path.insert(0, _NoPandas())


def _skip_last_search() -> None:
    """Do not search for garbage when the process ends; DuckDB would complain about what it then leaves behind."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def allow_pandas() -> None:
    """Let pandas be imported again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _NoPandas)]


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
