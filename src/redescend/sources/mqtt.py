"""MQTT topics: ``mqtt://[user:password@]host[:port]/topic``. A message is a JSON object.

A broker forgets a message once it is acknowledged, so messages are first written to a file, synchronized, and then
acknowledged: that file is followed like any other. A message whose acknowledgement was lost comes again, which MQTT
marks; it is ignored if it equals one of the last messages in the file. So every message is there at least once, and
twice only if the broker does not mark it.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import threading
from collections import Counter, deque
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from redescend.errors import DataError, MissingExtraError
from redescend.sources.streams import hide_password, to_line

SCHEMES = {"mqtt": 1883, "mqtts": 8883}
"""With their ports."""

RECENT = 100
"""Messages that one that comes again is compared with: more than a broker sends without an acknowledgement."""

WAIT = 15.0
"""Seconds to wait for the subscription."""


def is_topic(source: Any) -> bool:
    """Whether a source is the address of a topic.

    >>> is_topic("mqtt://localhost/sensors/#"), is_topic("sensors.csv")
    (True, False)
    """
    return isinstance(source, str) and source.partition("://")[0].lower() in SCHEMES and "://" in source


class Spool:
    """A file of messages, one a line, that grows while the subscription lasts.

    Parameters
    ----------
    address : str
        Of the topic; wildcards are allowed, and then records have a column ``topic``.
    path : Path
        The file; it continues where it ended.
    """

    def __init__(self, address: str, path: Path) -> None:
        self.name, self.path = hide_password(address), path
        self.error: str | None = None
        """Why the subscription has ended."""
        self._topic = address.partition("://")[2].partition("/")[2]
        parts = urlsplit(address)
        if not parts.hostname or not self._topic:
            raise DataError(f"The address of a topic looks like mqtt://localhost/topic. Got {self.name!r}.")
        self._recent = _recover(path)
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 -- closed by `close`
        self._messages: queue.Queue[Any] = queue.Queue()
        self._subscribed = threading.Event()
        self._client = self._connect(parts)
        self._writer = threading.Thread(target=self._write, name="mqtt-spool", daemon=True)
        self._writer.start()
        self._client.loop_start()
        if not self._subscribed.wait(WAIT) or self.error is not None:
            self.close()
            raise DataError(f"{self.name} cannot be subscribed to: {self.error or 'the broker does not answer'}.")

    def _connect(self, parts: Any) -> Any:
        try:
            import paho.mqtt.client as mqtt
        except ImportError:
            raise MissingExtraError(
                "MQTT topics need the package paho-mqtt; install it with: pip install 'redescend[mqtt]'"
            ) from None
        # The broker keeps messages for this name while nobody is connected.
        name = "redescend-" + hashlib.sha256(f"{self.name} {self.path.absolute()}".encode()).hexdigest()[:12]
        client: Any = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, client_id=name, clean_session=False, manual_ack=True
        )
        if parts.username:
            client.username_pw_set(unquote(parts.username), None if parts.password is None else unquote(parts.password))
        if parts.scheme.lower() == "mqtts":
            client.tls_set()
        client.on_connect, client.on_subscribe, client.on_message = (
            self._on_connect,
            self._on_subscribe,
            self._on_message,
        )
        try:
            client.connect(parts.hostname, parts.port or SCHEMES[parts.scheme.lower()])
        except OSError as error:
            self._file.close()
            raise OSError(f"{self.name} does not answer: {error}") from None
        return client

    def _on_connect(self, client: Any, _: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.error = str(reason)
            self._subscribed.set()
        else:
            client.subscribe(self._topic, qos=1)

    def _on_subscribe(self, client: Any, _: Any, number: int, reasons: Any, properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self.error = "the broker refuses the subscription"
        self._subscribed.set()

    def _on_message(self, client: Any, _: Any, message: Any) -> None:
        self._messages.put(message)

    def _write(self) -> None:
        """Write messages that wait at the same time together, and acknowledge them then."""
        while (message := self._messages.get()) is not None:
            group = [message]
            while not self._messages.empty() and (message := self._messages.get()) is not None:
                group.append(message)
            try:
                self._append(group)
            except OSError as error:
                self.error = f"{self.path} cannot be written: {error.strerror or error}"
                return
            for each in group:
                self._client.ack(each.mid, each.qos)
            if message is None:
                return

    def _append(self, group: list[Any]) -> None:
        lines = []
        for message in group:
            line = self._to_line(message)
            # Retained messages come with every subscription.
            if message.retain or (message.dup and self._recent.forget(line)):
                continue
            lines.append(line + b"\n")
            self._recent.add(line)
        if lines:
            view = memoryview(b"".join(lines))
            while view:
                view = view[self._file.write(view) :]
            os.fsync(self._file.fileno())

    def _to_line(self, message: Any) -> bytes:
        line = to_line(message.payload)
        if {"+", "#"} & set(self._topic) and line[:1] == b"{" and b'"topic"' not in line:
            rest = line[1:].lstrip()
            line = b'{"topic": %s%s%s' % (json.dumps(message.topic).encode(), b"" if rest[:1] == b"}" else b", ", rest)
        return line

    def close(self) -> None:
        """End the subscription; the broker keeps what comes meanwhile."""
        self._messages.put(None)
        self._writer.join(WAIT)
        self._client.disconnect()
        self._client.loop_stop()
        self._file.close()


class Recent:
    """The last lines, as digests.

    >>> recent = Recent()
    >>> recent.add(b"a")
    >>> recent.forget(b"a"), recent.forget(b"a")
    (True, False)
    """

    def __init__(self) -> None:
        self._order: deque[bytes] = deque()
        self._counts: Counter[bytes] = Counter()

    def add(self, line: bytes) -> None:
        """Remember a line, and forget the oldest."""
        digest = hashlib.sha256(line).digest()
        self._order.append(digest)
        self._counts[digest] += 1
        if len(self._order) > RECENT:
            self._forget(self._order.popleft())

    def forget(self, line: bytes) -> bool:
        """Whether a line is known; it comes again only once."""
        return self._forget(hashlib.sha256(line).digest())

    def _forget(self, digest: bytes) -> bool:
        known = self._counts[digest] > 0
        self._counts[digest] -= 1
        if self._counts[digest] <= 0:
            del self._counts[digest]
        return known


def _recover(path: Path) -> Recent:
    """Cut off an incomplete last line, which was not acknowledged; what the last lines are."""
    recent = Recent()
    if not path.exists():
        return recent
    last: deque[bytes] = deque(maxlen=RECENT)
    with open(path, "r+b") as file:
        end = 0
        for line in file:
            if line.endswith(b"\n"):
                last.append(line[:-1])
                end += len(line)
        file.truncate(end)
    for line in last:
        recent.add(line)
    return recent
