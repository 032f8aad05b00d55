"""Write tables batch by batch: CSV to standard output, or a file of CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from redescend.cli.console import make_printable, reader_may_leave
from redescend.errors import ParameterError
from redescend.files import replace_file

Write = Callable[[pa.RecordBatch], object]


@contextmanager
def write_table(path: Path | None, schema: pa.Schema) -> Iterator[Write]:
    """A function that writes batches to a file, or to standard output if None.

    The file is written completely or not at all. If the reader of standard output leaves, the block ends without an
    error where it writes.
    """
    if path is None:
        with reader_may_leave():
            with _write_csv(sys.stdout.buffer, schema, terminal=sys.stdout.isatty()) as write:
                yield write
            sys.stdout.buffer.flush()
        return
    with replace_file(path) as file, choose_writer(path)(file, schema) as write:
        yield write


def choose_writer(path: Path) -> Any:
    """The writer of the format that the name of a file says."""
    writers = {".csv": _write_csv, ".jsonl": _write_jsonl, ".ndjson": _write_jsonl, ".parquet": _write_parquet}
    if path.suffix.lower() not in writers:
        raise ParameterError(f"'{path}' cannot be written: its name must end with {', '.join(writers)}.")
    return writers[path.suffix.lower()]


@contextmanager
def _write_csv(file: BinaryIO, schema: pa.Schema, terminal: bool = False) -> Iterator[Write]:
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(schema.names)
    file.write(header.getvalue().encode())
    options = pc.WriteOptions(include_header=False, quoting_style="needed")

    def write(batch: pa.RecordBatch) -> None:
        text = pa.BufferOutputStream()
        pc.write_csv(batch, text, options)
        content = text.getvalue().to_pybytes()
        file.write("\n".join(map(make_printable, content.decode().split("\n"))).encode() if terminal else content)
        # Another program may be waiting for it.
        file.flush()

    yield write


@contextmanager
def _write_jsonl(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    yield lambda batch: file.writelines(
        json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in batch.to_pylist()
    )


@contextmanager
def _write_parquet(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    with pq.ParquetWriter(file, schema) as writer:
        yield writer.write_batch
