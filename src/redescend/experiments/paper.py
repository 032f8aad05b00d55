"""The paper's experiments: regret on ridge and SVM, decision boundaries, and sweeps over k, T, a and b.

`EXPERIMENTS` lists these, the experts and the suite.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from redescend import regret
from redescend.bounds.certificate import make_certificate, measure_game
from redescend.bounds.setting import make_setting
from redescend.bounds.theorems import clean_dynamic
from redescend.errors import DivergenceError
from redescend.experiments.expert_runs import EXPERTS
from redescend.experiments.problems import MEASURES, ORACLE, PAPER, PROBLEMS, Problem, choose_rounds, svm
from redescend.experiments.results import Block, Experiment, Options, Task, join_blocks, make_point
from redescend.experiments.suite import SUITE
from redescend.game import Stream, Trace, play
from redescend.learners.learner import Learner
from redescend.learners.recipes import Learn
from redescend.steps import Horizon

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
