"""LEARN with experts: as printed, robust, and its peers, against the best single expert of the paper's grid.

What an expert does by itself is Algorithm 1 with its step in its ball, so the best in hindsight is found by playing
every expert that differs alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np

from redescend import domains, regret
from redescend.errors import DivergenceError
from redescend.experiments.problems import Problem, ridge, svm
from redescend.experiments.tasks import Experiment, Options, Task
from redescend.game import Stream, play
from redescend.learners.base import Learner
from redescend.learners.experts import LearnWithExperts
from redescend.learners.peers import Ader, JacobsenCutkosky
from redescend.losses import linear

PRINTED, ROBUST, BEST = "LEARN with experts, as printed", "LEARN with experts, robust", "best expert in hindsight"
PROBLEMS = {"ridge": ridge, "svm": svm}
ROUNDS = {"ridge": 100_000, "svm": 10_000}
RUNS = {"ridge": 3, "svm": 10}
"""At most so many runs: every expert of the grid is played by itself as well."""

SHORT = {"ridge": 20_000, "svm": 2_000}
UNITS = (1e4, 1e-4)
"""Norms of the truth, in units of the paper's."""

EVERY = -1
"""The place of an outlier count that stands for all four."""

LOOKS = 60
"""Rounds at which the weights of the experts are kept."""

Block = dict[str, Any]


def _tasks(options: Options) -> Iterator[Task]:
    for name in PROBLEMS:
        rounds = options.rounds or (SHORT if options.quick else ROUNDS)[name]
        runs = min(options.runs, 1 if options.quick else RUNS[name])
        games = [(place, rounds, run, 1.0) for run in range(runs) for place in range(4)]
        games += [(EVERY, min(rounds, SHORT[name]), 0, unit) for unit in UNITS]
        for place, length, run, unit in games:
            own = (("place", place), ("rounds", length), ("run", run), ("seed", options.seed), ("unit", unit))
            yield Task("experts", (("name", name), *own))


def _experts(name: str, place: int, rounds: int, run: int, seed: int, unit: float) -> Iterator[Block]:
    problem, title = PROBLEMS[name](rounds), name
    if unit != 1.0:
        # The same game in other units: of the targets and so of a, or for labels of the features and so of l2.
        title = f"{name} × {unit:g}"
        loss = problem.loss
        if loss.margin:
            problem = replace(problem, loss=replace(cast(Any, loss), l2=loss.l2 / unit**2))
        else:
            problem = replace(problem, a=problem.a * unit**2)
    for number, (count, stream) in enumerate(problem.streams(seed + run).items()):
        if place not in (EVERY, number):
            continue
        here = {"experiment": "experts", "problem": title, "run": run, "rounds": rounds, "count": count}
        here["k"] = stream.corrupted
        yield from _compared(problem, _in_units(stream, unit), here)


def _in_units(stream: Stream, unit: float) -> Stream:
    labels = set(np.unique(stream.y)) <= {-1.0, 1.0}
    X, y = (stream.X / unit, stream.y) if labels else (stream.X, stream.y * unit)
    assert stream.truth is not None
    return Stream(X, y, clean=stream.clean, truth=stream.truth * unit)


def _compared(problem: Problem, stream: Stream, here: Block) -> Iterator[Block]:
    common: dict[str, Any] = {"loss": problem.loss, "a": problem.a, "b": problem.b}
    printed = LearnWithExperts(stream.dim, rounds=len(stream), **common)
    robust = LearnWithExperts(stream.dim, meta="robust", **common)
    first, score = here["run"] == 0, _Score(problem, stream)
    found = {}
    for learner_name, learner in {PRINTED: printed, ROBUST: robust}.items():
        found[learner_name], seen = _watched(learner, stream, problem)
        if first:
            yield from ({**here, "learner": learner_name, **block} for block in seen)
    found["LEARN"] = score.learn
    if first and here["problem"] in PROBLEMS:
        found |= {learner_name: score(learner) for learner_name, learner in _peers(problem, stream).items()}
    alone = [(expert, score(printed.alone(expert))) for expert in printed.experts]
    found[BEST] = min(value for _, value in alone)
    for learner_name, value in found.items():
        yield {**here, "learner": learner_name, **_row(len(stream), "final regret", value)}
    if first:
        for expert, value in alone:
            split = {"meta regret": value, "expert regret": found[PRINTED] - value}
            for measure, part in split.items():
                block = _row(len(stream), measure, part)
                yield {**here, "learner": PRINTED, "a": expert.step, "b": min(expert.radius, 1e300), **block}


def _row(round_: int, measure: str, value: float) -> Block:
    finite = min(value, np.finfo(float).max)
    return {"round": np.array([round_]), "measure": measure, "value": np.array([finite])}


class _Score:
    """Final clean regret of many learners on one stream; what the minimisers lose is computed once."""

    def __init__(self, problem: Problem, stream: Stream) -> None:
        trace = play(problem.learners(stream)["LEARN"], stream)
        self.stream = stream
        self.learn = float(regret.clean_dynamic(trace, stream, problem.loss)[-1])
        self._least = trace.losses[stream.clean].sum() - self.learn

    def __call__(self, learner: Learner) -> float:
        try:
            return float(play(learner, self.stream).losses[self.stream.clean].sum() - self._least)
        except DivergenceError:
            return np.inf


def _watched(learner: LearnWithExperts, stream: Stream, problem: Problem) -> tuple[float, list[Block]]:
    """Final regret; and along the game, how many experts differ and how much weight each step has."""
    ends = np.unique(np.geomspace(1, len(stream), LOOKS).astype(int))
    seen: list[Block] = []
    total, begin = 0.0, 0
    for end in ends.tolist():
        part = Stream(stream.X[begin:end], stream.y[begin:end], clean=stream.clean[begin:end])
        total += float(regret.clean_dynamic(play(learner, part), part, problem.loss)[-1])
        begin = end
        seen.append(_row(end, "distinct experts", learner.distinct))
        weights: dict[float, float] = {}
        for expert in learner.experts:
            weights[expert.step] = weights.get(expert.step, 0.0) + expert.weight
        seen.extend({**_row(end, "weight", weight), "a": step} for step, weight in weights.items())
    return total, seen


def _peers(problem: Problem, stream: Stream) -> dict[str, Learner]:
    """Told, in hindsight, the bounds that they ask for."""
    lengths, loss = np.linalg.norm(stream.X, axis=1), problem.loss
    assert stream.truth is not None
    radius = 2.0 * float(np.linalg.norm(stream.truth))
    growth = linear.curvature(loss.kind) * float(np.max(lengths)) ** 2 + loss.l2
    slopes = np.abs(loss.slope(np.zeros(len(stream)), stream.y)) * lengths
    gradient, edge = float(np.max(slopes)), radius * lengths
    worst = np.maximum(loss.of_prediction(edge, stream.y), loss.of_prediction(-edge, stream.y))
    rounds, dim = len(stream), stream.dim
    ball, span = domains.Ball(radius), float(np.max(worst)) + 0.5 * loss.l2 * radius**2
    return {
        "Ader": Ader(dim, loss=loss, domain=ball, rounds=rounds, gradient=gradient + growth * radius, span=span),
        "Jacobsen–Cutkosky": JacobsenCutkosky(dim, loss=loss, rounds=rounds, gradient=gradient, smoothness=growth),
    }


EXPERTS = Experiment("experts", _tasks, _experts)
