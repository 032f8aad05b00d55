"""The paper's experiments: experts, regret on ridge and SVM, decision boundaries, and sweeps over k, T, a and b.

`EXPERIMENTS` lists these and the suite. LEARN with experts is played as printed, robust, and beside its peers, against
the best single expert of the paper's grid. An expert alone is Algorithm 1 with the expert's step in the expert's ball,
so the best expert in hindsight is found by playing every distinct expert alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa

from redescend import domains, regret
from redescend.bounds.certificate import make_certificate, measure_game
from redescend.bounds.setting import make_setting
from redescend.bounds.theorems import clean_dynamic
from redescend.errors import DivergenceError
from redescend.experiments.problems import MEASURES, ORACLE, PAPER, PROBLEMS, QUICK_ROUNDS, Problem, choose_rounds, svm
from redescend.experiments.results import (
    Block,
    Experiment,
    Options,
    Results,
    Task,
    format_number,
    join_blocks,
    make_point,
    mean_and_error,
)
from redescend.experiments.suite import SUITE
from redescend.game import Stream, Trace, play
from redescend.learners.experts import Ader, JacobsenCutkosky, LearnWithExperts
from redescend.learners.learner import Learner
from redescend.learners.recipes import Learn
from redescend.losses import linear
from redescend.steps import Horizon

# --- LEARN with experts ---

PRINTED, ROBUST, BEST = "LEARN with experts, as printed", "LEARN with experts, robust", "best expert in hindsight"
LEARNERS = (ROBUST, PRINTED, "LEARN", "Ader", "Jacobsen–Cutkosky", BEST)  # the rows of the report's table
RUNS = {"ridge": 3, "svm": 10}  # maximum number of runs, because every expert of the grid is also played alone
UNITS = (1e4, 1e-4)  # norms of the truth, relative to the paper's
EVERY = -1  # the place for all four outlier counts
LOOKS = 60  # rounds at which the weights of the experts are stored


def _list_expert_tasks(options: Options) -> Iterator[Task]:
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


EXPERTS = Experiment(_list_expert_tasks, _compute_game)


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


POINTS = 200  # rounds of a run at which its regret is stored
SAMPLED = 2_000  # rounds of a run whose weights are stored, clean and corrupted each

SWEPT = ("LEARN", "OGD", "Top-k", "OGD, step/11", ORACLE)


def compute(task: Task) -> pa.Table:
    """Compute the rows of one task, with equal bits in every process."""
    return join_blocks(EXPERIMENTS[task.experiment].compute(**dict(task.settings)))


def _play_to_end(problem: Problem, stream: Stream, learner: Learner) -> Block:
    """The final regret, or that the learner diverged."""
    try:
        value, measure = regret.clean_dynamic(play(learner, stream), stream, problem.loss)[-1], "final regret"
    except DivergenceError:
        value, measure = 1.0, "diverged"
    return {"rounds": problem.rounds, "k": stream.corrupted, **make_point(problem.rounds, measure, value)}


# --- regret along a run ---


def _list_regret_tasks(name: str, options: Options) -> Iterator[Task]:
    for run in range(options.runs):
        rounds = choose_rounds(name, options)
        yield Task(name, (("name", name), ("rounds", rounds), ("run", run), ("seed", options.seed)))


def _compute_regret(name: str, rounds: int, run: int, seed: int) -> Iterator[Block]:
    problem = PROBLEMS[name](rounds)
    at = np.unique(np.geomspace(1, rounds, POINTS).astype(np.int64))
    for count, stream in problem.streams(seed + run).items():
        columns: Block = {"experiment": name, "problem": name, "run": run, "rounds": rounds, "count": count}
        columns["k"] = stream.corrupted
        for learner_name, learner in {**problem.learners(stream), **problem.strongly_convex(stream)}.items():
            columns["learner"] = learner_name
            try:
                trace = play(learner, stream, keep_actions=learner_name == "LEARN")
            except DivergenceError:
                yield {**columns, **make_point(learner.rounds, "diverged", 1.0)}
                continue
            curve = regret.clean_dynamic(trace, stream, problem.loss)
            yield {**columns, "round": at, "measure": "regret", "value": curve[at - 1]}
            if learner_name == "LEARN" and isinstance(learner, Learn):
                values = _compute_guarantees(problem, trace, stream, learner)
                for measure, value in zip(MEASURES, values, strict=True):
                    yield {**columns, **make_point(rounds, measure, value)}
                if run == 0:
                    yield from _sample_weights(columns, trace, stream, seed)


def _compute_guarantees(problem: Problem, trace: Trace, stream: Stream, learner: Learn) -> tuple[float, ...]:
    """`MEASURES` of a run of LEARN: its regret, its certificate, and Theorem 3.3 with sharp and printed constants."""
    game = measure_game(trace, stream, learner)
    certificate, setting = make_certificate(game, trace, stream, learner), make_setting(game, learner)
    step = learner.step.settings[0]
    sharp, printed = (clean_dynamic(setting, problem.a, problem.b, sharp, step).value for sharp in (True, False))
    return certificate.measured, certificate.convexity, certificate.value, sharp, printed


def _sample_weights(columns: Block, trace: Trace, stream: Stream, seed: int) -> Iterator[Block]:
    random = np.random.default_rng([seed, 1])
    for kind, mask in {"clean": stream.clean, "corrupted": ~stream.clean}.items():
        rounds = np.flatnonzero(mask)
        if len(rounds):
            sampled = np.sort(random.choice(rounds, min(SAMPLED, len(rounds)), replace=False))
            yield {**columns, "round": sampled + 1, "measure": f"weight {kind}", "value": trace.weights[sampled]}


# --- decision boundaries ---


def _compute_boundaries(rounds: int, seed: int) -> Iterator[Block]:
    problem = svm(rounds)
    for count, stream in problem.streams(seed).items():
        k = stream.corrupted
        columns = {"experiment": "boundaries", "problem": "svm", "run": 0, "rounds": rounds, "count": count, "k": k}
        learners = problem.learners(stream)
        actions = {name: play(learners[name], stream).theta for name in PAPER}
        for name, theta in {**actions, "truth": stream.truth}.items():
            for place in range(2):
                value = theta[place]  # type: ignore[index]
                yield {**columns, "learner": name, **make_point(rounds, f"theta {place}", value)}
        sampled = np.sort(np.random.default_rng([seed, 2]).choice(rounds, min(500, rounds), replace=False))
        measures = {
            "x 0": stream.X[sampled, 0],
            "x 1": stream.X[sampled, 1],
            "y": stream.y[sampled],
            "clean": stream.clean[sampled].astype(float),
        }
        for measure, value in measures.items():
            yield {**columns, "learner": "stream", "round": sampled + 1, "measure": measure, "value": value}


# --- sweeps over k, T, a and b ---


def _list_sweep_tasks(options: Options) -> Iterator[Task]:
    runs = min(options.runs, 2 if options.quick else 10)
    for name in PROBLEMS:
        rounds = min(choose_rounds(name, options), 20_000)
        for run in range(runs):
            for kind in ("k", "T", "ab"):
                settings = (("kind", kind), ("name", name), ("rounds", rounds), ("run", run), ("seed", options.seed))
                yield Task("sweep", settings)


def _compute_sweep(kind: str, name: str, rounds: int, run: int, seed: int) -> Iterator[Block]:
    over = {"k": _sweep_outliers, "T": _sweep_rounds, "ab": _sweep_constants}[kind]
    columns = {"experiment": "sweep", "problem": f"{name}-{kind}", "run": run}
    for block in over(name, rounds, seed + run):
        yield {**columns, **block}


def _play_learners(problem: Problem, stream: Stream, count: str) -> Iterator[Block]:
    learners = problem.learners(stream)
    for name in SWEPT:
        yield {**_play_to_end(problem, stream, learners[name]), "count": count, "learner": name}


def _sweep_outliers(name: str, rounds: int, seed: int) -> Iterator[Block]:
    problem = PROBLEMS[name](rounds)
    clean = problem.clean_stream(rounds, seed, problem.dim)
    for place, share in enumerate((0.0, 1 / 512, 1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)):
        stream = problem.adversary.corrupt(clean, int(share * rounds), [seed, place, 3])
        yield from _play_learners(problem, stream, "grid")


def _sweep_rounds(name: str, rounds: int, seed: int) -> Iterator[Block]:
    # With many features the step 1/√T is stable only in long games.
    shortest, longest = (rounds, 8 * rounds) if PROBLEMS[name](rounds).dim > 10 else (rounds / 32, rounds)
    for T in np.unique(np.geomspace(shortest, longest, 5).astype(int)).tolist():
        problem = PROBLEMS[name](T)
        yield from _play_learners(problem, problem.streams(seed)["T^⅔"], "T^⅔")


def _sweep_constants(name: str, rounds: int, seed: int) -> Iterator[Block]:
    problem = PROBLEMS[name](rounds)
    step = Horizon(rounds)
    for count, stream in problem.streams(seed).items():
        for a in problem.a * 10.0 ** np.arange(-5.0, 2.0):
            for b in 10.0 ** np.arange(-5.0, 3.0):
                learner = Learn(problem.dim, loss=problem.loss, a=a, b=b, step=step)
                yield {**_play_to_end(problem, stream, learner), "count": count, "learner": "LEARN", "a": a, "b": b}


def _list_boundary_tasks(options: Options) -> list[Task]:
    return [Task("boundaries", (("rounds", choose_rounds("svm", options)), ("seed", options.seed)))]


EXPERIMENTS = {
    "ridge": Experiment(partial(_list_regret_tasks, "ridge"), _compute_regret),
    "svm": Experiment(partial(_list_regret_tasks, "svm"), _compute_regret),
    "boundaries": Experiment(_list_boundary_tasks, _compute_boundaries),
    "sweep": Experiment(_list_sweep_tasks, _compute_sweep),
    "experts": EXPERTS,
    "suite": SUITE,
}
