"""`ModelStore`: a model for each key, all of one schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from redescend.engines import Engine
from redescend.engines.fleet import Fleet
from redescend.errors import DataError, DivergenceError
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, bad_parameter, check, check_instance
from redescend.sources import Batch
from redescend.streaming.answering import Answering, Learned, gathered, played
from redescend.streaming.encoding import target as targets
from redescend.streaming.encoding.batches import Part
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.keyed.batches import Keyed
from redescend.streaming.keyed.cluster import There
from redescend.streaming.keyed.keys import SHARDS, Keys, as_text
from redescend.streaming.keyed.shards import Here, Shards, Task
from redescend.streaming.model import StreamModel


class ModelStore(Answering):
    """A model for each key of a stream, such as a sensor or a shop.

    The schema is shared: what columns are taken for does not depend on the key. All else is of each model alone, which
    is to the last bit what a `StreamModel` of the schema learns from the records of its key.

    Parameters
    ----------
    schema : Schema
        What is predicted from what, and by which keys; or its plain values.
    order, loss, transform, step
        As of `StreamModel`.

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

    def __init__(
        self, schema: Schema, order: int = 1, loss: Any = None, transform: Any = None, step: Any = None
    ) -> None:
        if isinstance(schema, Mapping):
            schema = Schema.from_plain(schema)
        self.schema = check_instance(type(self).__name__, "schema", schema, Schema, "a Schema")
        if schema.by is None:
            raise bad_parameter(type(self).__name__, "schema", "one with a column of keys", schema)
        self._given = {"order": order, "loss": loss, "transform": transform, "step": step}
        self._blank = self._fresh()
        self.records = 0
        """How many records its models have learned from."""
        self._keys = Keys()
        self._shards: Shards = Here([self._fleet() for _ in range(SHARDS)])

    def _fresh(self) -> StreamModel:
        return StreamModel(replace(self.schema, by=None), **self._given)

    def _fleet(self) -> Fleet:
        return Fleet(self._blank._ready(), self.schema.indicators)

    def __repr__(self) -> str:
        columns, count = len(self.schema.features), len(self)
        of = f"{self.schema.task} of '{self.schema.target}' on {columns} column{'s' * (columns != 1)}"
        keys = f"{count:,} key{'s' * (count != 1)} of '{self.schema.by}'"
        return f"ModelStore({of}, {keys}, {self.records:,} records)"

    # --- keys ---

    @property
    def keys(self) -> list[str]:
        """The keys, as texts, in the order in which they first came."""
        return list(self._keys.names)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys)

    def __contains__(self, key: Any) -> bool:
        return self._keys.number(as_text(key)) >= 0

    def __getitem__(self, key: Any) -> StreamModel:
        """The model of a key as it is now: a copy, which can be used and saved by itself."""
        number = self._keys.number(as_text(key))
        if number < 0:
            raise DataError(
                f"There is no model of {key!r}: it is none of the {len(self):,} keys of '{self.schema.by}'."
            )
        fleet, place = self._place(number)
        model = self._fresh()
        model._engine, model._ones = fleet.engine(place), fleet.count_ones(place)
        return model

    def _place(self, number: int) -> tuple[Fleet, int]:
        shard, place = self._keys.place(number)
        return self._shards.fleets()[shard], place

    # --- learning ---

    def learn(self, batch: Batch) -> Learned:
        """Learn from the records of a batch, each by the model of its key.

        What happens to a record depends on those of its key before it and on nothing else.
        """
        readied, rounds = Keyed(self.schema, batch.table, True, self._keys, add=True), []
        for part in readied.parts():
            Y = targets.answers(self.schema, part.values)
            said, believed = self._learn(part, Y)
            if np.isnan(believed).any():
                raise self._divergence(batch, part, believed)
            self.records += len(part.X)
            told = (targets.summed(self._paid(said, Y)), believed.min(axis=0))
            rounds.append((part, played(self.schema, batch, part, said, *told)))
        return gathered(batch, readied, rounds)

    def _learn(self, part: Part, Y: Array) -> tuple[Array, Array]:
        """The records of each key come together, in their order, and those of each shard."""
        shards, places = self._keys.places(part.keys)
        order = np.lexsort((places, shards))
        ends = np.searchsorted(shards[order], np.arange(SHARDS + 1))
        pieces = {shard: order[ends[shard] : ends[shard + 1]] for shard in np.flatnonzero(np.diff(ends)).tolist()}
        tasks = []
        for shard, which in pieces.items():
            starts = np.flatnonzero(np.diff(places[which], prepend=-1))
            runs = (np.append(starts, len(which)), places[which[starts]])
            tasks.append(Task(shard, self._keys.sizes[shard], part.X[which], Y[:, which], *runs))
        said, believed = np.empty(Y.shape), np.empty(Y.shape)
        for which, answer in zip(pieces.values(), self._shards.learn(tasks), strict=True):
            said[:, which], believed[:, which] = answer
        return said, believed

    def _divergence(self, batch: Batch, part: Part, believed: Array) -> DivergenceError:
        at = int(np.flatnonzero(np.isnan(believed).any(axis=0))[0])
        return DivergenceError(
            f"Row {batch.rows[part.kept[at]]}: the model of '{part.names[part.keys[at]]}' would move beyond all "
            "numbers. Try a smaller step, or a transform that closes, such as Learn."
        )

    def run_on(self, jobs: int | None = None, cluster: str | None = None) -> None:
        """Learn on so many threads, or on a Dask cluster; what is learned is the same.

        Parameters
        ----------
        jobs : int or None
            Threads on this machine; None: one.
        cluster : str or None
            Address of a Dask scheduler, such as ``tcp://host:8786``. The models are there until they are settled.
        """
        if jobs is not None:
            jobs = check(type(self).__name__, "jobs", jobs, AT_LEAST_ONE)
        self.settle()
        fleets = self._shards.fleets()
        self._shards = Here(fleets, jobs or 1) if cluster is None else There(fleets, cluster)

    def settle(self) -> None:
        """Have all models here, and let go of threads and clusters."""
        shards = self._shards
        try:
            self._shards = Here(shards.fleets())
        finally:
            shards.close()

    # --- answering ---

    def _readied(self, table: Any, target: bool) -> Keyed:
        return Keyed(self.schema, table, target, self._keys, add=False)

    def _said(self, part: Part) -> Array:
        said = np.empty((self.schema.outputs, len(part.X)))
        for engine, which in self._engines(part):
            said[:, which] = engine.predict(part.X[which])
        return said

    def _believed(self, part: Part, Y: Array) -> Array:
        believed = np.empty(len(part.X))
        for engine, which in self._engines(part):
            believed[which] = engine.score(part.X[which], np.ascontiguousarray(Y[:, which])).min(axis=0)
        return believed

    def _paid(self, said: Array, Y: Array) -> Array:
        return self._blank._paid(said, Y)

    def _engines(self, part: Part) -> Iterator[tuple[Engine, Array]]:
        """The engine of each key, and the places of its records."""
        order = np.argsort(part.keys, kind="stable")
        starts = np.flatnonzero(np.diff(part.keys[order], prepend=-1))
        for which in np.split(order, starts[1:]) if len(order) else ():
            fleet, place = self._place(int(part.keys[which[0]]))
            yield fleet.engine(place), which

    # --- persistence ---

    def _get_params(self) -> dict[str, Any]:
        return {"schema": self.schema.as_plain(), **self._given}

    def state(self) -> dict[str, Any]:
        """All that was learned: the keys, and the models of each shard, a row for each; copies."""
        return {"keys": self.keys, "shards": [fleet.rows.copy() for fleet in self._shards.fleets()]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that such a store gave; it continues to the last bit."""
        try:
            names, shards = list(state["keys"]), list(state["shards"])
            keys, fleets = Keys(names), [self._fleet() for _ in range(SHARDS)]
            for fleet, rows in zip(fleets, shards, strict=True):
                fleet.restore(rows)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"The state of ModelStore lacks or garbles something ({error}); it has been altered."
            ) from None
        clocks = [fleet.row_counts() for fleet in fleets]
        if len(keys) < len(names) or keys.sizes != [len(fleet) for fleet in fleets]:
            raise DataError("The state of ModelStore has other keys than models; it has been altered.")
        self._keys, self._shards = keys, Here(fleets)
        self.records = int(sum(clock.sum() for clock in clocks))
