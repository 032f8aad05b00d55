"""A Dask cluster: a client that is connected, or one sentence on why there is none."""

from __future__ import annotations

import asyncio
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from redescend.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from dask.distributed import Client

CONNECT_SECONDS = 5.0
"""How long a cluster may take to answer."""


def connected(address: str) -> Client:
    """A client of the cluster at this address, with at least one worker."""
    try:
        from dask.distributed import Client
    except ImportError:
        raise MissingExtraError("A cluster needs Dask; install it with: pip install 'redescend[experiments]'") from None
    # Asked first, because a client that cannot connect lingers for ten seconds at exit, and one that hears nothing
    # waits for ever.
    with ThreadPoolExecutor(1) as thread:  # where no other event loop runs, as one does in a notebook
        problem = thread.submit(asyncio.run, _no_answer(address)).result()
    if problem:
        raise ParameterError(f"No Dask cluster answers at '{address}': {problem}.")
    client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        client.close()
        raise ParameterError(f"The Dask cluster at '{address}' has no workers.") from None
    return client


async def _no_answer(address: str) -> str:
    """Why no scheduler is at the address, or nothing if one is."""
    from distributed.core import rpc

    try:
        async with asyncio.timeout(CONNECT_SECONDS), rpc(address) as scheduler:
            identity = await scheduler.identity()
    except TimeoutError:
        return f"nothing was heard for {CONNECT_SECONDS:g} s"
    except (OSError, ValueError) as error:
        return said(error)
    except Exception:  # whatever else listens there may answer anything
        return "what is there is no Dask scheduler"
    return "" if identity.get("type") == "Scheduler" else f"it is a Dask {identity.get('type')}"


def said(error: BaseException) -> str:
    """An error in one line."""
    return traceback.format_exception_only(error)[-1].strip()
