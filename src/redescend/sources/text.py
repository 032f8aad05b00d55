"""Text files: records are split from the text, and parsed into typed columns in chunks.

A chunk is parsed as a whole for speed, and record by record if that fails; a record becomes the same either way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache, cached_property, partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa

from redescend.errors import DataError
from redescend.numeric import Array
from redescend.sources.batch import Bad, Piece, empty_table
from redescend.sources.following import BLOCK, FollowedFile, find_copy, has_mark, read_mark
from redescend.sources.formats import Follow, Jobs, ReadOptions, SourceFile
from redescend.sources.kinds import SAMPLE, Kind
from redescend.sources.readers import FileOrigin, Origin, Text
from redescend.sources.splitter import Grammar, TextChunk, split

BOM = b"\xef\xbb\xbf"
INVALID_UTF8 = "invalid UTF-8"  # in the reason of a record with other bytes

WINDOWS, WINDOW = 32, 2**17
"""Places in a large file from which records are sampled, and the bytes that are read at each."""

WHOLE = 2**25  # the most bytes of a file that is read as a whole for a sample


class Parser(Protocol):
    """Parses the columns of `kinds`."""

    grammar: Grammar
    kinds: dict[str, Kind]

    def parse(self, data: bytes) -> pa.RecordBatch | None:
        """Parse whole records; None unless all of them are good."""

    def find_suspicious(self, records: list[bytes]) -> Array:
        """Guess which records are bad; a wrong guess only costs time."""

    def parse_one(self, record: bytes) -> pa.RecordBatch | str:
        """Parse one record as `parse` does, or return what is wrong with it."""


class Head(NamedTuple):
    """The head of a file: the offset of its first record, the grammar of records, the columns, and the header."""

    body: int
    grammar: Grammar
    names: list[str] | None
    header: bytes = b""


class TextFile(SourceFile):
    """A text file whose records end at line ends, unless these are quoted.

    A format defines `read_preamble`, which reads what comes before the records, `parser`, which parses them, and
    `infer_columns`.

    Parameters
    ----------
    origin : Origin
        Where its bytes come from.
    compression : str or None
        How they are compressed.
    options : ReadOptions
        The options of `open_source`.

    Examples
    --------
    >>> from redescend.sources.formats import FORMATS
    >>> issubclass(FORMATS["csv"], TextFile), issubclass(FORMATS["parquet"], TextFile)
    (True, False)
    """

    def __init__(self, origin: Origin, compression: str | None, options: ReadOptions) -> None:
        self.origin = origin
        self.name = origin.name
        self.compression = compression
        self.options = options
        self.can_grow = origin.seekable and compression is None
        self.can_reread = origin.seekable

    @classmethod
    def open(cls, origin: Origin, compression: str | None, options: ReadOptions) -> Self:
        return cls(origin, compression, options)

    @abstractmethod
    def read_preamble(self, text: Text) -> Head:
        """Read a text up to its first record, which the next read returns."""

    @abstractmethod
    def parser(self, kinds: Mapping[str, Kind]) -> Parser:
        """A parser of the columns of `kinds`."""

    @property
    def names(self) -> list[str] | None:
        return self.head.names

    @cached_property
    def head(self) -> Head:
        """The head of the file."""
        with closing(self._text(0, keep=True)) as text:
            return self.read_preamble(text)

    @cached_property
    def sample(self) -> list[TextChunk]:
        """Its first records, read and split once: columns are inferred from them before they are parsed."""
        with closing(self._text(0, keep=True)) as text:
            self.head = self.read_preamble(text)
            chunks = split(text.read, self.head.grammar, self.head.body, lambda: text.damage)
            return list(_take_records(chunks, self.head.grammar, SAMPLE))

    def read_head(self, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        chunks, parser = self.sample, self.parser(kinds)
        return (parse_chunk(parser, chunk) for chunk in chunks)

    def read_spread(self, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        size = getattr(self.origin, "size", None) or 0
        if not self.can_grow or size <= WHOLE:
            yield from super().read_spread(kinds)
            return
        parser, grammar = self.parser(kinds), self.head.grammar
        for place in np.linspace(self.head.body, size - WINDOW, WINDOWS).astype(int).tolist():
            with closing(self.origin.read(WINDOW, place, True)) as blocks:
                data = next(blocks)
            # The first and the last line may be parts of records. Records that are cut inside quotes are left out.
            data = data[data.find(b"\n") + 1 : data.rfind(b"\n") + 1]
            for low, high, reason in grammar.cut(data, final=True):
                if reason is None:
                    piece = parse_chunk(parser, TextChunk(low, high, data[low:high], None))
                    yield replace(piece, bad=[])

    def jobs(
        self, kinds: Mapping[str, Kind], start: int, follow: Follow | None = None, mark: str | None = None
    ) -> Jobs:
        parser = self.parser(kinds)
        self.taken = 0
        if follow is not None:
            yield from self._follow(parser, start, follow, mark)
            return
        offset = max(start, self.head.body)
        with closing(self._text(offset, keep=False)) as text:
            for chunk in split(text.read, self.head.grammar, offset, lambda: text.damage):
                yield partial(parse_chunk, parser, chunk)

    def _follow(self, parser: Parser, start: int, follow: Follow, mark: str | None) -> Jobs:
        """Read a growing file; whenever it is rotated, read the rest of the old file and then the new one."""
        path, place, grammar = Path(self.name), max(start, self.head.body), self.head.grammar
        if mark is not None and not has_mark(path, start, mark):
            copy = find_copy(path, start, mark)
            if copy is None:
                raise DataError(
                    f"{self.name} has changed before the last record that was read, and no renamed or copied file "
                    f"'{path.name}.…' has that record. To start again, name an empty folder for checkpoints."
                )
            with open(copy, "rb", buffering=0) as old:
                old.seek(start)
                yield from self._read_rest(parser, old, start)
            place = self.head.body
        while True:
            with closing(FollowedFile(path, place, self._count)) as file:
                for chunk in split(file.read, grammar, place, follow=partial(file.wait, follow)):
                    place = chunk.stop
                    yield partial(parse_chunk, parser, chunk, file.mark(place))
                if not file.rotated:
                    return
                with closing(file.rest(place)) as rest:
                    yield from self._read_rest(parser, rest, place)
            place = self._find_body_of_new_file()

    def _read_rest(self, parser: Parser, file: Any, place: int) -> Jobs:
        """Read a file that does not grow any more, from a place on."""
        for chunk in split(lambda: file.read(BLOCK), self.head.grammar, place):
            mark = None if isinstance(file, BytesIO) else read_mark(file, chunk.stop)
            yield partial(parse_chunk, parser, chunk, mark)

    def _find_body_of_new_file(self) -> int:
        """The offset of the records in a new file, which may have a header or not."""
        options = self.options._replace(columns=None if self.names is None else tuple(self.names))
        return type(self)(FileOrigin(Path(self.name)), None, options).head.body

    def _text(self, offset: int, keep: bool) -> Text:
        return Text(self.origin, self.compression, offset, keep, self.options.block, self._count)

    def _count(self, taken: int) -> None:
        self.taken += taken


def _take_records(chunks: Iterator[TextChunk], grammar: Grammar, missing: int) -> Iterator[TextChunk]:
    """Chunks up to a number of records."""
    for chunk in chunks:
        bounds: Any = [] if chunk.reason else grammar.bounds(np.frombuffer(chunk.data, np.uint8))[0]
        if len(bounds) > missing:
            size = int(bounds[missing][0])
            chunk = TextChunk(chunk.offset, chunk.offset + size, chunk.data[:size], None)
        yield chunk
        missing -= 1 if chunk.reason else len(bounds)
        if missing <= 0:
            return


def parse_chunk(parser: Parser, chunk: TextChunk, mark: str | None = None) -> Piece:
    """Parse a chunk into its good and its bad records; `mark` is that of its end."""
    if chunk.reason is not None:
        table, places, bad = empty_table(parser.kinds), np.empty(0, np.int64), [Bad(0, "", chunk.reason, chunk.data)]
        return Piece(chunk.offset, chunk.stop, table, places, bad, lambda place: chunk.data, mark)
    table = parser.parse(chunk.data)
    if table is not None:
        # Split only if a record is requested.
        split_once = cache(partial(parser.grammar.records, chunk.data))
        places = np.arange(table.num_rows)
        return Piece(chunk.offset, chunk.stop, table, places, [], lambda place: split_once()[place], mark)
    records = parser.grammar.records(chunk.data)
    return Piece(chunk.offset, chunk.stop, *_parse_by_halving(parser, records), records.__getitem__, mark)


def _parse_by_halving(parser: Parser, records: list[bytes]) -> tuple[pa.RecordBatch, Array, list[Bad]]:
    """Parse suspicious records alone and the others together; halve what cannot be parsed."""
    suspicious = parser.find_suspicious(records)
    pending = [*np.flatnonzero(suspicious)[:, None]]
    if not suspicious.all():
        pending.append(np.flatnonzero(~suspicious))
    tables, places, bad = [empty_table(parser.kinds)], [np.empty(0, np.int64)], []
    while pending:
        group = pending.pop()
        if len(group) == 1:
            place = int(group[0])
            table = parser.parse_one(records[place])
            if isinstance(table, str):
                bad.append(Bad(place, "", table, records[place]))
                continue
        else:
            table = parser.parse(b"\n".join(records[place] for place in group))
            if table is None:
                pending += np.array_split(group, 2)
                continue
        tables.append(table)
        places.append(group)
    order = np.argsort(np.concatenate(places))
    return pa.concat_batches(tables).take(pa.array(order)), np.concatenate(places)[order], sorted(bad)
