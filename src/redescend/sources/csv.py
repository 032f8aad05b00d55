"""A file of delimited text: its delimiter and the names of its columns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from redescend.errors import DataError
from redescend.sources.delimited import BOM, DelimitedParser
from redescend.sources.kinds import SAMPLE, Kind, kind_of_text, zoned
from redescend.sources.readers import BLOCK, Origin
from redescend.sources.splitter import LONGEST, Grammar, chunks
from redescend.sources.text import TextPart

OTHER_DELIMITERS = ("\t", ";", "|")
WIDE = (b"\xff\xfe", b"\xfe\xff")


class _Head(NamedTuple):
    delimiter: str
    names: list[str]
    body: int


class DelimitedPart(TextPart):
    """One delimited file.

    Parameters
    ----------
    origin, compression, block, longest
        As of any file of text.
    delimiter
        What a field ends with; None to take the one of the first line: the comma if there is one in it, else the most
        frequent of tab, semicolon and bar.
    header
        Whether the first record is the names of the columns; else they are column1, column2, ...
    """

    def __init__(
        self,
        origin: Origin,
        compression: str | None,
        delimiter: str | None,
        header: bool,
        block: int = BLOCK,
        longest: int = LONGEST,
    ) -> None:
        super().__init__(origin, compression, block, longest)
        self.delimiter = delimiter
        self.header = header

    @property
    def names(self) -> list[str]:
        return self._head.names

    @property
    def body(self) -> int:
        return self._head.body

    @functools.cached_property
    def grammar(self) -> Grammar:
        return Grammar.delimited(self._head.delimiter, self.longest)

    def parser(self, kinds: Mapping[str, Kind]) -> DelimitedParser:
        return DelimitedParser(self.names, self._types(kinds), self._head.delimiter, self.longest)

    def guess(self, missing: int) -> pa.Table | None:
        """Its first records, so many at most, as text; None if it has none."""
        tables = []
        for job in self.jobs(dict.fromkeys(self.names, Kind.TEXT), 0, keep=True):
            piece = job()
            tables.append(piece.table.slice(0, np.searchsorted(piece.places, missing)))
            missing -= piece.count
            if missing <= 0:
                break
        return pa.Table.from_batches(tables) if tables else None

    @functools.cached_property
    def _head(self) -> _Head:
        text = self.text(0, keep=True)
        try:
            line = _first_line(text.read, self.longest)
            if text.damage is not None:
                raise DataError(f"The header of {self.name} cannot be read: {text.damage}.")
            if line.startswith(WIDE):
                raise DataError(f"{self.name} is UTF-16 text; convert it to UTF-8.")
            begin = len(BOM) if line.startswith(BOM) else 0
            delimiter = self.delimiter or _delimiter(line[begin:])
            grammar = Grammar.delimited(delimiter, self.longest)
            again = iter([line[begin:]])
            record, stop = self._first_record(lambda: next(again, b"") or text.read(), grammar)
        finally:
            text.close()
        values = DelimitedParser([], {}, delimiter).fields(record)
        return _Head(delimiter, self._named(values), begin + stop if self.header else begin)

    def _first_record(self, read: Callable[[], bytes], grammar: Grammar) -> tuple[bytes, int]:
        for chunk in chunks(read, grammar, 0):
            if chunk.reason is not None:
                raise DataError(f"The header of {self.name} cannot be read: {chunk.reason}.")
            bounds, _, _ = grammar.bounds(np.frombuffer(chunk.data, np.uint8))
            if len(bounds):
                low, high, _ = bounds[0].tolist()
                return chunk.data[low:high], chunk.offset + high
        raise DataError(f"{self.name} is empty.")

    def _named(self, values: list[bytes]) -> list[str]:
        if not self.header:
            return [f"column{number}" for number in range(1, len(values) + 1)]
        try:
            return [value.decode() for value in values]
        except UnicodeDecodeError:
            raise DataError(f"The header of {self.name} is not UTF-8; convert the file to UTF-8.") from None


def _first_line(read: Callable[[], bytes], longest: int) -> bytes:
    """The beginning of a text, until a line in it that is not empty has ended or is too long."""
    text = b""
    while data := read():
        text += data
        line = text.lstrip(b"\r\n")
        if b"\n" in line or b"\r" in line or len(line) > longest:
            break
    return text


def _delimiter(text: bytes) -> str:
    line = text.lstrip(b"\r\n").split(b"\n")[0].split(b"\r")[0]
    best = max(OTHER_DELIMITERS, key=lambda other: line.count(other.encode()))
    return best if b"," not in line and best.encode() in line else ","


def guess_kinds(parts: list[DelimitedPart]) -> tuple[dict[str, Kind], frozenset[str]]:
    """The kinds of the columns, from the first records of the files; and which dates name their zone."""
    names, missing = parts[0].names, SAMPLE
    tables = []
    for part in parts:
        if missing <= 0 or not set(names) <= set(part.names):
            break
        table = part.guess(missing)
        if table is not None:
            tables.append(table.select(names))
            missing -= table.num_rows
    if not tables:
        return dict.fromkeys(names, Kind.NUMBER), frozenset()
    whole = pa.concat_tables(tables).combine_chunks()
    columns = {name: pa.concat_arrays(whole.column(name).chunks or [pa.array([], pa.string())]) for name in names}
    kinds = {name: kind_of_text(values) for name, values in columns.items()}
    return kinds, frozenset(name for name, values in columns.items() if zoned(values))
