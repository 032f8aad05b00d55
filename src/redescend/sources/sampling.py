"""Samples of records, and orders, that hashes decide.

A sample is decided by the contents of records, whatever their order: the smallest hashes. A shuffled order is decided
by row numbers and a seed: records are dealt to parts on disk, and each part is shuffled in memory.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from redescend.numeric import Array, mix_bits, number_copies, splitmix64
from redescend.sources.batch import Bad, Batch, Position, count_bad
from redescend.sources.kinds import format_json

ROOM = 4  # rows of the sample that may be replaced are held, up to this many times its size


def hash_contents(table: Any) -> Array:
    """Hash every row of a record batch to 64 bits."""
    total = np.zeros(table.num_rows, np.uint64)
    for column in table.columns:
        total = mix_bits(total ^ hash_column(column))
    return total


def hash_column(column: Any) -> Array:
    """Hash every value of a column to 64 bits."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("us"))
        exact = (
            column if pa.types.is_floating(column.type) or pa.types.is_boolean(column.type) else column.cast("int64")
        )
        return (exact.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) + 0.0).view(np.uint64)
    encoded = column.dictionary_encode()
    texts = [text.encode() for text in encoded.dictionary.to_pylist()]
    codes = np.array([zlib.crc32(text) + (zlib.adler32(text) << 32) for text in texts] + [1], np.uint64)
    return codes[encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)]


def sample_by_content(tables: Iterable[pa.RecordBatch], most: int) -> pa.RecordBatch:
    """Select at most `most` rows of all tables, in their order: those with the smallest hashes.

    >>> rising = np.arange(1000.0)
    >>> one, other = (sample_by_content([pa.record_batch({"x": x})], 10)["x"] for x in (rising, rising[::-1]))
    >>> bool((one.to_numpy() == other.to_numpy()[::-1]).all())
    True
    >>> labels = np.arange(3000) % 3  # copies of a row are rows of their own
    >>> set(sample_by_content([pa.record_batch({"x": labels})], 100)["x"].to_pylist())
    {0, 1, 2}
    """
    seen, parts, numbers, limit = _Counts(), list[pa.RecordBatch](), np.empty(0, np.uint64), np.uint64(2**64 - 1)
    for table in tables:
        hashes = hash_contents(table)
        own = number_copies(hashes, seen.add(hashes))
        # Rows that are not among those with the smallest hashes now will never be.
        possible = np.flatnonzero(own <= limit)
        parts.append(table.take(pa.array(possible)))
        numbers = np.append(numbers, own[possible])
        if len(numbers) > ROOM * most:
            parts, numbers = _select(parts, numbers, most)
            limit = numbers.max()
    [selected], _ = _select(parts, numbers, most)
    return selected


def _select(parts: list[pa.RecordBatch], numbers: Array, most: int) -> tuple[list[pa.RecordBatch], Array]:
    """The rows with the smallest numbers, in their order, and these."""
    places = np.sort(np.argsort(numbers, kind="stable")[:most])
    return [pa.concat_batches(parts).take(pa.array(places))], numbers[places]


class _Counts:
    """How often each hash has been added."""

    def __init__(self) -> None:
        self._hashes, self._counts = np.empty(0, np.uint64), np.empty(0, np.int64)

    def add(self, hashes: Array) -> Array:
        """Add these; returns how often each of them was added before."""
        found, inverse, counts = np.unique(hashes, return_inverse=True, return_counts=True)
        places = np.searchsorted(self._hashes, found)
        known = places < len(self._hashes)
        known[known] = self._hashes[places[known]] == found[known]
        before = np.zeros(len(found), np.int64)
        before[known] = self._counts[places[known]]
        self._counts[places[known]] += counts[known]
        self._hashes = np.insert(self._hashes, places[~known], found[~known])
        self._counts = np.insert(self._counts, places[~known], counts[~known])
        return before[inverse]


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
