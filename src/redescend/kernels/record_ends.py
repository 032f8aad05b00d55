"""Boundaries of the records of a delimited text."""

from __future__ import annotations

from redescend.kernels.compiler import kernel
from redescend.kernels.views import view
from redescend.numeric import Array

NEWLINE = ord("\n")


@kernel
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
    data, bounds = view((data, bounds))
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


@kernel
def find_line_records(data: Array, delimiter: int, quote: int, carriage: int, final: bool, lines: Array) -> int:
    """Write of each line where it begins and ends, where the record ends that begins there, and the line after that.

    The grammar is that of `find_records`. The end of a record that is not complete is -1. Returns the number of lines.
    A record that begins on another line is in the same state at the end of a line in which it is quoted, so that all of
    them take one pass, however long the records are. `lines` has five columns, the last for work.
    """
    data, lines = view((data, lines))
    size, count, start = len(data), 0, 0
    # Whether a line ends inside quotes, if it begins a record, and if it begins inside quotes.
    own, inherited = False, True
    opening, after, doubled, skipped = True, False, False, False
    for at in range(size + 1):
        byte = int(data[at]) if at < size else NEWLINE
        if byte in (NEWLINE, carriage):
            if at == size and start == size:
                break
            lines[count, 0], lines[count, 1] = start, at
            lines[count, 2], lines[count, 4] = own, inherited
            count, start = count + 1, at + 1
            own, inherited, opening, after, doubled, skipped = False, True, True, False, False, False
            continue
        last = at + 1 >= size or int(data[at + 1]) != quote
        # The record that begins on this line.
        if doubled:
            doubled = False
        elif own:
            if byte == quote:
                doubled = not last
                own = doubled
        else:
            own = opening and byte == quote
            opening = byte == delimiter
        # The record that began before.
        if skipped:
            skipped = False
        elif inherited:
            if byte == quote:
                skipped = not last
                inherited = skipped
                after = False
        else:
            inherited = after and byte == quote
            after = byte == delimiter
    whole = size == 0 or int(data[size - 1]) in (NEWLINE, carriage) or final
    end, following = -1, count
    for line in range(count - 1, -1, -1):
        is_open = line == count - 1 and not whole
        own_end, own_next = lines[line, 1], line + 1
        if is_open:
            own_end, own_next = -1, count
        elif lines[line, 2]:
            own_end, own_next = end, following
        if is_open:
            end, following = -1, count
        elif not lines[line, 4]:
            end, following = lines[line, 1], line + 1
        lines[line, 2], lines[line, 3] = own_end, own_next
    return count
