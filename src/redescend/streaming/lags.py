"""Lagged values: values of earlier records of a time series as features of a record.

A wrong record would mislead the predictions for records that look back at it. So the values of a suspect, a record that
is less likely clean than not, are replaced: its target by the median of itself, its prediction and the target before
it, which ignores a single outlier; its columns by those of the record before. After `PATIENCE` suspects in a row values
are no longer replaced, because the stream may have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from redescend.belief.suspects import HALF
from redescend.numeric import Array
from redescend.state import ArraySpec, read_arrays
from redescend.streaming.encoding.encoder import EncodedChunk
from redescend.streaming.encoding.schema import Schema

PATIENCE = 3  # the most suspects in a row whose values are replaced

SMALLEST, LARGEST = 64, 4096
"""The number of records to play at once, speculating that none looks back at a suspect among them."""


class Lag(NamedTuple):
    """A lagged feature: its encoded columns, the number of records to look back, and the series."""

    span: slice
    lag: int
    series: int
    one_hot: bool


class Groups(NamedTuple):
    """Records grouped by key: their indices in order, their places in that order, and their ranks within a key."""

    order: Array
    places: Array
    ranks: Array

    @staticmethod
    def make(keys: Array) -> Groups:
        order = np.argsort(keys, kind="stable")
        places, count = np.empty_like(order), np.arange(len(order))
        places[order] = count
        is_first = np.diff(keys[order], prepend=-1) != 0
        ranks = np.empty_like(order)
        ranks[order] = count - np.maximum.accumulate(np.where(is_first, count, 0))
        return Groups(order, places, ranks)

    def look_back(self, lag: int) -> Array:
        """The index of the record of the same key this many records before; arbitrary if that is not among them."""
        return self.order[np.maximum(self.places - lag, 0)]


class LagHistory:
    """The last values of the target and of lagged columns of every key, and its number of latest suspects in a row."""

    def __init__(self, schema: Schema, keys: int = 1) -> None:
        spans = {feature.name: span for feature, span in zip(schema.features, schema.spans, strict=True)}
        lagged = [feature for feature in schema.features if feature.lag]
        series = list(dict.fromkeys(feature.of for feature in lagged))
        self._lags = [Lag(spans[one.name], one.lag, series.index(one.of), one.how == "levels") for one in lagged]
        # The target is not among the features.
        self._columns = [None if name == schema.target else spans[str(name)].start for name in series]
        self._is_label = schema.classifies
        self.shortest = min(lag.lag for lag in self._lags)
        self.longest = max(lag.lag for lag in self._lags)
        self._values = np.full((keys, self.longest, len(series)), np.nan)
        self._suspects = np.zeros(keys, np.int64)

    @property
    def key_bytes(self) -> int:
        """Bytes that another key needs."""
        return 8 * self.longest * len(self._columns)

    def copy(self, key: int | None = None) -> LagHistory:
        """A copy, of all keys or of one."""
        other = deepcopy(self)
        if key is not None:
            other._values, other._suspects = other._values[key : key + 1], other._suspects[key : key + 1]
        return other

    def clear(self) -> None:
        """Forget all values, so that the next record has no predecessors."""
        self._values[:], self._suspects[:] = np.nan, 0

    def state(self, keys: int = 1) -> dict[str, Any]:
        """The values of the first keys, as arrays; copies."""
        self._grow(keys)
        return {"values": self._values[:keys].copy(), "suspects": self._suspects[:keys].copy()}

    def read(self, state: Any, keys: int, owner: str) -> dict[str, Array]:
        """The arrays of a state, checked, for `restore`."""
        specs = [
            ArraySpec("values", (keys, self.longest, len(self._columns)), finite=False),
            ArraySpec("suspects", (keys,), kind="count", dtype=np.int64),
        ]
        return read_arrays(specs, state, {}, owner)

    def restore(self, arrays: dict[str, Array]) -> None:
        """Continue from arrays that were checked."""
        self._values, self._suspects = arrays["values"].copy(), arrays["suspects"].copy()

    # --- what records look back at ---

    def count_independent(self, keys: Array) -> int:
        """The number of next records that do not look back at each other."""
        late = np.flatnonzero(Groups.make(keys).ranks >= self.shortest)
        return int(late[0]) if len(late) else len(keys)

    def fill(self, chunk: EncodedChunk) -> EncodedChunk:
        """Fill in the lagged values of records; values of records of the same chunk are not replaced."""
        keys = _get_keys(chunk)
        self._grow(int(keys.max(initial=0)) + 1)
        groups, own, X = Groups.make(keys), self._read_values(chunk), chunk.X.copy()
        for span, lag, series, one_hot in self._lags:
            ranks = np.minimum(groups.ranks, lag - 1)
            values = self._values[keys, self.longest - lag + ranks, series]
            values = np.where(groups.ranks < lag, values, own[groups.look_back(lag), series])
            missing = np.isnan(values)
            if one_hot:
                known = np.flatnonzero(~missing)
                X[:, span] = 0.0
                X[known, span.start + values[known].astype(np.int64)] = 1.0
            else:
                X[:, span.start] = values
            X[:, -1] = np.maximum(X[:, -1], missing)
        return chunk._replace(X=X)

    def replace_suspects(
        self, chunk: EncodedChunk, predictions: Array, clean_probability: Array
    ) -> tuple[Array, Array, Array]:
        """The values for later records to look back at, the numbers of suspects in a row, and the replaced records."""
        keys, values = _get_keys(chunk), self._read_values(chunk)
        groups, runs, replaced = Groups.make(keys), np.zeros(len(keys), np.int64), []
        unknown = np.isnan(chunk.targets)
        for series, column in enumerate(self._columns):
            if column is None:
                values[unknown, series] = predictions[unknown]
        before = groups.look_back(1)
        for index in np.flatnonzero(clean_probability < HALF).tolist():
            is_first, key = groups.ranks[index] == 0, keys[index]
            last = self._values[key, -1] if is_first else values[before[index]]
            runs[index] = 1 + (self._suspects[key] if is_first else runs[before[index]])
            if runs[index] <= PATIENCE:
                replaced.append(index)
                values[index] = self._replace(values[index], float(predictions[index]), last)
        return values, runs, np.array(replaced, np.int64)

    def find_conflict(self, keys: Array, replaced: Array) -> int:
        """The first record that looks back at a `replaced` one; the number of records if none does."""
        groups = Groups.make(keys)
        places = groups.places[replaced] + self.shortest
        after = groups.order[np.minimum(places, len(keys) - 1)]
        seen = after[(places < len(keys)) & (keys[after] == keys[replaced])]
        return int(seen.min(initial=len(keys)))

    def append(self, keys: Array, values: Array, runs: Array) -> None:
        """Append the values of records."""
        groups = Groups.make(keys)
        found, firsts, counts = np.unique(keys[groups.order], return_index=True, return_counts=True)
        # Places beyond the end are those of new records.
        places = np.arange(self.longest)[None, :] + counts[:, None]
        old = self._values[found[:, None], np.minimum(places, self.longest - 1)]
        new = values[groups.order[np.clip(places - self.longest + firsts[:, None], 0, len(keys) - 1)]]
        self._values[found] = np.where((places < self.longest)[:, :, None], old, new)
        self._suspects[found] = runs[groups.order[firsts + counts - 1]]

    def _read_values(self, chunk: EncodedChunk) -> Array:
        columns = (chunk.targets if column is None else chunk.X[:, column] for column in self._columns)
        return np.column_stack(list(columns))

    def _replace(self, values: Array, prediction: float, last: Array) -> Array:
        better = np.where(np.isnan(last), values, last)
        for series, column in enumerate(self._columns):
            if column is None:
                three = (float(values[series]), prediction, float(better[series]))
                unknown = self._is_label or np.isnan(last[series])
                better[series] = prediction if unknown else sorted(three)[1]
        return better

    def _grow(self, keys: int) -> None:
        if (more := keys - len(self._values)) > 0:
            more = max(more, len(self._values) // 2)
            self._values = np.concatenate([self._values, np.full((more, *self._values.shape[1:]), np.nan)])
            self._suspects = np.concatenate([self._suspects, np.zeros(more, np.int64)])


def _get_keys(chunk: EncodedChunk) -> Array:
    return chunk.keys if chunk.names else np.zeros(len(chunk.X), np.int64)


class Undo(NamedTuple):
    """Functions to `save` a state, and to return `to` it."""

    save: Callable[[], Any]
    to: Callable[[Any], object]


class LagOutcome(NamedTuple):
    """The played records, their predictions, and the probability that each is clean."""

    played: Any
    predictions: Array
    clean_probability: Array


def play_lagged(
    chunk: EncodedChunk, history: LagHistory, play: Callable[[EncodedChunk], LagOutcome], undo: Undo | None = None
) -> list[Any]:
    """Play records that look back at each other, with the result of playing them one by one.

    With `undo`, many records are played at once, speculating that none is a suspect; records that look back at one are
    played again. Without it, only records that do not look back at each other are played together.
    """
    found, start, size = [], 0, SMALLEST
    keys = _get_keys(chunk)
    while start < len(chunk.X):
        most = size if undo is not None else history.count_independent(keys[start : start + LARGEST])
        part = _cut_chunk(chunk, start, start + most)
        before = None if undo is None else undo.save()
        outcome = play(history.fill(part))
        values, runs, replaced = history.replace_suspects(part, *outcome[1:])
        stop = history.find_conflict(_get_keys(part), replaced)
        size = min(2 * size, LARGEST)
        if undo is not None and stop < len(part.X):
            undo.to(before)
            part, size = _cut_chunk(chunk, start, start + stop), max(SMALLEST, size // 4)
            outcome = play(history.fill(part))
            values, runs, _ = history.replace_suspects(part, *outcome[1:])
        history.append(_get_keys(part), values, runs)
        found.append(outcome.played)
        start += len(part.X)
    return found


def _cut_chunk(chunk: EncodedChunk, start: int, stop: int) -> EncodedChunk:
    part, keys = slice(start, stop), chunk.keys[start:stop] if chunk.names else chunk.keys
    return chunk._replace(X=chunk.X[part], targets=chunk.targets[part], indices=chunk.indices[part], keys=keys)
