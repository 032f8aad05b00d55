"""The interface of learners, checks of records, and the base class of learners with many iterates."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from redescend.errors import ConcurrentUseError, DataError, MissingLabelError
from redescend.kernels.layout import Outcomes
from redescend.losses import LinearLoss, Loss
from redescend.numeric import Array, dot
from redescend.parameters import AT_LEAST_ONE, bad_parameter, check, check_instance
from redescend.state import ArraySpec, Dims, Stateful, read_arrays


class Round(NamedTuple):
    """The outcome of one round.

    Attributes
    ----------
    loss : float
        The loss of the action that was played.
    weight : float
        The weight that the gate gave the record, between 0 and 1.

    Examples
    --------
    >>> Round(loss=4.0, weight=0.5).weight
    0.5
    """

    loss: float
    weight: float


class RowError(NamedTuple):
    """The first row that could not be learned from, and why."""

    row: int
    error: DataError


class Learner(Stateful):
    """Plays an action θ, sees a record (x, y), and updates θ.

    A learner computes in the precision of the first records that it sees, unless it was made with a `dtype`.

    Attributes
    ----------
    dim : int
        Number of features.
    loss : Loss
        The loss that is revealed in every round.
    dtype : dtype
        Precision of the action.
    horizon : float
        The number of rounds that it can play.

    Examples
    --------
    >>> from redescend import OGD, losses, steps
    >>> isinstance(OGD(2, loss=losses.Squared(), step=steps.Anytime()), Learner)
    True
    """

    dim: int
    loss: Loss
    dtype: np.dtype[Any]
    horizon: float = inf
    # Compiled loops release the interpreter's lock. It is not released between a test and an assignment.
    _is_playing = False

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor that make another learner like this one, without `start`."""
        return select_constructor_arguments(type(self), vars(self))

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Number of rounds played."""

    @property
    @abstractmethod
    def theta(self) -> Array:
        """The action that it plays now; a copy."""

    def predict(self, x: Any) -> Any:
        """Predict ⟨x, θ⟩ with the current action θ; nothing is learned.

        With a loss of labels the sign of the prediction is the label. A `Custom` loss need not depend on x by ⟨x, θ⟩,
        but its prediction is ⟨x, θ⟩ as well.

        Parameters
        ----------
        x : array of floats, shape (features,) or (rows, features)
            One record, or a table of records.

        Returns
        -------
        float or array of floats, shape (rows,)
            One prediction for each record; at most the largest float where a product overflows.

        Examples
        --------
        >>> from redescend import OGD, losses, steps
        >>> learner = OGD(2, loss=losses.Squared(), step=steps.Constant(0.25), start=[1.0, 2.0])
        >>> learner.predict([1.0, 1.0])
        3.0
        >>> learner.predict([[1.0, 1.0], [0.0, 1.0]])
        array([3., 2.])
        """
        X = float_array("x", x, 1, 2)
        check_features(X, self.dim)
        if not np.isfinite(X).all():
            place = np.unravel_index(np.argmin(np.isfinite(X)), X.shape)
            row = f"row {place[0]}, " if X.ndim == 2 else ""
            raise DataError(f"x must be finite. Got {X[place]} in {row}feature {place[-1]} instead.")
        theta = self.theta.astype(np.float64)
        rows = np.ascontiguousarray(np.atleast_2d(X), np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            # Unlike a product of matrices, this gives a row the same bits in every table.
            out = np.einsum("ij,j->i", rows, theta)
        for index in np.flatnonzero(~np.isfinite(out)):
            out[index] = dot(rows[index], theta)
        return out if X.ndim == 2 else float(out[0])

    @abstractmethod
    def update(self, x: Any, y: float) -> Round:
        """Learn from one record.

        Parameters
        ----------
        x : array of floats, shape (features,)
        y : float
            The target; −1 or 1 if the loss is one of labels.

        Returns
        -------
        Round
            The loss of the action before the update, and the weight of the record.
        """

    @abstractmethod
    def _play_rows(self, X: Array, y: Array, out: Outcomes) -> int:
        """Play rows by the compiled loop until one cannot be played; returns how many were."""

    @abstractmethod
    def _play_safely(self, x: Array, y: float) -> Round:
        """Play a valid record that the compiled loop could not."""

    def learn_rows(self, X: Array, y: Array, out: Outcomes) -> RowError | None:
        """Learn from C-ordered rows `X` of the learner's dtype and targets `y`, and write their outcomes to `out`.

        Stops before the first record that cannot be learned from.
        """
        self.check_horizon(len(X))
        at = self._play_rows(X, y, out)
        while at < len(X):
            try:
                check_record(X[at], y[at], self.loss)
                if len(out.actions):
                    out.actions[at] = self.theta
                if len(out.predictions):
                    out.predictions[at] = dot(X[at].astype(np.float64), self.theta.astype(np.float64))
                out.losses[at], out.weights[at] = self._play_safely(X[at], float(y[at]))
            except MissingLabelError:
                raise
            except DataError as error:
                return RowError(at, error)
            at += 1
            if at < len(X):
                at += self._play_rows(X[at:], y[at:], out.rows(at))
        return None

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Play rounds within a with statement; raises if another thread does: rounds would be lost."""
        if self._is_playing:
            raise self._concurrent_use_error()
        self._is_playing = True
        try:
            yield
        finally:
            self._is_playing = False

    def _concurrent_use_error(self) -> ConcurrentUseError:
        return ConcurrentUseError(
            f"This {type(self).__name__} is played by another thread, and rounds would be lost; use one learner for "
            "each thread, or a lock."
        )

    @abstractmethod
    def skip(self) -> None:
        """Count a round without a record."""

    @abstractmethod
    def settle_precision(self, dtype: np.dtype[Any]) -> None:
        """Before the first round, adopt the `dtype` of the records unless the learner was made with one."""

    def check_horizon(self, rounds: int) -> None:
        """Raise if it cannot play this number of further `rounds`."""
        if self.rounds + rounds > self.horizon:
            raise DataError(
                f"{type(self).__name__} was made for {self.horizon} rounds and has played {self.rounds}, so it cannot "
                f"play {rounds} more; make it with a larger 'rounds'."
            )


class Ensemble(Learner):
    """A learner that combines many iterates; its state is a few named arrays of floats.

    It computes in double precision, whatever the precision of the records.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, dim: int, loss: Loss) -> None:
        name = type(self).__name__
        self.dim = check(name, "dim", dim, AT_LEAST_ONE)
        self.loss = check_instance(name, "loss", loss, Loss, "a loss, such as Squared()")
        self._arrays: dict[str, Any] = {}

    @abstractmethod
    def _read_state(self, state: dict[str, Any]) -> dict[str, Array]:
        """Check the arrays of a state, and return copies."""

    def update(self, x: Any, y: float) -> Round:
        y = float_number("y", y)
        x = float_array("x", x, 1)
        check_features(x, self.dim)
        X = np.ascontiguousarray(x, dtype=np.float64).reshape(1, -1)
        out = Outcomes(np.zeros(1), np.zeros(1), np.empty(0), np.empty((0, self.dim)))
        with self.playing():
            bad = self.learn_rows(X, np.array([y]), out)
        if bad is not None:
            raise bad.error
        return Round(float(out.losses[0]), float(out.weights[0]))

    def settle_precision(self, dtype: np.dtype[Any]) -> None:
        """Ignore the `dtype` of the records: it computes in double precision."""

    def state(self) -> dict[str, Any]:
        return {"learner": repr(self), **{name: array.copy() for name, array in self._arrays.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        self._arrays = self._read_state(state)


def read_state(
    specs: Iterable[ArraySpec], state: Any, owner: str, dims: Dims = MappingProxyType({}), others: Iterable[str] = ()
) -> dict[str, Array]:
    """Copy the arrays of a learner's state, checked; raises if the state names another learner than its owner."""
    if isinstance(state, dict) and state.get("learner", owner) != owner:
        raise DataError(f"The state belongs to {state['learner']}, not to {owner}; make a learner like that one.")
    return read_arrays(specs, state, dims, owner, others=("learner", *others))


def select_constructor_arguments(kind: type, known: Mapping[str, Any]) -> dict[str, Any]:
    """Select the arguments of a learner's constructor from these values, by name."""
    return {name: known[name] for name in signature(kind).parameters if name != "start"}


def check_dtype(owner: str, dtype: Any) -> np.dtype[Any]:
    try:
        precision = np.dtype(np.float64 if dtype is None else dtype)
    except TypeError:
        precision = np.dtype(object)
    if precision not in (np.float32, np.float64):
        raise bad_parameter(owner, "dtype", "float32 or float64", dtype)
    return precision


def check_features(x: Array, dim: int) -> None:
    """Raise if records have another number of features."""
    if x.shape[-1] != dim:
        raise DataError(f"x must have {dim} features. Got {x.shape[-1]} instead.")


def check_record(x: Array, y: float, loss: Loss) -> None:
    """Raise if a record is not finite, or its target is not a label where the loss needs one."""
    if not np.isfinite(x).all():
        feature = int(np.argmin(np.isfinite(x)))
        rule = "finite" if x.dtype == np.float64 else f"finite in {x.dtype}"
        raise DataError(f"x must be {rule}. Got {x[feature]} in feature {feature} instead.")
    if not np.isfinite(y):
        raise DataError(f"y must be finite. Got {y} instead.")
    if isinstance(loss, LinearLoss) and loss.margin and abs(y) != 1.0:
        raise DataError(f"y must be -1 or 1 for {type(loss).__name__}. Got {y} instead.")


def float_array(name: str, values: Any, *ndims: int) -> Array:
    """Convert values to an array of float32 or float64 with one of these numbers of dimensions.

    Lists are converted. Arrays of integers, booleans or objects are refused: they may be codes or identifiers.
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
    if array.ndim not in ndims:
        row = "(features,)" if name == "x" else "(rows,)"
        shapes = " or ".join("(rows, features)" if ndim == 2 else row for ndim in ndims)
        raise DataError(f"{name} must have shape {shapes}. Got {array.shape} instead.")
    return array


def float_number(name: str, value: Any) -> float:
    """Convert a number to float; text and arrays are refused."""
    if isinstance(value, numbers.Real | np.number) and not isinstance(value, np.complexfloating):
        return float(value)
    raise DataError(f"{name} must be a number. Got {value!r} instead.")
