"""MQTT topics: ``mqtt://[user:password@]host[:port]/topic``. A message is a JSON object.

A broker forgets a message once it is acknowledged, so messages are written to a file and synchronized before they are
acknowledged; that file is followed like any other. A message that a broker sends again on the same connection is
recognized by its id and ignored. On a new connection ids may be reused, so a message whose acknowledgement was lost is
written again: delivery is at least once.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import threading
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from redescend.errors import DataError, needs_extra
from redescend.sources.streams import hide_password, to_line

SCHEMES = {"mqtt": 1883, "mqtts": 8883}  # schemes and their default ports
WAITING = 10_000  # the most messages that wait to be written; then the broker has to wait
WAIT = 15.0  # seconds to wait for the subscription


def is_topic(source: Any) -> bool:
    """Whether a source is the address of a topic.

    >>> is_topic("mqtt://localhost/sensors/#"), is_topic("sensors.csv")
    (True, False)
    """
    return isinstance(source, str) and source.partition("://")[0].lower() in SCHEMES and "://" in source


class Spool:
    """A file of messages, one a line, that grows while the subscription lasts; it continues where it ended.

    If the `address` of the topic has wildcards, records have a column ``topic``. If it is `durable`, the broker stores
    messages while no client is connected, for the next spool of this address and `path`.
    """

    def __init__(self, address: str, path: Path, *, durable: bool = True) -> None:
        self.name, self.path = hide_password(address), path
        self.error: str | None = None  # the reason for the end of the subscription
        self._topic = address.partition("://")[2].partition("/")[2]
        try:
            parts = urlsplit(address)
            self._port = parts.port or SCHEMES[parts.scheme.lower()]
        except ValueError as error:
            raise DataError(f"{self.name} is not an address: {error}.") from None
        if not parts.hostname or not self._topic:
            raise DataError(f"The address of a topic looks like mqtt://localhost/topic. Got {self.name!r}.")
        self._durable, self._closing = durable, False
        self._connection = 0
        self._written: tuple[int, dict[int, bytes]] = (0, {})
        """A connection, and the digests of its messages by their ids."""
        _cut_incomplete_line(path)
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 -- closed by `close`
        self._messages: queue.Queue[tuple[int, Any] | None] = queue.Queue(WAITING)
        self._subscribed = threading.Event()
        self._client = self._connect(parts)
        self._writer = threading.Thread(target=self._write_messages, name="mqtt-spool", daemon=True)
        self._writer.start()
        self._client.loop_start()
        if not self._subscribed.wait(WAIT) or self.error is not None:
            self.close()
            raise DataError(f"{self.name} cannot be subscribed to: {self.error or 'the broker does not answer'}.")

    def _connect(self, parts: Any) -> Any:
        with needs_extra("MQTT topics need the package paho-mqtt", "mqtt"):
            import paho.mqtt.client as mqtt
        # A broker stores messages for a client of this name.
        name = "redescend-" + hashlib.sha256(f"{self.name} {self.path.absolute()}".encode()).hexdigest()[:12]
        client: Any = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, client_id=name, clean_session=not self._durable, manual_ack=True
        )
        if parts.username:
            client.username_pw_set(unquote(parts.username), None if parts.password is None else unquote(parts.password))
        if parts.scheme.lower() == "mqtts":
            client.tls_set()
        client.on_connect = self._on_connect
        client.on_subscribe, client.on_message = self._on_subscribe, self._on_message
        try:
            client.connect(parts.hostname, self._port)
        except OSError as error:
            self._file.close()
            raise OSError(f"{self.name} does not answer: {error}") from None
        return client

    def _on_connect(self, client: Any, _: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.error = str(reason)
            self._subscribed.set()
        else:
            self._connection += 1
            client.subscribe(self._topic, qos=1)

    def _on_subscribe(self, client: Any, _: Any, number: int, reasons: Any, properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self.error = "the broker refuses the subscription"
        self._subscribed.set()

    def _on_message(self, client: Any, _: Any, message: Any) -> None:
        if self.error is None and not self._closing:
            self._messages.put((self._connection, message))

    def _write_messages(self) -> None:
        """Write messages, then acknowledge them. After an error, discard them, so that no thread blocks."""
        more = True
        try:
            while more:
                group, more = self._take_messages()
                self._append_messages(group)
                for connection, message in group:
                    # The broker sends those of an earlier connection again, and their ids may be those of others then.
                    if connection == self._connection:
                        self._client.ack(message.mid, message.qos)
        except Exception as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            self.error = f"{self.path} cannot be written: {reason}"
            while more:
                _, more = self._take_messages()

    def _take_messages(self) -> tuple[list[tuple[int, Any]], bool]:
        """Take all waiting messages; also returns whether there may be more."""
        waiting = [self._messages.get()]
        while len(waiting) < WAITING and not self._messages.empty():
            waiting.append(self._messages.get())
        group = [each for each in waiting if each is not None]
        return group, len(group) == len(waiting)

    def _append_messages(self, group: list[tuple[int, Any]]) -> None:
        lines = []
        for connection, message in group:
            if connection != self._written[0]:
                self._written = (connection, {})
            line, digests = self._to_line(message), self._written[1]
            digest = hashlib.sha256(line).digest()
            # Retained messages come with every subscription.
            if message.retain or (message.dup and digests.get(message.mid) == digest):
                continue
            lines.append(line + b"\n")
            digests[message.mid] = digest
        if lines:
            view = memoryview(b"".join(lines))
            while view:
                view = view[self._file.write(view) :]
            os.fsync(self._file.fileno())

    def _to_line(self, message: Any) -> bytes:
        line = to_line(message.payload)
        if {"+", "#"} & set(self._topic) and _lacks_topic(line):
            rest = line[1:].lstrip()
            line = b'{"topic": %s%s%s' % (json.dumps(message.topic).encode(), b"" if rest[:1] == b"}" else b", ", rest)
        return line

    def close(self) -> None:
        """End the subscription; if the spool is durable, the broker stores later messages."""
        self._closing = True
        self._messages.put(None)
        self._writer.join(WAIT)
        self._client.disconnect()
        self._client.loop_stop()
        self._file.close()


def _lacks_topic(line: bytes) -> bool:
    """Whether a line is a JSON object without a key ``topic``.

    >>> _lacks_topic(b'{"kind": "topic"}'), _lacks_topic(b'{"topic": 1}'), _lacks_topic(b"{")
    (True, False, False)
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "topic" not in record


def _cut_incomplete_line(path: Path) -> None:
    """Cut off an incomplete last line, which was not acknowledged."""
    if path.exists():
        with open(path, "r+b") as file:
            file.truncate(sum(len(line) for line in file if line.endswith(b"\n")))
