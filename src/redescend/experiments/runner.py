"""Play a problem many times and average its regret."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from redescend import regret
from redescend.experiments.problems import Problem
from redescend.game import play
from redescend.numeric import Array

Key = tuple[str, str]
"""An outlier count and a learner, by name."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Clean dynamic regret of one learner at one outlier count: mean and standard error over runs, at some rounds."""

    at: Array
    mean: Array
    error: Array
    finals: Array

    @property
    def final(self) -> float:
        return float(self.finals.mean())

    @property
    def final_error(self) -> float:
        return standard_error(self.finals)


def standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def run(
    problem: Problem,
    seeds: Iterable[int],
    only: Callable[[str], bool] = lambda name: True,
    points: int = 300,
) -> dict[Key, Curves]:
    """Play the problem once for each seed; each run's streams are made once and shared by all learners."""
    at = np.unique(np.geomspace(1, problem.rounds, points).astype(int)) - 1
    kept: dict[Key, list[Array]] = {}
    for seed in seeds:
        for count, stream in problem.streams(seed).items():
            for name, learner in problem.learners(stream).items():
                if only(name):
                    curve = regret.clean_dynamic(play(learner, stream), stream, problem.loss)
                    kept.setdefault((count, name), []).append(curve[at])
    return {key: _averaged(at, np.array(curves)) for key, curves in kept.items()}


def _averaged(at: Array, curves: Array) -> Curves:
    error = curves.std(axis=0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else np.zeros(len(at))
    return Curves(at + 1, curves.mean(axis=0), error, curves[:, -1])
