"""What a belief in residuals has learned: its arrays, room for further keys, saved and restored."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, Self

import numpy as np

from redescend.belief.densities import make_tables
from redescend.belief.records import read_records
from redescend.belief.specs import SPECS
from redescend.errors import DataError
from redescend.kernels.belief import layout
from redescend.kernels.belief.cells import CELLS
from redescend.kernels.belief.mixture import fit_densities, make_work
from redescend.numeric import Array
from redescend.parameters import COUNT, check
from redescend.state import Stateful, read_arrays, require


class ResidualState(Stateful):
    """The state of a belief in residuals.

    Parameters
    ----------
    dim : int
        Number of features on which the scale may depend.
    """

    def __init__(self, dim: int = 0) -> None:
        self.dim = int(check(type(self).__name__, "dim", dim, COUNT))
        self._tables = make_tables()
        self._state, self._keys = self._make_state(), 1
        self._logarithmic: Any = None  # a belief of the same class, or None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim})"

    def __deepcopy__(self, memo: Any) -> Self:
        other = copy(self)
        other._state = layout.State(*(array.copy() for array in self._state))
        other._logarithmic = deepcopy(self._logarithmic, memo)
        return other

    def _make_state(self) -> layout.State:
        families, widths, _ = self._tables.clean.shape
        numbers, features, shared = *self._make_keys(1), np.zeros(layout.SHARED)
        shared[[layout.INCREMENT, layout.DUE, layout.BELOW, layout.ABOVE]] = 1.0, layout.SHORTEST, 4.0, 4.0
        shared[[layout.FIRST_TIES, layout.FIRST_CHANCES]] = 1.0, 20.0
        shared[[layout.NEXT_TIES, layout.NEXT_CHANCES]] = 1.0, 4.0
        shares = self._tables.prior / (layout.CLEAN_PRIOR + self._tables.prior.sum(axis=1, keepdims=True))
        outliers = np.tile(shares, (2, 1, 1))
        scales, natural = np.full((2, families), float(widths // 2)), np.full((2, families), layout.NATURAL)
        fitted = layout.Densities(scales, natural, outliers, np.zeros((2, CELLS)), np.zeros((2, CELLS)))
        state = layout.State(numbers, features, shared, np.zeros((2, 2, CELLS)), *fitted)
        shared[layout.OUTLIERS], _ = self._fit(state.counts[layout.RECENT], 1, fitted)
        return state

    def _fit(self, counts: Array, iterations: int, fitted: layout.Densities) -> tuple[float, float]:
        """Fit densities; returns the share of outliers and the largest probability of a suspect."""
        return fit_densities(counts, self._tables, iterations, fitted, make_work(self._tables))

    def _make_keys(self, keys: int) -> tuple[Array, Array]:
        """What is known of new keys."""
        numbers, features = np.zeros((keys, layout.NUMBERS)), np.zeros((keys, layout.FEATURES, self.dim + 1))
        numbers[:, layout.EVIDENCE], numbers[:, layout.LOST] = layout.DOUBT, layout.FIRST_LOST
        features[:, layout.TRAVELLED] = 1e-3
        return numbers, features

    @property
    def rounds(self) -> int:
        """Number of records so far."""
        return int(self._state.shared[layout.TOTAL])

    @property
    def keys(self) -> int:
        """Number of keys so far; 1 without keys."""
        return self._keys

    @property
    def key_bytes(self) -> int:
        """Bytes of the state of another key."""
        return self._state.numbers[0].nbytes + self._state.features[0].nbytes

    @property
    def outlier_share(self) -> float:
        """The estimated share of outliers among recent records."""
        return float(self._state.shared[layout.OUTLIERS])

    def _grow(self, keys: int) -> None:
        """Make room for this number of keys, and at least double it, so that growing costs little."""
        self._keys = max(keys, self._keys)
        capacity = len(self._state.numbers)
        if keys > capacity:
            new = self._make_keys(max(keys, 2 * capacity) - capacity)
            numbers, features = (np.concatenate(pair) for pair in zip(self._state[:2], new, strict=True))
            self._state = self._state._replace(numbers=numbers, features=features)

    def _read(self, predictions: Any, targets: Any, X: Any, keys: Any, known: bool = False) -> layout.Records:
        records = read_records(predictions, targets, X, keys, self.dim)
        if known and records.places.max(initial=0) >= self._keys:
            raise DataError(f"keys must be below {self._keys}, the number of keys so far.")
        return records

    def state(self) -> dict[str, Any]:
        trimmed = self._state._replace(
            numbers=self._state.numbers[: self._keys], features=self._state.features[: self._keys]
        )
        arrays: dict[str, Any] = {name: array.copy() for name, array in trimmed._asdict().items()}
        return arrays if self._logarithmic is None else arrays | {"logarithmic": self._logarithmic.state()}

    def restore(self, state: dict[str, Any]) -> None:
        families, widths, _ = self._tables.clean.shape
        dims = {"dim": self.dim, "families": families, "widths": widths, "atoms": self._tables.prior.shape[1]}
        nested = ("logarithmic",) if isinstance(state, dict) and "logarithmic" in state else ()
        arrays = read_arrays(SPECS, state, dims, self, nested)
        require(len(arrays["numbers"]) > 0, self, "no keys")
        squares, travelled = arrays["features"][:, layout.SQUARES], arrays["features"][:, layout.TRAVELLED]
        require((squares >= 0.0).all() and (travelled > 0.0).all(), self, "negative squares of features")
        others = np.delete(arrays["features"], layout.SQUARES, axis=1)
        require((np.abs(others) <= 2.0 * layout.HUGE).all(), self, "features that are too large")
        require((arrays["outliers"].sum(axis=2) < 1.0).all(), self, "shares of outliers whose sum is above 1")
        logarithmic = type(self)(self.dim) if nested else None
        if logarithmic is not None:
            logarithmic.restore(state["logarithmic"])
            require(logarithmic._logarithmic is None, self, "logarithms of logarithms")
            require(logarithmic.keys == 1, self, "logarithms of several keys")
            require(arrays["shared"][layout.LOG_UNIT] != 0.0, self, "no unit of logarithms")
        self._state, self._keys, self._logarithmic = layout.State(**arrays), len(arrays["numbers"]), logarithmic
