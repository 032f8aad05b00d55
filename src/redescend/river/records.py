"""Records as River gives them: which can be learned from, and the one sentence about those that cannot."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from river.utils import dataframe

from redescend.errors import DataError
from redescend.numeric import Array


class NotFiniteError(DataError):
    """A number is NaN or infinite."""


def check(x: Any, y: Any = 0.0) -> None:
    """Raise if a feature or the target is not a finite number."""
    if not isinstance(x, Mapping):
        raise DataError(f"x must be a dict of features. Got {x!r} instead.")
    for name, value in x.items():
        if not _finite(value, f"Feature {name!r}"):
            raise NotFiniteError(
                f"Feature {name!r} must be finite. Got {value} instead; leave a missing feature out of the dict."
            )
    if not _finite(y, "y"):
        raise NotFiniteError(f"y must be finite. Got {y} instead.")


def _finite(value: Any, what: str) -> bool:
    try:
        return math.isfinite(value)
    except TypeError:
        raise DataError(f"{what} must be a number. Got {value!r} instead.") from None
    except OverflowError:
        return False


def checked_weight(w: Any) -> float:
    if isinstance(w, bool) or not _finite(w, "w") or w < 0.0:
        raise DataError(f"w must be a finite number from 0 on. Got {w!r} instead.")
    return float(w)


class Frames:
    """Reads frames: those of pandas by itself, and any other as River does.

    To wrap a frame takes River longer than to learn a hundred rows of it takes us, and so does making a list of the
    columns of one; so the last list is kept for frames with the same columns.
    """

    def __init__(self) -> None:
        self._index: Any = None
        self._columns: list[Any] = []

    def read(self, X: Any) -> tuple[list[Any], Array]:
        """The columns of a frame, and its numbers, which need not be finite."""
        pandas = sys.modules.get("pandas")
        try:
            if pandas is not None and isinstance(X, pandas.DataFrame):
                if self._index is None or not self._index.equals(X.columns):
                    self._columns, self._index = _unique(X.columns.tolist()), X.columns
                return self._columns, _numbers_of(X)
            frame = dataframe.into_frame(X)
            return _unique(list(frame.columns)), dataframe.to_numpy(frame)
        except (TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"X must be a frame of numbers, but it cannot be read as one: {error}.") from None


def _numbers_of(X: Any) -> Array:
    """The numbers of a frame of pandas, NaN where it has none."""
    try:
        return X.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        return X.to_numpy(dtype=np.float64, na_value=np.nan)


def _unique(columns: list[Any]) -> list[Any]:
    if len(set(columns)) < len(columns):
        raise DataError(f"X must have one column for each feature, but it has the columns {columns}.")
    return columns


def all_finite(values: Array) -> bool:
    """Whether no number of a C-ordered array is NaN, infinite, or so large that its square is."""
    flat = values.ravel()
    return math.isfinite(flat.dot(flat))


def check_table(columns: list[Any], values: Array) -> None:
    """Raise if a number is not finite."""
    if not np.isfinite(values).all():
        row, place = np.argwhere(~np.isfinite(values))[0]
        raise NotFiniteError(
            f"Feature {columns[place]!r} must be finite. Got {values[row, place]} in row {row} instead; fill what is "
            "missing, with 0 for a feature that is absent."
        )


def series(name: str, y: Any, rows: int) -> tuple[Any, str | None]:
    """The targets of a frame as an array, and their name."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(y, pandas.Series):
        try:
            y = dataframe.into_series(y)
        except TypeError:
            raise DataError(f"{name} must be a series of the same kind as X. Got {y!r} instead.") from None
    if len(y) != rows:
        raise DataError(f"{name} must have as many rows as X, {rows}. Got {len(y)} instead.")
    return y.to_numpy(), y.name


def weights(w: Any, rows: int) -> list[float] | None:
    """How often each row counts; None where each counts once."""
    if type(w) is float or isinstance(w, Real):
        return None if w == 1.0 else [checked_weight(w)] * rows
    return [checked_weight(one) for one in series("w", w, rows)[0].tolist()]


def blanked(values: Array, weights: list[float]) -> Array:
    """The rows of an array, with 0 in those that do not count: the others keep their places, which errors name."""
    if all(weights):
        return values
    out = values.copy()
    out[np.equal(weights, 0.0)] = 0.0
    return out


def numbers(targets: Any, weights: list[float] | None = None) -> Array:
    """Targets as finite floats; 0 for those that do not count."""
    try:
        values = np.asarray(targets if weights is None else blanked(targets, weights), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y must be numbers, but it cannot be read as such: {error}.") from None
    if not all_finite(values) and not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise NotFiniteError(f"y must be finite. Got {values[row]} in row {row} instead.")
    return values
