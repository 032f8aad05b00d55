"""A file of text: its header, and its records in pieces that are ready to be parsed."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from redescend.errors import DataError
from redescend.sources.batch import Piece
from redescend.sources.kinds import TYPES, ZONED, Kind
from redescend.sources.parser import Parser, read_chunk
from redescend.sources.readers import BLOCK, Origin, Text
from redescend.sources.splitter import LONGEST, Chunk, Grammar, chunks

Follow = Callable[[], bool]


class TextPart:
    """One file of text.

    Parameters
    ----------
    origin
        Where its bytes come from.
    compression
        How they are compressed.
    block
        How many are read at a time.
    longest
        The bytes of the longest record.
    """

    def __init__(self, origin: Origin, compression: str | None, block: int = BLOCK, longest: int = LONGEST) -> None:
        self.origin = origin
        self.name = origin.name
        self.compression = compression
        self.block = block
        self.longest = longest
        self.taken = 0
        self.can_grow = origin.seekable and compression is None
        self.zoned: frozenset[str] = frozenset()

    @property
    def body(self) -> int:
        """Where its first record begins."""
        raise NotImplementedError

    @property
    def grammar(self) -> Grammar:
        """What ends a record."""
        raise NotImplementedError

    def parser(self, kinds: Mapping[str, Kind]) -> Parser:
        """How the columns of these kinds are read."""
        raise NotImplementedError

    def jobs(
        self, kinds: Mapping[str, Kind], start: int, *, keep: bool = False, follow: Follow | None = None
    ) -> Iterator[Callable[[], Piece]]:
        """What is to be done to read it from a byte on."""
        parser = self.parser(kinds)
        for chunk in self.chunks(start, keep, follow):
            yield functools.partial(read_chunk, parser, chunk)

    def chunks(self, start: int, keep: bool, follow: Follow | None = None) -> Iterator[Chunk]:
        offset = max(start, self.body)
        self.taken = 0
        text = self.text(offset, keep)
        try:
            yield from chunks(text.read, self.grammar, offset, lambda: text.damage, follow and self._growing(follow))
        finally:
            text.close()

    def _growing(self, follow: Follow) -> Follow:
        def look_again() -> bool:
            if os.stat(self.name).st_size < self.taken:
                raise DataError(f"{self.name} has become shorter while it was followed.")
            return follow()

        return look_again

    def text(self, offset: int, keep: bool) -> Text:
        return Text(self.origin, self.compression, offset, keep, self.block, self._count)

    def _count(self, taken: int) -> None:
        self.taken += taken

    def _types(self, kinds: Mapping[str, Kind]) -> dict[str, pa.DataType]:
        zoned = {name for name, kind in kinds.items() if kind is Kind.DATE} & self.zoned
        return {name: ZONED if name in zoned else TYPES[kind] for name, kind in kinds.items()}
