"""Running the server: its connections, the socket, the signals, and clients that do not finish what they begin.

Short requests to predict and to learn, which are nearly all, are answered directly: from their bytes to their reply
they need neither an ASGI application nor a task. Everything else, such as long bodies, other paths and what is refused,
goes the way of the application, to the same functions.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import ipaddress
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from redescend.errors import ParameterError
from redescend.serve.app import make_app
from redescend.serve.calls import SMALL, Calls, Learning
from redescend.serve.folder import ModelFolder
from redescend.serve.logs import FIELDS, LOGGER
from redescend.serve.replies import HTTPException, Reply, RequestTimeout, encode, error_reply
from redescend.serve.requests import Answer
from redescend.serve.writer import Writer

# --- connections ---

PREFIX = b"/v2/models/"
OPERATIONS = {b"infer": "infer", b"learn": "learn", b"score": "score"}

UNUSUAL = frozenset({b"content-encoding", b"expect", b"transfer-encoding", b"upgrade"})
"""Headers of requests that the application answers."""

RAW_AFTER = b"inference-header-content-length"


NOBODY = asyncio.Event()  # uvicorn tells it of messages of an `Exchange`, for which nobody waits


class Exchange:
    """A request and its reply; uvicorn treats it like its own."""

    __slots__ = (
        "began", "disconnected", "headers", "keep_alive", "message_event", "name", "operation", "parts", "reply",
        "response_complete",
    )  # fmt: skip

    def __init__(
        self, name: str, operation: str, headers: Mapping[bytes, bytes], reply: Callable[[Exchange, Reply], None]
    ) -> None:
        self.name, self.operation, self.headers, self.reply = name, operation, headers, reply
        self.began = time.perf_counter()
        self.parts: list[bytes] | None = []  # the body so far; None once it is complete, or shall be ignored
        self.keep_alive, self.disconnected, self.response_complete = True, False, False
        self.message_event = NOBODY

    def header(self, name: bytes) -> str:
        """A header, empty if it is not there."""
        return self.headers.get(name, b"").decode("latin-1")


class DirectCalls:
    """Answers short requests to `Calls`."""

    def __init__(self, calls: Calls) -> None:
        self._calls, self._metrics, self._longest = calls, calls.metrics, min(SMALL, calls.limits.body)

    def begin(
        self, url: bytes, headers: list[tuple[bytes, bytes]], reply: Callable[[Exchange, Reply], None]
    ) -> Exchange | None:
        """The exchange that a request begins, or None if the application has to answer it."""
        if not url.startswith(PREFIX):
            return None
        name, _, last = url[len(PREFIX) :].partition(b"/")
        operation, found = OPERATIONS.get(last), dict(headers)
        size = found.get(b"content-length", b"")
        if operation is None or not name.isascii() or b"%" in name or len(size) > 5 or not size.isdigit():
            return None
        if int(size) > self._longest or not UNUSUAL.isdisjoint(found):
            return None
        exchange = Exchange(name.decode(), operation, found, reply)
        try:
            self._calls.check(exchange.header(b"authorization"))
        except HTTPException:
            return None
        self._metrics.open += 1
        return exchange

    def run(self, exchange: Exchange, body: bytes) -> None:
        """Reply to a request, at once or when its records are learned from."""
        try:
            writer = self._calls.folder.writer(exchange.name)
            if exchange.operation == "infer":
                content = self._calls.infer(writer, body, exchange.header(RAW_AFTER))
            elif exchange.operation == "score":
                content = self._calls.score(writer, body, exchange.header(b"content-type"))
            else:
                self._learn(exchange, writer, body)
                return
        except Exception as error:
            self._finish(exchange, error_reply(error))
        else:
            self._finish(exchange, Reply(content))

    def _learn(self, exchange: Exchange, writer: Writer, body: bytes) -> None:
        key = exchange.header(b"idempotency-key") if b"idempotency-key" in exchange.headers else None
        learning = self._calls.begin_learning(writer, body, exchange.header(b"content-type"), key)
        future = learning.submit()
        future.add_done_callback(partial(self._end_learning, exchange, learning))

    def _end_learning(self, exchange: Exchange, learning: Learning, future: asyncio.Future[Answer]) -> None:
        try:
            reply = Reply(encode(learning.end(future)))
        except Exception as error:
            reply = error_reply(error)
        self._finish(exchange, reply)

    def expire(self, exchange: Exchange) -> None:
        """Reply that the body did not come in time."""
        seconds = self._calls.limits.seconds
        self._finish(exchange, error_reply(RequestTimeout(f"The body did not come within {seconds:g} seconds.")))

    def drop(self, exchange: Exchange) -> None:
        """Forget a request whose client has left before its body was complete."""
        self._metrics.open -= 1

    def _finish(self, exchange: Exchange, reply: Reply) -> None:
        self._metrics.open -= 1
        known = exchange.name if exchange.name in self._calls.folder.writers else ""
        self._metrics.observe(known, exchange.operation, reply.status, time.perf_counter() - exchange.began)
        exchange.reply(exchange, reply)


Headers = list[tuple[bytes, bytes]]


def make_protocol(calls: DirectCalls, seconds: float) -> type[HttpToolsProtocol]:
    """A protocol that answers direct calls, and closes connections on which a request does not come in time."""

    class Protocol(HttpToolsProtocol):
        cycle: Any
        _deadline: float | None = None
        """When the head of a request, the body of a direct call, or another request must have come."""
        _default: tuple[Headers, bytes] = [], b""  # the headers of every reply, as a list and as bytes

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._deadline = self.loop.time() + seconds
            self._timer = self.loop.call_at(self._deadline, self._check_deadline)

        def connection_lost(self, exc: Exception | None) -> None:
            self._timer.cancel()
            exchange: Any = self.cycle
            if type(exchange) is Exchange and exchange.parts is not None:
                calls.drop(exchange)
            super().connection_lost(exc)

        def _check_deadline(self) -> None:
            # Moving a deadline costs nothing; a timer for every request would.
            now, deadline = self.loop.time(), self._deadline
            if deadline is not None and deadline <= now:
                self._expire()
            else:
                self._timer = self.loop.call_at(now + seconds if deadline is None else deadline, self._check_deadline)

        def _expire(self) -> None:
            exchange: Any = self.cycle
            if type(exchange) is Exchange and exchange.parts is not None:
                exchange.parts = None
                calls.expire(exchange)
            else:
                self.transport.close()

        # --- a request ---

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._deadline = self.loop.time() + seconds

        def on_headers_complete(self) -> None:
            self._deadline = None
            before: Any = self.cycle
            exchange = None
            # Others wait for their turn, or for their client, in the application.
            if before is None or (before.response_complete and not self.flow.write_paused):
                usual = self.parser.get_http_version() == "1.1" and self.parser.should_keep_alive()
                crowded = self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency
                if usual and not crowded and self.parser.get_method() == b"POST":
                    exchange = calls.begin(self.url, self.headers, self._reply)
            if exchange is None:
                super().on_headers_complete()
                return
            self.cycle = exchange
            self._deadline = self.loop.time() + seconds

        def on_body(self, body: bytes) -> None:
            exchange: Any = self.cycle
            if type(exchange) is not Exchange:
                super().on_body(body)
            elif exchange.parts is not None:
                exchange.parts.append(body)

        def on_message_complete(self) -> None:
            exchange: Any = self.cycle
            if type(exchange) is not Exchange:
                super().on_message_complete()
            elif exchange.parts is not None:
                self._deadline = None
                parts, exchange.parts = exchange.parts, None
                calls.run(exchange, parts[0] if len(parts) == 1 else b"".join(parts))

        # --- its reply ---

        def _reply(self, exchange: Exchange, reply: Reply) -> None:
            # First all requests that have come are answered, and then the answers are sent: a client that is woken up
            # for each of them takes turns with the server, which takes twice the time.
            self.loop.call_soon(self._send, exchange, reply)

        def _send(self, exchange: Exchange, reply: Reply) -> None:
            exchange.response_complete = True
            if self.transport.is_closing():
                return
            close = not exchange.keep_alive or reply.close
            self.transport.write(self._encode_head(reply, close) + reply.content)
            if close:
                self.transport.close()
            if self.pipeline:
                self.on_response_complete()
            else:
                self.server_state.total_requests += 1
                self.flow.resume_reading()
                self._deadline = self.loop.time() + seconds

        def _encode_head(self, reply: Reply, close: bool) -> bytes:
            listed = self.server_state.default_headers
            if listed is not self._default[0]:
                self._default = listed, b"".join(b"%s: %s\r\n" % header for header in listed)
            more = b"connection: close\r\n" if close else b""
            for name, value in reply.headers.items():
                more += b"%s: %s\r\n" % (name.lower().encode(), value.encode())
            head = b"%s%scontent-length: %d\r\ncontent-type: application/json\r\n%s\r\n"
            return head % (STATUS_LINE[reply.status], self._default[1], len(reply.content), more)

    return Protocol


# --- the server ---

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
        raise ParameterError(
            f"To listen on {host}, set a token with --token; without one, the host must be loopback, such as 127.0.0.1."
        )


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
        number = error.errno or 0  # negative if a name cannot be resolved
        why = os.strerror(number) if number > 0 else "there is no such address" if number < 0 else str(error)
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
