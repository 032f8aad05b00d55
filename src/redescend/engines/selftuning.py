"""The self-tuning learner as an engine, laid out by members for tables and by features for sparse rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from redescend import losses
from redescend.engines.engine import LONGEST, Engine
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.novelty import NEWNESS
from redescend.kernels.tabular import selftuning, sparse_selftuning
from redescend.kernels.tabular import sparse_members as members
from redescend.learners.selftuning import SelfTuning
from redescend.numeric import Array
from redescend.state import ArraySpec, check_arrays, corrupt_state, packed_size, require, unpack

SMALLEST, LARGEST = 1e-300, 1e300
"""Range of the scales of noise."""

SHARED = (
    ArraySpec("weights", ("members",), kind="share"),
    ArraySpec("cells", ("scales", "rates"), kind="share"),
    ArraySpec("norms", (layout.NORMS,), low=0.0, high=LARGEST),
    ArraySpec("squares", ("width",), low=0.0, high=1.0 + 1e-6),
    ArraySpec("counts", ("width",), low=0.0, high=layout.MEMORY),
    ArraySpec(
        "scalars",
        (layout.SCALARS,),
        low=0.0,
        parts={
            layout.ROUNDS: ArraySpec("rounds", kind="count"),
            layout.SEEN: ArraySpec("rounds learned from", kind="count"),
            layout.AGE: ArraySpec("age", kind="count"),
            layout.SLOT: ArraySpec("slot", kind="index", high=2),
            layout.LOWEST: ArraySpec("lowest scale", low=0.0, high=LARGEST),
            layout.WIDEST: ArraySpec("widest", low=0.0, high=LARGEST),
            layout.SPREAD: ArraySpec("spread", low=0.0, high=LARGEST),
            layout.TEMPERATURE: ArraySpec("temperature", low=1.0),
            layout.NEW: ArraySpec("newness of the stream", low=0.0, high=1.0),
        },
    ),
)
WEIGHTS, CELLS, NORMS, SQUARES, COUNTS, SCALARS = SHARED

MODEL = (
    ArraySpec("thetas", ("members", "width"), low=-LONGEST, high=LONGEST),
    *(WEIGHTS, CELLS, NORMS, SQUARES, COUNTS),
    ArraySpec("news", (2, "width"), low=0.0, parts={NEWNESS: ArraySpec("newness", high=1.0)}),
    ArraySpec("P", ("second", "second")),
    SCALARS,
)
"""The state of an output for tables, packed in a row of `models`."""

SPARSE_MODEL = (
    *SHARED,
    ArraySpec("newness", ("width",), low=0.0, high=1.0),
    ArraySpec("sizes", ("width",), low=0.0),
    ArraySpec("measured", ("width",), kind="count"),
    ArraySpec("trail", ("dim",), kind="index", high="dim"),
    ArraySpec("kept", ("members",), low=np.finfo(float).tiny, high=1.0),
    ArraySpec("products", ("members", "members"), low=-LARGEST, high=LARGEST),
    ArraySpec("partner", ("members",), kind="index", low=-1, high="members"),
    ArraySpec("since", ("members",), kind="count"),
    ArraySpec("counters", (members.COUNTERS,), kind="count"),
)
"""The parts of `sparse_members.Output`, apart from its thetas, which are stored up to a factor."""


class SelfTuningEngine(Engine):
    """`SelfTuning` for every output, with the standardization of features shared.

    Parameters
    ----------
    dim, outputs, loss, intercept, method, average
        As in `Engine`.
    order : 1 or 2
        Whether there is a second-order follower.
    """

    KERNELS = (selftuning.learn, sparse_selftuning.learn)

    def __init__(
        self,
        dim: int,
        outputs: int,
        loss: losses.LinearLoss,
        intercept: bool,
        method: int,
        average: int | None,
        order: Literal[1, 2],
    ) -> None:
        super().__init__(dim, outputs, loss, intercept, method, average)
        self.order = order
        pattern = SelfTuning(self.width, loss=loss, order=order)
        settings, prior, self.rates = pattern.kernel_config
        self.settings = np.concatenate([settings, prior.ravel(), self.rates])
        self.settings[layout.PENALISED] = not intercept
        fresh = pattern.kernel_state
        self.member_count, self.scale_count = len(fresh.weights), len(prior)
        self.models = np.tile(np.concatenate([array.ravel() for array in fresh]), (outputs, 1))
        self.work = np.empty(2 * dim + selftuning.BLOCK * (selftuning.COLUMNS + self.width))
        self.sparse = False

    def dims(self) -> dict[str, int]:
        shape = {"members": self.member_count, "scales": self.scale_count, "rates": len(self.rates)}
        return super().dims() | shape | {"second": self.width if self.order == 2 else 0}

    def kernel_config(self, unchecked: bool = False) -> tuple[Any, ...]:
        return (self.method, self.settings, unchecked, self.member_count, len(self.rates), self.order == 2)

    @property
    def takes_sparse_rows(self) -> bool:
        return self.order == 1

    def _sparse_work(self) -> int:
        return 7 * self.member_count + 2 * self.scale_count

    # --- the two layouts ---

    def _parts(self, model: Array) -> dict[str, Array]:
        """The arrays of an output by name; views."""
        return self._sparse_parts(model)._asdict() if self.sparse else unpack(MODEL, model, self.dims())

    def _sparse_parts(self, model: Array) -> members.Output:
        return members.split(model, *self._sparse_shape())

    def _sparse_shape(self) -> tuple[int, int, int, int, int]:
        return self.width, self.dim, self.member_count, self.scale_count, len(self.rates)

    def _kernel_state(self, sparse: bool) -> tuple[Array, ...]:
        if self.sparse != sparse:
            old, self.sparse = self.models, sparse
            self.models = np.zeros((self.outputs, self._length()))
            for before, after in zip(old, self.models, strict=True):
                (self._to_sparse if sparse else self._to_table)(before, after)
        return super()._kernel_state(sparse)

    def _length(self) -> int:
        if not self.sparse:
            return packed_size(MODEL, self.dims())
        return members.length(*self._sparse_shape())

    def _to_sparse(self, before: Array, after: Array) -> None:
        table, out = unpack(MODEL, before, self.dims()), self._sparse_parts(after)
        for spec in SHARED:
            getattr(out, spec.name)[:] = table[spec.name]
        out.newness[:], out.sizes[:] = table["news"]
        out.thetas[:] = table["thetas"].T
        out.measured[:] = out.scalars[layout.SEEN]
        out.kept[:], out.partner[:] = 1.0, -1.0
        penalised = table["thetas"][:, : self.dim]
        out.products[:] = penalised @ penalised.T
        out.counters[members.KNOWN] = (out.counts >= layout.READY).sum()

    def _to_table(self, before: Array, after: Array) -> None:
        out, table = self._sparse_parts(before), unpack(MODEL, after, self.dims())
        sparse_selftuning.catch_up_all(before, *self._sparse_shape())
        for spec in SHARED:
            table[spec.name][:] = getattr(out, spec.name)
        table["news"][:] = out.newness, out.sizes
        table["thetas"][:] = self._thetas(out._asdict())

    def _thetas(self, parts: Mapping[str, Array]) -> Array:
        """The models of all members, a row for each, in either layout."""
        if "kept" not in parts:
            return parts["thetas"]
        factors = np.where(np.arange(self.width)[:, None] < self.dim, parts["kept"], 1.0)
        return (factors * parts["thetas"]).T

    # --- predicting and scoring ---

    def _actions(self) -> Array:
        if not self.sparse:
            return np.asarray(selftuning.actions_of(self.models, self.width, self.member_count))
        parts = [self._parts(model) for model in self.models]
        played = [part["scalars"][layout.TEMPERATURE] * (self._thetas(part).T @ part["weights"]) for part in parts]
        return np.array(played)

    def scoring_coefficients(self) -> tuple[Array, Array]:
        # The noise is that of the leader's residuals; the mean's are wider while members disagree.
        if self.loss.margin:
            return self.coefficients()
        parts = [self._parts(model) for model in self.models]
        return self._unscale(np.array([self._thetas(part)[np.argmax(part["weights"])] for part in parts]))

    def _typical_norm2(self) -> float:
        norms = self._parts(self.models[0])["norms"]
        return float(np.median(norms[norms > 0.0])) if norms.any() else 0.0

    def score_predictions(self, Y: Array, predictions: Array) -> Array:
        parts = [self._parts(model) for model in self.models]
        cells, scalars = (np.stack([part[name] for part in parts]) for name in ("cells", "scalars"))
        return np.asarray(selftuning.score(Y, predictions, self._norms2(), scalars, cells, self.settings))

    def estimate_noise(self) -> tuple[Array, Array]:
        """The scale of the noise (its mean on a log scale) and the share of outliers that every output assumes."""
        parts = [self._parts(model) for model in self.models]
        octaves = np.array([part["cells"].sum(axis=1) @ np.arange(self.scale_count) for part in parts])
        lowest = np.array([part["scalars"][layout.LOWEST] for part in parts])
        return lowest * 2.0**octaves, np.array([(part["cells"] @ self.rates).sum() for part in parts])

    # --- persistence ---

    def state(self) -> dict[str, Any]:
        return super().state() | {"sparse": self.sparse}

    def restore(self, state: dict[str, Any]) -> None:
        sparse = state.get("sparse") if isinstance(state, dict) else None
        if not isinstance(sparse, bool) or (sparse and not self.takes_sparse_rows):
            raise corrupt_state(type(self).__name__, f"{sparse!r} for 'sparse'")
        before = self.sparse, self.models
        self.sparse = sparse
        self.models = np.zeros((self.outputs, self._length()))
        try:
            super().restore(state)
        except Exception:
            self.sparse, self.models = before
            raise

    def check(self, arrays: Mapping[str, Array]) -> None:
        super().check(arrays)
        if not self.sparse:
            self._check_models(MODEL, unpack(MODEL, arrays["states"], self.dims()))
            return
        for model in arrays["states"]:
            parts, owner = self._parts(model), type(self).__name__
            self._check_models(SPARSE_MODEL, parts)
            spec = ArraySpec("thetas", ("members", "width"), low=-LONGEST, high=LONGEST)
            check_arrays([spec], {"thetas": self._thetas(parts)}, {}, owner)
            touched, refreshed = parts["counters"][[members.TOUCHED, members.REFRESHED]]
            ordered = refreshed <= touched and (parts["since"] <= touched).all()
            learned = (parts["measured"] <= parts["scalars"][layout.SEEN]).all()
            require(ordered and learned, owner, "counts that contradict one another")
            require(parts["counters"][members.KNOWN] <= self.width, owner, "more known features than there are")

    def _check_models(self, specs: tuple[ArraySpec, ...], parts: Mapping[str, Array]) -> None:
        """Check the outputs of this engine, or of many."""
        owner = type(self).__name__
        check_arrays(specs, parts, self.dims(), owner)
        lowest, temperature = parts["scalars"][..., layout.LOWEST], parts["scalars"][..., layout.TEMPERATURE]
        known = lowest > 0.0
        require((lowest[known] >= SMALLEST).all(), owner, "a scale of noise that is too small")
        hottest = np.where(known & self.loss.margin, 1.0 / np.where(known, lowest, 1.0), 1.0)
        require((temperature <= hottest).all(), owner, "a temperature that is too high")
