"""Which rounds are corrupted, and how a stream keeps their originals."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.game import Originals, Stream
from redescend.numeric import Array
from redescend.parameters import Interval, bad_parameter, check

TIMES = ("random", "burst", "periodic", "first", "last")


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
        At random; k rounds in a row, from a random one on; evenly spaced; the first; the last; or where the array is
        True.
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
        return _masked_rounds(owner, total, k, when)
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


def _masked_rounds(owner: str, total: int, k: int | None, when: Any) -> Array:
    mask = np.asarray(when)
    if mask.dtype != np.bool_ or mask.shape != (total,):
        raise bad_parameter(owner, "when", f"a word or {total} bools, one for each round", when)
    rows = np.flatnonzero(mask)
    if k is not None and check(owner, "k", k, Interval(0, total, whole=True)) != len(rows):
        raise bad_parameter(owner, "k", f"None or the {len(rows)} rounds that 'when' marks", k)
    return rows


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
