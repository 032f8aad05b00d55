"""Request bodies as records, one JSON line each, and records as the batches that models learn from.

A record that a client sends reaches the model through the journal's own parser, so that it becomes what `redescend fit`
makes of the journal. A record that was predicted waits here for its label.
"""

from __future__ import annotations

import io
import json
import math
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import orjson
import pyarrow as pa

from redescend.errors import DataError, RedescendError, quote
from redescend.serve.numbers import NumericRecords, NumericRows
from redescend.serve.replies import ContentTooLarge, UnsupportedMediaType
from redescend.serve.settings import Limits
from redescend.sources import Batch, Kind
from redescend.sources.arrow import BODY, END, INDEXED, count_batch_rows, measure_batches
from redescend.sources.batch import concat_batches
from redescend.sources.jsonl import JsonParser, make_object
from redescend.sources.kinds import format_json, infer_type_kind
from redescend.sources.splitter import LONGEST, Grammar, TextChunk
from redescend.sources.text import parse_chunk

GRAMMAR = Grammar(carriage=ord("\r"))

LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines", "application/json-lines")
ARROW = ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file")
JSON = "application/json"

LIMITS = Limits()
EXPANSION = 4  # how many times the largest body Arrow data may take in memory, and their records as JSON

SPACED = re.compile(rb'"\s+:')
"""White space between a name and its colon, with which names cannot be counted by the bytes `":`."""


@dataclass(frozen=True)
class Records:
    """Records: as lines or, if all of them are numbers, as rows for the model."""

    lines: list[bytes]
    numbers: NumericRows | None = None

    @property
    def count(self) -> int:
        return len(self.lines) if self.numbers is None else len(self.numbers.rows)

    def join(self) -> bytes | memoryview:
        """All lines, with a newline behind each."""
        return b"".join([line + b"\n" for line in self.lines]) if self.numbers is None else self.numbers.lines

    def split(self) -> list[bytes]:
        """All lines."""
        return self.lines if self.numbers is None else bytes(self.numbers.lines).split(b"\n")[:-1]


def read_records(
    body: bytes, content_type: str, numeric: NumericRecords | None = None, limits: Limits = LIMITS
) -> Records:
    """The records of a body: one JSON object, a list of them, JSON lines, or an Arrow IPC stream or file.

    `numeric` reads those of a model of numbers.

    >>> read_records(b'[{"x": 1}, {"x": 2}]', "application/json")
    Records(lines=[b'{"x":1}', b'{"x":2}'], numbers=None)
    """
    kind = content_type.partition(";")[0].strip().lower() or JSON
    plain = kind == JSON or kind in LINES
    found = numeric.read(body, lined=kind in LINES) if numeric is not None and plain else None
    if found is None:
        lines = _read_lines(body, kind, limits)
        if numeric is not None and kind in ARROW:
            found = numeric.read(b"\n".join(lines), lined=True)
    records = Records(lines, None) if found is None else Records([], found)
    check_records(records.count, limits)
    return records


def check_records(count: int, limits: Limits) -> None:
    """Raise if a request has too many records."""
    if count > limits.records:
        raise ContentTooLarge(f"The request has {count:,} records, and the server takes {limits.records:,} at a time.")


def _may_repeat_names(text: bytes, count: int) -> bool:
    """Whether a name may be twice in an object of a JSON text in which the fast parser has found `count` names."""
    # Of such a name, the fast parser takes the last value, but the journal's parser rejects the record.
    return text.count(b'":') != count or SPACED.search(text) is not None


def _read_lines(body: bytes, kind: str, limits: Limits) -> list[bytes]:
    if kind in ARROW:
        records = _read_arrow(body, limits)
    elif kind in LINES:
        records = GRAMMAR.records(body) if len(body) <= LONGEST else _split_lines(body)
    elif kind == JSON:
        records = _read_json(body)
    else:
        others = ", ".join((LINES[0], *ARROW))
        raise UnsupportedMediaType(
            f"Records cannot be sent as {quote(kind)}: set Content-Type to {JSON}, or to {others}."
        )
    for number, record in enumerate(records, 1):
        if record.lstrip()[:1] != b"{":
            raise DataError(f"Record {number} is not a JSON object.")
        if len(record) > LONGEST:
            raise DataError(f"Record {number} is longer than {LONGEST:,} bytes.")
    if not records:
        raise DataError("The body has no record.")
    return records


def load_json(body: bytes) -> Any:
    """The content of a JSON text.

    What the fast parser refuses, such as NaN, the parser of Python's library reads, or says what is wrong with it.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return load_json_strictly(body)


def load_json_strictly(body: bytes) -> Any:
    """The content of a JSON text; a name that is there twice, as in `redescend.sources.jsonl`, is an error."""
    try:
        return json.loads(body.decode(), object_pairs_hook=make_object)
    except UnicodeDecodeError as error:
        raise DataError(f"The body is not UTF-8: byte {error.start + 1} is invalid.") from None
    except json.JSONDecodeError as error:
        raise DataError(f"The body is not JSON: {error.msg} at character {error.pos + 1}.") from None
    except RecursionError:
        raise DataError("The body is nested too deeply.") from None
    except ValueError as error:
        raise DataError(f"The body is not JSON that can be used: {error}.") from None


def dump_record(values: Mapping[str, Any]) -> bytes:
    """A record as a line."""
    try:
        line = orjson.dumps(values, default=str)
    except TypeError:
        # An integer of more than 64 bits, or half of a surrogate pair.
        return json.dumps(values, default=str).encode()
    if b"null" in line and any(type(value) is float and not math.isfinite(value) for value in values.values()):
        # a number that overflows, such as 1e400, is not a missing value: the parser of records rejects it.
        return json.dumps(values, default=str).encode()
    return line


def _read_json(body: bytes) -> list[bytes]:
    text = body.strip()
    if text[:1] == b"{" and b"\n" not in text and b"\r" not in text:
        load_json(text)
        return [text]  # as it is: the parser of records says what is wrong with its values
    content = load_json(body)
    listed = content if isinstance(content, list) else [content]
    if _may_repeat_names(body, sum(len(record) for record in listed if isinstance(record, dict))):
        content = load_json_strictly(body)
        listed = content if isinstance(content, list) else [content]
    return [dump_record(record) if isinstance(record, dict) else b"" for record in listed]


def _split_lines(body: bytes) -> list[bytes]:
    """Like `Grammar.records`, but too long a record is a record, too."""
    return [line for line in body.replace(b"\r", b"\n").split(b"\n") if line.strip()]


def _read_arrow(body: bytes, limits: Limits) -> list[bytes]:
    try:
        return _read_batches(body, limits)
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
        if isinstance(error, RedescendError):
            raise
        raise DataError(f"The body is not Arrow IPC data: {' '.join(str(error).split())[:200].rstrip('.')}.") from None


def _read_batches(body: bytes, limits: Limits) -> list[bytes]:
    """The records of Arrow data; a few bytes may say that they are many, so all sizes are looked up first."""
    # A file is a stream behind a beginning of its own, and an index, which may say anything.
    offset = BODY if body.startswith(INDEXED) else 0
    check_records(sum(count_batch_rows(io.BytesIO(body), len(body), offset)), limits)
    most = EXPANSION * limits.body
    sizes = [needed for _, needed in measure_batches(io.BytesIO(body), len(body), offset)]
    _check_expansion(sum(sizes), most)
    source = pa.BufferReader(body)
    source.seek(offset)
    stream = pa.ipc.open_stream(source)
    nested = [field.name for field in stream.schema if infer_type_kind(field.type) is None]
    if nested:
        raise DataError(f"The column {quote(nested[0])} of the Arrow data is not a number, date or text.")
    records, total = [], 0
    for _ in sizes:
        batch = stream.read_next_batch()
        batch.validate(full=True)
        for row in range(batch.num_rows):
            records.append(format_json(batch, row))
            total += len(records[-1])
            _check_expansion(total, most)
    if body[source.tell() :][: len(END)] not in (b"", END):
        raise DataError("The body is not Arrow IPC data: a message is damaged.")
    return records


def _check_expansion(size: int, most: int) -> None:
    # A long text of a dictionary may be in every record.
    if size > most:
        raise ContentTooLarge(
            f"The Arrow data take more than {most} bytes once they are read; send fewer records at a time."
        )


class RecordParser:
    """Parses records into batches with the columns of `kinds`."""

    def __init__(self, kinds: Mapping[str, Kind], source: str) -> None:
        self._parser, self._source = JsonParser(kinds, GRAMMAR), source

    def parse(self, records: Sequence[bytes], row: int) -> Batch:
        """A batch of records, of which the first has the number `row` + 1."""
        pieces, most = [], 65_536
        for first in range(0, max(1, len(records)), most):
            data = b"".join(record + b"\n" for record in records[first : first + most])
            piece = parse_chunk(self._parser, TextChunk(0, len(data), data, None))
            pieces.append(piece.slice(0, piece.count, 0, self._source, row + first))
        return pieces[0] if len(pieces) == 1 else concat_batches(pieces)


Waiting = tuple[float, Callable[[int], bytes], int]
"""When a record came, and what makes it from its number in its request."""


class LateLabels:
    """A bounded store of records by id: the oldest go first, and none stays longer than `seconds`.

    It is in memory, and empty when the server starts.

    >>> store = LateLabels(most=2, seconds=60.0)
    >>> ids = store.put(3, [b'{"x": 1}', b'{"x": 2}', b'{"x": 3}'].__getitem__)
    >>> _, make, number = store.take(ids[2])
    >>> make(number), len(store)
    (b'{"x": 3}', 1)
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self._waiting: OrderedDict[str, Waiting] = OrderedDict()
        self._prefix, self._count, self._lock = secrets.token_hex(6), 0, Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, count: int, make: Callable[[int], bytes]) -> list[str]:
        """Store the records of a request, without a target; returns their ids. A record is made when it is needed."""
        now = time.monotonic()
        with self._lock:
            ids = [f"{self._prefix}-{self._count + place}" for place in range(count)]
            self._count += count
            for place, each in enumerate(ids):
                self._waiting[each] = now, make, place
            while len(self._waiting) > self.most:
                self._waiting.popitem(last=False)
            while self._waiting and next(iter(self._waiting.values()))[0] < now - self.seconds:
                self._waiting.popitem(last=False)
        return ids

    def take(self, id: str) -> Waiting:
        """Remove the record with an id."""
        with self._lock:
            waiting = self._waiting.pop(id, None)
        if waiting is None or waiting[0] < time.monotonic() - self.seconds:
            raise DataError(f"no record waits for its label under the id {quote(id)}: it is unknown, used or expired")
        return waiting

    def put_back(self, taken: Sequence[tuple[str, Waiting]]) -> None:
        """Return records that were taken but not learned from."""
        with self._lock:
            for each, waiting in taken:
                self._waiting[each] = waiting
                self._waiting.move_to_end(each, last=False)
