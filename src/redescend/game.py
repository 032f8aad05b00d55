"""The game: a stream, a learner that plays it, and the trace it leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from redescend.errors import DataError, DivergenceError, MissingExtraError, ParameterError
from redescend.learners.base import Learner, float_array
from redescend.numeric import Array

FIRST_ROWS, CHUNK_SECONDS = 64, 0.05
"""A learner is given about as many rows at a time as it plays in this time: a game can be watched and interrupted."""


class Originals(NamedTuple):
    """What the corrupted rounds of a stream were before: their places, and their records there."""

    rows: Array
    X: Array
    y: Array


@dataclass(frozen=True, eq=False)
class Stream:
    """Records in the order in which they are revealed, and what is known about them.

    Parameters
    ----------
    X : array of floats, shape (rows, features)
    y : array of floats, shape (rows,)
    clean : array of bools, optional
        Which rounds are as nature made them; all of them unless given.
    truth : array, optional
        The action that made the data: one for all rounds, shape (features,), or one for each, shape (rows, features).
    originals : Originals, optional
        The records of the corrupted rounds before they were corrupted.

    Examples
    --------
    >>> stream = Stream([[1.0, 0.0], [0.0, 1.0]], [2.0, 3.0])
    >>> stream
    Stream(2 rounds, 2 features, 0 corrupted)
    """

    X: Array
    y: Array
    clean: Array = None  # type: ignore[assignment]
    truth: Array | None = None
    originals: Originals | None = None

    def __post_init__(self) -> None:
        X, y = float_array("X", self.X, 2), float_array("y", self.y, 1)
        rows, dim = X.shape
        if rows == 0 or dim == 0:
            raise DataError(f"A stream must have at least one row and one feature. Got shape {X.shape} instead.")
        if len(y) != rows:
            raise DataError(f"y must have one value for each of the {rows} rows of X. Got {len(y)} instead.")
        clean = np.ones(rows, dtype=bool) if self.clean is None else np.asarray(self.clean)
        if clean.shape != (rows,) or clean.dtype != np.bool_:
            raise DataError(
                f"clean must be {rows} bools, one for each row. Got shape {clean.shape} of type {clean.dtype} instead."
            )
        for name, value in {"X": X, "y": y, "clean": clean}.items():
            object.__setattr__(self, name, value)
        if self.truth is not None:
            truth = float_array("truth", self.truth, np.ndim(self.truth) or 1).astype(np.float64)
            if truth.shape not in ((dim,), (rows, dim)) or not np.isfinite(truth).all():
                raise DataError(
                    f"truth must be finite and of shape ({dim},) or ({rows}, {dim}). Got {truth.shape} instead."
                )
            object.__setattr__(self, "truth", truth)
        if self.originals is not None:
            object.__setattr__(self, "originals", _checked_originals(self.originals, clean, dim))

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Stream({len(self)} rounds, {self.dim} features, {self.corrupted} corrupted)"

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def corrupted(self) -> int:
        """Number of corrupted rounds, the paper's k."""
        return int(len(self) - np.count_nonzero(self.clean))

    def uncorrupted(self) -> Stream:
        """The stream as nature made it: every corrupted record replaced by its original."""
        if self.originals is None:
            if self.corrupted:
                raise DataError("The stream has corrupted rounds but not their originals; give Stream(originals=...).")
            return self
        X, y = self.X.copy(), self.y.copy()
        X[self.originals.rows], y[self.originals.rows] = self.originals.X, self.originals.y
        return Stream(X, y, truth=self.truth)


def _checked_originals(originals: Any, clean: Array, dim: int) -> Originals:
    places, X, y = originals
    places = np.asarray(places)
    X, y = float_array("originals.X", X, 2), float_array("originals.y", y, 1)
    fits = X.shape == (len(places), dim) and len(y) == len(places)
    if not fits or not np.array_equal(np.sort(places), np.flatnonzero(~clean)):
        raise DataError("originals must be (rows, X, y): the corrupted rounds, and one record for each of them.")
    return Originals(places, X, y)


@dataclass(frozen=True, eq=False)
class Trace:
    """What a game left.

    Attributes
    ----------
    losses : array
        f_t(θ_t) of every round; 0 where the row was skipped.
    weights : array
        How much of every round was believed; 0 where the row was skipped.
    actions : array or None
        θ_t of every round, if they were kept.
    theta : array
        The action after the last round.
    skipped : array
        The rows that could not be learned from.
    """

    losses: Array
    weights: Array
    actions: Array | None
    theta: Array
    skipped: Array

    def __len__(self) -> int:
        return len(self.losses)

    def __repr__(self) -> str:
        skipped = f", {len(self.skipped)} skipped" if len(self.skipped) else ""
        middle = f"median loss {np.median(self.losses):.4g}, mean weight {self.weights.mean():.3f}"
        return f"Trace({len(self)} rounds, {middle}{skipped})"


def play(
    learner: Learner,
    stream: Stream,
    *,
    keep_actions: bool = False,
    progress: bool = False,
    bad_rows: Literal["raise", "skip"] = "raise",
) -> Trace:
    """Play a stream: the learner shows its action, sees the record, and moves, round after round.

    It is compiled, and the same arithmetic as calling ``learner.update`` for each row: cut a stream anywhere, and
    the actions are the same to the last bit.

    Parameters
    ----------
    learner : Learner
        It goes on from where it is.
    stream : Stream
    keep_actions : bool
        Whether to keep θ_t of every round, a (rows, features) array.
    progress : bool
        Whether to show a progress bar.
    bad_rows : "raise" or "skip"
        What to do with a record that is not finite, or whose label is not −1 or +1 where the loss needs one. "raise"
        leaves the learner as it was before the game. "skip" gives the row weight 0 and lists it in ``Trace.skipped``.

    Notes
    -----
    Interrupted, or stopped by a `DivergenceError`, the learner stays at the last round that it played.

    Examples
    --------
    >>> from redescend import OGD, losses, steps
    >>> learner = OGD(1, loss=losses.Squared(), step=steps.Constant(0.25))
    >>> play(learner, Stream([[1.0], [1.0]], [2.0, 2.0])).losses
    array([4., 1.])
    """
    if not isinstance(learner, Learner):
        raise DataError(f"play needs a learner, such as OGD(...). Got {type(learner).__name__} instead.")
    if not isinstance(stream, Stream):
        raise DataError(f"play needs a Stream; wrap the arrays as Stream(X, y). Got {type(stream).__name__} instead.")
    if bad_rows not in ("raise", "skip"):
        raise ParameterError(f"The 'bad_rows' parameter of play must be 'raise' or 'skip'. Got {bad_rows!r} instead.")
    if stream.dim != learner.dim:
        raise DataError(f"The learner has {learner.dim} features and the stream has {stream.dim}; they must agree.")
    learner.expect(len(stream))
    before = learner.state()
    learner.settle_precision(stream.X.dtype)
    losses, weights = np.empty(len(stream)), np.empty(len(stream))
    actions = np.empty((len(stream) if keep_actions else 0, learner.dim), learner.dtype)
    y = _plain(stream.y, np.dtype(np.float64))
    skipped: list[int] = []
    try:
        for first, last in _chunks(len(stream), progress):
            X = _plain(stream.X[first:last], learner.dtype)
            at = 0
            while True:
                done = first + at
                rows = slice(done, last)
                trouble = learner.learn_rows(X[at:], y[rows], losses[rows], weights[rows], actions[rows])
                if trouble is None:
                    break
                row = done + trouble.row
                if bad_rows == "raise":
                    raise DataError(f"Row {row}: {trouble.error}")
                learner.skip()
                skipped.append(row)
                losses[row] = weights[row] = 0.0
                if keep_actions:
                    actions[row] = learner.theta
                at = row - first + 1
    except DivergenceError:
        raise
    except Exception:
        learner.restore(before)
        raise
    return Trace(losses, weights, actions if keep_actions else None, learner.theta, np.array(skipped, dtype=np.intp))


def _chunks(rounds: int, progress: bool) -> Iterator[tuple[int, int]]:
    """Rows to play next: few at first, then twice as many for as long as they are played quickly."""
    with _watched(rounds) if progress else nullcontext(lambda played: None) as show:
        first, size = 0, FIRST_ROWS
        while first < rounds:
            last = min(first + size, rounds)
            started = time.perf_counter()
            yield first, last
            size = 2 * size if time.perf_counter() - started < CHUNK_SECONDS else size
            first = last
            show(first)


@contextmanager
def _watched(rounds: int) -> Iterator[Callable[[int], None]]:
    try:
        from rich.progress import Progress
    except ImportError:
        raise MissingExtraError("A progress bar needs rich; install it with: pip install 'redescend[cli]'") from None
    with Progress() as bar:
        task = bar.add_task("playing", total=rounds)
        yield lambda played: bar.update(task, completed=played)


class _Alias:
    """A read-only array as one that Numba takes for a plain one; nothing writes to it."""

    def __init__(self, array: Array) -> None:
        self.owner = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def _plain(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array in the order and precision that the compiled loop knows, copied only if it is not."""
    with np.errstate(over="ignore"):
        array = np.require(array, dtype, ["C", "A"])
    return array if array.flags.writeable else np.asarray(_Alias(array))
