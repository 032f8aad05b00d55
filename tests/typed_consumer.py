"""What a user's typed code looks like: `make test` checks it with mypy, strictly, so that the types are of use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

import redescend as rd
from redescend.transforms import Transform


def learn(X: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> rd.Trace:
    learner = rd.SelfTuning(X.shape[1], loss=rd.losses.Squared())
    trace: rd.Trace = rd.play(learner, rd.Stream(X, y))
    return trace


def learn_one(learner: rd.Learner, x: npt.NDArray[np.float64], y: float) -> float:
    played: rd.Round = learner.update(x, y)
    return float(played.weight)


def save_with(transform: Transform, path: Path) -> None:
    learner = rd.Robust(2, loss=rd.losses.Absolute(), transform=transform, step=rd.steps.Anytime())
    rd.save(learner, path)


def judge(predictions: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> list[int]:
    belief = rd.belief.ResidualBelief(0)
    judgements = belief.update(predictions, y)
    return [int(row) for row in np.flatnonzero(judgements.suspect)]
