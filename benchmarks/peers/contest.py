"""The contest: predict, then learn; only clean records count."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import redescend as rd
from benchmarks.timing import clock
from redescend.numeric import Array

BLOCK = 100
"""Number of records that are predicted before any of them is learned from."""

SHARES = (0.0, 0.02, 0.1, 0.25)


class Contestant(Protocol):
    """A model that predicts a block of records and learns from it."""

    def predict(self, X: Array) -> Array: ...

    def learn(self, X: Array, y: Array) -> None: ...


@dataclass(frozen=True)
class Entry:
    """A name, and one contestant for each step that it may try."""

    name: str
    make: Callable[[float], Contestant]
    steps: Sequence[float] = (0.0,)
    ours: bool = False


@dataclass(frozen=True)
class Result:
    """The prequential loss on clean records of the best step, that step, and rows per second."""

    name: str
    share: float
    loss: float
    step: float
    rate: float
    ours: bool


def compete(entries: Sequence[Entry], streams: dict[float, rd.Stream], loss: Callable[..., Any]) -> Iterator[Result]:
    """Every entry on every stream; a contestant that diverges has an infinite loss."""
    for share, stream in streams.items():
        for entry in entries:
            # Loading and compiling are not timed.
            play(entry.make(entry.steps[0]), rd.Stream(stream.X[: 2 * BLOCK], stream.y[: 2 * BLOCK]), loss)
            best: Result | None = None
            for step in entry.steps:
                paid, seconds = play(entry.make(step), stream, loss)
                if best is None or paid < best.loss:
                    best = Result(entry.name, share, paid, step, len(stream) / seconds, entry.ours)
            assert best is not None
            yield best


def play(contestant: Contestant, stream: rd.Stream, loss: Callable[..., Any]) -> tuple[float, float]:
    """Mean loss on the clean records, and the seconds taken."""
    predictions = np.empty(len(stream))
    began = clock()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # Packages diverge in different ways, all of which show in the loss.
        warnings.simplefilter("ignore")
        for first in range(0, len(stream), BLOCK):
            rows = slice(first, first + BLOCK)
            try:
                predictions[rows] = contestant.predict(stream.X[rows])
                contestant.learn(stream.X[rows], stream.y[rows])
            except (ValueError, FloatingPointError, OverflowError):
                return float("inf"), clock() - began
        seconds = clock() - began
        paid = loss(predictions, stream.y)[stream.clean]
        mean = float(paid.mean())
    return (mean if np.isfinite(mean) else float("inf")), seconds


def regression_streams(rounds: int, dim: int, seed: int = 0) -> dict[float, rd.Stream]:
    """A linear model, noise of a tenth of the signal, and outliers uniform within ten times the signal."""
    clean = rd.streams.regression(rounds, seed, dim, noise_scale=0.1)
    wrong = rd.adversaries.UniformResponse(-10.0, 10.0)
    return {share: wrong.corrupt(clean, int(share * rounds), [seed, place]) for place, share in enumerate(SHARES)}


def classification_streams(rounds: int, dim: int, seed: int = 0) -> dict[float, rd.Stream]:
    """The sign of such a response, with some labels flipped."""
    clean, wrong = rd.streams.classification(rounds, seed, dim, noise_scale=0.1), rd.adversaries.LabelFlip()
    return {share: wrong.corrupt(clean, int(share * rounds), [seed, place]) for place, share in enumerate(SHARES)}


def squared(predictions: Array, y: Array) -> Array:
    return (predictions - y) ** 2


def mistaken(predictions: Array, y: Array) -> Array:
    """1 where the sign of the prediction is not the label."""
    return (predictions * y <= 0.0).astype(float)
