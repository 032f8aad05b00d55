"""What a process may use: the memory of its machine, and a Dask cluster."""

from __future__ import annotations

import os
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from redescend.errors import ParameterError, needs_extra

if TYPE_CHECKING:
    from dask.distributed import Client

CONNECT_SECONDS = 5.0  # time limit for an answer of the cluster


def connect_cluster(address: str) -> Client:
    """Return a client of the cluster at this address, which must have at least one worker."""
    import asyncio

    with needs_extra("A cluster needs Dask", "experiments"):
        from dask.distributed import Client
    # Checked first, because a client that cannot connect delays the exit by ten seconds, and one that gets no answer
    # waits forever.
    with ThreadPoolExecutor(1) as thread:  # a thread without an event loop, unlike a notebook's
        problem = thread.submit(asyncio.run, _check_scheduler(address)).result()
    if problem:
        raise ParameterError(f"No Dask cluster answers at '{address}': {problem}.")
    client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        client.close()
        raise ParameterError(f"The Dask cluster at '{address}' has no workers.") from None
    return client


async def _check_scheduler(address: str) -> str:
    """Return why there is no scheduler at the address, or an empty text if there is one."""
    import asyncio

    from distributed.core import rpc

    try:
        async with asyncio.timeout(CONNECT_SECONDS), rpc(address) as scheduler:
            identity = await scheduler.identity()
    except TimeoutError:
        return f"no answer within {CONNECT_SECONDS:g} s"
    except (OSError, ValueError) as error:
        return format_exception(error)
    except Exception:  # whatever else listens there may answer anything
        return "it is not a Dask scheduler"
    return "" if identity.get("type") == "Scheduler" else f"it is a Dask {identity.get('type')}"


def format_exception(error: BaseException) -> str:
    """Return an error in one line."""
    return traceback.format_exception_only(error)[-1].strip()


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
