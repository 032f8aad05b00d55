"""The memory of the machine that this process may use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

GROUP = Path("/sys/fs/cgroup/memory.max")  # the file with the memory limit of a container on Linux
UNKNOWN = 8 << 30  # assumed where the system reports no size


def usable_memory() -> int:
    """Bytes of memory that this process may use: those of the machine, or fewer if a limit is set."""
    limits = []
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(ImportError, ValueError, OSError):
        import resource

        limits.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    with suppress(ValueError, OSError):
        limits.append(int(GROUP.read_text()))
    return min((size for size in limits if size > 0), default=UNKNOWN)
