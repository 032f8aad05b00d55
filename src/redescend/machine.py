"""The memory of the machine that this process may use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

GROUP = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how much memory a container may use."""

UNKNOWN = 8 << 30
"""What is assumed where the system does not say."""


def usable_memory() -> int:
    """Bytes of memory that this process may use: those of the machine, or fewer if a limit is set.

    Examples
    --------
    >>> usable_memory() > 0
    True
    """
    found = []
    with suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(ImportError, ValueError, OSError):
        import resource

        found.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    with suppress(ValueError, OSError):
        found.append(int(GROUP.read_text()))
    return min((size for size in found if size > 0), default=UNKNOWN)
