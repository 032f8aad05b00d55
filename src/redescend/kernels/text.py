"""Where the records of a text end, quotes respected."""

from __future__ import annotations

from redescend.kernels.compiler import compiled
from redescend.numeric import Array

NEWLINE = ord("\n")


@compiled
def record_bounds(
    data: Array, delimiter: int, quote: int, carriage: int, final: bool, limit: int, bounds: Array
) -> tuple[int, int, bool]:
    """Write where each record begins and ends, its line end not included, and how many fields it has.

    A quote opens a quoted field only where a field begins, a doubled one is a quote in it, and after the closing one
    the field goes on as if it were not quoted. A record ends at a newline or at the byte `carriage`: before a newline
    that is the same, for it leaves an empty line, which is no record. What a text has not is a byte of -1.

    Returns
    -------
    how many records there are before the first that is longer than the limit or not there to its end; where that one
    begins; whether it is inside quotes, as far as it is there or as the limit allows.
    """
    size, found, start, fields = len(data), 0, 0, 1
    quoted, opening, doubled = False, True, False
    for at in range(size):
        if at - start > limit:
            return found, start, quoted
        byte = int(data[at])
        if doubled:
            doubled = False
        elif quoted:
            if byte == quote:
                doubled = at + 1 < size and int(data[at + 1]) == quote
                quoted = doubled
        elif byte in (NEWLINE, carriage):
            if at > start:
                bounds[found, 0], bounds[found, 1], bounds[found, 2] = start, at, fields
                found += 1
            start, fields, opening = at + 1, 1, True
        else:
            quoted = opening and byte == quote
            opening = byte == delimiter
            if opening:
                fields += 1
    if final and not quoted and 0 < size - start <= limit:
        bounds[found, 0], bounds[found, 1], bounds[found, 2] = start, size, fields
        return found + 1, size, False
    return found, start, quoted
