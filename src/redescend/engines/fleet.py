"""Many engines of one shape, packed: each is a row of one array that grows with them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from redescend.engines.engine import Engine
from redescend.kernels.tabular.fleet import Runs
from redescend.numeric import Array
from redescend.state import ArraySpec, check_arrays, corrupt_state, require

ONES = ArraySpec("ones", ("indicators",), kind="count")

MIN_CAPACITY = 4


class Fleet:
    """Engines that learn each from its own records, with the same bits as each would alone.

    Every engine starts as a copy of `pattern`, a new engine for tables, without averaging. The `indicators` are
    features that are 0 or 1; the fleet counts for every engine how often they were 1.

    >>> from redescend import losses
    >>> from redescend.engines import SelfTuningEngine, Shape
    >>> shape = Shape(1, 1, losses.Squared())
    >>> alone, two = SelfTuningEngine(shape, order=2), Fleet(SelfTuningEngine(shape, order=2), [])
    >>> X, Y = np.arange(10.0).reshape(-1, 1), 2.0 * np.arange(10.0).reshape(1, -1)
    >>> two.grow(2)
    >>> predictions, weights = two.learn(X, Y, np.array([0, 3, 10]), np.array([1, 0]))
    >>> _ = alone.learn_rounds(X[3:], Y[:, 3:].copy())
    >>> bool((two.engine(0).predict(X) == alone.predict(X)).all()), two.engine(1).row_count
    (True, 3)
    """

    def __init__(self, pattern: Engine, indicators: Sequence[int]) -> None:
        self._pattern = pattern
        self._indicators = np.array(indicators, dtype=np.int64)
        arrays = pattern.arrays() | {"ones": np.zeros(len(indicators))}
        arrays.pop("means")
        self._shapes = {name: array.shape for name, array in arrays.items()}
        ends = np.cumsum([0, *(array.size for array in arrays.values())]).tolist()
        self._spans = {name: slice(*span) for name, span in zip(arrays, pairwise(ends), strict=True)}
        self._fresh = np.concatenate([array.ravel() for array in arrays.values()])
        self._rows = np.empty((0, len(self._fresh)))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __getstate__(self) -> dict[str, Any]:
        # Spare capacity is not pickled.
        return self.__dict__ | {"_rows": self.rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Arrays from a network can be read-only, which the kernels do not accept.
        for owner in (self, self._pattern):
            arrays = {name: part for name, part in vars(owner).items() if isinstance(part, np.ndarray)}
            vars(owner).update({name: _make_writable(part) for name, part in arrays.items()})

    @property
    def rows(self) -> Array:
        """The states of all engines, a row each; a view."""
        return self._rows[: self._count]

    def grow(self, count: int) -> None:
        """Have at least this many engines; the added ones are new."""
        if count > len(self._rows):
            larger = np.empty((max(count, 2 * len(self._rows), MIN_CAPACITY), len(self._fresh)))
            larger[: self._count] = self.rows
            self._rows = larger
        self._rows[self._count : count] = self._fresh
        self._count = max(count, self._count)

    def take_over(self, other: Fleet, change: Callable[[Engine], Engine]) -> None:
        """Continue with all engines of another fleet, each changed into one with the pattern of this fleet."""
        self.grow(len(other))
        for place in range(len(other)):
            arrays = change(other.engine(place)).arrays() | {"ones": other.count_ones(place)}
            for name, span in self._spans.items():
                self._rows[place, span] = arrays[name].ravel()

    def learn(self, X: Array, Y: Array, starts: Array, places: Array) -> tuple[Array, Array]:
        """Learn from runs of rows of a table, each of a different engine; returns predictions and weights.

        Run i, from ``starts[i]`` up to ``starts[i + 1]``, is for the engine at ``places[i]``. An engine whose update
        overflows stays as it was, and the rest of its run has weights of NaN.
        """
        if len(places) and not 0 <= places.min() <= places.max() < self._count:
            raise IndexError("There is no engine at one of the places.")
        runs = Runs(_make_writable(X), _make_writable(Y), _make_writable(starts), _make_writable(places))
        return self._pattern.learn_packed(self._rows, self._spans, self._indicators, runs)

    def engine(self, place: int) -> Engine:
        """Return a copy of one of the engines."""
        engine = copy.copy(self._pattern)
        arrays = self._unpack(self.rows[place])
        engine.set_arrays({name: array.copy() for name, array in arrays.items() if name != "ones"})
        engine.work = np.empty_like(engine.work)
        return engine

    def count_ones(self, place: int) -> Array:
        """Count how often each indicator was 1 in the records of an engine."""
        return self.rows[place, self._spans["ones"]].copy()

    def row_counts(self) -> Array:
        """The number of records that each engine has learned from."""
        return self._pattern.packed_row_counts(self.rows, self._spans)

    def restore(self, rows: Array) -> None:
        """Restore the rows of a fleet with the same pattern; raises `DataError` if they are not valid."""
        rows = np.array(rows, dtype=np.float64, order="C", ndmin=2)
        if rows.shape[1] != len(self._fresh):
            raise corrupt_state("Fleet", f"rows of {rows.shape[1]} numbers, not {len(self._fresh)}")
        if len(rows):
            arrays, dims = self._unpack(rows) | {"means": self._pattern.arrays()["means"]}, self._pattern.dims()
            check_arrays((*self._pattern.SPECS, ONES), arrays, dims, "Fleet")
            self._pattern.check(arrays)
            counts = self._pattern.packed_row_counts(rows, self._spans)
            require((arrays["ones"] <= counts[:, None]).all(), "Fleet", "more ones than records")
        self._rows, self._count = rows, len(rows)

    def _unpack(self, rows: Array) -> dict[str, Array]:
        """The arrays of a row, or of many, by name; views."""
        parts = {name: rows[..., span] for name, span in self._spans.items()}
        return {name: part.reshape(*rows.shape[:-1], *self._shapes[name]) for name, part in parts.items()}


def _make_writable(array: Array) -> Array:
    return array if array.flags.carray else np.require(array, None, ["C", "A", "W"])
