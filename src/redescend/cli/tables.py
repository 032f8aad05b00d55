"""Tables that are written as they come: to standard output as CSV, or to a file of CSV, JSON lines or Parquet."""

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

from redescend.cli.exit_codes import reader_may_leave
from redescend.cli.printable import printable
from redescend.errors import ParameterError
from redescend.files import replacing

Write = Callable[[pa.RecordBatch], object]


@contextmanager
def writing(path: Path | None, schema: pa.Schema) -> Iterator[Write]:
    """What takes the batches of a table. A file is there in full or not at all.

    Nobody may read standard output any more: the block is then left where it writes to it, without an error.
    """
    if path is None:
        with reader_may_leave():
            with _csv(sys.stdout.buffer, schema, shown=sys.stdout.isatty()) as write:
                yield write
            sys.stdout.buffer.flush()
        return
    with replacing(path) as file, form_of(path)(file, schema) as write:
        yield write


def form_of(path: Path) -> Any:
    """How a file is written that is called so."""
    forms = {".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines, ".parquet": _parquet}
    if path.suffix.lower() not in forms:
        raise ParameterError(f"'{path}' cannot be written: its name must end with {', '.join(forms)}.")
    return forms[path.suffix.lower()]


@contextmanager
def _csv(file: BinaryIO, schema: pa.Schema, shown: bool = False) -> Iterator[Write]:
    """CSV; if it is shown on a terminal, labels must be fit for one."""
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(schema.names)
    file.write(header.getvalue().encode())
    options = pc.WriteOptions(include_header=False, quoting_style="needed")

    def write(batch: pa.RecordBatch) -> None:
        text = pa.BufferOutputStream()
        pc.write_csv(batch, text, options)
        content = text.getvalue().to_pybytes()
        file.write("\n".join(map(printable, content.decode().split("\n"))).encode() if shown else content)
        # Each batch as soon as it is there: another program may be waiting for it.
        file.flush()

    yield write


@contextmanager
def _json_lines(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    yield lambda batch: file.writelines(
        json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in batch.to_pylist()
    )


@contextmanager
def _parquet(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    with pq.ParquetWriter(file, schema) as writer:
        yield writer.write_batch
