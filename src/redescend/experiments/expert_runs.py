"""LEARN with experts: as printed, robust, and its peers, against the best single expert of the paper's grid.

An expert alone is Algorithm 1 with the expert's step in the expert's ball, so the best expert in hindsight is found by
playing every distinct expert alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np

from redescend import domains, regret
from redescend.errors import DivergenceError
from redescend.experiments.problems import PROBLEMS, QUICK_ROUNDS, Problem, choose_rounds
from redescend.experiments.results import (
    Block,
    Experiment,
    Options,
    Results,
    Task,
    format_number,
    make_point,
    mean_and_error,
)
from redescend.game import Stream, play
from redescend.learners.experts import Ader, JacobsenCutkosky, LearnWithExperts
from redescend.learners.learner import Learner
from redescend.losses import linear

PRINTED, ROBUST, BEST = "LEARN with experts, as printed", "LEARN with experts, robust", "best expert in hindsight"
LEARNERS = (ROBUST, PRINTED, "LEARN", "Ader", "Jacobsen–Cutkosky", BEST)  # the rows of the report's table
RUNS = {"ridge": 3, "svm": 10}  # maximum number of runs, because every expert of the grid is also played alone
UNITS = (1e4, 1e-4)  # norms of the truth, relative to the paper's
EVERY = -1  # the place for all four outlier counts
LOOKS = 60  # rounds at which the weights of the experts are stored


def _list_tasks(options: Options) -> Iterator[Task]:
    for name in PROBLEMS:
        rounds = choose_rounds(name, options)
        runs = min(options.runs, 1 if options.quick else RUNS[name])
        games = [(place, rounds, run, 1.0) for run in range(runs) for place in range(4)]
        games += [(EVERY, min(rounds, QUICK_ROUNDS[name]), 0, unit) for unit in UNITS]
        for place, length, run, unit in games:
            settings = (("place", place), ("rounds", length), ("run", run), ("seed", options.seed), ("unit", unit))
            yield Task("experts", (("name", name), *settings))


def _compute_game(name: str, place: int, rounds: int, run: int, seed: int, unit: float) -> Iterator[Block]:
    problem, title = PROBLEMS[name](rounds), name
    if unit != 1.0:
        # The same game at another scale: of the targets, hence of a; or for labels of the features, hence of l2.
        title = f"{name} × {unit:g}"
        loss = problem.loss
        if loss.margin:
            problem = replace(problem, loss=replace(cast(Any, loss), l2=loss.l2 / unit**2))
        else:
            problem = replace(problem, a=problem.a * unit**2)
    for number, (count, stream) in enumerate(problem.streams(seed + run).items()):
        if place not in (EVERY, number):
            continue
        columns = {"experiment": "experts", "problem": title, "run": run, "rounds": rounds, "count": count}
        columns["k"] = stream.corrupted
        yield from _compare_learners(problem, _rescale_stream(stream, unit), columns)


def _rescale_stream(stream: Stream, unit: float) -> Stream:
    labels = set(np.unique(stream.y)) <= {-1.0, 1.0}
    X, y = (stream.X / unit, stream.y) if labels else (stream.X, stream.y * unit)
    assert stream.truth is not None
    return Stream(X, y, clean=stream.clean, truth=stream.truth * unit)


def _compare_learners(problem: Problem, stream: Stream, columns: Block) -> Iterator[Block]:
    common: dict[str, Any] = {"loss": problem.loss, "a": problem.a, "b": problem.b}
    printed = LearnWithExperts(stream.dim, rounds=len(stream), **common)
    robust = LearnWithExperts(stream.dim, meta="robust", **common)
    first, score = columns["run"] == 0, _RegretScorer(problem, stream)
    finals = {}
    for learner_name, learner in {PRINTED: printed, ROBUST: robust}.items():
        finals[learner_name], blocks = _play_in_parts(learner, stream, problem)
        if first:
            yield from ({**columns, "learner": learner_name, **block} for block in blocks)
    finals["LEARN"] = score.learn
    if first and columns["problem"] in PROBLEMS:
        finals |= {learner_name: score(learner) for learner_name, learner in _make_peers(problem, stream).items()}
    alone = [(expert, score(printed.alone(expert))) for expert in printed.experts]
    finals[BEST] = min(value for _, value in alone)
    for learner_name, value in finals.items():
        yield {**columns, "learner": learner_name, **make_point(len(stream), "final regret", value)}
    if first:
        for expert, value in alone:
            split = {"meta regret": value, "expert regret": finals[PRINTED] - value}
            for measure, part in split.items():
                block = make_point(len(stream), measure, part)
                yield {**columns, "learner": PRINTED, "a": expert.step, "b": min(expert.radius, 1e300), **block}


class _RegretScorer:
    """Final clean regret of learners on one stream; the loss of the minimizers is computed once."""

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


def _play_in_parts(learner: LearnWithExperts, stream: Stream, problem: Problem) -> tuple[float, list[Block]]:
    """Final regret; and along the game, the number of distinct experts and the weight of each step."""
    ends = np.unique(np.geomspace(1, len(stream), LOOKS).astype(int))
    blocks: list[Block] = []
    total, begin = 0.0, 0
    for end in ends.tolist():
        part = Stream(stream.X[begin:end], stream.y[begin:end], clean=stream.clean[begin:end])
        total += float(regret.clean_dynamic(play(learner, part), part, problem.loss)[-1])
        begin = end
        blocks.append(make_point(end, "distinct experts", learner.distinct))
        weights: dict[float, float] = {}
        for expert in learner.experts:
            weights[expert.step] = weights.get(expert.step, 0.0) + expert.weight
        blocks.extend({**make_point(end, "weight", weight), "a": step} for step, weight in weights.items())
    return total, blocks


def _make_peers(problem: Problem, stream: Stream) -> dict[str, Learner]:
    """Other expert algorithms, with the bounds that they need taken from the stream in hindsight."""
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


EXPERTS = Experiment(_list_tasks, _compute_game)


def make_tables(results: Results) -> list[dict[str, Any]]:
    """The report's table for each problem: final regret, absolute and as a multiple of the best expert's."""
    rows = results.select(experiment="experts", measure="final regret")
    return [_make_table(rows.select(problem=problem), problem) for problem in rows.unique("problem")]


def _make_table(rows: Results, problem: str) -> dict[str, Any]:
    counts = rows.unique("count")
    cells: dict[tuple[str, str], tuple[str, str]] = {}
    for count in counts:
        at_count = rows.select(count=count)
        best = at_count.select(learner=BEST)
        least = dict(zip(best.column("run"), best.column("value"), strict=True))
        for learner in at_count.unique("learner"):
            runs = at_count.select(learner=learner)
            ratio = np.mean(runs.column("value") / [least[run] for run in runs.column("run")])
            cells[learner, count] = _format_runs(runs.column("value")), f"{format_number(float(ratio))} × best"
    learners = [learner for learner in LEARNERS if any((learner, count) in cells for count in counts)]
    count_runs = len(np.unique(rows.column("run")))
    return {"problem": problem, "counts": counts, "learners": learners, "cells": cells, "runs": count_runs}


def _format_runs(values: Any) -> str:
    mean, error = mean_and_error(values)
    return format_number(mean) if np.isnan(error) else f"{format_number(mean)} ± {format_number(error)}"
