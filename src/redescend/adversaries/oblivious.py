"""Adversaries that corrupt a stream before the game, and the choice of the rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from redescend.errors import DataError
from redescend.game import Originals, Stream
from redescend.numeric import Array
from redescend.parameters import Component, Interval, Scale, bad_parameter, check, check_instance

Finite = Annotated[float, Interval(-1e150, 1e150)]
TIMES = ("random", "burst", "periodic", "first", "last")


@dataclass(frozen=True)
class Adversary(Component, ABC):
    """Replaces k records of a stream before the game; it does not see the learner."""

    def corrupt(self, stream: Stream, k: int | None, seed: Any, when: Any = "random") -> Stream:
        """Return a copy of `stream` with k of its records corrupted, chosen and drawn by `seed`.

        `k` and `when` select the rounds, as in `chosen_rounds`. Rounds that were corrupted before stay corrupted and
        keep their first original.
        """
        owner = f"{type(self).__name__}.corrupt"
        check_instance(owner, "stream", stream, Stream, "a Stream")
        random = np.random.default_rng(seed)
        rows = chosen_rounds(owner, len(stream), k, when, random)
        X, y = stream.X, stream.y
        with np.errstate(over="ignore"):
            x_new, y_new = self.replacements(stream, rows, random)
            if x_new is not None:
                X = X.copy()
                X[rows] = x_new
            if y_new is not None:
                y = y.copy()
                y[rows] = y_new
        if not (np.isfinite(X[rows]).all() and np.isfinite(y[rows]).all()):
            raise DataError(f"{self} makes records that overflow {X.dtype}; corrupt a stream of float64.")
        return mark_corrupted(stream, rows, X, y)

    @abstractmethod
    def replacements(
        self, stream: Stream, rows: Array, random: np.random.Generator
    ) -> tuple[Array | None, Array | None]:
        """Return new features and responses for these rows of the stream, drawn from `random`; None: they stay."""


@dataclass(frozen=True)
class ScalarAdversary(Adversary):
    """Base class of adversaries that shift or scale.

    Parameters
    ----------
    by : float
        The shift, or the factor.
    """

    by: Finite


class LabelFlip(Adversary):
    """y becomes −y: the paper's adversary of classification.

    Examples
    --------
    >>> LabelFlip().corrupt(Stream([[1.0], [2.0]], [1.0, -1.0]), k=2, seed=0).y
    array([-1.,  1.])
    """

    def replacements(self, stream: Stream, rows: Array, random: np.random.Generator) -> tuple[None, Array]:
        odd = np.abs(stream.y) != 1.0
        if odd.any():
            row = int(np.argmax(odd))
            raise DataError(f"LabelFlip needs labels of -1 and 1. Got {stream.y[row]} in row {row} instead.")
        return None, -stream.y[rows]


@dataclass(frozen=True)
class UniformResponse(Adversary):
    """y becomes uniform on [low, high]: the paper's adversary of regression.

    Parameters
    ----------
    low, high : float
        Ends of the interval.

    Examples
    --------
    >>> stream = UniformResponse(5, 6).corrupt(Stream([[1.0], [2.0]], [1.0, 2.0]), k=1, seed=0, when="last")
    >>> stream.y[0], 5 <= stream.y[1] <= 6
    (np.float64(1.0), np.True_)
    """

    low: Finite
    high: Finite

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.high < self.low:
            raise bad_parameter("UniformResponse", "high", f"at least 'low', which is {self.low}", self.high)

    def replacements(self, stream: Stream, rows: Array, random: np.random.Generator) -> tuple[None, Array]:
        return None, random.uniform(self.low, self.high, len(rows))


class ShiftResponse(ScalarAdversary):
    """y becomes y + by: an instrument that has lost its zero.

    Examples
    --------
    >>> ShiftResponse(10.0).corrupt(Stream([[1.0], [2.0]], [1.0, 2.0]), k=1, seed=0, when="first").y
    array([11.,  2.])
    """

    def replacements(self, stream: Stream, rows: Array, random: np.random.Generator) -> tuple[None, Array]:
        return None, stream.y[rows] + self.by


class ScaleResponse(ScalarAdversary):
    """y becomes by·y: a response in the wrong unit, or with by = −1 of the wrong sign.

    Examples
    --------
    >>> ScaleResponse(-1.0).corrupt(Stream([[1.0], [2.0]], [1.0, 2.0]), k=1, seed=0, when="last").y
    array([ 1., -2.])
    """

    def replacements(self, stream: Stream, rows: Array, random: np.random.Generator) -> tuple[None, Array]:
        return None, self.by * stream.y[rows]


class ReplaceResponse(Adversary):
    """y becomes that of a round drawn at random: the response of something else. Labels stay labels.

    Examples
    --------
    >>> ReplaceResponse().corrupt(Stream([[1.0], [2.0]], [7.0, 7.0]), k=2, seed=0).y
    array([7., 7.])
    """

    def replacements(self, stream: Stream, rows: Array, random: np.random.Generator) -> tuple[None, Array]:
        return None, random.choice(stream.y, len(rows))


class ScaleFeatures(ScalarAdversary):
    """x becomes by·x: a record in the wrong unit.

    Examples
    --------
    >>> ScaleFeatures(100.0).corrupt(Stream([[1.0], [2.0]], [1.0, 2.0]), k=1, seed=0, when="last").X.ravel()
    array([  1., 200.])
    """

    def replacements(self, stream: Stream, rows: Array, random: np.random.Generator) -> tuple[Array, None]:
        return self.by * stream.X[rows], None


@dataclass(frozen=True)
class ReplaceFeatures(Adversary):
    """x becomes noise, normal with standard deviation `scale`: a sensor that is not connected.

    Parameters
    ----------
    scale : float, default 1.0
        Standard deviation of the new features.

    Examples
    --------
    >>> ReplaceFeatures().corrupt(Stream([[1.0], [2.0]], [1.0, 2.0]), k=1, seed=0)
    Stream(2 rounds, 1 features, 1 corrupted)
    """

    scale: Scale = 1.0

    def replacements(self, stream: Stream, rows: Array, random: np.random.Generator) -> tuple[Array, None]:
        return self.scale * random.standard_normal((len(rows), stream.dim)), None


@dataclass(frozen=True)
class ReplaceRecord(Adversary):
    """x becomes noise, and y that of a round drawn at random: a record of something else.

    With `response_scale` = 1 labels stay labels.

    Parameters
    ----------
    scale : float
        Standard deviation of the new features.
    response_scale : float
        The drawn response is multiplied by it.

    Examples
    --------
    >>> sorted(ReplaceRecord().corrupt(Stream([[1.0], [2.0]], [7.0, 7.0]), k=2, seed=0).y)
    [np.float64(7.0), np.float64(7.0)]
    """

    scale: Scale = 1.0
    response_scale: Finite = 1.0

    def replacements(self, stream: Stream, rows: Array, random: np.random.Generator) -> tuple[Array, Array]:
        X = self.scale * random.standard_normal((len(rows), stream.dim))
        return X, self.response_scale * random.choice(stream.y, len(rows))


def chosen_rounds(owner: str, total: int, k: int | None, when: Any, random: np.random.Generator) -> Array:
    """Choose the rounds to corrupt.

    Parameters
    ----------
    owner : str
        Name of the caller in error messages.
    total : int
        Number of rounds of the stream.
    k : int or None
        Number of rounds to choose; None with a mask.
    when : "random", "burst", "periodic", "first", "last", or an array of bools
        At random; k in a row, from a random one on; evenly spaced; the first; the last; or where the array is True.
    random : Generator
        Source of random numbers.

    Returns
    -------
    array of ints
        The chosen rounds, in order.

    Examples
    --------
    >>> chosen_rounds("Example", 10, 2, "periodic", np.random.default_rng(0))
    array([2, 7])
    >>> chosen_rounds("Example", 3, None, [True, False, True], np.random.default_rng(0))
    array([0, 2])
    """
    if not isinstance(when, str):
        mask = np.asarray(when)
        if mask.dtype != np.bool_ or mask.shape != (total,):
            raise bad_parameter(owner, "when", f"a word or {total} bools, one for each round", when)
        rows = np.flatnonzero(mask)
        if k is not None and check(owner, "k", k, Interval(0, total, whole=True)) != len(rows):
            raise bad_parameter(owner, "k", f"None or the {len(rows)} rounds that 'when' marks", k)
        return rows
    if when not in TIMES:
        choices = ", ".join(map(repr, TIMES))
        raise bad_parameter(owner, "when", f"one of {choices}, or {total} bools", when)
    k = int(check(owner, "k", k, Interval(0, total, whole=True)))
    if when == "random":
        return np.sort(random.choice(total, k, replace=False))
    if when == "periodic":
        return (2 * np.arange(k) + 1) * total // (2 * max(k, 1))
    start = 0 if when == "first" else total - k if when == "last" else int(random.integers(total - k + 1))
    return np.arange(start, start + k)


def mark_corrupted(stream: Stream, rows: Array, X: Array, y: Array) -> Stream:
    """Return the stream with other X and y, and these rows marked as corrupted.

    A row that was corrupted before keeps its first original. Unknown originals stay unknown.
    """
    if len(rows) == 0:
        return stream
    clean = stream.clean.copy()
    clean[rows] = False
    originals = None
    if stream.originals is not None or not stream.corrupted:
        places = np.flatnonzero(~clean)
        originals = Originals(places, stream.X[places], stream.y[places])
        if stream.originals is not None:
            earlier = np.searchsorted(places, stream.originals.rows)
            originals.X[earlier], originals.y[earlier] = stream.originals.X, stream.originals.y
    return Stream(X, y, clean, stream.truth, originals)
