"""The suite as tasks: a few settings each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redescend.experiments.suite.design import chosen
from redescend.experiments.suite.games import game
from redescend.experiments.suite.players import ablated, played
from redescend.experiments.tasks import Experiment, Options, Task

ROUNDS, QUICK_ROUNDS = 10_000, 1_000
EACH = 4
"""Settings a task."""


def _tasks(options: Options) -> Iterator[Task]:
    """One run of each setting, however many runs are asked for: settings are what the suite averages over."""
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    for first in range(0, len(chosen(options.seed, options.quick)), EACH):
        settings = (("first", first), ("quick", int(options.quick)), ("rounds", rounds), ("seed", options.seed))
        yield Task("suite", settings)


def _compute(first: int, quick: int, rounds: int, seed: int) -> Iterator[dict[str, Any]]:
    settings = chosen(seed, bool(quick))
    for place in range(first, min(first + EACH, len(settings))):
        setting = settings[place]
        here = game(setting, rounds, (seed, place))
        row = {
            "experiment": "suite",
            "problem": setting.name,
            "run": 0,
            "rounds": here.rounds,
            "count": setting.count,
            "k": here.k,
            "round": here.rounds,
        }
        for learner, regret, step in played(here):
            finite = np.isfinite(regret)
            yield {
                **row,
                "learner": learner,
                "measure": "final regret" if finite else "diverged",
                "value": np.array([regret if finite else 1.0]),
            }
            if finite and np.isfinite(step):
                yield {**row, "learner": learner, "measure": "step", "value": np.array([step])}
        for learner, regret, _ in ablated(here):
            yield {**row, "learner": learner, "measure": "ablated regret", "value": np.array([min(regret, 1e300)])}


SUITE = Experiment("suite", _tasks, _compute)
