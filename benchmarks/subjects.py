"""What is measured: ridge streams and learners on them, with settings that stay stable at every width."""

from __future__ import annotations

from typing import Any

import numpy as np

import redescend as rd
from benchmarks.timing import Task

L2 = 1e-4
DIM = 100


def rate(dim: int) -> float:
    """A step that descends: ‖x‖² is about dim."""
    return 0.1 / dim


def stream_of(rows: int, dim: int, dtype: Any = np.float64) -> rd.Stream:
    """A clean ridge stream in the given precision."""
    stream = rd.streams.ridge(rows, seed=0, dim=dim)
    return rd.Stream(stream.X.astype(dtype, copy=False), stream.y.astype(dtype, copy=False))


def settings(dim: int) -> dict[str, Any]:
    return {"loss": rd.losses.Squared(l2=L2), "step": rd.steps.Constant(rate(dim))}


def learn(dim: int) -> rd.Learn:
    return rd.Learn(dim, a=10.0, b=10.0, **settings(dim))


def playing(stream: rd.Stream) -> Task:
    """LEARN on this stream; every call continues from its current state, so that only the game is timed."""
    learner = learn(stream.dim)
    return lambda: rd.play(learner, stream)
