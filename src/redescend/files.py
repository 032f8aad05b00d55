"""A file is there in full or not at all."""

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
"""How the name of a file ends that is still being written."""


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A file beside the target that takes its place, and its permissions, once it is complete and on the disk.

    Of a link, what it points at is replaced; a device, a pipe or a folder is refused.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "numbers")
    ...     with replacing(target) as file:
    ...         _ = file.write(b"1 2 3")
    ...         before = target.exists()
    ...     before, target.read_bytes()
    (False, b'1 2 3')
    """
    check_replaceable(target)
    target = Path(os.path.realpath(target))
    # A short name: that of the target may be as long as a name can be.
    part = target.with_name(f".{secrets.token_hex(8)}{PART}")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            part.chmod(stat.S_IMODE(target.stat().st_mode) & 0o777)
        os.replace(part, target)
        _settle_folder(target.parent)
    finally:
        part.unlink(missing_ok=True)


def check_replaceable(target: Path) -> None:
    """Raise an error if something is there that is no file: a device would be gone for all who use it."""
    if target.exists() and not target.is_file():
        raise DataError(f"'{target}' cannot be replaced, because it is no regular file; name another.")


def _settle_folder(folder: Path) -> None:
    """After a loss of power the folder still knows the new name; only POSIX systems let a folder be opened."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems know no such thing as a folder on the disk.
        if error.errno not in (errno.EINVAL, errno.EBADF):
            raise
    finally:
        os.close(handle)
