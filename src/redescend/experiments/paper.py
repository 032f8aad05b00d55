"""The paper's experiments as tasks: regret on ridge and SVM, decision boundaries, and sweeps over k, T, a and b.

`EXPERIMENTS` lists them, and beside them the experts and the suite of adversity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from redescend import regret
from redescend.errors import DivergenceError
from redescend.experiments.certificates import guarantees
from redescend.experiments.experts.compute import EXPERTS
from redescend.experiments.problems import PAPER, YARDSTICK, Problem, ridge, svm
from redescend.experiments.suite.compute import SUITE
from redescend.experiments.tasks import Experiment, Options, Task, table
from redescend.game import Stream, Trace, play
from redescend.learners.base import Learner
from redescend.learners.recipes import Learn
from redescend.steps import Horizon

PROBLEMS: dict[str, Callable[[int], Problem]] = {"ridge": ridge, "svm": svm}
ROUNDS = {"ridge": 100_000, "svm": 10_000}
QUICK_ROUNDS = {"ridge": 20_000, "svm": 2_000}
"""Ridge with 100 features diverges at the step 1/√T below about 10⁴ rounds."""

POINTS = 200
"""Rounds of a run at which its regret is kept."""

DRAWN = 2_000
"""Rounds of a run whose weights are kept, clean and corrupted each."""

SWEPT = ("LEARN", "OGD", "Top-k", "OGD, step/11", YARDSTICK)

Block = dict[str, Any]


def compute(task: Task) -> pa.Table:
    """The rows of one task; the same bits in any process."""
    return table(EXPERIMENTS[task.experiment].compute(**dict(task.settings)))


def _rounds(name: str, options: Options) -> int:
    return options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)[name]


def _final(problem: Problem, stream: Stream, learner: Learner) -> Block:
    """The regret after the last round, or that there was none."""
    try:
        value, measure = regret.clean_dynamic(play(learner, stream), stream, problem.loss)[-1], "final regret"
    except DivergenceError:
        value, measure = 1.0, "diverged"
    at = np.array([problem.rounds])
    return {
        "rounds": problem.rounds,
        "k": stream.corrupted,
        "round": at,
        "measure": measure,
        "value": np.array([value]),
    }


# --- regret along a run ---


def _regret_tasks(name: str) -> Callable[[Options], Iterable[Task]]:
    def tasks(options: Options) -> Iterator[Task]:
        for run in range(options.runs):
            settings = (("name", name), ("rounds", _rounds(name, options)), ("run", run), ("seed", options.seed))
            yield Task(name, settings)

    return tasks


def _regret(name: str, rounds: int, run: int, seed: int) -> Iterator[Block]:
    problem = PROBLEMS[name](rounds)
    at = np.unique(np.geomspace(1, rounds, POINTS).astype(np.int64))
    for count, stream in problem.streams(seed + run).items():
        here = {
            "experiment": name,
            "problem": name,
            "run": run,
            "rounds": rounds,
            "count": count,
            "k": stream.corrupted,
        }
        for learner_name, learner in {**problem.learners(stream), **problem.strongly_convex(stream)}.items():
            here["learner"] = learner_name
            try:
                trace = play(learner, stream, keep_actions=learner_name == "LEARN")
            except DivergenceError:
                yield {**here, "round": np.array([learner.rounds]), "measure": "diverged", "value": np.ones(1)}
                continue
            curve = regret.clean_dynamic(trace, stream, problem.loss)
            yield {**here, "round": at, "measure": "regret", "value": curve[at - 1]}
            if learner_name == "LEARN" and isinstance(learner, Learn):
                yield from guarantees(here, problem, trace, stream, learner)
                if run == 0:
                    yield from _weights(here, trace, stream, seed)


def _weights(here: Block, trace: Trace, stream: Stream, seed: int) -> Iterator[Block]:
    random = np.random.default_rng([seed, 1])
    for kind, mask in {"clean": stream.clean, "corrupted": ~stream.clean}.items():
        rounds = np.flatnonzero(mask)
        if len(rounds):
            drawn = np.sort(random.choice(rounds, min(DRAWN, len(rounds)), replace=False))
            yield {**here, "round": drawn + 1, "measure": f"weight {kind}", "value": trace.weights[drawn]}


# --- decision boundaries ---


def _boundary_tasks(options: Options) -> Iterator[Task]:
    yield Task("boundaries", (("rounds", _rounds("svm", options)), ("seed", options.seed)))


def _boundaries(rounds: int, seed: int) -> Iterator[Block]:
    problem = svm(rounds)
    for count, stream in problem.streams(seed).items():
        k = stream.corrupted
        here = {"experiment": "boundaries", "problem": "svm", "run": 0, "rounds": rounds, "count": count, "k": k}
        learners = problem.learners(stream)
        actions = {name: play(learners[name], stream).theta for name in PAPER}
        for name, theta in {**actions, "truth": stream.truth}.items():
            for place in range(2):
                value = np.array([theta[place]])  # type: ignore[index]
                yield {
                    **here,
                    "learner": name,
                    "round": np.array([rounds]),
                    "measure": f"theta {place}",
                    "value": value,
                }
        drawn = np.sort(np.random.default_rng([seed, 2]).choice(rounds, min(500, rounds), replace=False))
        measures = {
            "x 0": stream.X[drawn, 0],
            "x 1": stream.X[drawn, 1],
            "y": stream.y[drawn],
            "clean": stream.clean[drawn].astype(float),
        }
        for measure, value in measures.items():
            yield {**here, "learner": "stream", "round": drawn + 1, "measure": measure, "value": value}


# --- sweeps over k, T, a and b ---


def _sweep_tasks(options: Options) -> Iterator[Task]:
    runs = min(options.runs, 2 if options.quick else 10)
    for name in PROBLEMS:
        rounds = min(_rounds(name, options), 20_000)
        for run in range(runs):
            for kind in ("k", "T", "ab"):
                settings = (("kind", kind), ("name", name), ("rounds", rounds), ("run", run), ("seed", options.seed))
                yield Task("sweep", settings)


def _sweep(kind: str, name: str, rounds: int, run: int, seed: int) -> Iterator[Block]:
    over = {"k": _over_outliers, "T": _over_rounds, "ab": _over_constants}[kind]
    here = {"experiment": "sweep", "problem": f"{name}-{kind}", "run": run}
    for block in over(PROBLEMS[name], rounds, seed + run):
        yield {**here, **block}


def _finals(problem: Problem, stream: Stream, count: str) -> Iterator[Block]:
    learners = problem.learners(stream)
    for name in SWEPT:
        yield {**_final(problem, stream, learners[name]), "count": count, "learner": name}


def _over_outliers(make: Callable[[int], Problem], rounds: int, seed: int) -> Iterator[Block]:
    problem = make(rounds)
    clean = problem.clean_stream(rounds, seed, problem.dim)
    for place, share in enumerate((0.0, 1 / 512, 1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)):
        yield from _finals(problem, problem.adversary.corrupt(clean, int(share * rounds), [seed, place, 3]), "grid")


def _over_rounds(make: Callable[[int], Problem], rounds: int, seed: int) -> Iterator[Block]:
    # With many features the step 1/√T is stable in long games only.
    shortest, longest = (rounds, 8 * rounds) if make(rounds).dim > 10 else (rounds / 32, rounds)
    for T in np.unique(np.geomspace(shortest, longest, 5).astype(int)).tolist():
        problem = make(T)
        yield from _finals(problem, problem.streams(seed)["T^⅔"], "T^⅔")


def _over_constants(make: Callable[[int], Problem], rounds: int, seed: int) -> Iterator[Block]:
    problem = make(rounds)
    step = Horizon(rounds)
    for count, stream in problem.streams(seed).items():
        for a in problem.a * 10.0 ** np.arange(-5.0, 2.0):
            for b in 10.0 ** np.arange(-5.0, 3.0):
                learner = Learn(problem.dim, loss=problem.loss, a=a, b=b, step=step)
                yield {**_final(problem, stream, learner), "count": count, "learner": "LEARN", "a": a, "b": b}


EXPERIMENTS = {
    "ridge": Experiment("ridge", _regret_tasks("ridge"), _regret),
    "svm": Experiment("svm", _regret_tasks("svm"), _regret),
    "boundaries": Experiment("boundaries", _boundary_tasks, _boundaries),
    "sweep": Experiment("sweep", _sweep_tasks, _sweep),
    "experts": EXPERTS,
    "suite": SUITE,
}
