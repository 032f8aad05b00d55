"""A sample of records that their contents decide, whatever their order: those with the smallest hashes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from redescend.numeric import Array, mix_bits, number_copies

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
