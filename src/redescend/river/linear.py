"""A linear model whose features have names, and come and go.

A name gets a place in the learner's vector with the first record that has it, and keeps it. A feature that a record
does not have is 0 there. When names come that have no place, the vector grows: to what the first record needs, and from
then on to twice its size, so that growing costs no more than learning does. What was learned stays as it is, for to the
learner a feature that was never there is one that was always 0.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from redescend.errors import DataError
from redescend.numeric import Array, dot
from redescend.river import records
from redescend.river.names import getter, plain, unplain
from redescend.river.rounds import Engine, engine_of, widened, width
from redescend.river.settings import Settings


class Linear:
    """Names, their places, and the learner: learns from dicts and from tables of numbers."""

    _engine: Engine

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ahead = (1.0,) if settings.intercept else ()
        self._known: dict[Any, float] = {}
        self._fresh = True
        self._bind(engine_of(settings.learner(1)))
        self.frames = records.Frames()
        self._columns: list[Any] = []
        self._at: Array = np.empty(0, dtype=np.intp)

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self._settings, "state": self.state()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        Linear.__init__(self, kept["settings"])
        self.restore(kept["state"])

    # --- one record ---

    def learn(self, x: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from one record that counts w times."""
        if w != 1.0:
            self._learn_weighted(x, y, w)
            return
        self._put(x, y)
        if self._engine.play() < 0.0:
            records.check(x, y)
            self._engine.play_carefully()

    def _learn_weighted(self, x: Any, y: Any, w: Any) -> None:
        if (w := records.checked_weight(w)) > 0.0:
            records.check(x, y)
            self._put(x, y)
            self._engine.play_weighted(w)

    def judge(self, x: Any, y: Any) -> float:
        """How likely a record is clean; nothing is learned."""
        self._put(x, y, new=False)
        clean = self._engine.judge()
        if not clean > 0.0:
            records.check(x, y)
        return clean

    def predict(self, x: Any) -> float:
        """⟨x, θ⟩; features that were never learned from count nothing."""
        self._put(x, 0.0, new=False)
        out = self._engine.predict()
        if math.isfinite(out):
            return out
        records.check(x)
        return dot(self._engine.learner.theta, self._engine.x)

    def _put(self, x: Any, y: Any, new: bool = True) -> None:
        """Write the record into the engine's row; features that have no place get one, or are left out."""
        try:
            # A subclass of dict may answer for a name that it has not.
            usual = type(x) is dict and len(x) == self._count
            values = self._get(x) if usual else self._gathered(x, y, new)
        except KeyError:
            values = self._gathered(x, y, new)
        try:
            self._write(self._bytes, 0, y, *self._ahead, *values)
        except (struct.error, OverflowError):
            records.check(x, y)
            raise

    def _gathered(self, x: Any, y: Any, new: bool) -> Iterable[Any]:
        """The values of all features in the order of their places."""
        if not isinstance(x, Mapping):
            records.check(x, y)
        whole = {**self._known, **x}
        if len(whole) != self._count:
            if new:
                records.check(x, y)
                self._meet(x)
            whole = {name: whole[name] for name in self._known}
        return whole.values()

    # --- many records ---

    def learn_table(self, columns: list[Any], values: Array, y: Array, weights: list[float] | None = None) -> None:
        """Learn from the rows of a table that count, in turn; from none of them if a number is not finite."""
        if weights is not None:
            values = records.blanked(values, weights)
        if len(values) == 0 or (weights is not None and not any(weights)):
            return
        if self._fresh or columns != self._columns:
            records.check_table(columns, values)
            self._meet(columns)
            self._columns, self._at = columns, self._places(columns)
        engine = self._engine
        X = np.zeros((len(values), engine.learner.dim))
        X[:, : len(self._ahead)] = 1.0
        X[:, self._at] = values
        if not records.all_finite(X):
            records.check_table(columns, values)
        if weights is None:
            # A frame's column may be read-only, for which the compiled loop would be compiled once more.
            y = np.require(y, np.float64, ["C", "A", "W"])
            losses, believed = np.zeros(len(X)), np.zeros(len(X))
            trouble = engine.learner.learn_rows(X, y, losses, believed, np.empty((0, X.shape[1])))
            if trouble is not None:
                raise trouble.error
            return
        for x, target, w in zip(X, y, weights, strict=True):
            if w > 0.0:
                engine.record[0], engine.x[:] = target, x
                engine.play_weighted(w)

    def predict_table(self, columns: list[Any], values: Array) -> Array:
        """⟨x, θ⟩ of every row; features that were never learned from count nothing."""
        known = [place for place, name in enumerate(columns) if name in self._known]
        names = [columns[place] for place in known]
        if len(known) < len(columns):
            values = values[:, known]
        theta, start = self._engine.learner.theta[self._places(names)], self.intercept
        with np.errstate(over="ignore", invalid="ignore"):
            out = values @ theta + start
        if not np.isfinite(out).all():
            records.check_table(names, values)
            for row in np.flatnonzero(~np.isfinite(out)):
                out[row] = dot(np.append(values[row], 1.0), np.append(theta, start))
        return out

    def _places(self, names: Iterable[Any]) -> Array:
        places = {name: place for place, name in enumerate(self._known, len(self._ahead))}
        return np.array([places[name] for name in names], dtype=np.intp)

    # --- what was learned ---

    @property
    def intercept(self) -> float:
        return float(self._engine.learner.theta[0]) if self._ahead else 0.0

    @property
    def weights(self) -> dict[Any, float]:
        theta = self._engine.learner.theta[self._places(self._known)]
        return dict(zip(self._known, theta.tolist(), strict=True))

    def state(self) -> dict[str, Any]:
        """All that was learned, as arrays and plain values; copies."""
        learned = None if self._fresh else self._engine.learner.state()
        return {"features": [plain(name) for name in self._known], "learner": learned}

    def restore(self, state: Any) -> None:
        """Go back to a state that a model with the same settings gave."""
        if not isinstance(state, dict) or state.keys() != {"features", "learner"}:
            raise DataError("The state of a linear model must be a dict with the keys features and learner.")
        try:
            known = dict.fromkeys((unplain(name) for name in state["features"]), 0.0)
            learned, needed = state["learner"], len(known) + len(self._ahead)
            room = 1 if learned is None else width(learned)
            whole = len(known) == len(state["features"]) and room >= needed and not (learned is None and known)
        except (TypeError, KeyError, AttributeError):
            whole = False
        if not whole:
            raise DataError(
                "The state of a linear model has features that do not fit its learner; it has been altered."
            )
        learner = self._settings.learner(room)
        if learned is not None:
            learner.restore(learned)
        self._known, self._fresh, self._columns = known, learned is None, []
        self._bind(engine_of(learner))

    # --- growing ---

    def _meet(self, names: Iterable[Any]) -> None:
        """Give every new name a place; in the same order however they come, so that it never matters."""
        new = {name for name in names if name not in self._known}
        self._known |= dict.fromkeys(sorted(new, key=lambda name: (type(name).__name__, str(name))), 0.0)
        needed, engine = max(len(self._known) + len(self._ahead), 1), self._engine
        if self._fresh:
            engine = engine_of(self._settings.learner(needed))
        elif needed > engine.learner.dim:
            # The second-order follower's first P depends on the number of features, so it gets no spare ones.
            spare = self._settings.order == 1
            learner = self._settings.learner(max(needed, 2 * engine.learner.dim) if spare else needed)
            learner.restore(widened(engine.learner.state(), learner.state()))
            engine = engine_of(learner)
        self._fresh = False
        self._bind(engine)

    def _bind(self, engine: Engine) -> None:
        """Write records into the row of this engine from now on."""
        self._engine = engine
        self._count = -1 if self._fresh else len(self._known)
        self._get = getter(list(self._known))
        self._write = struct.Struct(f"{1 + len(self._ahead) + len(self._known)}d").pack_into
        row: Any = engine.record
        self._bytes = memoryview(row).cast("B")
