"""The self-tuning learner as an engine, laid out by actions for tables and by features for rows of non-zeros."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from redescend import losses
from redescend.engines import validation
from redescend.engines.engine import UNASKED, Engine
from redescend.errors import DataError
from redescend.kernels.selftuning import layout
from redescend.kernels.tabular import selftuning, sparse_layout, sparse_selftuning
from redescend.learners.selftuning import SelfTuning
from redescend.numeric import Array

_learn_table: Any = selftuning.learn
_learn_rows: Any = sparse_selftuning.learn


class SelfTuningEngine(Engine):
    """`SelfTuning` for every output, with the units of features shared."""

    def __init__(
        self,
        dim: int,
        outputs: int,
        loss: losses.LinearLoss,
        intercept: bool,
        standard: int,
        average: int | None,
        order: Literal[1, 2],
    ) -> None:
        super().__init__(dim, outputs, loss, intercept, standard, average)
        self.order = order
        pattern = self._pattern()
        self.shapes = {name: array.shape for name, array in pattern._arrays.items()}
        self.members, self.rates = len(pattern._arrays["weights"]), len(pattern._rates)
        self.numbers = np.concatenate([pattern._settings, pattern._prior.ravel(), pattern._rates])
        self.numbers[layout.PENALISED] = not intercept
        fresh = np.concatenate([array.ravel() for array in pattern._arrays.values()])
        self.states = np.tile(fresh, (outputs, 1))
        self.work = np.empty(2 * dim + selftuning.BLOCK * (selftuning.COLUMNS + self.width))
        self.sparse = False

    def _pattern(self) -> SelfTuning:
        return SelfTuning(self.width, loss=self.loss, order=self.order)

    def _parts(self, state: Array) -> dict[str, Array]:
        """The arrays of an output of the layout for tables, by name; views."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])
        pieces = np.split(state, ends[:-1])
        return {name: piece.reshape(shape) for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)}

    def _sparse_parts(self, state: Array) -> sparse_layout.Output:
        return sparse_layout.parts(state, self.width, self.dim, self.members, *self.shapes["cells"])

    def _takes_rows(self) -> bool:
        return self.order == 1

    def _table(
        self, X: Array, Y: Array, times: Array, believed: Array, predicted: Array = UNASKED, unseen: bool = False
    ) -> int:
        self._lay_out(sparse=False)
        shape = (self.members, self.rates, self.order == 2)
        rest = (self.numbers, self.means, self.clock, believed, predicted, self.work, unseen)
        return int(_learn_table(X, Y, times, self.standard, self.sample, self.units, self.states, *shape, *rest))

    def _rows(self, rows: list[Array], places: Array, Y: Array, times: Array, believed: Array) -> int:
        self._lay_out(sparse=True)
        before = (*rows, self.dim, Y, times, self.standard, self.sample, self.units, self.states)
        work = np.empty(2 * len(places) + 7 * self.members + 2 * self.shapes["cells"][0])
        rest = (self.members, self.rates, self.numbers, self.clock, believed, work, places)
        return int(_learn_rows(*before, *rest))

    def _lay_out(self, sparse: bool) -> None:
        if self.sparse == sparse:
            return
        old, self.sparse = self.states, sparse
        self.states = np.zeros((self.outputs, self._length()))
        for was, now in zip(old, self.states, strict=True):
            (self._to_sparse if sparse else self._to_table)(was, now)

    def _length(self) -> int:
        if self.sparse:
            return sparse_layout.length(self.width, self.dim, self.members, *self.shapes["cells"])
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

    def _to_sparse(self, was: Array, now: Array) -> None:
        table, out = self._parts(was), self._sparse_parts(now)
        for name in ("weights", "cells", "norms", "squares", "counts", "scalars"):
            getattr(out, name)[:] = table[name]
        out.newness[:], out.sizes[:] = table["news"]
        out.thetas[:] = table["thetas"].T
        out.measured[:] = out.scalars[layout.SEEN]
        out.kept[:], out.partner[:] = 1.0, -1.0
        penalised = table["thetas"][:, : self.dim]
        out.products[:] = penalised @ penalised.T
        out.counters[sparse_layout.KNOWN] = (out.counts >= layout.READY).sum()

    def _to_table(self, was: Array, now: Array) -> None:
        out, table = self._sparse_parts(was), self._parts(now)
        sparse_selftuning.catch_up_all(was, self.width, self.dim, self.members, *self.shapes["cells"])
        for name in ("weights", "cells", "norms", "squares", "counts", "scalars"):
            table[name][:] = getattr(out, name)
        table["news"][:] = out.newness, out.sizes
        table["thetas"][:] = out.thetas.T
        table["thetas"][:, : self.dim] *= out.kept[:, None]

    def _actions(self) -> Array:
        if not self.sparse:
            return np.asarray(selftuning.play_now(self.states, self.width, self.members))
        actions = np.empty((self.outputs, self.width))
        for k, state in enumerate(self.states):
            out = self._sparse_parts(state)
            actions[k] = out.scalars[layout.TEMPERATURE] * (self._multiplied_out(out) @ out.weights)
        return actions

    def _multiplied_out(self, out: sparse_layout.Output) -> Array:
        return np.where(np.arange(self.width)[:, None] < self.dim, out.kept, 1.0) * out.thetas

    def judged_at(self) -> tuple[Array, Array]:
        # The noise is that of the leader's residuals; the mean's are wider while members disagree.
        if self.loss.margin:
            return self.coefficients()
        leaders = np.empty((self.outputs, self.width))
        for k, state in enumerate(self.states):
            part = self._named(state)
            leader = int(np.argmax(part["weights"]))
            leaders[k] = part["thetas"][:, leader] if self.sparse else part["thetas"][leader]
            if self.sparse:
                leaders[k, : self.dim] *= part["kept"][leader]
        return self._in_features(leaders)

    def _named(self, state: Array) -> dict[str, Array]:
        return self._sparse_parts(state)._asdict() if self.sparse else self._parts(state)

    def _typical(self) -> float:
        norms = self._named(self.states[0])["norms"]
        return float(np.median(norms[norms > 0.0])) if norms.any() else 0.0

    def score(self, Y: Array, predictions: Array) -> Array:
        parts = [self._named(state) for state in self.states]
        cells, scalars = (np.stack([part[name] for part in parts]) for name in ("cells", "scalars"))
        return np.asarray(selftuning.score(Y, predictions, self._sizes2(), scalars, cells, self.numbers))

    def state(self) -> dict[str, Any]:
        return super().state() | {"sparse": self.sparse}

    def restore(self, state: dict[str, Any]) -> None:
        if not isinstance(state.get("sparse"), bool) or (state["sparse"] and not self._takes_rows()):
            raise DataError("The state must say whether it is sparse; it has been altered.")
        self.sparse = state["sparse"]
        self.states = np.zeros((self.outputs, self._length()))
        super().restore(state)

    def _sound(self, arrays: dict[str, Array]) -> bool:
        pattern = self._pattern()
        return super()._sound(arrays) and all(self._sound_output(pattern, state) for state in arrays["states"])

    def _sound_output(self, pattern: SelfTuning, state: Array) -> bool:
        part = self._named(state)
        if self.sparse:
            out = self._sparse_parts(state)
            if not validation.sound_rows(out, self.dim):
                return False
            part |= {
                "thetas": self._multiplied_out(out).T,
                "P": pattern._arrays["P"],
                "news": np.stack([out.newness, out.sizes]),
            }
        return (
            pattern._sound({name: part[name] for name in self.shapes})
            and validation.sound_scalars(part["scalars"], self.loss.margin)
            and validation.within(part["thetas"], -validation.LONGEST, validation.LONGEST)
            and validation.within(part["norms"], 0.0, validation.LARGEST)
            and validation.within(part["squares"], 0.0, 1.0 + 1e-6)
            and validation.within(part["counts"], 0.0, layout.MEMORY)
        )
