"""Columns that have a type, and hold what no text can."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa


def odd_column(random: Random, count: int) -> pa.Array:
    return random.choice([_numbers, *KINDS])(random, count)


def _drawn(random: Random, count: int, values: list[Any]) -> list[Any]:
    return [random.choice(values) for _ in range(count)]


def _numbers(random: Random, count: int) -> pa.Array:
    values = _drawn(random, count, [1.5, -2.0, float("nan"), float("inf"), 1e308, -1e308, 5e-324])
    return pa.array(values, random.choice([pa.float64(), pa.float64(), pa.float32()]))


def _whole(random: Random, count: int) -> pa.Array:
    return pa.array(_drawn(random, count, [0, 1, 2**62, -(2**63), None]), pa.int64())


def _moments(random: Random, count: int) -> pa.Array:
    return _whole(random, count).view(pa.timestamp(random.choice(["ms", "us", "ns"])))


def _days(random: Random, count: int) -> pa.Array:
    return pa.array(_drawn(random, count, [0, 19_000, 2**31 - 1, -(2**31), None]), pa.int32()).view(pa.date32())


def _texts(random: Random, count: int) -> pa.Array:
    values = _drawn(random, count, ["a", "b", "\0", "é\n", "", None, "1"])
    texts = pa.array(values, random.choice([pa.string(), pa.large_string(), pa.binary()]))
    return texts.dictionary_encode() if random.random() < 0.3 else texts


def _broken_texts(random: Random, count: int) -> pa.Array:
    return pa.array(_drawn(random, count, [b"\xff", b"a"]), pa.binary()).view(pa.string())


def _truths(random: Random, count: int) -> pa.Array:
    return pa.array(_drawn(random, count, [True, False, None]), pa.bool_())


def _without_kind(random: Random, count: int) -> pa.Array:
    value, nested = random.choice([([1], pa.list_(pa.int8())), ({"a": 1}, pa.struct({"a": pa.int8()}))])
    return pa.array([value] * count, nested)


KINDS: list[Callable[[Random, int], pa.Array]] = [
    _numbers,
    _whole,
    lambda random, count: pa.array(_drawn(random, count, [2**64 - 1, 0, None]), pa.uint64()),
    lambda random, count: _whole(random, count).cast(pa.decimal128(38, 2)),
    _moments,
    _days,
    _texts,
    _broken_texts,
    _truths,
    _without_kind,
    lambda random, count: pa.nulls(count),
]
