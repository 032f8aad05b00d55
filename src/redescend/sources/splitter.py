"""Split text into chunks of whole records, whatever the sizes of the blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from redescend.kernels.record_ends import find_line_records, find_records
from redescend.numeric import Array

LONGEST = 2**20  # the most bytes of a record; a longer one is bad

UNCLOSED = "an unclosed quote"
ABSENT = -1


class TextChunk(NamedTuple):
    """Whole records, or a bad one: its offset and that of the next chunk, its bytes, and what is wrong with it."""

    offset: int
    stop: int
    data: bytes
    reason: str | None


@dataclass(frozen=True)
class Grammar:
    """The syntax of records, which end at an unquoted newline or carriage return. Absent bytes are -1."""

    delimiter: int = ABSENT
    quote: int = ABSENT
    carriage: int = ABSENT
    longest: int = LONGEST

    def bounds(self, data: Array, final: bool = True) -> tuple[Array, int, bool]:
        """Start, end and number of fields of each record; then the start of the first one that does not end here, and
        whether it ends inside quotes.
        """
        bounds = np.empty((len(data) // 2 + 1, 3), np.int64)
        count, rest, quoted = find_records(data, self.delimiter, self.quote, self.carriage, final, self.longest, bounds)
        return bounds[:count].copy(), int(rest), bool(quoted)

    def records(self, data: bytes) -> list[bytes]:
        """Split a text that ends with a whole record."""
        return [data[low:high] for low, high, _ in self.bounds(np.frombuffer(data, np.uint8))[0].tolist()]

    def line_end(self, data: bytes, low: int = 0, high: int | None = None) -> int:
        """The end of the line at `low`, including its newline; 0 if it does not end before `high`."""
        ends = [data.find(b"\n", low, high)]
        if self.carriage != ABSENT:
            ends.append(data.find(b"\r", low, high))
        return min((end + 1 for end in ends if end >= 0), default=0)

    def _is_simple(self, data: bytes) -> bool:
        """A quick check that records end at newlines only, and that none is too long.

        A record that is too long has at least one aligned half of the limit without a newline.
        """
        if self.quote != ABSENT and data.find(self.quote) >= 0:
            return False
        step = max(self.longest // 2, 1)
        return all(data.find(b"\n", at, at + step) >= 0 for at in range(0, len(data) - step + 1, step))

    def cut(self, data: bytes, final: bool, exact: bool = False) -> Iterator[tuple[int, int, str | None]]:
        """Split into runs of whole records and single bad records: start, end, and what is wrong.

        The rest is an incomplete record; if not `exact`, there may be whole records in it, too.
        """
        if not exact and self._is_simple(data):
            stop = len(data) if final else data.rfind(b"\n") + 1
            if stop:
                yield 0, stop, None
            return
        array = np.frombuffer(data, np.uint8)
        _, rest, _ = self.bounds(array, final)
        if rest:
            yield 0, rest, None
        if rest < len(data) and (final or self.is_too_long(len(data) - rest)):
            yield from self._cut_lines(array, rest, final)

    def _cut_lines(self, data: Array, start: int, final: bool) -> Iterator[tuple[int, int, str | None]]:
        """Split from `start` on, where a record begins that is bad: it is a line, and the next line begins another.

        As `cut`, in time that grows with the number of bytes, however many records are bad.
        """
        ends, size = self._find_lines(data[start:], final), len(data)
        low, line = start, 0
        while line < len(ends):
            begin, stop, end, following = (ends[line] + [start, start, start, 0]).tolist()
            if end >= start and end - begin <= self.longest:
                line = following
                continue
            if begin > low:
                yield low, begin, None
            if not final and not self.is_too_long(size - begin):
                return
            low, line = min(stop + 1, size), line + 1
            if (stop == size and not final) or (stop - begin > self.longest and not final):
                return
            yield begin, low, self.too_long if stop - begin > self.longest or end >= start else UNCLOSED
        if low < size:
            yield low, size, None

    def _find_lines(self, data: Array, final: bool) -> Array:
        breaks = np.count_nonzero(data == ord("\n")) + np.count_nonzero(data == self.carriage)
        lines = np.empty((breaks + 1, 5), np.int64)
        count = find_line_records(data, self.delimiter, self.quote, self.carriage, final, lines)
        return lines[:count, :4]

    def is_too_long(self, size: int) -> bool:
        """Whether a record with this many bytes so far is too long, with one byte to look ahead."""
        return size > self.longest + 1

    def truncate(self, line: bytes) -> bytes:
        """A bad record without its newline, cut to the longest that is allowed."""
        return line.removesuffix(b"\n").removesuffix(b"\r")[: self.longest]

    @property
    def too_long(self) -> str:
        return f"longer than the longest record, {self.longest:,} bytes"


def split(
    read: Callable[[], bytes],
    grammar: Grammar,
    offset: int,
    damage: Callable[[], str | None] = lambda: None,
    follow: Callable[[], bool] | None = None,
) -> Iterator[TextChunk]:
    """Split what `read` returns, until it returns nothing, into chunks of whole records.

    `offset` is that of the first byte, where a record begins. At the end, `damage` returns why the text is incomplete,
    or None; if it is, the rest is one bad record, even if empty. Then `follow` returns whether to read on; with it, a
    last record without a newline is incomplete.
    """
    buffer = b""
    while True:
        data = read()
        broken = None if data else damage()
        final = not data and follow is None and broken is None
        buffer = buffer + data if buffer else data
        done = 0
        for low, high, reason in grammar.cut(buffer, final, broken is not None):
            raw = grammar.truncate(buffer[low:high]) if reason else buffer[low:high]
            yield TextChunk(offset + low, offset + high, raw, reason)
            done = high
        buffer, offset = buffer[done:], offset + done
        if grammar.is_too_long(len(buffer)) and not grammar.line_end(buffer, 0, grammar.longest + 1):
            head, size, buffer = _skip_record(read, grammar, buffer, follow)
            yield TextChunk(offset, offset + size, head, grammar.too_long)
            offset += size
        if broken is not None:
            # A run that starts after these bytes meets the same damage, so they are skipped as a record, not as bytes.
            yield TextChunk(offset, offset, buffer[: grammar.longest], broken)
            return
        if not data and (follow is None or not follow()):
            return


def _skip_record(
    read: Callable[[], bytes], grammar: Grammar, buffer: bytes, follow: Callable[[], bool] | None
) -> tuple[bytes, int, bytes]:
    """Skip a record that is too long: its first bytes, its size, and what follows."""
    head, size = buffer[: grammar.longest], 0
    while buffer or (follow is not None and follow()):
        end = grammar.line_end(buffer)
        if end:
            return head, size + end, buffer[end:]
        size += len(buffer)
        buffer = read()
    return head, size, b""
