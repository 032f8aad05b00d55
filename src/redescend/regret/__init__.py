r"""Regret: the loss of a learner beyond that of a comparator. It is computed only here.

The trace has the losses and the stream says which rounds are clean; each curve is the sum up to every round. A row that
the learner skipped counts 0.

>>> import redescend as rd
>>> loss = rd.losses.Squared()
>>> stream = rd.Stream([[1.0]] * 3, [2.0, 2.0, 2.0])
>>> stream = rd.adversaries.ShiftResponse(9.0).corrupt(stream, k=1, seed=0, when="first")
>>> trace = rd.play(rd.OGD(1, loss=loss, step=rd.steps.Constant(0.25)), stream)
>>> rd.regret.clean_dynamic(trace, stream, loss)
array([ 0.    , 12.25  , 15.3125])
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np

from redescend.domains import Domain
from redescend.errors import DataError
from redescend.game import Stream, Trace
from redescend.losses import Loss
from redescend.numeric import LARGEST, Array
from redescend.parameters import bad_parameter, check_instance
from redescend.regret.hindsight import best_action, best_actions, losses_at, minimum_losses
from redescend.transforms import Transform

__all__ = ["best_fixed", "clean_dynamic", "clean_static", "deviation", "invex_dynamic", "path_length", "split"]

BLOCK = 1 << 17  # number of floats in a block of minimizers


def clean_dynamic(
    trace: Trace, stream: Stream, loss: Loss, comparator: Any = "round", domain: Domain | None = None
) -> Array:
    r"""Return the clean dynamic regret: Σ over the clean rounds s ≤ t of f_s(θ_s) − f_s(u_s), for every t.

    Parameters
    ----------
    trace, stream : Trace, Stream
        The game, and the stream that was played.
    loss : Loss
        The loss of the learner.
    comparator : "round", "truth" or an array, default "round"
        u_s: the minimizer of f_s; the stream's truth; or one action, shape (features,), or a path of them, shape
        (rows, features).
    domain : Domain, optional
        Where the minimizers of "round" must be. Default: anywhere.

    Returns
    -------
    array
        One value for each round; a corrupted round adds 0.

    Examples
    --------
    >>> from redescend import OGD, losses, play, steps
    >>> stream = Stream([[1.0], [1.0]], [2.0, 2.0])
    >>> trace = play(OGD(1, loss=losses.Squared(), step=steps.Constant(0.25)), stream)
    >>> clean_dynamic(trace, stream, losses.Squared())
    array([4., 5.])
    >>> clean_dynamic(trace, stream, losses.Squared(), comparator=[1.0])
    array([3., 3.])
    """
    counted = _select_rounds("clean_dynamic", trace, stream, loss, domain)
    if isinstance(comparator, str) and comparator == "round":
        least = minimum_losses(loss, stream.X, stream.y, domain, counted)
    else:
        least = losses_at(loss, stream.X, stream.y, _read_comparator(comparator, stream), counted)
    return _cumulate(trace.losses, least, counted)


class Split(NamedTuple):
    """The regret of a learner that combines experts, as two curves that add up to it."""

    meta: Array
    expert: Array


def split(
    trace: Trace, alone: Trace, stream: Stream, loss: Loss, comparator: Any = "round", domain: Domain | None = None
) -> Split:
    r"""Split the clean dynamic regret as the paper does: the regret of one expert, and the regret against that expert.

    The paper calls the regret of the expert against the comparator *meta regret*, and that of the learner against the
    expert *expert regret*.

    Parameters
    ----------
    trace : Trace
        The game of the learner.
    alone : Trace
        What one expert plays by itself, such as ``play(learner.alone(expert), stream)``.
    stream, loss, comparator, domain
        As in `clean_dynamic`.

    Returns
    -------
    Split
        The curves `meta` and `expert`.

    Examples
    --------
    >>> from redescend import LearnWithExperts, losses, play, streams
    >>> loss, stream = losses.Squared(), streams.ridge(50, seed=0, dim=2)
    >>> learner = LearnWithExperts(2, loss=loss, a=1.0, b=0.1, rounds=50)
    >>> trace = play(learner, stream)
    >>> parts = split(trace, play(learner.alone(learner.experts[0]), stream), stream, loss)
    >>> bool(np.allclose(parts.meta + parts.expert, clean_dynamic(trace, stream, loss)))
    True
    """
    meta = clean_dynamic(alone, stream, loss, comparator, domain)
    return Split(meta, clean_dynamic(trace, stream, loss, comparator, domain) - meta)


def clean_static(trace: Trace, stream: Stream, loss: Loss, domain: Domain | None = None) -> Array:
    r"""Return the clean static regret: Σ over the clean rounds s ≤ t of f_s(θ_s) − f_s(u), for every t.

    u is the best fixed action of all clean rounds, as `best_fixed` finds it.

    Parameters
    ----------
    trace, stream, loss, domain
        As in `clean_dynamic`; u is in the domain.

    Returns
    -------
    array
        The curve, as in `clean_dynamic`.

    Examples
    --------
    >>> from redescend import OGD, losses, play, steps
    >>> loss, stream = losses.Squared(), Stream([[1.0], [1.0]], [2.0, 4.0])
    >>> clean_static(play(OGD(1, loss=loss, step=steps.Constant(0.25)), stream), stream, loss)
    array([ 3., 11.])
    """
    counted = _select_rounds("clean_static", trace, stream, loss, domain)
    theta = best_fixed(Stream(stream.X, stream.y, counted), loss, domain)
    return _cumulate(trace.losses, losses_at(loss, stream.X, stream.y, theta, counted), counted)


def best_fixed(stream: Stream, loss: Loss, domain: Domain | None = None) -> Array:
    r"""Return the fixed action with the least loss over the clean rounds; of several, one of them.

    Its total loss is the minimum to a relative error of about 1e-10; for Custom it is as good as ``Custom.minimum``. On
    a Box, L1Ball, Simplex or Intersection features should be of similar size. Without l2, Logistic on separable records
    has no minimizer; the action returned has a loss close to 0.

    Parameters
    ----------
    stream : Stream
        The records; corrupted ones are left out.
    loss, domain
        The loss to minimize, and where the action must be; by default anywhere.

    Returns
    -------
    array
        The action.

    Examples
    --------
    >>> from redescend import losses
    >>> best_fixed(Stream([[1.0], [1.0], [1.0]], [1.0, 2.0, 30.0]), losses.Absolute())
    array([2.])
    """
    _check_inputs("best_fixed", stream, loss, domain)
    X, y = (stream.X, stream.y) if stream.clean.all() else (stream.X[stream.clean], stream.y[stream.clean])
    _check_finite(X, y, np.flatnonzero(stream.clean))
    return best_action(loss, X, y, domain)


def invex_dynamic(
    trace: Trace, stream: Stream, loss: Loss, transform: Transform, domain: Domain | None = None
) -> Array:
    r"""Return the invex dynamic regret: Σ over all rounds s ≤ t of g_s(θ_s) − g_s(ω_s) with g = h(f), for every t.

    ω_s is the minimizer of f_s as it was played. Corrupted rounds count like the others.

    Parameters
    ----------
    trace, stream, loss, domain
        As in `clean_dynamic`.
    transform : Transform
        The transform h, such as ``transforms.Learn(10.0, 10.0)``.

    Returns
    -------
    array
        One value for each round.

    Examples
    --------
    >>> from redescend import OGD, losses, play, steps, transforms
    >>> stream = Stream([[1.0], [1.0]], [2.0, 2.0])
    >>> trace = play(OGD(1, loss=losses.Squared(), step=steps.Constant(0.25)), stream)
    >>> invex_dynamic(trace, stream, losses.Squared(), transforms.Huber(1.0))
    array([3., 4.])
    """
    counted = _select_rounds("invex_dynamic", trace, stream, loss, domain, only_clean=False)
    check_instance("invex_dynamic", "transform", transform, Transform, "a transform, such as Learn(10.0, 10.0)")
    least = minimum_losses(loss, stream.X, stream.y, domain, counted)
    return _cumulate(transform.value(trace.losses), transform.value(least), counted)


def path_length(stream: Stream, loss: Loss, domain: Domain | None = None) -> Array:
    r"""Return the path length of the minimizers of the uncorrupted records: Σ over s < t of ‖θ*_s − θ*_{s+1}‖.

    Parameters
    ----------
    stream : Stream
        With the originals of its corrupted rounds.
    loss, domain
        As in `clean_dynamic`.

    Returns
    -------
    array
        One value for each round t: first 0, last the paper's V_T.

    Examples
    --------
    >>> from redescend import losses
    >>> path_length(Stream([[1.0], [1.0], [1.0]], [1.0, 3.0, 2.0]), losses.Squared())
    array([0., 2., 3.])
    """
    _check_inputs("path_length", stream, loss, domain)
    nature = stream.uncorrupted()
    _check_finite(nature.X, nature.y, np.arange(len(nature)))
    moves = np.zeros(len(stream))
    size = max(1, BLOCK // stream.dim)
    for first in range(0, len(stream) - 1, size):
        rows = slice(first, first + size + 1)
        points = best_actions(loss, nature.X[rows], nature.y[rows], domain)
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
        moves[first + 1 : first + len(points)] = np.minimum(lengths, LARGEST)
    with np.errstate(over="ignore"):
        return np.minimum(np.cumsum(moves), LARGEST)


def deviation(stream: Stream, loss: Loss, domain: Domain | None = None) -> float:
    r"""Return the largest ‖ω*_t − θ*_t‖ over the corrupted rounds, the paper's δ.

    ω*_t minimizes the loss of the record that was played, and θ*_t that of its original.

    Parameters
    ----------
    stream, loss, domain
        As in `path_length`.

    Returns
    -------
    float
        0 if no round is corrupted.

    Examples
    --------
    >>> from redescend import adversaries, losses
    >>> stream = adversaries.ShiftResponse(5.0).corrupt(Stream([[2.0], [1.0]], [1.0, 3.0]), k=1, seed=0, when="last")
    >>> deviation(stream, losses.Squared())
    5.0
    """
    _check_inputs("deviation", stream, loss, domain)
    nature = stream.uncorrupted()
    rows = np.flatnonzero(~stream.clean)
    if len(rows) == 0:
        return 0.0
    ends = []
    for which in (stream, nature):
        X, y = which.X[rows], which.y[rows]
        _check_finite(X, y, rows)
        ends.append(best_actions(loss, X, y, domain))
    with np.errstate(over="ignore"):
        return min(float(np.linalg.norm(ends[0] - ends[1], axis=1).max()), LARGEST)


def _cumulate(losses: Array, least: Array, counted: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        curve: Array = np.cumsum(np.where(counted, losses - least, 0.0))
    return np.clip(curve, -LARGEST, LARGEST)


def check_game(owner: str, trace: Trace, stream: Stream) -> None:
    """Raise an error unless the trace and the stream may be of one game."""
    check_instance(owner, "trace", trace, Trace, "a Trace")
    check_instance(owner, "stream", stream, Stream, "a Stream")
    if len(trace) != len(stream):
        raise DataError(
            f"The trace has {len(trace)} rounds and the stream has {len(stream)}; they must be of one game."
        )


def _check_inputs(owner: str, stream: Stream, loss: Loss, domain: Domain | None) -> None:
    check_instance(owner, "stream", stream, Stream, "a Stream")
    check_instance(owner, "loss", loss, Loss, "a loss, such as Squared()")
    check_instance(owner, "domain", domain, (Domain, type(None)), "a domain, such as Ball(1.0), or None")


def _select_rounds(
    owner: str, trace: Trace, stream: Stream, loss: Loss, domain: Domain | None, only_clean: bool = True
) -> Array:
    """Return which rounds count: the clean ones or all of them, without those that were skipped."""
    check_game(owner, trace, stream)
    _check_inputs(owner, stream, loss, domain)
    counted: Array = stream.clean.copy() if only_clean else np.ones(len(stream), dtype=bool)
    counted[trace.skipped] = False
    return counted


def _read_comparator(comparator: Any, stream: Stream) -> Array:
    """The comparator as one action or a path of them."""
    if isinstance(comparator, str) and comparator == "truth":
        if stream.truth is None:
            raise DataError("The stream has no truth to compare with; give Stream(truth=...) or another comparator.")
        return stream.truth
    rows, dim = len(stream), stream.dim
    rule = f"'round', 'truth', or finite numbers of shape ({dim},) or ({rows}, {dim})"
    with contextlib.suppress(TypeError, ValueError):
        path = np.asarray(comparator, dtype=np.float64)
        if path.shape in ((dim,), (rows, dim)) and np.isfinite(path).all():
            return path
    raise bad_parameter("clean_dynamic", "comparator", rule, comparator)


def _check_finite(X: Array, y: Array, rows: Array) -> None:
    # A sum takes no memory, and is finite only if all its terms are.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64) + y.sum(dtype=np.float64)):
            return
    finite = np.isfinite(X).all(axis=1) & np.isfinite(y)
    if not finite.all():
        raise DataError(f"The records must be finite. Got row {rows[np.argmin(finite)]} instead.")
