"""Shuffling of records in constant memory: they are dealt to parts on disk, and each part is shuffled in memory.

The order depends on the row numbers and on a seed alone, so it is reproducible.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from redescend.numeric import Array, splitmix64
from redescend.sources.batch import Bad, Batch, Position, count_bad
from redescend.sources.kinds import format_json

PART_BYTES, MAX_PARTS = 2**24, 256  # stored bytes of a part, about, and the most parts

ROW = "row of the record"
"""The column of row numbers in the files of parts; no source has a column of this name and these types."""


def hash_rows(rows: Array, seed: int) -> Array:
    """Hash every row number to 64 bits.

    >>> len(set(hash_rows(np.arange(1000), 0)) | set(hash_rows(np.arange(1000), 1)))
    2000
    """
    with np.errstate(over="ignore"):
        return splitmix64(rows.astype(np.uint64) + np.uint64(1) + np.uint64(seed) * np.uint64(0xD1342543DE82EF95))


def count_parts(size: int | None) -> int:
    """The number of parts for records of this size in stored bytes."""
    return 16 if size is None else min(MAX_PARTS, 1 + size // PART_BYTES)


def shuffle(
    batches: Iterator[Batch], name: str, seed: int, parts: int, start: Position, most: int
) -> Generator[Batch, None, None]:
    """Shuffle the records of batches, and start at a position of the same shuffled records."""
    with tempfile.TemporaryDirectory(prefix="redescend-") as folder:
        bad = _deal_to_parts(batches, Path(folder), seed, parts)
        row = start.row
        for part in range(start.offset, parts):
            skip = start.skip if part == start.offset else 0
            table, rows = _read_part(Path(folder, str(part)), seed)
            for low in range(skip, len(rows), most):
                some, numbers = table.slice(low, most), rows[low : low + most]
                rejected = [] if low else bad[part]
                row += len(numbers) + count_bad(rejected)
                end = Position(0, part, low + len(numbers), row)
                yield Batch(some, numbers, rejected, name, end, partial(_read_raw, some, numbers))


def _deal_to_parts(batches: Iterator[Batch], folder: Path, seed: int, parts: int) -> list[list[Bad]]:
    """Write every good record to its part; returns the bad ones, each with a part that has good ones."""
    lost: list[Bad] = []
    with ExitStack() as stack:
        writers: dict[int, Any] = {}
        for batch in batches:
            table = batch.table.append_column(ROW, pa.array(batch.rows))
            places = (hash_rows(batch.rows, seed) % np.uint64(parts)).astype(np.int64)
            for part in np.unique(places).tolist():
                if part not in writers:
                    writers[part] = stack.enter_context(pa.ipc.new_file(str(folder / str(part)), table.schema))
                writers[part].write_batch(table.take(pa.array(np.flatnonzero(places == part))))
            lost += batch.bad
    used = sorted(writers)
    bad: list[list[Bad]] = [[] for _ in range(parts)]
    for record in lost:
        if used:
            bad[used[int(hash_rows(np.array([record.row]), seed)[0] % np.uint64(len(used)))]].append(record)
    return bad


def _read_part(path: Path, seed: int) -> tuple[Any, Array]:
    """The records of a part and their rows, in the order of other hashes."""
    if not path.exists():
        return None, np.empty(0, np.int64)
    with pa.OSFile(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    rows = table[ROW].to_numpy()
    order = np.argsort(hash_rows(rows, seed + 1), kind="stable")
    table = table.drop_columns(ROW).take(pa.array(order)).combine_chunks()
    columns = [pa.concat_arrays(column.chunks) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema), rows[order]


def _read_raw(table: pa.RecordBatch, rows: Array, row: int) -> bytes:
    return format_json(table, int(np.flatnonzero(rows == row)[0]))
