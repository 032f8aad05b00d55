"""The connections of the server: short requests to predict and to learn are answered without an ASGI application."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from redescend.serve.direct import DirectCalls, Exchange
from redescend.serve.replies import Reply

Headers = list[tuple[bytes, bytes]]


def make_protocol(calls: DirectCalls, seconds: float) -> type[HttpToolsProtocol]:
    """A protocol that answers direct calls, and closes connections on which a request does not come in time."""

    class Protocol(HttpToolsProtocol):
        cycle: Any
        _deadline: float | None = None
        """When the head of a request, the body of a direct call, or another request must have come."""
        _default: tuple[Headers, bytes] = [], b""
        """The headers of every reply, as a list and as bytes."""

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
