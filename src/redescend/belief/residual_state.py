"""What a belief in residuals has learned, saved and restored, with room for further keys; and the records it takes."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, Self

import numpy as np

from redescend.belief.densities import make_tables
from redescend.errors import DataError
from redescend.kernels.belief import layout
from redescend.kernels.belief.cells import CELLS
from redescend.kernels.belief.layout import Records
from redescend.kernels.belief.mixture import fit_densities, make_work
from redescend.numeric import Array
from redescend.parameters import COUNT, check
from redescend.state import ArraySpec, Stateful, read_arrays, require

_COUNT, _SHARE = ArraySpec("shared", kind="count"), ArraySpec("shared", low=0.0, high=1.0)
_POSITIVE, _NOT_NEGATIVE = ArraySpec("shared", low=1e-300), ArraySpec("shared", low=0.0)

_MOST = 1e100
"""A bound of counts, which no stream reaches; beyond it, densities underflow."""

SPECS = (
    ArraySpec(
        "numbers",
        ("keys", layout.NUMBERS),
        parts={
            (..., layout.ROUNDS): _COUNT,
            (..., layout.UNIT): _NOT_NEGATIVE,
            (..., layout.AGE): _NOT_NEGATIVE,
            (..., layout.LOST): _SHARE,
            (..., layout.REPEATS): _COUNT,
            (..., layout.GRID): ArraySpec("shared", low=-1.0),
            (..., layout.MULTIPLES): ArraySpec("shared", low=-1.0),
            (..., layout.HITS): _COUNT,
            (..., layout.SINCE): _COUNT,
            (..., layout.POINT_LEVEL): ArraySpec("shared", low=-2.0 * layout.HUGE, high=2.0 * layout.HUGE),
            (..., layout.DIFFERENCES): _COUNT,
            (..., layout.NEGATIVE): _SHARE,
            (..., layout.POSITIVE): _SHARE,
            (..., layout.SPREAD): ArraySpec("shared", low=-700.0, high=700.0),
        },
    ),
    ArraySpec("features", ("keys", layout.FEATURES, lambda dims: dims["dim"] + 1)),
    ArraySpec(
        "shared",
        (layout.SHARED,),
        parts={
            layout.TOTAL: _COUNT,
            layout.COUNTED: _COUNT,
            layout.INCREMENT: ArraySpec("shared", low=1.0),
            layout.OUTLIERS: _SHARE,
            layout.THRESHOLD: _SHARE,
            layout.BELOW: _NOT_NEGATIVE,
            layout.ABOVE: _NOT_NEGATIVE,
            layout.FIRST_TIES: _POSITIVE,
            layout.FIRST_CHANCES: _POSITIVE,
            layout.NEXT_TIES: _POSITIVE,
            layout.NEXT_CHANCES: _POSITIVE,
        },
    ),
    ArraySpec("counts", (2, 2, CELLS), low=0.0, high=_MOST),
    ArraySpec("scales", (2, "families"), kind="index", high="widths"),
    ArraySpec("outliers", (2, "families", "atoms"), low=0.0, high=1.0),
    ArraySpec("clean", (2, CELLS), low=0.0, high=1.0),
    ArraySpec("log_odds", (2, CELLS)),
)
"""The arrays of the state, in the order of `layout.State`."""

ENDS = ArraySpec("ends", (2, CELLS), low=0.0, high=_MOST)


MOST_APART = 100.0
"""By how much the logarithms of sizes around two records differ at most."""


def read_records(predictions: Any, targets: Any, X: Any, keys: Any, dim: int) -> Records:
    """Check the arguments of a belief with `dim` features, and return them as arrays."""
    arrays = []
    for name, values in {"predictions": predictions, "targets": targets}.items():
        array = np.ascontiguousarray(values, np.float64)
        if array.ndim != 1 or not np.isfinite(array).all():
            raise DataError(f"{name} must be finite numbers, one for each record.")
        arrays.append(array)
    rows = len(arrays[1])
    if len(arrays[0]) != rows:
        raise DataError(f"predictions and targets must be equally many. Got {len(arrays[0])} and {rows}.")
    table = np.ascontiguousarray(np.empty((rows, 0)) if X is None else X, np.float64)
    if table.shape != (rows, dim):
        raise DataError(f"X must have shape ({rows}, {dim}). Got {table.shape} instead.")
    places = np.zeros(rows, np.int64) if keys is None else np.ascontiguousarray(keys, np.int64)
    if places.shape != (rows,) or places.min(initial=0) < 0:
        raise DataError(f"keys must be {rows} whole numbers from 0.")
    return Records(table, arrays[0], arrays[1], places)


def read_sizes(sizes: Any, rows: int) -> Array | None:
    """Check the sizes of residuals around records, if there are any."""
    if sizes is None:
        return None
    array = np.ascontiguousarray(sizes, np.float64)
    if array.shape != (rows,) or not np.isfinite(array).all():
        raise DataError(f"sizes must be {rows} finite numbers, one for each record.")
    return array


def find_residuals(records: Records) -> Array:
    """Targets without predictions; finite, even if the difference is not."""
    largest = np.finfo(float).max
    with np.errstate(over="ignore"):
        return np.clip(records.targets - records.predictions, -largest, largest)


def stretch(records: Records, factors: Array) -> Records:
    """The records with other targets, so that their residuals are multiplied by these factors."""
    with np.errstate(over="ignore", invalid="ignore"):
        targets = records.predictions + factors * (records.targets - records.predictions)
    return records._replace(targets=np.nan_to_num(targets))


class ResidualState(Stateful):
    """The state of a belief in residuals, whose scale may depend on `dim` features."""

    def __init__(self, dim: int = 0) -> None:
        self.dim = int(check(type(self).__name__, "dim", dim, COUNT))
        self._tables = make_tables()
        self._state, self._keys = self._make_state(), 1
        self._logarithmic: Any = None  # a belief of the same class, or None
        self._ends: Array | None = None  # of a table: residuals in widths of intervals, without suspects; sign, cell

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim})"

    def __deepcopy__(self, memo: Any) -> Self:
        other = copy(self)
        other._state = layout.State(*(array.copy() for array in self._state))
        other._logarithmic, other._ends = deepcopy((self._logarithmic, self._ends), memo)
        return other

    def _make_state(self) -> layout.State:
        families, widths, _ = self._tables.clean.shape
        numbers, features, shared = *self._make_keys(1), np.zeros(layout.SHARED)
        shared[[layout.INCREMENT, layout.DUE, layout.BELOW, layout.ABOVE]] = 1.0, layout.SHORTEST, 4.0, 4.0
        shared[[layout.FIRST_TIES, layout.FIRST_CHANCES]] = 1.0, 20.0
        shared[[layout.NEXT_TIES, layout.NEXT_CHANCES]] = 1.0, 4.0
        shares = self._tables.prior / (layout.CLEAN_PRIOR + self._tables.prior.sum(axis=1, keepdims=True))
        outliers = np.tile(shares, (2, 1, 1))
        scales = np.full((2, families), float(widths // 2))
        fitted = layout.Densities(scales, outliers, np.zeros((2, CELLS)), np.zeros((2, CELLS)))
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
        if self._ends is not None:
            arrays[ENDS.name] = self._ends.copy()
        return arrays if self._logarithmic is None else arrays | {"logarithmic": self._logarithmic.state()}

    def restore(self, state: dict[str, Any]) -> None:
        families, widths, _ = self._tables.clean.shape
        dims = {"dim": self.dim, "families": families, "widths": widths, "atoms": self._tables.prior.shape[1]}
        nested = ("logarithmic",) if isinstance(state, dict) and "logarithmic" in state else ()
        of_table = (ENDS,) if isinstance(state, dict) and ENDS.name in state else ()
        arrays = read_arrays((*SPECS, *of_table), state, dims, self, nested)
        ends = arrays.pop(ENDS.name, None)
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
        self._state, self._keys = layout.State(**arrays), len(arrays["numbers"])
        self._logarithmic, self._ends = logarithmic, ends
