"""Running the server: the socket, the signals, and clients that do not finish what they begin."""

from __future__ import annotations

import ctypes
import gc
import ipaddress
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn

from redescend.errors import ParameterError
from redescend.serve.app import make_app
from redescend.serve.calls import Calls
from redescend.serve.folder import ModelFolder
from redescend.serve.logs import FIELDS
from redescend.serve.protocol import DirectCalls, make_protocol

LOGGER = logging.getLogger("redescend.serve")

GRACE = 30  # seconds that open requests have when the server stops
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # parameters of `mallopt`, from malloc.h
KEPT = 32 << 20  # bytes of freed memory that are not returned to the system
CONNECTIONS = 4  # connections for each open request that is allowed


def check_host(host: str, token: str | None) -> None:
    """Raise if the server could be reached from elsewhere without a token."""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback and not token:
        raise ParameterError(f"To listen on {host}, set a token with --token; without one, only 127.0.0.1 is allowed.")


class Server(uvicorn.Server):
    """A server that ends with its usual exit code when it is told to stop, and ends its streams of events first."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def keep_freed_memory() -> None:
    """Keep the memory of one commit for the next: to return it to the system and to get it again takes longer."""
    with suppress(OSError, AttributeError, TypeError):  # another C library than glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(ARENA_MAX, 1)
        mallopt(TRIM_THRESHOLD, KEPT)
        mallopt(MMAP_THRESHOLD, KEPT // 8)


def run_server(folder: ModelFolder, host: str, port: int, token: str | None) -> None:
    """Serve the models of a folder until SIGTERM or Ctrl-C; then finish what is open, and write snapshots."""
    check_host(host, token)
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        text = f"{host}:{port} cannot be listened on ({why}); choose another --port, or another --host."
        raise ParameterError(text) from None
    calls = Calls(folder, token)
    config = uvicorn.Config(
        make_app(calls),
        proxy_headers=False,
        http=make_protocol(DirectCalls(calls), folder.limits.seconds),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS * folder.limits.requests,
        timeout_keep_alive=int(folder.limits.seconds),
        timeout_graceful_shutdown=GRACE,
    )
    with listener:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}"
        LOGGER.info("Serving on %s; stop with Ctrl-C.", address, extra={FIELDS: {"address": address}})
        # What was imported stays: without it, garbage is collected soon, and in less than a millisecond.
        gc.collect()
        gc.freeze()
        keep_freed_memory()
        Server(config).run(sockets=[listener])
        LOGGER.info("Stopped.")
