"""Redis streams: ``redis://[user:password@]host[:port]/[database/]stream``.

An entry is a record: its fields are the columns, or its only field ``json`` is a JSON object. Ids increase, so that
each entry is read once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from redescend.errors import DataError, needs_extra
from redescend.sources.formats import ReadOptions
from redescend.sources.streams import Entry, RecordStream, hide_password, to_line

JSON_FIELD = b"json"


class RedisStream(RecordStream):
    """A stream of a Redis server."""

    format = "redis"
    schemes: ClassVar[tuple[str, ...]] = ("redis", "rediss")

    def __init__(self, address: str, options: ReadOptions) -> None:
        super().__init__(address, options)
        self._server, self._key = _split_address(address)

    @cached_property
    def _client(self) -> Any:
        with needs_extra("Redis streams need the package redis", "redis"):
            import redis
        return redis.Redis.from_url(self._server, socket_timeout=30.0, socket_connect_timeout=10.0)

    def read_entries(self, after: str | None, most: int) -> list[Entry]:
        """Entries by their ids and, behind a slash, their numbers since the stream began."""
        last, _, number = (after or "").partition("/")
        info, entries = self._execute(
            lambda pipe: pipe.xinfo_stream(self._key).xrange(self._key, f"({last}" if last else "-", "+", most)
        )
        trimmed = _count_trimmed(info)
        before = trimmed if after is None else int(number or 0)
        if trimmed > before:
            raise DataError(
                f"{self.name}: {trimmed:,} entries were removed from the stream, but only {before:,} were read; keep "
                "more of it, and name an empty folder for checkpoints to start again."
            )
        return [
            Entry(f"{name.decode()}/{place}", _to_line(fields))
            for place, (name, fields) in enumerate(entries, before + 1)
        ]

    def count_entries(self) -> int:
        return int(self._execute(lambda pipe: pipe.xlen(self._key))[0])

    def _execute(self, commands: Callable[[Any], Any]) -> list[Any]:
        """Execute commands as one transaction, and return the replies."""
        client = self._client
        import redis

        try:
            replies = list(commands(client.pipeline(transaction=True)).execute(raise_on_error=False))
        except redis.exceptions.RedisError as error:
            raise OSError(f"{self.name} does not answer: {error}") from None
        for reply in replies:
            if isinstance(reply, redis.exceptions.ResponseError) and "no such key" not in str(reply):
                raise DataError(f"{self.name} cannot be read: {reply}.")
        return replies


def _count_trimmed(info: Any) -> int:
    """Count the entries that were trimmed from a stream; 0 if single ones were deleted, or the server is too old."""
    if not isinstance(info, dict) or info.get("max-deleted-entry-id", b"0-0") != b"0-0":
        return 0
    length = int(info["length"])
    return int(info["entries-added"]) - length if "entries-added" in info else 0


def _split_address(address: str) -> tuple[str, str]:
    """The address of the server and the key of the stream."""
    name = hide_password(address)
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        raise DataError(f"{name} is not an address: {error}.") from None
    database, slash, key = parts.path.lstrip("/").partition("/")
    if not slash or not database.isdigit():
        database, key = "0", parts.path.lstrip("/")
    if not key or not parts.hostname:
        raise DataError(f"The address of a Redis stream looks like redis://localhost:6379/stream. Got {name!r}.")
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}/{database}{query}", unquote(key)


def _to_line(fields: dict[bytes, bytes]) -> bytes:
    if fields.keys() == {JSON_FIELD}:
        return to_line(fields[JSON_FIELD])
    try:
        return json.dumps({name.decode(): value.decode() for name, value in fields.items()}).encode()
    except UnicodeDecodeError:
        return to_line(b"\xff")
