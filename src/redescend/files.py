"""Atomic writes: a file is written in full or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from redescend.errors import DataError

PART = ".part"
"""Suffix of a file that is still being written."""


@contextmanager
def replace_file(target: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces the target, with its permissions, once it is complete and on the disk.

    A link is followed; a device, a pipe or a folder is refused.
    """
    check_writable(target)
    target = Path(os.path.realpath(target))
    # A name of its own: the name of the target may already have the maximal length.
    part = target.with_name(f".{secrets.token_hex(8)}{PART}")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            part.chmod(stat.S_IMODE(target.stat().st_mode) & 0o777)
        os.replace(part, target)
        _sync_folder(target.parent)
    finally:
        part.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise an error if a file cannot be written or replaced: hours of work should not end that way."""
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise DataError(f"'{path}' cannot be written because it is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        raise DataError(f"'{path}' cannot be replaced because it is not a regular file; choose another path.")
    if not folder.is_dir():
        raise DataError(f"'{path}' cannot be written because there is no folder '{folder}'; create it first.")
    if not os.access(folder, os.W_OK):
        raise DataError(f"'{path}' cannot be written because the folder '{folder}' is not writable.")


def _sync_folder(folder: Path) -> None:
    """Write the folder's entry to the disk, so that it survives a loss of power; only POSIX systems can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot sync a folder.
        if error.errno not in (errno.EINVAL, errno.EBADF):
            raise
    finally:
        os.close(handle)
