"""Streams of records on a server, such as Redis; a position in them is the server's own id of a record.

The address of a Redis stream is ``redis://[user:password@]host[:port]/[database/]stream``. An entry is a record: its
fields are the columns, or its only field ``json`` is a JSON object. Ids increase, so that each entry is read once.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from redescend.errors import DataError, needs_extra
from redescend.sources.formats import FORMATS, Follow, Jobs, ReadOptions
from redescend.sources.jsonl import JsonLinesFile
from redescend.sources.kinds import SAMPLE, Kind
from redescend.sources.readers import Origin
from redescend.sources.splitter import Grammar, TextChunk
from redescend.sources.text import Head, parse_chunk

MOST = 1000  # records to read at a time: fewer than a batch may have, so that every batch ends where a read does


class Entry(NamedTuple):
    """A record of a stream as one JSON line, and its id."""

    id: str
    line: bytes


class RecordStream(JsonLinesFile):
    """A stream of a server, by its address. A protocol is a subclass, registered by `register_format`.

    The mark of a piece, and of a checkpoint, is the id of its last record: a resumed run continues after it. A protocol
    defines `schemes`, `read_entries` and `count_entries`.
    """

    schemes: ClassVar[tuple[str, ...]]
    suffixes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, address: str, options: ReadOptions) -> None:
        self.name, self.options = hide_password(address), options
        self.can_grow, self.can_reread = True, False

    @classmethod
    def recognizes(cls, first: bytes) -> bool:
        return False

    @classmethod
    def open(cls, origin: Origin, compression: str | None, options: ReadOptions) -> Self:
        raise DataError(
            f"{origin.name} is a file; the format {cls.format!r} is for addresses like {cls.schemes[0]}://…"
        )

    @abstractmethod
    def read_entries(self, after: str | None, most: int) -> list[Entry]:
        """Read the next entries after an id, or the first; none if there are no more for now."""

    @abstractmethod
    def count_entries(self) -> int:
        """Count the entries; 0 if the stream does not exist yet."""

    @cached_property
    def head(self) -> Head:
        return Head(0, Grammar(carriage=ord("\r"), longest=self.options.longest), None)

    @cached_property
    def sample(self) -> list[TextChunk]:
        return [chunk for chunk, _ in self._to_chunks(self.read_entries(None, SAMPLE), 0)]

    def jobs(
        self, kinds: Mapping[str, Kind], start: int, follow: Follow | None = None, mark: str | None = None
    ) -> Jobs:
        parser, last = self.parser(kinds), mark
        place = start if mark is not None else 0
        while True:
            entries = self.read_entries(last, MOST)
            if not entries:
                if follow is None or not follow():
                    return
                continue
            last = entries[-1].id
            for chunk, end in self._to_chunks(entries, place):
                if chunk.stop > start or mark is not None:
                    yield partial(parse_chunk, parser, chunk, end)
            place += len(entries)

    def _to_chunks(self, entries: list[Entry], place: int) -> list[tuple[TextChunk, str]]:
        """Entries as chunks with the ids of their last ones. Offsets are numbers of entries."""
        chunks: list[tuple[TextChunk, str]] = []
        group: list[bytes] = []
        for number, (last_id, line) in enumerate(entries, 1):
            too_long = len(line) > self.options.longest
            if not too_long:
                group.append(line)
            if group and (too_long or number == len(entries)):
                last = number - 2 if too_long else number - 1
                begin = place + last + 1 - len(group)
                chunks.append((TextChunk(begin, begin + len(group), b"\n".join(group), None), entries[last].id))
                group = []
            if too_long:
                reason = f"longer than {self.options.longest:,} bytes"
                chunks.append((TextChunk(place + number - 1, place + number, line[:1000], reason), last_id))
        return chunks


def find_stream(source: Any) -> type[RecordStream] | None:
    """The protocol of an address such as ``redis://localhost/prices``; None for any other source."""
    scheme, separator, _ = source.partition("://") if isinstance(source, str) else ("", "", "")
    streams = [each for each in FORMATS.values() if issubclass(each, RecordStream)]
    return next((each for each in streams if separator and scheme.lower() in each.schemes), None)


def hide_password(address: str) -> str:
    """Remove the password from an address.

    >>> hide_password("redis://me:secret@localhost/prices")
    'redis://me@localhost/prices'
    """
    scheme, separator, rest = address.partition("://")
    account, at, place = rest.partition("/")[0].rpartition("@")
    user = account.partition(":")[0]
    return f"{scheme}{separator}{user + '@' if user else ''}{place}{rest[len(account + at + place) :]}"


def to_line(payload: bytes) -> bytes:
    r"""A JSON text on one line; anything else becomes a line that is not a JSON object.

    >>> to_line(b'{\n"x": 1}'), to_line(b""), to_line(b"\xff")
    (b'{ "x": 1}', b'""', b'"\\ufffd"')
    """
    try:
        payload.decode()
    except UnicodeDecodeError:
        return json.dumps(payload.decode(errors="replace")).encode()
    return payload.replace(b"\n", b" ").replace(b"\r", b" ").strip() or b'""'


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
