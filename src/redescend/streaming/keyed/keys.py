"""The keys of a stream, each with its place: the number of its shard, and of its model in that."""

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

SHARDS = 64
"""Parts that keys are split into, whatever there is to work on them; files are written in these."""


def shard_of(key: str) -> int:
    """The shard of a key, the same on every machine.

    Examples
    --------
    >>> shard_of("Rome"), shard_of("Oslo")
    (21, 28)
    """
    return crc32(key.encode()) % SHARDS


def as_text(key: Any) -> str:
    """A key as the stream has it: keys are texts, and numbers are written as Arrow writes them.

    Examples
    --------
    >>> as_text("007"), as_text(7), as_text(7.0), as_text(True)
    ('007', '7', '7', 'true')
    """
    if isinstance(key, str):
        return key
    text = None
    with suppress(pa.ArrowException, ValueError, OverflowError):
        value = pa.array([key])
        text = None if infer_type_kind(value.type) is None else convert_column(value, Kind.TEXT)[0][0].as_py()
    if text is None:
        raise DataError(f"{key!r} cannot be a key: keys are texts, numbers, dates, or true and false.")
    return str(text)


def check_keys(by: str, texts: Any) -> None:
    """Refuse a column that has no key in the sample: perhaps it is not what was meant."""
    if len(texts) and texts.null_count == len(texts):
        raise DataError(f"The column '{by}' has no key in the first {len(texts):,} records; name another.")


class Keys:
    """Keys in the order in which they first came.

    Parameters
    ----------
    names : iterable of str
        Those that are known.

    Attributes
    ----------
    names : list of str
    sizes : list of int
        How many keys each shard has.

    Examples
    --------
    >>> keys = Keys()
    >>> keys.numbers(pa.array(["Rome", "Oslo", "Rome"]), add=True).tolist(), keys.names
    ([0, 1, 0], ['Rome', 'Oslo'])
    >>> keys.numbers(pa.array(["Oslo", "Lima"])).tolist()
    [1, -1]
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self.sizes = [0] * SHARDS
        self._numbers: dict[str, int] = {}
        # A shard and a place for each, and room for more.
        self._places = np.empty((0, 2), np.int64)
        for name in names:
            self._add(name)

    def __len__(self) -> int:
        return len(self.names)

    def number(self, key: str) -> int:
        """The number of a key; −1 if it is not known."""
        return self._numbers.get(key, -1)

    def numbers(self, texts: Any, *, add: bool = False) -> Array:
        """The numbers of keys, which are all there; those that are not known are added, or −1."""
        encoded = texts.dictionary_encode()
        different = encoded.dictionary.to_pylist()
        found = np.fromiter((self._numbers.get(text, -1) for text in different), np.int64, len(different))
        if add:
            for at in np.flatnonzero(found < 0).tolist():
                found[at] = self._add(different[at])
        return found[encoded.indices.to_numpy(zero_copy_only=False)]

    def place(self, number: int) -> tuple[int, int]:
        """The shard of a key, and its place in that."""
        shard, place = self._places[number].tolist()
        return shard, place

    def places(self, numbers: Array) -> tuple[Array, Array]:
        """The shards of keys, and their places in these."""
        found = self._places[numbers]
        return found[:, 0], found[:, 1]

    def _add(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            shard = shard_of(name)
            self.names.append(name)
            if number == len(self._places):
                self._places = np.concatenate([self._places, np.empty((number + SHARDS, 2), np.int64)])
            self._places[number] = shard, self.sizes[shard]
            self.sizes[shard] += 1
        return number
