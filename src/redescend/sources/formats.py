"""Which format a file is in: by its name, else by its first bytes."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from redescend.errors import DataError, ParameterError
from redescend.sources.columnar import ARROW_FILE, ARROW_STREAM, PARQUET_FILE
from redescend.sources.compression import ENDINGS, compression_of
from redescend.sources.delimited import BOM
from redescend.sources.readers import Origin, Text

FORMATS = {
    "csv": "csv",
    "tsv": "tsv",
    "tab": "tsv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "jsonl",
    "parquet": "parquet",
    "pq": "parquet",
    "arrow": "arrow",
    "arrows": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
}
"""How a name ends, or what may be asked for, and the format that it stands for."""

PEEK = 4096
ENOUGH = 16
"""How many bytes tell what a file is."""


class Form(NamedTuple):
    """A format, and how it is compressed; None if it is not."""

    format: str
    compression: str | None


def checked(format: str | None) -> str | None:
    """The format that was asked for."""
    if format is None:
        return None
    known = FORMATS.get(str(format).lower())
    if known is None:
        raise ParameterError(
            f"The 'format' parameter of open_source must be one of {', '.join(FORMATS)}. Got {format!r} instead."
        )
    return known


def form_of(origin: Origin, asked: str | None) -> Form:
    """How to read a file."""
    first = _first(origin, None)
    compression = compression_of(first)
    name = PurePath(origin.name)
    claimed = ENDINGS.get(name.suffix.lower())
    if claimed is not None:
        if first and compression != claimed:
            raise DataError(f"{origin.name} does not hold {claimed} data, as its name says.")
        name = name.with_suffix("")
    if asked is None:
        asked = FORMATS.get(name.suffix.lower().lstrip("."))
    if asked is None:
        asked = _guess(first if compression is None else _first(origin, compression))
    return Form(asked, compression)


def _first(origin: Origin, compression: str | None) -> bytes:
    """A few bytes of what it holds: more than blanks, where it does."""
    text = Text(origin, compression, 0, keep=True, block=PEEK)
    try:
        first = b""
        while len(first.strip()) < ENOUGH and (data := text.read()):
            first += data
        return first
    finally:
        text.close()


def _guess(first: bytes) -> str:
    if first.startswith(PARQUET_FILE):
        return "parquet"
    if first.startswith((ARROW_FILE, ARROW_STREAM)):
        return "arrow"
    return "jsonl" if first.removeprefix(BOM).lstrip()[:1] in (b"{", b"[") else "csv"
