"""What became of every record of a source, and a slow, obvious reading of delimited text to compare it with."""

from __future__ import annotations

from redescend.sources import Batch, Position, Source


def outcomes(source: Source, columns, start: Position | None = None, most: int = 65536, follow=None) -> list[tuple]:
    """By row: its number, its values or else what is wrong, and the record as it came."""
    found = []
    for batch in source.batches(columns, start=start, most=most, follow=follow):
        found += of_batch(batch)
        assert 0 < len(batch.rows) + len(batch.bad) <= most
    return found


def of_batch(batch: Batch) -> list[tuple]:
    records = zip(*(column.to_pylist() for column in batch.table.columns), strict=True)
    numbered = enumerate(zip(batch.rows, records, strict=True))
    good = [(int(row), "good", held, batch.raw(i)) for i, (row, held) in numbered]
    return sorted(good + [(bad.row, "bad", bad.reason, bad.raw) for bad in batch.bad])


def read_slowly(text: bytes, longest: int) -> list[tuple[bytes, list[bytes] | None]]:
    """The records of a text, one byte at a time, each with its fields; None where it has no end or is too long."""
    records, at = [], 0
    while at < len(text):
        end, fields = _record(text, at, longest)
        if fields is None:
            line = at
            while line < len(text) and text[line] not in b"\r\n":
                line += 1
            records.append((text[at:line][:longest], None))
            at = line + 1
        else:
            if end > at:
                records.append((text[at:end], fields))
            at = end + 1
    return records


def _record(text: bytes, at: int, longest: int) -> tuple[int, list[bytes] | None]:
    fields, field, inside, begins = [], b"", False, True
    start = at
    while at < len(text):
        byte = text[at : at + 1]
        if inside:
            if byte == b'"' and text[at + 1 : at + 2] == b'"':
                field += b'"'
                at += 1
            elif byte == b'"':
                inside = False
            else:
                field += byte
        elif byte in (b"\r", b"\n"):
            break
        elif byte == b",":
            fields.append(field)
            field, begins = b"", True
            at += 1
            continue
        elif byte == b'"' and begins:
            inside = True
        else:
            field += byte
        begins = False
        at += 1
    return at, None if inside or at - start > longest else [*fields, field]


def as_number(field: bytes) -> float | None:
    """A missing value is None; raises where it is no number."""
    text = field.decode("ascii")
    if text.strip(" ") in ("", "NA", "nan") and len(text) - len(text.strip(" ")) <= 2:
        return None
    if not text.strip(" \t") or set(text) & set("_\x0b\x0c\x1c\x1d\x1e\x1f\x85"):
        raise ValueError
    return float(text)
