"""What every learner offers: an action, an update, a state; and how records get into it."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Mapping
from inspect import signature
from math import inf
from typing import Any, NamedTuple

import numpy as np

from redescend.errors import DataError
from redescend.losses import LinearLoss, Loss
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, bad_parameter, check


class Round(NamedTuple):
    """What one record did: the loss of the action that was played, and how much of it was believed."""

    loss: float
    weight: float


class Trouble(NamedTuple):
    """The first row that could not be learned from, and why."""

    row: int
    error: DataError


class Learner(ABC):
    """Plays an action θ, sees a record (x, y), and moves.

    A learner computes in the precision of the first records that it sees, or in the one given as `dtype`.
    """

    dim: int
    dtype: np.dtype[Any]
    horizon: float = inf
    """How many rounds it can play."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings that another one like it is made with, by the names of its constructor.

        Where it started is not among them: its state says where it is.
        """
        return constructor_settings(type(self), vars(self))

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many rounds it has played."""

    @property
    @abstractmethod
    def theta(self) -> Array:
        """The action it plays now; a copy."""

    def expect(self, rounds: int) -> None:
        """Raise if it cannot play so many more rounds."""
        if self.rounds + rounds > self.horizon:
            raise DataError(
                f"{type(self).__name__} was made for {self.horizon} rounds and has played {self.rounds}, so it cannot "
                f"play {rounds} more; make it with a larger 'rounds'."
            )

    @abstractmethod
    def update(self, x: Any, y: float) -> Round:
        """Learn from one record, and say what the action lost on it and how much of it was believed."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """All that the learner has learned, as arrays and plain values; copies."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that a learner with the same settings gave."""

    @abstractmethod
    def learn_rows(self, X: Array, y: Array, losses: Array, weights: Array, actions: Array) -> Trouble | None:
        """Learn from C-ordered rows of the learner's precision, and write the loss, the weight and the action of each.

        Stops before the first record that nothing can be learned from, and says why.
        """

    @abstractmethod
    def skip(self) -> None:
        """Let a round pass without a record."""

    @abstractmethod
    def settle_precision(self, dtype: np.dtype[Any]) -> None:
        """Before the first round, take the precision of the records unless one was given."""


def constructor_settings(kind: type, known: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of each setting that the constructor of a learner takes."""
    return {name: known[name] for name in signature(kind).parameters if name != "start"}


def checked_dim(owner: str, dim: Any) -> int:
    return int(check(owner, "dim", dim, AT_LEAST_ONE))


def checked_precision(owner: str, dtype: Any) -> np.dtype[Any]:
    try:
        precision = np.dtype(np.float64 if dtype is None else dtype)
    except TypeError:
        precision = np.dtype(object)
    if precision not in (np.float32, np.float64):
        raise bad_parameter(owner, "dtype", "float32 or float64", dtype)
    return precision


def check_record(x: Array, y: float, loss: Loss) -> None:
    """Raise the one sentence about a record that cannot be learned from."""
    if not np.isfinite(x).all():
        feature = int(np.argmin(np.isfinite(x)))
        wanted = "finite" if x.dtype == np.float64 else f"finite in {x.dtype}"
        raise DataError(f"x must be {wanted}. Got {x[feature]} in feature {feature} instead.")
    if not np.isfinite(y):
        raise DataError(f"y must be finite. Got {y} instead.")
    if isinstance(loss, LinearLoss) and loss.margin and abs(y) != 1.0:
        raise DataError(f"y must be -1 or 1 for {type(loss).__name__}. Got {y} instead.")


def float_array(name: str, values: Any, ndim: int) -> Array:
    """The values as an array of float32 or float64; anything else is refused in one sentence.

    Lists are converted. Arrays of integers, bools or objects are not: a code or an identifier is no measurement.
    """
    is_array = isinstance(values, np.ndarray) or hasattr(values, "__array__")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be an array of floats, but it cannot be read as one: {error}.") from None
    if not is_array and (array.dtype.kind in "iu" or array.size == 0):
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise DataError(f"{name} must be an array of floats, not of {array.dtype}; convert it with .astype(float).")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if array.ndim != ndim:
        shape = "(rows, features)" if ndim == 2 else "(features,)" if name == "x" else "(rows,)"
        raise DataError(f"{name} must have shape {shape}. Got {array.shape} instead.")
    return array


def float_number(name: str, value: Any) -> float:
    """The value as a float; text and arrays are refused in one sentence."""
    if isinstance(value, numbers.Real | np.number) and not isinstance(value, np.complexfloating):
        return float(value)
    raise DataError(f"{name} must be a number. Got {value!r} instead.")
