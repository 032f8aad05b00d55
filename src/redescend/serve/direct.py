"""Short requests to predict and to learn, which are nearly all: from their bytes to their reply without a task.

Everything else, such as long bodies, other paths and what is refused, goes the way of the application, to the same
functions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial

from redescend.serve.calls import Calls
from redescend.serve.learning import Learning
from redescend.serve.refusals import Refusal, TooSlow
from redescend.serve.replies import Reply, encode, refuse
from redescend.serve.requests import Answer
from redescend.serve.writer import Writer

PREFIX = b"/v2/models/"
OPERATIONS = {b"infer": "infer", b"learn": "learn", b"score": "score"}

SMALL = 1 << 16
"""Bytes of a body that are worth no thread: they are parsed in half a millisecond."""

UNUSUAL = frozenset({b"content-encoding", b"expect", b"transfer-encoding", b"upgrade"})
"""Headers of requests that the application answers."""

RAW_AFTER = b"inference-header-content-length"


class Nobody:
    """Who waits for messages of an `Exchange`."""

    def set(self) -> None:
        """Tell nobody."""


class Exchange:
    """A request and its reply; uvicorn treats it like its own."""

    __slots__ = (
        "began", "disconnected", "headers", "keep_alive", "message_event", "name", "operation", "parts", "reply",
        "response_complete",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        operation: str,
        headers: Mapping[bytes, bytes],
        reply: Callable[[Exchange, Reply], None],
    ) -> None:
        self.name, self.operation, self.headers, self.reply = name, operation, headers, reply
        self.began = time.perf_counter()
        self.parts: list[bytes] | None = []
        """The body so far; None once it is complete, or shall be ignored."""
        self.keep_alive, self.disconnected, self.response_complete = True, False, False
        self.message_event = NOBODY

    def header(self, name: bytes) -> str:
        """A header, empty if it is not there."""
        return self.headers.get(name, b"").decode("latin-1")


NOBODY = Nobody()


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
        except Refusal:
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
            self._finish(exchange, refuse(error))
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
            reply = refuse(error)
        self._finish(exchange, reply)

    def expire(self, exchange: Exchange) -> None:
        """Reply that the body did not come in time."""
        self._finish(exchange, refuse(TooSlow(f"The body did not come within {self._calls.limits.seconds:g} seconds.")))

    def drop(self, exchange: Exchange) -> None:
        """Forget a request whose client has left before its body was complete."""
        self._metrics.open -= 1

    def _finish(self, exchange: Exchange, reply: Reply) -> None:
        self._metrics.open -= 1
        known = exchange.name if exchange.name in self._calls.folder.writers else ""
        self._metrics.observe(known, exchange.operation, reply.status, time.perf_counter() - exchange.began)
        exchange.reply(exchange, reply)
