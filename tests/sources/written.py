"""The same records in every format that can be read."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet


def sample_table(rows: int) -> pa.Table:
    return pa.table(
        {
            "x": [None if i % 11 == 3 else i / 7 for i in range(rows)],
            "flag": [None if i % 13 == 5 else i % 3 == 0 for i in range(rows)],
            "when": pa.array([86_400_000_000 * i for i in range(rows)], pa.timestamp("us")),
            "name": [None if i % 5 == 1 else f'é"{i % 7},\nb' for i in range(rows)],
        }
    )


def as_csv(table: pa.Table, delimiter: str = ",") -> bytes:
    sink = io.BytesIO()
    pa.csv.write_csv(table, sink, pa.csv.WriteOptions(delimiter=delimiter))
    return sink.getvalue()


def as_json_lines(table: pa.Table) -> bytes:
    return b"".join(json.dumps(record, default=str).encode() + b"\n" for record in table.to_pylist())


def as_parquet(table: pa.Table, group: int = 700) -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(table, sink, row_group_size=group)
    return sink.getvalue()


def as_arrow(table: pa.Table, stream: bool, group: int = 700) -> bytes:
    sink = pa.BufferOutputStream()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=group)
    return sink.getvalue().to_pybytes()


def by_arrow(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


COMPRESS = {
    "gz": gzip.compress,
    "bz2": lambda data: bz2.compress(data, 1),
    "xz": lambda data: lzma.compress(data, preset=0),
    "zst": lambda data: by_arrow(data, "zstd"),
    "lz4": lambda data: by_arrow(data, "lz4"),
}

WRITE = {
    "csv": as_csv,
    "tsv": lambda table: as_csv(table, "\t"),
    "jsonl": as_json_lines,
    "parquet": as_parquet,
    "feather": lambda table: as_arrow(table, stream=False),
    "arrow": lambda table: as_arrow(table, stream=True),
}
