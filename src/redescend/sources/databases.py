"""Tables of SQLite and DuckDB databases, and sheets of Excel files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, ClassVar, Self

import pyarrow as pa

from redescend.errors import DataError, needs_extra, quote, suggest
from redescend.sources.columnar import ColumnarFile
from redescend.sources.formats import Columns, ReadOptions
from redescend.sources.kinds import SAMPLE, Kind, infer_text_kind
from redescend.sources.readers import Origin

ROWS = 65_536  # rows to read at a time


class TableFile(ColumnarFile):
    """A file with several tables: the only one is read, or the one that is named, as in ``sqlite:///file.db?table=t``."""

    table: str | None = None

    @classmethod
    def open(cls, origin: Origin, compression: str | None, options: ReadOptions) -> Self:
        file = super().open(origin, compression, options)
        file.table = getattr(origin, "table", None)
        return file

    def infer_columns(self, files: Sequence[Self]) -> Columns:
        kinds, others = super().infer_columns(files)
        first = next(iter(self.read_batches()), None)
        if first is None:
            raise DataError(f"{self.name} has no records.")
        texts = [name for name, kind in kinds.items() if kind is Kind.TEXT]
        # SQLite has no type for dates, and spreadsheets may have numbers as text.
        return kinds | {name: infer_text_kind(first.column(name).slice(0, SAMPLE)) for name in texts}, others

    def choose_table(self, names: Sequence[str]) -> str:
        """The table to read."""
        if self.table is not None:
            if self.table not in names:
                raise DataError(f"{self.name} has no table {quote(self.table)}; {suggest(list(names), self.table)}")
            return self.table
        if len(names) == 1:
            return names[0]
        if not names:
            raise DataError(f"{self.name} has no tables.")
        listed = ", ".join(map(quote, names[:10]))
        example = f"{self.format}:///{self.path}?table={names[0]}"
        raise DataError(f"{self.name} has {len(names)} tables: {listed}. Name one of them: {example}")

    def read_table(self, database: Any, listing: str) -> Iterator[pa.RecordBatch]:
        """Read the table, one of those that a query lists; values that are not of the kind of the first are bad."""
        table = self.choose_table([name for (name,) in database.execute(listing).fetchall()]).replace('"', '""')
        cursor = database.execute(f'SELECT * FROM "{table}"')
        names = [column[0] for column in cursor.description]
        while rows := cursor.fetchmany(ROWS):
            yield pa.record_batch([_to_array(values) for values in zip(*rows, strict=True)], names=names)


class SqliteFile(TableFile):
    """A table or view of an SQLite database."""

    format = "sqlite"
    suffixes = ("sqlite", "sqlite3", "db")
    magic = (b"SQLite format 3\x00",)

    def read_batches(self) -> Iterator[pa.RecordBatch]:
        try:
            with closing(sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)) as database:
                kinds = "type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
                yield from self.read_table(database, f"SELECT name FROM sqlite_master WHERE {kinds} ORDER BY name")
        except sqlite3.Error as error:
            raise pa.ArrowInvalid(str(error)) from None


class DuckdbFile(TableFile):
    """A table or view of a DuckDB database."""

    format = "duckdb"
    suffixes = ("duckdb", "ddb")

    @classmethod
    def recognizes(cls, first: bytes) -> bool:
        return first[8:12] == b"DUCK"

    def read_batches(self) -> Iterator[pa.RecordBatch]:
        with needs_extra("DuckDB files need the package duckdb", "tables"):
            import duckdb
        try:
            # Otherwise a view may read any file or address.
            safe = {"enable_external_access": "false"}
            with closing(duckdb.connect(str(self.path), read_only=True, config=safe)) as database:
                listing = "SELECT table_name FROM information_schema.tables ORDER BY table_name"
                yield from self.read_table(database, listing)
        except duckdb.Error as error:
            raise pa.ArrowInvalid(str(error)) from None


class ExcelFile(TableFile):
    """A sheet of an Excel or OpenDocument file; its first row names the columns."""

    format = "excel"
    suffixes: ClassVar[tuple[str, ...]] = ("xlsx", "xlsm", "xlsb", "xls", "ods")

    def read_batches(self) -> Iterator[pa.RecordBatch]:
        with needs_extra("Excel files need the package python-calamine", "tables"):
            import python_calamine
        try:
            book = python_calamine.CalamineWorkbook.from_path(str(self.path))
            rows = book.get_sheet_by_name(self.choose_table(book.sheet_names)).to_python()
        except python_calamine.CalamineError as error:
            raise pa.ArrowInvalid(str(error)) from None
        if not rows:
            return
        header, *records = rows
        names = [str(name).strip() or f"column{place}" for place, name in enumerate(header, 1)]
        columns = list(zip(*records, strict=True)) or [()] * len(names)
        yield pa.record_batch([_to_array(column) for column in columns], names=names)


def _to_array(values: Sequence[Any]) -> pa.Array:
    """A column; as text if its values are of several types, where an empty text is a missing value."""
    present = [None if isinstance(value, str) and not value.strip() else value for value in values]
    has_both = any(isinstance(value, int) for value in present) and any(isinstance(value, float) for value in present)
    try:
        return pa.array([float(value) if has_both and type(value) is int else value for value in present])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        # Integers of more than 64 bits are among these, and half of a surrogate pair.
        texts = (None if value is None else str(value).encode("utf-8", "replace").decode() for value in present)
        return pa.array(list(texts), pa.string())
