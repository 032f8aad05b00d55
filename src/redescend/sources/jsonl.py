"""A file of JSON lines, and the columns that its first records have."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from redescend.errors import DataError
from redescend.sources.delimited import BOM
from redescend.sources.jsonlines import JsonParser, decoded
from redescend.sources.kinds import MISSING_SPELLINGS, SAMPLE, Kind, agreed, kind_of_text
from redescend.sources.splitter import Grammar
from redescend.sources.text import TextPart


class JsonPart(TextPart):
    """One file of JSON lines."""

    names = None

    @functools.cached_property
    def body(self) -> int:
        text = self.text(0, keep=True)
        try:
            first = b""
            # A block may be shorter than the mark at the beginning.
            while (len(first) <= len(BOM) or not first.removeprefix(BOM).strip()) and (data := text.read()):
                first += data
        finally:
            text.close()
        start = len(BOM) if first.startswith(BOM) else 0
        if first[start:].lstrip()[:1] == b"[":
            raise DataError(f"{self.name} is one JSON array; write one JSON object a line.")
        return start

    @functools.cached_property
    def grammar(self) -> Grammar:
        return self.parser({}).grammar

    def parser(self, kinds: Mapping[str, Kind]) -> JsonParser:
        return JsonParser(kinds, self.longest)

    def records(self) -> Iterator[bytes]:
        """Its records as they came."""
        for chunk in self.chunks(0, keep=True):
            yield from [chunk.data] if chunk.reason else self.grammar.records(chunk.data)

    def lack(self) -> str | None:
        """Why it has no columns, if that is for want of records."""
        first = next(self.records(), None)
        if first is None:
            return "no records"
        wrong = decoded(first)
        return f"no record that can be read; the first: {wrong}" if isinstance(wrong, str) else None


def guess_kinds(parts: Sequence[JsonPart]) -> tuple[dict[str, Kind], dict[str, str]]:
    """The columns of the first records and their kinds; and those whose values are most often nested."""
    values: dict[str, list[Any]] = {}
    for record in itertools.islice(itertools.chain.from_iterable(part.records() for part in parts), SAMPLE):
        held = decoded(record)
        if isinstance(held, dict):
            for name, value in held.items():
                values.setdefault(name, []).append(value)
    kinds, nested = {}, {}
    for name, column in values.items():
        there = [value for value in column if value is not None and value not in MISSING_SPELLINGS]
        if 2 * sum(isinstance(value, dict | list) for value in there) > len(there):
            nested[name] = "nested"
        else:
            kinds[name] = _kind(there)
    return kinds, nested


def _kind(values: list[Any]) -> Kind:
    counts: Counter[Kind] = Counter()
    for value in values:
        if isinstance(value, bool):
            counts[Kind.BOOLEAN] += 1
        elif isinstance(value, int | float):
            counts[Kind.NUMBER] += 1
        elif isinstance(value, str):
            counts[_kind_of_string(value)] += 1
    return agreed(counts.__getitem__, len(values))


@functools.lru_cache(maxsize=SAMPLE)
def _kind_of_string(value: str) -> Kind:
    try:
        return kind_of_text(pa.array([value]))
    except UnicodeEncodeError:
        return Kind.TEXT
