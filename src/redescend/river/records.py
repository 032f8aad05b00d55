"""Records as River passes them: names, labels and numbers, checked, and the error for those that are not valid."""

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


def key_to_plain(key: Any) -> Any:
    """The name of a feature or a label as a plain value; a tuple as a list."""
    if isinstance(key, tuple):
        return [key_to_plain(part) for part in key]
    return key.item() if isinstance(key, np.generic) else key


def plain_to_key(value: Any) -> Any:
    """Undo `key_to_plain`."""
    return tuple(plain_to_key(part) for part in value) if isinstance(value, list) else value


class BinaryLabels:
    """Which label is −1 and which is +1: True and 1 are +1, any other first label is −1, the second is the other."""

    def __init__(self) -> None:
        self._signs: dict[Any, float] = {}

    def sign(self, label: Any) -> float:
        """The sign of a label, or the one that a new label would get."""
        try:
            if (sign := self._signs.get(label)) is not None:
                return sign
            is_missing = label is None or bool(label != label)
        except TypeError:  # It is not hashable, or is the NA of pandas, which is neither equal nor unequal.
            is_missing = True
        if is_missing:
            raise DataError(f"y must be a label, such as True or 'spam'. Got {label!r} instead.")
        if len(self._signs) == 2:
            first, second = self._signs
            raise DataError(
                f"y must be {first!r} or {second!r}, the two labels so far. Got {label!r} instead; for more, wrap the "
                "classifier, with any filter of labels ahead of it, in river.multiclass.OneVsRestClassifier."
            )
        return -next(iter(self._signs.values()), -1.0 if label == True else 1.0)  # noqa: E712 -- 1 and 1.0 are meant

    def add(self, label: Any) -> None:
        """Remember a label that was learned from."""
        if label not in self._signs:
            self._signs[label.item() if isinstance(label, np.generic) else label] = self.sign(label)

    @property
    def negative_and_positive(self) -> tuple[Any, Any]:
        """The labels of −1 and +1: False and True while there are no others, and a single other one is both."""
        if len(self._signs) == 2:
            negative, positive = sorted(self._signs, key=self._signs.__getitem__)
            return negative, positive
        return (False, True) if self._signs.keys() <= {False, True} else (next(iter(self._signs)),) * 2

    def probabilities(self, shares: Array) -> dict[Any, Array]:
        """The probability of each label, given those of +1."""
        negative, positive = self.negative_and_positive
        if negative is positive:
            return {negative: np.ones_like(shares)}
        return {negative: 1.0 - shares, positive: shares}

    def state(self) -> list[Any]:
        return [[key_to_plain(label), sign] for label, sign in self._signs.items()]

    def restore(self, state: Any) -> None:
        signs = {plain_to_key(label): float(sign) for label, sign in state}
        if len(signs) != len(state) or sorted(signs.values()) not in ([], [-1.0], [1.0], [-1.0, 1.0]):
            raise ValueError
        self._signs = signs


def check_record(x: Any, y: Any = 0.0) -> None:
    """Raise if a feature or the target is not a finite number."""
    if not isinstance(x, Mapping):
        raise DataError(f"x must be a dict of features. Got {x!r} instead.")
    for name, value in x.items():
        if isinstance(value, str):
            raise DataError(
                f"Feature {name!r} must be a number. Got {value!r} instead; encode texts, such as by "
                "river.preprocessing.OneHotEncoder."
            )
        if not _is_finite(value, f"Feature {name!r}"):
            raise NotFiniteError(
                f"Feature {name!r} must be finite. Got {value} instead; leave missing features out of the dict."
            )
    if not _is_finite(y, "y"):
        raise NotFiniteError(f"y must be finite. Got {y} instead.")


def check_weight(w: Any) -> float:
    """Return the weight of a record, or raise."""
    if isinstance(w, bool) or not _is_finite(w, "w") or w < 0.0:
        raise DataError(f"w must be finite and >= 0. Got {w!r} instead.")
    return float(w)


def _is_finite(value: Any, what: str) -> bool:
    try:
        return math.isfinite(value)
    except TypeError:
        raise DataError(f"{what} must be a number. Got {value!r} instead.") from None
    except OverflowError:
        return False


class FrameReader:
    """Reads frames: those of pandas itself, and any other as River does.

    River takes longer to wrap a frame than the model to learn a hundred rows of it, and so does listing its columns:
    the last list is used again for frames with the same columns.
    """

    def __init__(self) -> None:
        self._index: Any = None
        self._columns: list[Any] = []

    def read(self, X: Any) -> tuple[list[Any], Array]:
        """The columns of a frame and its values, which need not be finite."""
        pandas = sys.modules.get("pandas")
        try:
            if pandas is not None and isinstance(X, pandas.DataFrame):
                if self._index is None or not self._index.equals(X.columns):
                    self._columns, self._index = _check_unique(X.columns.tolist()), X.columns
                return self._columns, _pandas_values(X)
            frame = dataframe.into_frame(X)
            return _check_unique(list(frame.columns)), dataframe.to_numpy(frame)
        except DataError:
            raise
        except (TypeError, ValueError) as error:
            raise DataError(f"X must be a frame of numbers, but cannot be read as one: {error}.") from None


def _pandas_values(X: Any) -> Array:
    """The values of a frame of pandas, NaN where they are missing."""
    try:
        return X.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        return X.to_numpy(dtype=np.float64, na_value=np.nan)


def _check_unique(columns: list[Any]) -> list[Any]:
    if len(set(columns)) < len(columns):
        raise DataError(f"X must have one column for each feature. Got the columns {columns}.")
    return columns


def read_series(name: str, y: Any, rows: int) -> tuple[Any, str | None]:
    """The values of a series and its name."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(y, pandas.Series):
        try:
            y = dataframe.into_series(y)
        except TypeError:
            raise DataError(f"{name} must be a series of the same kind as X. Got {y!r} instead.") from None
    if len(y) != rows:
        raise DataError(f"{name} must have as many rows as X, {rows}. Got {len(y)} instead.")
    return y.to_numpy(), y.name


def read_weights(w: Any, rows: int) -> list[float] | None:
    """The weight of each row; None if all are 1."""
    if type(w) is float or isinstance(w, Real):
        return None if w == 1.0 else [check_weight(w)] * rows
    return [check_weight(weight) for weight in read_series("w", w, rows)[0].tolist()]


def read_numbers(targets: Any, weights: list[float] | None = None) -> Array:
    """Targets as finite floats; 0 in rows of weight 0."""
    try:
        values = np.asarray(targets if weights is None else zero_out_rows(targets, weights), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y must be numbers, but cannot be read as such: {error}.") from None
    if not has_finite_square(values) and not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise NotFiniteError(f"y must be finite. Got {values[row]} in row {row} instead.")
    return values


def zero_out_rows(values: Array, weights: list[float]) -> Array:
    """The rows of an array, with 0 in those of weight 0; the others keep their index, which errors name."""
    if all(weights):
        return values
    out = values.copy()
    out[np.equal(weights, 0.0)] = 0.0
    return out


def has_finite_square(values: Array) -> bool:
    """Whether the sum of squares of a C-ordered array is finite: a quick test that all its values are."""
    flat = values.ravel()
    return math.isfinite(flat.dot(flat))


def check_table(columns: list[Any], values: Array) -> None:
    """Raise if a value is not finite."""
    if not np.isfinite(values).all():
        row, place = np.argwhere(~np.isfinite(values))[0]
        raise NotFiniteError(
            f"Feature {columns[place]!r} must be finite. Got {values[row, place]} in row {row} instead; fill missing "
            "values, with 0 for a feature that is absent."
        )
