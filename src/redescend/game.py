"""The game: a stream, a learner that plays it, and the trace of its rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from redescend.belief import LabelBelief, ResidualBelief, to_probability
from redescend.errors import DataError, DivergenceError, needs_extra
from redescend.kernels.layout import Outcomes
from redescend.learners.learner import Learner, float_array
from redescend.learners.selftuning import SelfTuning
from redescend.numeric import Array
from redescend.parameters import check_choice

FIRST_ROWS, CHUNK_SECONDS = 64, 0.05
"""Rows are played in chunks of about this time, so that a game can show its progress and be interrupted."""

JUDGED_ROWS = 16_384  # rows that are judged at a time, as copies in double precision

Belief: TypeAlias = ResidualBelief | LabelBelief


class Originals(NamedTuple):
    """The records of a stream's corrupted rounds before they were corrupted.

    Attributes
    ----------
    rows : array of ints
        The corrupted rounds.
    X : array of floats, shape (corrupted, features)
        Their features before.
    y : array of floats, shape (corrupted,)
        Their targets before.

    Examples
    --------
    >>> Originals(np.array([1]), np.array([[0.0, 1.0]]), np.array([3.0])).rows
    array([1])
    """

    rows: Array
    X: Array
    y: Array


@dataclass(frozen=True, eq=False)
class Stream:
    """Records in the order in which they are revealed, and which of them are corrupted.

    Parameters
    ----------
    X : array of floats, shape (rows, features)
        One record a row.
    y : array of floats, shape (rows,)
        The targets.
    clean : array of bools, optional
        Which rounds are not corrupted. By default all of them.
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
            object.__setattr__(self, "originals", _check_originals(self.originals, clean, dim))

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
        """The stream with every corrupted record replaced by its original."""
        if self.originals is None:
            if self.corrupted:
                raise DataError("The stream has corrupted rounds but not their originals; give Stream(originals=...).")
            return self
        X, y = self.X.copy(), self.y.copy()
        X[self.originals.rows], y[self.originals.rows] = self.originals.X, self.originals.y
        return Stream(X, y, truth=self.truth)


def _check_originals(originals: Any, clean: Array, dim: int) -> Originals:
    places, X, y = originals
    places = np.asarray(places)
    X, y = float_array("originals.X", X, 2), float_array("originals.y", y, 1)
    fits = X.shape == (len(places), dim) and len(y) == len(places)
    if not fits or not np.array_equal(np.sort(places), np.flatnonzero(~clean)):
        raise DataError("originals must be (rows, X, y): the corrupted rounds, and one record for each of them.")
    return Originals(places, X, y)


@dataclass(frozen=True, eq=False)
class Trace:
    """The outcomes of a game, round by round.

    Attributes
    ----------
    losses : array
        f_t(θ_t) of every round; 0 where the row was skipped.
    weights : array
        The weight of every round; 0 where the row was skipped.
    actions : array or None
        θ_t of every round, if ``keep_actions`` was set.
    theta : array
        The action after the last round.
    skipped : array
        The rows that could not be learned from.
    predictions : array
        ⟨x_t, θ_t⟩ of every round, before the record was learned from; 0 where the row was skipped.
    clean_log_odds : array or None
        Of a self-tuning learner: the logarithm of the odds that each record is clean, computed before the record
        was learned from; NaN where the row was skipped. See `redescend.belief`.
    low, high : array or None
        Of a self-tuning learner: the interval in which nine in ten clean targets lie; NaN for labels.
    belief : ResidualBelief, LabelBelief or None
        Of a self-tuning learner: the belief that the game has learned about its records.

    Examples
    --------
    >>> from redescend import OGD, losses, steps
    >>> learner = OGD(1, loss=losses.Squared(), step=steps.Constant(0.25))
    >>> trace = play(learner, Stream([[1.0], [1.0]], [2.0, 2.0]))
    >>> trace.predictions, trace.weights
    (array([0., 1.]), array([1., 1.]))
    """

    losses: Array
    weights: Array
    actions: Array | None
    theta: Array
    skipped: Array
    predictions: Array = field(default_factory=lambda: np.empty(0))
    clean_log_odds: Array | None = None
    low: Array | None = None
    high: Array | None = None
    belief: Belief | None = None

    def __len__(self) -> int:
        return len(self.losses)

    @property
    def clean_probability(self) -> Array | None:
        """The probability that each record is clean, never exactly 0 or 1; None if records are not judged."""
        return None if self.clean_log_odds is None else to_probability(self.clean_log_odds)

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
    belief: Belief | None = None,
) -> Trace:
    """Play a stream: in every round the learner plays its action, sees the record, and updates.

    It is compiled, and the same arithmetic as calling ``learner.update`` for each row: wherever a stream is cut, the
    actions have the same bits.

    Parameters
    ----------
    learner : Learner
        The learner. It continues from its current state.
    stream : Stream
        The records.
    keep_actions : bool
        Whether to return θ_t of every round, a (rows, features) array.
    progress : bool
        Whether to show a progress bar.
    bad_rows : "raise" or "skip"
        What to do with a record that is not finite, or whose label is not −1 or 1 where the loss needs one. "raise"
        leaves the learner as it was before the game. "skip" gives the row weight 0 and lists it in ``Trace.skipped``.
    belief : ResidualBelief or LabelBelief, optional
        The ``belief`` of the trace of an earlier game of a self-tuning learner, to continue from; it is not changed.
        Default: a new one.

    Returns
    -------
    Trace
        Losses, weights and predictions of every round, and the last action.

    Notes
    -----
    If it is interrupted, or stopped by a `DivergenceError`, the learner stays at the last round that it played.

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
    check_choice("play", "bad_rows", bad_rows, ("raise", "skip"))
    if stream.dim != learner.dim:
        raise DataError(f"The learner has {learner.dim} features and the stream has {stream.dim}; they must agree.")
    continued = _copy_belief(learner, belief)
    with learner.playing():
        out, skipped = _play_rounds(learner, stream, keep_actions, progress, bad_rows)
        theta = learner.theta
    judged = () if continued is None else _judge_rounds(continued, stream, out.predictions, skipped)
    actions = out.actions if keep_actions else None
    return Trace(out.losses, out.weights, actions, theta, skipped, out.predictions, *judged)


def _play_rounds(
    learner: Learner, stream: Stream, keep_actions: bool, progress: bool, bad_rows: str
) -> tuple[Outcomes, Array]:
    """The outcomes of all rounds, and the rows that were skipped."""
    learner.check_horizon(len(stream))
    before, rounds = learner.state(), len(stream)
    learner.settle_precision(stream.X.dtype)
    actions = np.empty((rounds if keep_actions else 0, learner.dim), learner.dtype)
    out = Outcomes(np.empty(rounds), np.empty(rounds), np.empty(rounds), actions)
    y = _prepare_for_kernel(stream.y, np.dtype(np.float64))
    skipped: list[int] = []
    try:
        for first, last in _iterate_chunks(rounds, progress):
            X, at = _prepare_for_kernel(stream.X[first:last], learner.dtype), first
            while (bad := learner.learn_rows(X[at - first :], y[at:last], out.rows(at, last))) is not None:
                row = at + bad.row
                if bad_rows == "raise":
                    raise DataError(f"Row {row}: {bad.error}")
                learner.skip()
                skipped.append(row)
                out.losses[row] = out.weights[row] = out.predictions[row] = 0.0
                if keep_actions:
                    actions[row] = learner.theta
                at = row + 1
    except DivergenceError:
        raise
    except Exception:
        learner.restore(before)
        raise
    return out, np.array(skipped, dtype=np.intp)


def _copy_belief(learner: Learner, belief: Belief | None) -> Belief | None:
    """A copy of the belief, or a new one; None if the learner's records are not judged."""
    if not isinstance(learner, SelfTuning):
        if belief is not None:
            raise DataError(
                f"Only records of a self-tuning learner are judged; {type(learner).__name__} has no belief."
            )
        return None
    out: Belief = LabelBelief() if learner.loss.margin else ResidualBelief(learner.dim)
    if belief is not None:
        if repr(belief) != repr(out):
            raise DataError(f"belief must be a {out!r} for this learner. Got {belief!r} instead.")
        out.restore(belief.state())
    return out


def _judge_rounds(
    belief: Belief, stream: Stream, predictions: Array, skipped: Array
) -> tuple[Array, Array, Array, Belief]:
    """Log-odds and intervals of all rounds, and the belief that has learned from them."""
    log_odds, low, high = np.full((3, len(stream)), np.nan)
    played = np.ones(len(stream), bool)
    played[skipped] = False
    for first in range(0, len(stream), JUDGED_ROWS):
        rows = np.flatnonzero(played[first : first + JUDGED_ROWS]) + first
        if isinstance(belief, LabelBelief):
            log_odds[rows] = belief.update(predictions[rows], stream.y[rows] > 0.0).clean_log_odds
        else:
            verdict = belief.update(predictions[rows], stream.y[rows], stream.X[rows])
            log_odds[rows], low[rows], high[rows] = verdict.clean_log_odds, verdict.low, verdict.high
    return log_odds, low, high, belief


def _iterate_chunks(rounds: int, progress: bool) -> Iterator[tuple[int, int]]:
    """Yield the rows to play next: few at first, and twice as many whenever they are played quickly."""
    with _progress_bar(rounds) if progress else nullcontext(lambda played: None) as show:
        first, size = 0, FIRST_ROWS
        while first < rounds:
            last = min(first + size, rounds)
            started = time.perf_counter()
            yield first, last
            size = 2 * size if time.perf_counter() - started < CHUNK_SECONDS else size
            first = last
            show(first)


@contextmanager
def _progress_bar(rounds: int) -> Iterator[Callable[[int], None]]:
    with needs_extra("A progress bar needs rich", "cli"):
        from rich.progress import Progress
    with Progress() as bar:
        task = bar.add_task("playing", total=rounds)
        yield lambda played: bar.update(task, completed=played)


class _WritableAlias:
    """A view of a read-only array that Numba takes for a writable one; nothing writes to it."""

    def __init__(self, array: Array) -> None:
        self.owner = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def _prepare_for_kernel(array: Array, dtype: np.dtype[Any]) -> Array:
    """Convert an array to the order and precision of the compiled loop; copied only if needed."""
    with np.errstate(over="ignore"):
        array = np.require(array, dtype, ["C", "A"])
    return array if array.flags.writeable else np.asarray(_WritableAlias(array))
