"""Writers of tables: CSV, JSON lines or Parquet, by the suffix of the file."""

from __future__ import annotations

import csv as lines
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet

from redescend.errors import ParameterError

Write = Callable[[pa.RecordBatch], object]

PLAIN = csv.WriteOptions(include_header=False, quoting_style="needed")


def format_csv(batch: pa.RecordBatch) -> bytes:
    """Format the records of a batch as lines of CSV, without a header."""
    text = pa.BufferOutputStream()
    csv.write_csv(batch, text, PLAIN)
    return text.getvalue().to_pybytes()


def format_header(schema: pa.Schema) -> bytes:
    r"""Format the names of the columns as a line of CSV, quoted only where necessary.

    >>> format_header(pa.schema([("row", pa.int64()), ("a,b", pa.string())]))
    b'row,"a,b"\n'
    """
    text = io.StringIO()
    lines.writer(text, lineterminator="\n").writerow(schema.names)
    return text.getvalue().encode("utf-8", "backslashreplace")


@contextmanager
def write_csv(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    """A function that writes batches as CSV."""
    file.write(format_header(schema))
    yield lambda batch: file.write(format_csv(batch))


@contextmanager
def write_jsonl(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    """A function that writes batches as JSON lines; numbers that JSON does not have are null, dates are texts."""

    def write(batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            plain = {name: None if value != value else value for name, value in row.items()}
            text = json.dumps(plain, ensure_ascii=False, default=_to_text)
            file.write(text.encode("utf-8", "backslashreplace") + b"\n")

    yield write


def _to_text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


@contextmanager
def write_parquet(file: BinaryIO, schema: pa.Schema, **options: Any) -> Iterator[Write]:
    """A function that writes batches as Parquet."""
    with parquet.ParquetWriter(file, schema, **options) as writer:
        yield writer.write_batch


WRITERS: dict[str, Any] = {".csv": write_csv, ".jsonl": write_jsonl, ".ndjson": write_jsonl, ".parquet": write_parquet}
"""The writers by suffix."""


def find_writer(path: Path) -> Any:
    """Find the writer for the suffix of a path; None if there is none.

    >>> find_writer(Path("rounds.CSV")) is write_csv, find_writer(Path("rounds"))
    (True, None)
    """
    return WRITERS.get(path.suffix.lower())


def choose_writer(path: Path) -> Any:
    """Find the writer for the suffix of a path, or raise an error."""
    writer = find_writer(path)
    if writer is None:
        raise ParameterError(f"'{path}' cannot be written: its name must end with {', '.join(WRITERS)}.")
    return writer
