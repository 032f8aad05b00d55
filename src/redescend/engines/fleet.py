"""Many engines of one shape, packed: each is a row of one array that grows with them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from redescend.engines import validation
from redescend.engines.engine import DescentEngine, Engine
from redescend.engines.fleet_validation import sound_states
from redescend.engines.selftuning import SelfTuningEngine
from redescend.errors import DataError
from redescend.kernels.tabular import fleet
from redescend.numeric import Array

_by_descent: Any = fleet.by_descent
_by_selftuning: Any = fleet.by_selftuning

PARTS = ("sample", "units", "clock", "states", "seen", "standing")
"""The arrays of an engine in its row, in the order of the kernel; those that an engine does not have are empty."""

FEWEST = 4
"""Rows that there is room for from the first one on."""


class Fleet:
    """Engines that learn each from records of its own, to the bit as each would alone.

    Parameters
    ----------
    pattern : Engine
        A fresh engine, for tables, that takes no means: what each of them is before its first record.
    indicators : sequence of int
        Features that are 0 or 1; of each engine it is counted how often they were 1.

    Examples
    --------
    >>> from redescend import losses
    >>> from redescend.engines import WITH_MISSING
    >>> shape = (1, 1, losses.Squared(), True, WITH_MISSING, None, 1)
    >>> alone, two = SelfTuningEngine(*shape), Fleet(SelfTuningEngine(*shape), [])
    >>> X, Y = np.arange(10.0).reshape(-1, 1), 2.0 * np.arange(10.0).reshape(1, -1)
    >>> two.grow(2)
    >>> said, believed = two.learn(X, Y, np.array([0, 3, 10]), np.array([1, 0]))
    >>> _ = alone.rounds(X[3:], Y[:, 3:].copy())
    >>> bool((two.engine(0).states == alone.states).all()), two.engine(1).clock[0]
    (True, np.float64(3.0))
    """

    def __init__(self, pattern: Engine, indicators: Sequence[int]) -> None:
        self._pattern = pattern
        self._indicators = np.array(indicators, dtype=np.int64)
        parts = [getattr(pattern, name, np.empty(0)) for name in PARTS]
        self._shapes = {name: part.shape for name, part in zip(PARTS, parts, strict=True) if part.size}
        parts.append(np.zeros(len(indicators)))
        self._ends = np.cumsum([0, *(part.size for part in parts)])
        self._fresh = np.concatenate([part.ravel() for part in parts])
        self._rows = np.empty((0, len(self._fresh)))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __getstate__(self) -> dict[str, Any]:
        # Room that is not used does not travel.
        return self.__dict__ | {"_rows": self.rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # What comes over a network can be read only, for which nothing is compiled.
        for owner in (self, self._pattern):
            arrays = {name: part for name, part in vars(owner).items() if isinstance(part, np.ndarray)}
            vars(owner).update({name: _writable(part) for name, part in arrays.items()})

    @property
    def rows(self) -> Array:
        """All that was learned, a row for each engine; a view."""
        return self._rows[: self._count]

    def grow(self, count: int) -> None:
        """Have so many engines; those that are new are fresh."""
        if count > len(self._rows):
            room = np.empty((max(count, 2 * len(self._rows), FEWEST), len(self._fresh)))
            room[: self._count] = self.rows
            self._rows = room
        self._rows[self._count : count] = self._fresh
        self._count = max(count, self._count)

    def learn(self, X: Array, Y: Array, starts: Array, places: Array) -> tuple[Array, Array]:
        """Learn from runs of rows of a table, run i of which belongs to the engine at ``places[i]``, each a single one.

        Parameters
        ----------
        X : C-ordered array of shape (rows, features)
        Y : array of shape (outputs, rows)
        starts : array of int
            Where the runs begin, and where the last one ends.
        places : array of int

        Returns
        -------
        said, believed
            As of `Engine.rounds`. Where an engine would move beyond all numbers, it stays, and the rest of its run is
            believed by NaN.
        """
        if len(places) and not 0 <= places.min() <= places.max() < self._count:
            raise IndexError("There is no engine at one of the places.")
        said, believed, pattern = np.empty(Y.shape), np.empty(Y.shape), self._pattern
        shared = (self._rows, self._ends, *map(_writable, (X, Y, starts, places)), pattern.standard)
        sizes = (self._indicators, len(pattern.work))
        if isinstance(pattern, SelfTuningEngine):
            own = (pattern.members, pattern.rates, pattern.order == 2, pattern.numbers)
            _by_selftuning(*shared, *sizes, *own, believed, said)
        elif isinstance(pattern, DescentEngine):
            _by_descent(*shared, *sizes, pattern.numbers, believed, said)
        return said, believed

    def engine(self, place: int) -> Engine:
        """One of the engines, as it is now; a copy."""
        engine = copy.copy(self._pattern)
        for name, part in self._named(self.rows[place]).items():
            setattr(engine, name, part.copy())
        engine.work, engine._known = np.empty_like(engine.work), (-1.0, None)
        return engine

    def ones(self, place: int) -> Array:
        """How often each indicator was 1 in the records of an engine; a copy."""
        return self.rows[place, self._ends[fleet.ONES] :].copy()

    def clocks(self) -> Array:
        """How many records each engine has learned from."""
        return self.rows[:, self._ends[fleet.CLOCK]].copy()

    def restore(self, rows: Array) -> None:
        """Go back to rows that a fleet of the same pattern had, if they could be: compiled loops look at nothing twice.

        Raises
        ------
        DataError
            They could not.
        """
        rows = np.array(rows, dtype=np.float64, order="C", ndmin=2)
        if rows.shape[1] != len(self._fresh):
            raise DataError(
                f"The state has rows of {rows.shape[1]} numbers, not {len(self._fresh)}; it has been altered."
            )
        if len(rows) and not self._sound(rows):
            raise DataError("The state has impossible numbers; it has been altered.")
        self._rows, self._count = rows, len(rows)

    def _sound(self, rows: Array) -> bool:
        """Whether the rows could be engines; the rules are those of one, on the parts of all."""
        arrays, clock = self._named(rows), self._pattern.clock
        clocks, ones = arrays["clock"], rows[:, self._ends[fleet.ONES] :]
        for name in {"units", "standing"} & arrays.keys():
            arrays[name] = np.moveaxis(arrays[name], 1, 0).reshape(arrays[name].shape[1], -1)
        arrays["states"] = arrays["states"].reshape(-1, arrays["states"].shape[-1])
        return (
            bool(np.isfinite(rows).all())
            and validation.whole(clocks[:, 0], 0.0, validation.COUNTABLE)
            and bool((clocks[:, 1:] == clock[1:]).all())
            and validation.whole(ones, 0.0, validation.COUNTABLE)
            and bool((ones <= clocks[:, :1]).all())
            and self._sound_engines(arrays | {"clock": clock, "means": self._pattern.means})
        )

    def _sound_engines(self, arrays: dict[str, Array]) -> bool:
        if isinstance(self._pattern, SelfTuningEngine):
            return Engine._sound(self._pattern, arrays) and sound_states(self._pattern, arrays["states"])
        return self._pattern._sound(arrays)

    def _named(self, rows: Array) -> dict[str, Array]:
        """The arrays of a row, or of many, by name; views."""
        spans = zip(PARTS, self._ends[:-2], self._ends[1:-1], strict=True)
        flat = {name: rows[..., start:end] for name, start, end in spans if end > start}
        return {name: part.reshape(*rows.shape[:-1], *self._shapes[name]) for name, part in flat.items()}


def _writable(array: Array) -> Array:
    return np.require(array, None, ["C", "A", "W"])
