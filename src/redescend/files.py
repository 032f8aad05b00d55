"""Atomic writes: a file is written in full or not at all, and temporary files of killed processes are removed."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from redescend.errors import DataError

PART = ".part"  # suffix of a file that is still being written
ACTIVE: set[Path] = set()  # temporary files and folders of this process

WRITE_ERRORS = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)
"""Errors of writing to an open file; they do not name it."""


@contextmanager
def replace_file(target: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces the target, with its permissions, once it is complete and on the disk.

    Links are followed; devices, pipes and folders are refused. Temporary files that a killed process left are removed.
    """
    check_writable(target)
    target = Path(os.path.realpath(target))
    remove_leftovers(target)
    mode = stat.S_IMODE(target.stat().st_mode) & 0o777 if target.exists() else None
    part, descriptor = _create_part(target, 0o666 if mode is None else 0o600)
    try:
        # Open, and therefore locked, until it has replaced the target; without locks, open files cannot be replaced.
        with open(descriptor, "wb", closefd=os.name != "posix") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            part.chmod(mode)
        os.replace(part, target)
        sync_folder(target.parent)
    except OSError as error:
        if error.filename is None and error.errno in WRITE_ERRORS:
            raise OSError(error.errno, error.strerror, str(target)) from None
        raise
    finally:
        part.unlink(missing_ok=True)
        ACTIVE.discard(part)
        if os.name == "posix":
            os.close(descriptor)


def name_part(target: Path) -> Path:
    """A new name beside the target: the target's own may already have the maximal length.

    >>> name_part(Path("model")).name[:9] == name_part(Path("model")).name[:9] != name_part(Path("rounds")).name[:9]
    True
    """
    return target.with_name(f".{_hash_name(target)}{secrets.token_hex(4)}{PART}")


def remove_leftovers(target: Path) -> None:
    """Remove files and folders beside the target that a killed process was writing it to; those in use stay."""
    for part in target.parent.glob(f".{_hash_name(target)}????????{PART}"):
        with suppress(OSError):
            descriptor = os.open(part, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            try:
                if lock(descriptor):
                    _remove(part)
            finally:
                os.close(descriptor)


def lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock a file or folder until it is closed, or its process ends, however it ends; False if it is in use.

    With `wait`, wait until it is not. Where there are no locks, everything counts as in use.
    """
    if os.name != "posix":
        return False
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def lock_unless_in_use(descriptor: int) -> bool:
    """Lock a file; False if another process has locked it. Where there are no locks, nothing is in use."""
    if os.name == "posix":
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # some network file systems have no locks
    return True


def lock_created(part: Path, descriptor: int) -> bool:
    """Lock a file or folder that was just created; False if another process took it for a leftover and removed it."""
    # Another process locks a leftover before it removes it; without waiting, that could happen after this check.
    lock(descriptor, wait=True)
    return part.exists()


def _hash_name(target: Path) -> str:
    return hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]


def _create_part(target: Path, mode: int) -> tuple[Path, int]:
    """Create a locked file to write the target to."""
    while True:
        part = name_part(target)
        ACTIVE.add(part)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        if lock_created(part, descriptor):
            return part, descriptor
        os.close(descriptor)
        ACTIVE.discard(part)


def remove_active() -> None:
    """Remove what this process is writing, because it is about to end."""
    for part in list(ACTIVE):
        with suppress(OSError):
            _remove(part)


def _remove(part: Path) -> None:
    if part.is_dir():
        import shutil

        shutil.rmtree(part, ignore_errors=True)
    else:
        part.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise an error if a file cannot be written or replaced; call it before a long computation."""
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise DataError(f"'{path}' cannot be written because it is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        raise DataError(f"'{path}' cannot be replaced because it is not a regular file; choose another path.")
    if not folder.is_dir():
        raise DataError(f"'{path}' cannot be written because there is no folder '{folder}'; create it first.")
    if not os.access(folder, os.W_OK):
        raise DataError(f"'{path}' cannot be written because the folder '{folder}' is not writable; name another.")


def sync_folder(folder: Path) -> None:
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
