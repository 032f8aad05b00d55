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
    check_replaceable(target)
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


def check_replaceable(target: Path) -> None:
    """Raise an error if the target exists and is no regular file, such as a device."""
    if target.exists() and not target.is_file():
        raise DataError(f"'{target}' cannot be replaced, because it is no regular file; name another.")


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
