"""`ModelStore`: one model per key of a stream, such as a sensor or a shop, all of one schema.

Keys are split into shards by a hash of their texts, so that the results, and the file, are the same on one thread, on
many, and on a cluster.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from redescend.belief import ResidualBelief
from redescend.engines import Engine
from redescend.engines.fleet import Fleet
from redescend.engines.growing import add_label
from redescend.errors import DataError, DivergenceError
from redescend.exclusive import exclusive
from redescend.learners.selftuning import resolve_order
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, bad_parameter, check
from redescend.resources import usable_memory
from redescend.sources import Batch
from redescend.state import require
from redescend.streaming.belief import key_bytes, learn_chunk, make_belief, restore_belief
from redescend.streaming.encoding.encoder import EncodedChunk, KeyedBatch
from redescend.streaming.encoding.target import output_targets
from redescend.streaming.keyed.shards import SHARDS, ClusterShards, Keys, LocalShards, ShardTask, to_key
from redescend.streaming.lags import play_lagged
from redescend.streaming.model import StreamModel
from redescend.streaming.predictor import Learned, Played, StreamPredictor

__all__ = ["ModelStore"]

MOST_MEMORY = usable_memory() // 2  # bytes that the models of all keys may take


class ModelStore(StreamPredictor):
    """One model per key of a stream, such as a sensor or a shop.

    The models share only the schema: each is, to the last bit, the `StreamModel` that is fitted to the records of its
    key alone. Keys share most of the belief, see `belief.make_belief`.

    Parameters
    ----------
    schema : Schema
        The target, the features and the column of keys; or its `to_dict`.
    features, **parameters
        As in `StreamModel`; `features` must be 'linear'.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from redescend.streaming import fit_stream
    >>> x = np.arange(1000.0) % 7
    >>> shops = np.where(np.arange(1000) % 2, "Rome", "Oslo")
    >>> table = pa.table({"shop": shops, "x": x, "y": np.where(shops == "Rome", 3 * x, 9 - x)})
    >>> store, rounds = fit_stream(table, "y", by="shop")
    >>> _ = rounds.run()
    >>> store
    ModelStore(regression of 'y' on 1 column, 2 keys of 'shop', 1,000 records)
    >>> store.predict(pa.table({"shop": ["Rome", "Oslo"], "x": [2.0, 2.0]})).round(1)
    array([6., 7.])
    >>> store["Rome"]
    StreamModel(regression of 'y' on 1 column, 500 records)
    """

    records = 0

    def _reset(self) -> None:
        if self.schema.by is None:
            raise bad_parameter(type(self).__name__, "schema", "one with a column of keys", self.schema)
        self._keys = Keys()
        vars(self).pop("_shards", None)
        self._belief = make_belief(self.schema) if self.config.transform is None else None

    def _make_model(self) -> StreamModel:
        return StreamModel(replace(self.schema, by=None), **self._params)

    @cached_property
    def _shards(self) -> LocalShards | ClusterShards:
        """The shards of models; made on demand, because a small schema may describe a large model."""
        return LocalShards(self._make_fleets())

    def _make_fleets(self) -> list[Fleet]:
        if 3 * 8 * self._min_model_size() > MOST_MEMORY:
            raise DataError(
                f"A model of the {self.schema.dim:,} encoded columns takes {8 * self._min_model_size() / 2**30:.1f} "
                "GiB, and one for each key does not fit in the memory of this machine. Use fewer columns, or order 1."
            )
        fleet = Fleet(self._make_model().engine, self.schema.indicators)
        self._row_bytes = 8 * fleet.rows.shape[1]
        return [fleet, *(copy.copy(fleet) for _ in range(SHARDS - 1))]

    def _min_model_size(self) -> int:
        """A lower bound on the numbers of a model; nothing is allocated."""
        width = self.schema.dim + 1
        is_matrix = self.config.transform is None and resolve_order(self.config.order, width) == 2
        return self.schema.outputs * self.schema.dim * (self.schema.dim if is_matrix else 1)

    # --- keys ---

    @property
    def keys(self) -> list[str]:
        """The keys as texts, in order of first appearance."""
        return list(self._keys.names)

    def __len__(self) -> int:
        return len(self._keys.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys)

    def __contains__(self, key: Any) -> bool:
        return self._keys.index(to_key(key)) >= 0

    def __getitem__(self, key: Any) -> StreamModel:
        """Return a copy of the current model of a key."""
        index = self._keys.index(to_key(key))
        if index < 0:
            raise DataError(
                f"There is no model of {key!r}, which is not one of the {len(self):,} keys of '{self.schema.by}'."
            )
        fleet, place = self._find(index)
        history = None if self._history is None else self._history.copy(index)
        return self._make_model().adopt(fleet.engine(place), fleet.count_ones(place), None, history)

    def _find(self, index: int) -> tuple[Fleet, int]:
        shard, place = self._keys.locate(index)
        return self._shards.fetch_fleets()[shard], int(place)

    # --- learning ---

    @exclusive
    def learn(self, batch: Batch) -> Learned:
        """Learn from the records of a `batch`, each with the model of its key."""
        encoded, history = KeyedBatch(self.schema, batch.table, True, self._keys, add=True), self._history
        learn = partial(self._learn_chunk, rows=batch.rows)
        if history is None:
            return self._learn_batch(batch, encoded, lambda chunk: [learn(chunk)])
        attempt = partial(self._play_known, learn)
        return self._learn_batch(batch, encoded, lambda chunk: play_lagged(chunk, history, attempt))

    def _add_output(self) -> None:
        before, fleets = self._shards.fetch_fleets(), self._make_fleets()
        for fleet, known in zip(fleets, before, strict=True):
            fleet.take_over(known, add_label)
        self._shards.replace_fleets(fleets)

    def _learn_chunk(self, chunk: EncodedChunk, rows: Array) -> Played:
        Y = output_targets(self.schema, chunk.targets)
        scores, weights = self._learn_groups(chunk, Y)
        if len(diverged := np.flatnonzero(np.isnan(weights).any(axis=0))):
            first = int(diverged[0])
            raise DivergenceError(
                f"Row {rows[chunk.indices[first]]}: the update of the model of '{chunk.names[chunk.keys[first]]}' "
                "overflowed. Try a smaller step, or a redescending transform such as Learn."
            )
        self.records += len(chunk.X)
        judged = None if self._belief is None else learn_chunk(self._belief, chunk, scores)
        return Played(chunk, scores, self._losses(scores, Y), weights.min(axis=0), judged)

    def _learn_groups(self, chunk: EncodedChunk, Y: Array) -> tuple[Array, Array]:
        """Group the records by shard and key, each in its order, and learn from them."""
        trained = self._shards
        self._check_memory()
        shards, places = self._keys.locate(chunk.keys)
        order = np.lexsort((places, shards))
        ends = np.searchsorted(shards[order], np.arange(SHARDS + 1))
        groups = {shard: order[ends[shard] : ends[shard + 1]] for shard in np.flatnonzero(np.diff(ends)).tolist()}
        tasks = []
        for shard, which in groups.items():
            starts = np.flatnonzero(np.diff(places[which], prepend=-1))
            runs = (np.append(starts, len(which)), places[which[starts]])
            tasks.append(ShardTask(shard, self._keys.sizes[shard], chunk.X[which], Y[:, which], *runs))
        scores, weights = np.empty(Y.shape), np.empty(Y.shape)
        for which, result in zip(groups.values(), trained.learn(tasks), strict=True):
            scores[:, which], weights[:, which] = result
        return scores, weights

    def _check_memory(self) -> None:
        """Raise if the models do not fit in memory, as with a column of identifiers."""
        history = 0 if self._history is None else self._history.key_bytes
        needed = len(self) * (self._row_bytes + key_bytes(self._belief) + history)
        if needed > MOST_MEMORY:
            raise DataError(
                f"There are {len(self):,} keys of '{self.schema.by}' so far, whose models take {needed / 2**30:.1f} "
                "GiB: more than half of the memory of this machine. Name a column with fewer keys, or fewer features."
            )

    def run_on(self, jobs: int | None = None, cluster: str | None = None) -> None:
        """Learn on threads (`jobs`), or on the Dask `cluster` at an address such as ``tcp://host:8786``.

        The results are the same. Models stay on the cluster until `settle`.
        """
        if jobs is not None:
            jobs = check(type(self).__name__, "jobs", jobs, AT_LEAST_ONE)
        self.settle()
        fleets = self._shards.fetch_fleets()
        self._shards = LocalShards(fleets, jobs or 1) if cluster is None else ClusterShards(fleets, cluster)

    def settle(self) -> None:
        """Fetch all models to this process, and release threads and clusters."""
        shards = self._shards
        try:
            self._shards = LocalShards(shards.fetch_fleets())
        finally:
            shards.close()

    # --- predicting ---

    def _encode(self, table: Any, target: bool) -> KeyedBatch:
        return KeyedBatch(self.schema, table, target, self._keys, add=False)

    def _engines(self, chunk: EncodedChunk) -> Iterator[tuple[Engine, Array]]:
        order = np.argsort(chunk.keys, kind="stable")
        starts = np.flatnonzero(np.diff(chunk.keys[order], prepend=-1))
        for which in np.split(order, starts[1:]) if len(order) else ():
            fleet, place = self._find(int(chunk.keys[which[0]]))
            yield fleet.engine(place), which

    # --- persistence ---

    def state(self) -> dict[str, Any]:
        """Return copies of the keys, the models of each shard as rows, and the belief."""
        belief = None if self._belief is None else self._belief.state()
        shards = [fleet.rows.copy() for fleet in self._shards.fetch_fleets()]
        state = {"keys": self.keys, "shards": shards, "belief": belief}
        return state if self._history is None else state | {"history": self._history.state(len(self))}

    def _restore(self, state: dict[str, Any]) -> None:
        names, owner = list(state["keys"]), type(self).__name__
        keys, shapes = Keys(names), [np.shape(rows) for rows in state["shards"]]
        same = len(keys.names) == len(names) and keys.sizes == [shape[0] for shape in shapes]
        require(same, owner, "other keys than models")
        # Before anything is allocated: a small file cannot claim a large model.
        large = all(shape[1] >= self._min_model_size() for shape in shapes if shape[0])
        require(large, owner, f"models too small for {self.schema.dim:,} encoded columns")
        fleets = self._make_fleets() if names else []
        for fleet, rows in zip(fleets, state["shards"], strict=bool(names)):
            fleet.restore(rows)
        belief = restore_belief(self.schema, self.config, state.get("belief"), type(self).__name__)
        known = len(names) if not isinstance(belief, ResidualBelief) else belief.keys
        require(known == max(len(names), 1) or belief is None, owner, "a belief about other keys")
        if self._history is not None:
            self._history.restore(self._history.read(state["history"], len(names), owner))
        self._belief = belief
        self._keys = keys
        vars(self).pop("_shards", None)
        if names:
            self._shards = LocalShards(fleets)
        self.records = int(sum(fleet.row_counts().sum() for fleet in fleets))
