"""Boundaries of the records of a delimited text."""

from __future__ import annotations

from redescend.kernels.compiler import compiled
from redescend.numeric import Array

NEWLINE = ord("\n")


@compiled
def find_records(
    data: Array, delimiter: int, quote: int, carriage: int, final: bool, limit: int, bounds: Array
) -> tuple[int, int, bool]:
    """Write where each record begins and ends, without its line end, and how many fields it has.

    A quote opens a quoted field only at the start of a field, a doubled one inside is a literal quote, and after the
    closing one the field continues unquoted. A record ends at a newline or at the byte `carriage`; between the two is
    an empty line, which is no record. A quote or carriage of -1 matches nothing.

    Returns the number of records before the first that is incomplete or longer than `limit`, where that one begins, and
    whether it ends inside quotes, as far as it was read.
    """
    size, count, start, fields = len(data), 0, 0, 1
    quoted, opening, doubled = False, True, False
    for at in range(size):
        if at - start > limit:
            return count, start, quoted
        byte = int(data[at])
        if doubled:
            doubled = False
        elif quoted:
            if byte == quote:
                doubled = at + 1 < size and int(data[at + 1]) == quote
                quoted = doubled
        elif byte in (NEWLINE, carriage):
            if at > start:
                bounds[count, 0], bounds[count, 1], bounds[count, 2] = start, at, fields
                count += 1
            start, fields, opening = at + 1, 1, True
        else:
            quoted = opening and byte == quote
            opening = byte == delimiter
            if opening:
                fields += 1
    if final and not quoted and 0 < size - start <= limit:
        bounds[count, 0], bounds[count, 1], bounds[count, 2] = start, size, fields
        return count + 1, size, False
    return count, start, quoted
