"""Made-up results that every picture can be drawn from."""

import numpy as np

from redescend.experiments.paper import EVERY, EXPERTS
from redescend.experiments.problems import MEASURES
from redescend.experiments.suite import choose_settings

COUNTS = {"0": 0, "√T": 20, "T^⅔": 54, "T/4": 100}
ROUNDS = 400
LEARNERS = ("LEARN", "OGD", "Top-k", "Uncertain Top-k", "OGD, step/11", "Huber, c = 1", "oracle", "something new")


def regret_blocks(problem):
    at = np.unique(np.geomspace(1, ROUNDS, 20).astype(np.int64))
    for count, k in COUNTS.items():
        for run in range(3):
            here = {"experiment": problem, "problem": problem, "run": run, "rounds": ROUNDS, "count": count, "k": k}
            for place, learner in enumerate(LEARNERS):
                value = (place + 1.0 + 0.1 * run) * at**0.5 * (1 + k / 50)
                yield here | {"learner": learner, "round": at, "measure": "regret", "value": value}
            for place, measure in enumerate(MEASURES):
                value = np.array([100.0 ** (place + 1) * (run + 1)])
                yield here | {"learner": "LEARN", "round": np.array([ROUNDS]), "measure": measure, "value": value}
            yield here | {"learner": "too bold", "round": at, "measure": "regret", "value": 10.0 ** (at / 1.5)}
            yield here | {"learner": "lost", "round": np.array([9]), "measure": "diverged", "value": np.ones(1)}
        here = {"experiment": problem, "problem": problem, "run": 0, "rounds": ROUNDS, "count": count, "k": k}
        for kind, number, weight in (("clean", ROUNDS - k, 0.09), ("corrupted", k, 0.03)):
            if number:
                values = {"round": np.arange(1, number + 1), "value": np.full(number, weight)}
                yield here | values | {"learner": "LEARN", "measure": f"weight {kind}"}


def boundary_blocks():
    random = np.random.default_rng(1)
    X = random.normal(size=(50, 2))
    for count, k in COUNTS.items():
        here = {"experiment": "boundaries", "problem": "svm", "run": 0, "rounds": ROUNDS, "count": count, "k": k}
        for learner, theta in {"LEARN": (1.0, 0.0), "OGD": (0.0, 1.0), "truth": (1.0, 1.0)}.items():
            for place in range(2):
                value = np.array([theta[place]])
                yield here | {
                    "learner": learner,
                    "round": np.array([ROUNDS]),
                    "measure": f"theta {place}",
                    "value": value,
                }
        measures = {
            "x 0": X[:, 0],
            "x 1": X[:, 1],
            "y": np.sign(X[:, 0]),
            "clean": (np.arange(50) >= k / 8).astype(float),
        }
        for measure, value in measures.items():
            yield here | {"learner": "stream", "round": np.arange(1, 51), "measure": measure, "value": value}


def sweep_blocks(problem, power_of_k=1.0, power_of_rounds=0.75):
    for run in range(2):
        here = {"experiment": "sweep", "run": run, "measure": "final regret", "round": np.array([ROUNDS])}
        for learner in ("LEARN", "OGD"):
            for k in (0, 5, 10, 20, 40, 80, 160):
                value = np.array([7.0 * max(k, 1) ** power_of_k])
                cell = {"problem": f"{problem}-k", "rounds": ROUNDS, "count": "grid", "k": k, "value": value}
                yield here | cell | {"learner": learner}
            for rounds in (100, 200, 400, 800):
                value = np.array([3.0 * rounds**power_of_rounds])
                cell = {"problem": f"{problem}-T", "rounds": rounds, "count": "T^⅔", "k": int(rounds ** (2 / 3))}
                yield here | cell | {"learner": learner, "value": value}
        for count, k in COUNTS.items():
            for a in (1.0, 10.0, 1e4):
                for b in (1.0, 10.0):
                    value = np.array([(100.0 if a == b == 1.0 else 250.0) + 2.0 * run - 1.0])
                    cell = {"problem": f"{problem}-ab", "rounds": ROUNDS, "count": count, "k": k, "value": value}
                    yield here | cell | {"learner": "LEARN", "a": a, "b": b}


def suite_blocks():
    names = ("LEARN", "OGD", "oracle", "LEARN, best step", "OGD, best step", "oracle, best step")
    for place, setting in enumerate(choose_settings(seed=0)[::9]):
        here = {"experiment": "suite", "problem": setting.name, "run": 0, "rounds": ROUNDS, "count": setting.count}
        own = {"k": 7, "round": ROUNDS, "measure": "final regret"}
        for times, learner in enumerate(reversed(names), 1):
            yield here | own | {"learner": learner, "value": np.array([times**1.5 + 0.1 * place])}


def every_block():
    for problem in ("ridge", "svm"):
        yield from regret_blocks(problem)
        yield from sweep_blocks(problem)
        yield from EXPERTS.compute(name=problem, place=EVERY, rounds=30, run=0, seed=0, unit=1.0)
    yield from boundary_blocks()
    yield from suite_blocks()
