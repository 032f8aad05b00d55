"""Text in pieces that end where a record ends, whatever the sizes in which it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from redescend.kernels.text import record_bounds
from redescend.numeric import Array

LONGEST = 2**20
"""The bytes of the longest record; one that is longer is bad."""

UNCLOSED = "an unclosed quote"
ABSENT = -1


class Chunk(NamedTuple):
    """Whole records, or one that is bad: where it begins and the next begins, its bytes, and what is wrong with it."""

    offset: int
    stop: int
    data: bytes
    reason: str | None


@dataclass(frozen=True)
class Grammar:
    """What ends a record of a text: a newline that is not quoted.

    Attributes
    ----------
    delimiter : what a field ends with, as a byte.
    quote : what a quoted field begins and ends with.
    carriage : what ends a record as a newline does.
    longest : the bytes of the longest record.
    """

    delimiter: int = ABSENT
    quote: int = ABSENT
    carriage: int = ABSENT
    longest: int = LONGEST

    @classmethod
    def delimited(cls, delimiter: str, longest: int = LONGEST) -> Grammar:
        return cls(ord(delimiter), ord('"'), ord("\r"), longest)

    def bounds(self, data: Array, final: bool = True) -> tuple[Array, int, bool]:
        """Where records begin, where they end, and how many fields they have; and of the first that has no end, where
        it begins and whether it is inside quotes.
        """
        room = np.empty((len(data) // 2 + 1, 3), np.int64)
        found, rest, quoted = record_bounds(data, self.delimiter, self.quote, self.carriage, final, self.longest, room)
        return room[:found].copy(), int(rest), bool(quoted)

    def records(self, data: bytes) -> list[bytes]:
        """The records of a text that ends with one."""
        return [data[low:high] for low, high, _ in self.bounds(np.frombuffer(data, np.uint8))[0].tolist()]

    def line_end(self, data: bytes, low: int = 0, high: int | None = None) -> int:
        """Where the line that `low` is in ends, its end included; 0 if not before `high`."""
        ends = [data.find(b"\n", low, high)]
        if self.carriage != ABSENT:
            ends.append(data.find(b"\r", low, high))
        return min((end + 1 for end in ends if end >= 0), default=0)

    def _simple(self, data: bytes) -> bool:
        """Whether records end at newlines only and none can be too long, as far as a quick look tells.

        A record that is too long has half as many bytes without a newline, from a multiple of that number on.
        """
        if self.quote != ABSENT and data.find(self.quote) >= 0:
            return False
        step = max(self.longest // 2, 1)
        return all(data.find(b"\n", at, at + step) >= 0 for at in range(0, len(data) - step + 1, step))

    def cut(self, data: bytes, final: bool, exact: bool = False) -> Iterator[tuple[int, int, str | None]]:
        """Split into whole records: from where to where, and what is wrong if it is one bad record.

        What is left is a record that is not there to its end or, if it is longer than the longest, has no end in it.
        Unless it is to be `exact`, whole records may be left as well.
        """
        if not exact and self._simple(data):
            stop = len(data) if final else data.rfind(b"\n") + 1
            if stop:
                yield 0, stop, None
            return
        start, array = 0, np.frombuffer(data, np.uint8)
        while start < len(data):
            _, rest, quoted = self.bounds(array[start:], final)
            rest += start
            if rest > start:
                yield start, rest, None
            if rest == len(data) or not (final or self.decided(len(data) - rest)):
                return
            start = self.line_end(data, rest, rest + self.longest + 1)
            if start:
                yield rest, start, UNCLOSED if quoted else self.too_long
            elif final:
                start = self.line_end(data, rest) or len(data)
                yield rest, start, self.too_long if start - rest > self.longest else UNCLOSED
            else:
                return

    def decided(self, size: int) -> bool:
        """Whether so many bytes of a record are enough to see that it is too long, with one to look ahead."""
        return size > self.longest + 1

    def kept(self, line: bytes) -> bytes:
        """A bad record without its end, as far as there is room for it."""
        return line.removesuffix(b"\n").removesuffix(b"\r")[: self.longest]

    @property
    def too_long(self) -> str:
        return f"longer than the longest record, {self.longest:,} bytes"


def chunks(
    read: Callable[[], bytes],
    grammar: Grammar,
    offset: int,
    damage: Callable[[], str | None] = lambda: None,
    follow: Callable[[], bool] | None = None,
) -> Iterator[Chunk]:
    """Cut what `read` brings, until it brings nothing, at the ends of records.

    Parameters
    ----------
    read
        The next bytes; none at the end.
    grammar
        What ends a record.
    offset
        Where in the text the first of them is: where a record begins.
    damage
        Asked at the end whether it should not be one. What is left then is one bad record, be it empty.
    follow
        Asked at the end whether there may be more by now; a last record without a newline then waits for it.
    """
    buffer = b""
    while True:
        data = read()
        broken = None if data else damage()
        final = not data and follow is None and broken is None
        buffer = buffer + data if buffer else data
        done = 0
        for low, high, reason in grammar.cut(buffer, final, broken is not None):
            raw = grammar.kept(buffer[low:high]) if reason else buffer[low:high]
            yield Chunk(offset + low, offset + high, raw, reason)
            done = high
        buffer, offset = buffer[done:], offset + done
        if grammar.decided(len(buffer)) and not grammar.line_end(buffer, 0, grammar.longest + 1):
            head, size, buffer = _swallow(read, grammar, buffer, follow)
            yield Chunk(offset, offset + size, head, grammar.too_long)
            offset += size
        if broken is not None:
            # Whoever begins after these bytes would find the same damage: they are passed over as a record.
            yield Chunk(offset, offset, buffer[: grammar.longest], broken)
            return
        if not data and (follow is None or not follow()):
            return


def _swallow(
    read: Callable[[], bytes], grammar: Grammar, buffer: bytes, follow: Callable[[], bool] | None
) -> tuple[bytes, int, bytes]:
    """Read on to the end of a record that is too long, without keeping it: its head, its size, and what follows."""
    head, size = buffer[: grammar.longest], 0
    while buffer or (follow is not None and follow()):
        end = grammar.line_end(buffer)
        if end:
            return head, size + end, buffer[end:]
        size += len(buffer)
        buffer = read()
    return head, size, b""
