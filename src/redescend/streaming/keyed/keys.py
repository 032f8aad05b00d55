"""The keys of a stream, each with its shard and the place of its model in that."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from redescend.errors import DataError
from redescend.numeric import Array
from redescend.sources import Kind
from redescend.sources.kinds import convert_column, infer_type_kind

SHARDS = 64  # parts that keys are split into, however many threads or workers there are; files depend on it


def to_key(key: Any) -> str:
    """Convert a value to a key: keys are texts, and numbers are formatted as Arrow does.

    >>> to_key("007"), to_key(7), to_key(7.0), to_key(True)
    ('007', '7', '7', 'true')
    """
    if isinstance(key, str):
        return key
    text = None
    with suppress(pa.ArrowException, ValueError, OverflowError):
        value = pa.array([key])
        text = None if infer_type_kind(value.type) is None else convert_column(value, Kind.TEXT)[0][0].as_py()
    if text is None:
        raise DataError(f"{key!r} cannot be a key: keys are texts, numbers, dates or booleans.")
    return str(text)


class Keys:
    """Keys in order of first appearance: their `names`, and the number of keys of each shard (`sizes`).

    >>> keys = Keys()
    >>> keys.indices(pa.array(["Rome", "Oslo", "Rome"]), add=True).tolist(), keys.names
    ([0, 1, 0], ['Rome', 'Oslo'])
    >>> keys.indices(pa.array(["Oslo", "Lima"])).tolist()
    [1, -1]
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self.sizes = [0] * SHARDS
        self._indices: dict[str, int] = {}
        # The shard and the place of each key, with spare capacity.
        self._places = np.empty((0, 2), np.int64)
        for name in names:
            self._add(name)

    def index(self, key: str) -> int:
        """Find the index of a key; −1 if it is unknown."""
        return self._indices.get(key, -1)

    def indices(self, texts: Any, *, add: bool = False) -> Array:
        """Find the indices of keys without missing values; unknown keys are added, or have the index −1."""
        encoded = texts.dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        found = np.fromiter((self._indices.get(text, -1) for text in distinct), np.int64, len(distinct))
        if add:
            for place in np.flatnonzero(found < 0).tolist():
                found[place] = self._add(distinct[place])
        return found[encoded.indices.to_numpy(zero_copy_only=False)]

    def locate(self, indices: Array | int) -> tuple[Any, Any]:
        """The shards of keys, and their places in the shards."""
        found = self._places[indices]
        return found[..., 0], found[..., 1]

    def _add(self, name: str) -> int:
        index = self._indices.setdefault(name, len(self.names))
        if index == len(self.names):
            shard = crc32(name.encode()) % SHARDS
            self.names.append(name)
            if index == len(self._places):
                self._places = np.concatenate([self._places, np.empty((index + SHARDS, 2), np.int64)])
            self._places[index] = shard, self.sizes[shard]
            self.sizes[shard] += 1
        return index
