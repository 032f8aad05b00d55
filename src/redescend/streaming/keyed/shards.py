"""The keys of a stream, each in a shard, and training shard by shard: here, on threads, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from operator import itemgetter
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from redescend.engines.fleet import Fleet
from redescend.errors import DataError
from redescend.numeric import Array
from redescend.resources import connect_cluster
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


MAX_CHAIN = 256
"""The most tasks before shards are fetched and sent again: the scheduler remembers all tasks of a result."""

WORKER_SECONDS = 10  # seconds that a cluster may be without a worker


class ShardTask(NamedTuple):
    """Records for the models of a shard, which has `size` models with the new ones; see `Fleet.learn`."""

    shard: int
    size: int
    X: Array
    Y: Array
    starts: Array
    places: Array


ShardResult = tuple[Array, Array]  # the predictions and the weights of the records of a task


def run_task(fleet: Fleet, task: ShardTask) -> ShardResult:
    """Learn from the records of a task."""
    fleet.grow(task.size)
    return fleet.learn(task.X, task.Y, task.starts, task.places)


class LocalShards:
    """Shards in this process, trained on `jobs` threads; see `ClusterShards`."""

    def __init__(self, fleets: list[Fleet], jobs: int = 1) -> None:
        self._fleets, self._jobs = fleets, jobs

    def learn(self, tasks: Sequence[ShardTask]) -> list[ShardResult]:
        if self._jobs == 1:
            return self._learn(tasks)
        # A few large parts: handing one over takes as long as a thousand records.
        parts = [tasks[first :: self._jobs] for first in range(min(self._jobs, len(tasks)))]
        with ThreadPoolExecutor(self._jobs) as pool:
            results = list(pool.map(self._learn, parts))
        return [results[place % self._jobs][place // self._jobs] for place in range(len(tasks))]

    def _learn(self, tasks: Sequence[ShardTask]) -> list[ShardResult]:
        return [run_task(self._fleets[task.shard], task) for task in tasks]

    def fetch_fleets(self) -> list[Fleet]:
        return self._fleets

    def replace_fleets(self, fleets: list[Fleet]) -> None:
        self._fleets = fleets

    def close(self) -> None:
        """Do nothing: threads end with each call of `learn`."""


Pair = tuple[Fleet, ShardResult | None]


class ClusterShards:
    """Shards on a Dask cluster: models stay on their workers, and records are sent to them.

    If a worker is lost, so are its models: the run has to be resumed from its last checkpoint.
    """

    def __init__(self, fleets: list[Fleet], address: str) -> None:
        self._address, self._client = address, connect_cluster(address)
        self._records = [int(fleet.row_counts().sum()) for fleet in fleets]
        self._chain = 0
        try:
            self._states = self._send(fleets)
        except BaseException:
            self._client.close()
            raise

    def learn(self, tasks: Sequence[ShardTask]) -> list[ShardResult]:
        with self._explain_lost_models():
            # Scattered, because the scheduler would hold arguments for as long as it remembers the tasks.
            sent = self._client.scatter(list(tasks), hash=False, timeout=WORKER_SECONDS)
            results = []
            for task, records in zip(tasks, sent, strict=True):
                before, self._records[task.shard] = self._records[task.shard], self._records[task.shard] + len(task.X)
                state = self._client.submit(_run_remotely, self._states[task.shard], records, before, pure=False)
                results.append(self._client.submit(itemgetter(1), state, pure=False))
                self._states[task.shard] = state
            gathered: list[ShardResult] = self._client.gather(results)
            self._chain += 1
            if self._chain % MAX_CHAIN == 0:
                self._states = self._send(self._fetch())
            return gathered

    def fetch_fleets(self) -> list[Fleet]:
        with self._explain_lost_models():
            return self._fetch()

    def replace_fleets(self, fleets: list[Fleet]) -> None:
        with self._explain_lost_models():
            self._states = self._send(fleets)

    def close(self) -> None:
        with suppress(OSError):
            self._client.close()

    def _send(self, fleets: list[Fleet]) -> list[Any]:
        pairs: list[Pair] = [(fleet, None) for fleet in fleets]
        return list(self._client.scatter(pairs, hash=False, timeout=WORKER_SECONDS))

    def _fetch(self) -> list[Fleet]:
        return [fleet for fleet, _ in self._client.gather(self._states)]

    @contextmanager
    def _explain_lost_models(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise DataError(
                f"The Dask cluster at '{self._address}' has lost models ({what}); resume from the last checkpoint, or "
                "start again."
            ) from None


def _run_remotely(state: Pair, task: ShardTask, before: int) -> Pair:
    """Run a task on a worker. Models change in place, so an interrupted task must not run twice."""
    fleet = state[0]
    if fleet.row_counts().sum() != before:
        raise RuntimeError(f"shard {task.shard} was changed by a task that did not end")
    return fleet, run_task(fleet, task)
