r"""The learners of the suite and its tasks.

Learners with a step play at 1/√T and with the best step in hindsight. To add a learner, write a line in `PEERS` if it
has a step, or in `UNTUNED` if it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from redescend import steps, transforms
from redescend.experiments.problems import ORACLE
from redescend.experiments.suite.settings import Game, choose_settings, make_game
from redescend.experiments.tasks import Block, Experiment, Options, Task, make_point
from redescend.learners.experts import LearnWithExperts
from redescend.learners.learner import Learner
from redescend.learners.recipes import OGD, ClippedOGD, Learn, NormalisedOGD, Oracle, Robust, TopK
from redescend.learners.selftuning import SelfTuning

BEST = ", best step"  # suffix of the name of a learner with the best step in hindsight
POWERS = range(-24, 9)  # powers of 2 of a step's unit; the smallest are for records that are a thousand times too large

ROUNDS, QUICK_ROUNDS = 10_000, 1_000
SETTINGS_PER_TASK = 4

NORMALISED = "normalised OGD"

Peer = Callable[[Game, steps.Step], Learner]


def _make_robust_peer(kind: type[transforms.Huber] | type[transforms.Cauchy] | type[transforms.Welsch]) -> Peer:
    return lambda game, step: Robust(game.stream.dim, loss=game.rules.loss, transform=kind(game.rules.c), step=step)


PEERS: dict[str, Peer] = {
    "LEARN": lambda game, step: Learn(game.stream.dim, loss=game.rules.loss, a=game.rules.a, b=game.rules.b, step=step),
    "OGD": lambda game, step: OGD(game.stream.dim, loss=game.rules.loss, step=step),
    "Top-k": lambda game, step: TopK(game.stream.dim, loss=game.rules.loss, k=game.k, step=step),
    NORMALISED: lambda game, step: NormalisedOGD(game.stream.dim, loss=game.rules.loss, step=step),
    "median clip": lambda game, step: ClippedOGD(game.stream.dim, loss=game.rules.loss, step=step),
    "Huber": _make_robust_peer(transforms.Huber),
    "Cauchy": _make_robust_peer(transforms.Cauchy),
    "Welsch": _make_robust_peer(transforms.Welsch),
    ORACLE: lambda game, step: Oracle(game.stream.dim, loss=game.rules.loss, clean=game.stream.clean, step=step),
}
"""Learners with a step. Top-k knows k, and the oracle knows which rounds are clean."""

UNTUNED: dict[str, Callable[[Game], Learner]] = {
    "self-tuning, order 1": lambda game: SelfTuning(game.stream.dim, loss=game.rules.loss, order=1),
    "self-tuning, order 2": lambda game: SelfTuning(game.stream.dim, loss=game.rules.loss, order=2),
    "LEARN with experts": lambda game: LearnWithExperts(
        game.stream.dim, loss=game.rules.loss, a=game.rules.a, b=game.rules.b, meta="robust"
    ),
}
"""Learners without a step. The report lists where the first of them loses."""

Result = tuple[str, float, float]
"""A learner, its final regret, infinite if it diverged, and its step, NaN if it has none."""


def play_all(game: Game) -> Iterator[Result]:
    """Play a game with every learner."""
    for name, untuned in UNTUNED.items():
        yield name, game.play(untuned(game)), np.nan
    for name in PEERS:
        yield name, *_play_with_step(game, name, steps.Horizon(game.rounds))
        yield f"{name}{BEST}", *_play_with_best_step(game, name)


def _play_with_step(game: Game, name: str, step: steps.Step) -> tuple[float, float]:
    return game.play(PEERS[name](game, step)), step.settings[0]


def _play_with_best_step(game: Game, name: str) -> tuple[float, float]:
    """The lowest regret over steps that are powers of 2.

    For the oracle all powers are tried, since every ratio depends on it; for a peer every fourth, then those near the
    best.
    """
    unit, stride = compute_unit_step(game, name), 1 if name == ORACLE else 4

    def at(power: int) -> tuple[float, float]:
        return _play_with_step(game, name, steps.Constant(unit * 2.0**power))

    tried = {power: at(power) for power in POWERS[::stride]}
    best = min(tried, key=lambda power: tried[power])
    return min([*tried.values(), *(at(power) for power in POWERS if 0 < abs(power - best) < stride)])


def compute_unit_step(game: Game, name: str) -> float:
    r"""The step at the stream's own scale: 1/N for a gradient step, with N the median of ‖x‖².

    A normalised step has the unit of an action: the root mean square of y, divided by √N.
    """
    clean = game.stream.clean
    size = float(np.median(np.square(game.stream.X[clean]).sum(axis=1)))
    return float(np.sqrt(np.mean(game.stream.y[clean] ** 2) / size)) if name == NORMALISED else 1.0 / size


def _list_tasks(options: Options) -> Iterator[Task]:
    """One run of each setting, whatever the number of runs: the suite averages over settings."""
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    for first in range(0, len(choose_settings(options.seed, options.quick)), SETTINGS_PER_TASK):
        settings = (("first", first), ("quick", int(options.quick)), ("rounds", rounds), ("seed", options.seed))
        yield Task("suite", settings)


def _compute_settings(first: int, quick: int, rounds: int, seed: int) -> Iterator[Block]:
    settings = choose_settings(seed, bool(quick))
    for place in range(first, min(first + SETTINGS_PER_TASK, len(settings))):
        setting = settings[place]
        game = make_game(setting, rounds, (seed, place))
        columns = {"experiment": "suite", "problem": setting.name, "run": 0, "rounds": game.rounds}
        columns |= {"count": setting.count, "k": game.k}
        for learner, regret, step in play_all(game):
            row, finite = {**columns, "learner": learner}, np.isfinite(regret)
            final = ("final regret", regret) if finite else ("diverged", 1.0)
            yield row | make_point(game.rounds, *final)
            if finite and np.isfinite(step):
                yield row | make_point(game.rounds, "step", step)


SUITE = Experiment(_list_tasks, _compute_settings)
