"""The registry of file formats, and the base class of a format: one class, one file, one registration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from redescend.errors import DataError, ParameterError, quote
from redescend.sources.batch import START, Batch, Piece, concat_batches, empty_table
from redescend.sources.compression import ENDINGS, detect_compression, detect_encoding
from redescend.sources.kinds import SAMPLE, Kind
from redescend.sources.notations import Notation
from redescend.sources.readers import BLOCK, Origin, Text
from redescend.sources.splitter import LONGEST

PEEK = 4096
ENOUGH = 16  # the number of bytes by which a format is recognized

FALLBACK = "csv"

Follow = Callable[[], bool]
Jobs = Iterator[Callable[[], Piece]]
Columns = tuple[dict[str, Kind], dict[str, str]]
"""The kinds of the columns that can be read, and the types of the others."""

MOST_BLANK = 2**22  # the most bytes without content ahead of the first record
MOST_COLUMNS = 50_000  # the most columns of a source


class ReadOptions(NamedTuple):
    """Options of `open_source`."""

    header: bool = True
    block: int = BLOCK
    longest: int = LONGEST
    columns: tuple[str, ...] | None = None
    decimal: str | None = None
    forms: Mapping[str, Notation] = MappingProxyType({})


class SourceFile(ABC):
    """A file of records. A format is a subclass, registered by `register_format`.

    Most formats derive from `redescend.sources.TextFile` or `redescend.sources.ColumnarFile`.

    Attributes
    ----------
    format : str
        The name of the format, as in ``--format``.
    suffixes : tuple of str
        How the names of its files end, without the dot.
    magic : tuple of bytes
        How its content may begin.
    can_grow : bool
        Whether the file can be followed while it grows.
    can_reread : bool
        Whether the file can be read more than once.
    name : str
        The name of the file.
    taken : int
        The number of stored bytes read so far.
    declared : dict or None
        The target and features that the file itself declares: ``{"kinds": ..., "schema": ...}``.
    forms : mapping of str to Notation
        The notations of columns of text that are read as numbers or dates.

    Examples
    --------
    >>> FORMATS["parquet"].suffixes, FORMATS["parquet"].recognizes(b"PAR1...")
    (('parquet', 'pq'), True)
    """

    format: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    magic: ClassVar[tuple[bytes, ...]] = ()
    can_grow = False
    can_reread = True
    name: str
    taken = 0
    declared: dict[str, Any] | None = None
    forms: Mapping[str, Notation] = MappingProxyType({})

    @classmethod
    def recognizes(cls, first: bytes) -> bool:
        """Whether a file that begins with the bytes `first` is of this format."""
        return first.startswith(cls.magic)

    @classmethod
    @abstractmethod
    def open(cls, origin: Origin, compression: str | None, options: ReadOptions) -> SourceFile:
        """Open the file at `origin`, with its `compression`, or None, and the `options` of `open_source`."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str] | None:
        """The names of its columns; None if a record may have any."""

    @abstractmethod
    def infer_columns(self, files: Sequence[Self]) -> Columns:
        """Infer the columns of a source that begins with this file; `files` are all of its files."""

    @abstractmethod
    def read_head(self, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        """Read its first records before the run, at least a sample, with the columns of `kinds`."""

    @abstractmethod
    def jobs(
        self, kinds: Mapping[str, Kind], start: int, follow: Follow | None = None, mark: str | None = None
    ) -> Jobs:
        """The jobs that read the columns of `kinds` from the offset `start` on.

        `follow` waits for more records; `mark` is that of the start, if the file may have been rotated since.
        """

    def read_spread(self, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        """Read some of its records, from all over it, with the columns of `kinds`: by default all of them."""
        return (job() for job in self.jobs(kinds, 0))

    def explain_no_columns(self) -> str:
        """Complete the sentence 'The file has ...' for a file without columns."""
        return "no columns of numbers, dates, text or true and false"


def has_columns(file: SourceFile, names: Iterable[str]) -> bool:
    """Whether a file has all of these columns; one without a header may."""
    return file.names is None or set(names) <= set(file.names)


def read_sample(files: Sequence[SourceFile], kinds: Mapping[str, Kind]) -> Batch:
    """The first records of all files together, up to a file that lacks a column."""
    batches: list[Batch] = []
    row = taken = 0
    for number, file in enumerate(files):
        if taken >= SAMPLE or not has_columns(file, kinds):
            break
        for piece in file.read_head(kinds):
            batches.append(piece.slice(0, piece.find_end(0, SAMPLE - taken), number, file.name, row))
            row, taken = batches[-1].end.row, taken + len(batches[-1].rows) + len(batches[-1].bad)
            if taken >= SAMPLE:
                break
    if batches:
        return concat_batches(batches)
    return Batch(empty_table(kinds), np.empty(0, np.int64), [], files[0].name, START, lambda row: b"")


def check_names(file: str, names: Sequence[str]) -> None:
    """Raise if a column has no name, if two have the same, or if there are too many."""
    check_number_of_columns(file, len(names))
    seen: set[str] = set()
    for number, name in enumerate(names, 1):
        if not name:
            raise DataError(f"Column {number} of {file} has no name; add one to the header.")
        if name in seen:
            raise DataError(f"{file} has two columns {quote(name)}; rename one of them.")
        seen.add(name)


def check_number_of_columns(file: str, count: int) -> None:
    """Raise if there are too many columns for the memory that a run may use."""
    if count > MOST_COLUMNS:
        raise DataError(f"{file} has more than {MOST_COLUMNS:,} columns; write those that matter to another file.")


F = TypeVar("F", bound=type[SourceFile])

OTHER_CONTENT = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF87a": "a GIF image",
    b"GIF89a": "a GIF image",
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
    b"RDX2\n": "an R data file",
    b"RDX3\n": "an R data file",
    b"<!DOCTYPE html": "an HTML page",
    b"<html": "an HTML page",
}
"""Files that are sometimes taken for tables, by their first bytes."""

FORMATS: dict[str, type[SourceFile]] = {}  # all formats by name


def register_format(format: F) -> F:
    """Register a file format, so that every function and command reads it.

    Parameters
    ----------
    format : subclass of SourceFile
        Its class attributes `format`, `suffixes` and `magic` determine when it is used. A format of the same name is
        replaced.

    Returns
    -------
    the class, so that this can be used as a decorator.

    Raises
    ------
    ParameterError
        A suffix belongs to another format.

    Examples
    --------
    >>> import io
    >>> import pyarrow as pa
    >>> from redescend.sources import ColumnarFile, open_source
    >>> class Pairs(ColumnarFile):
    ...     "Lines such as 'x=1 y=2'."
    ...
    ...     format = "pairs"
    ...     suffixes = ("pairs",)
    ...
    ...     def read_batches(self):
    ...         lines = self.path.read_text().splitlines()
    ...         records = [dict(pair.split("=") for pair in line.split()) for line in lines]
    ...         yield pa.RecordBatch.from_pylist([{k: float(v) for k, v in record.items()} for record in records])
    >>> _ = register_format(Pairs)
    >>> open_source(io.BytesIO(b"x=1 y=2"), format="pairs").sample.table.to_pylist()
    [{'x': 1.0, 'y': 2.0}]
    >>> del FORMATS["pairs"]
    """
    for suffix in (format.format, *format.suffixes):
        other = find_format(suffix)
        if other is not None and other.format != format.format:
            raise ParameterError(f"The suffix {suffix!r} of {format.__name__} belongs to the format {other.format!r}.")
    FORMATS[format.format] = format
    return format


def find_format(name: str) -> type[SourceFile] | None:
    """The format with this name or suffix."""
    name = name.lower().lstrip(".")
    return FORMATS.get(name) or next((each for each in FORMATS.values() if name in each.suffixes), None)


def check_format(name: str) -> type[SourceFile]:
    """The format with this name or suffix; raise if there is none."""
    chosen = find_format(str(name))
    if chosen is None:
        names = dict.fromkeys(name for each in FORMATS.values() for name in (each.format, *each.suffixes))
        raise ParameterError(
            f"The 'format' parameter of open_source must be one of {', '.join(names)}. Got {name!r} instead."
        )
    return chosen


def detect_format(origin: Origin, requested: type[SourceFile] | None) -> tuple[type[SourceFile], str | None]:
    """The format of a file, by its name or else by its first bytes, and its compression."""
    first = _read_first(origin, None)
    compression = detect_compression(first)
    name = PurePath(origin.name)
    claimed = ENDINGS.get(name.suffix.lower())
    if claimed is not None:
        if first and compression != claimed:
            raise DataError(f"{origin.name} is not {claimed} data, despite its name.")
        name = name.with_suffix("")
    chosen = requested or find_format(name.suffix)
    if compression is not None:
        first = _read_first(origin, compression)
        encoding = detect_encoding(first)
        if encoding:
            compression += encoding
            first = _read_first(origin, compression)
    if chosen is None:
        chosen = next((each for each in FORMATS.values() if each.recognizes(first)), FORMATS[FALLBACK])
    if chosen is FORMATS[FALLBACK] and compression is None:
        for each in FORMATS.values():
            if each.magic and each.recognizes(first):
                found, end = each.format, each.suffixes[0]
                raise DataError(f"{origin.name} contains {found} data, despite its name; rename it to end in .{end}.")
        for magic, what in OTHER_CONTENT.items():
            if first.startswith(magic):
                raise DataError(f"{origin.name} is {what}, not a table that can be read.")
    return chosen, compression


def _read_first(origin: Origin, compression: str | None) -> bytes:
    """The first bytes, past leading blanks."""
    with closing(Text(origin, compression, 0, keep=True, block=PEEK)) as text:
        first, visible = bytearray(), 0
        while visible < ENOUGH and len(first) <= MOST_BLANK and (data := text.read()):
            first += data
            visible += len(data) if visible else len(data.lstrip())
        return bytes(first)


def check_blank(file: str, count: int) -> None:
    """Raise if there are too many blanks ahead of the first record: they are in memory together."""
    if count > MOST_BLANK:
        raise DataError(f"{file} begins with more than {MOST_BLANK:,} blanks or empty lines.")
