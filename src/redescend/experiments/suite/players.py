r"""Who plays: peers at the step 1/√T and with the best step in hindsight, oracles, and learners that need no step.

To add a learner, write one line in `PEERS`, if it has a step, or in `UNTUNED`, if it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from redescend import steps, transforms
from redescend.experiments.problems import YARDSTICK
from redescend.experiments.suite.design import ADAPTIVE
from redescend.experiments.suite.games import Game
from redescend.learners.base import Learner
from redescend.learners.experts import LearnWithExperts
from redescend.learners.recipes import OGD, ClippedOGD, Learn, NormalisedOGD, Oracle, Robust, TopK
from redescend.learners.selftuning import INGREDIENTS, SelfTuning

BEST = ", best step"
"""What the name of a learner ends in that has the best step in hindsight."""

POWERS = range(-24, 9)
"""Powers of 2 of a step's unit; the smallest are for records that are a thousand times too large."""

NORMALISED = "normalised OGD"

Peer = Callable[[Game, steps.Step], Learner]


def _robust(kind: type[transforms.Huber] | type[transforms.Cauchy] | type[transforms.Welsch]) -> Peer:
    return lambda game, step: Robust(game.stream.dim, loss=game.rules.loss, transform=kind(game.rules.c), step=step)


PEERS: dict[str, Peer] = {
    "LEARN": lambda game, step: Learn(game.stream.dim, loss=game.rules.loss, a=game.rules.a, b=game.rules.b, step=step),
    "OGD": lambda game, step: OGD(game.stream.dim, loss=game.rules.loss, step=step),
    "Top-k": lambda game, step: TopK(game.stream.dim, loss=game.rules.loss, k=game.k, step=step),
    NORMALISED: lambda game, step: NormalisedOGD(game.stream.dim, loss=game.rules.loss, step=step),
    "median clip": lambda game, step: ClippedOGD(game.stream.dim, loss=game.rules.loss, step=step),
    "Huber": _robust(transforms.Huber),
    "Cauchy": _robust(transforms.Cauchy),
    "Welsch": _robust(transforms.Welsch),
    YARDSTICK: lambda game, step: Oracle(game.stream.dim, loss=game.rules.loss, clean=game.stream.clean, step=step),
}
"""Learners that need a step; Top-k is told k, and the oracle which rounds are clean."""

UNTUNED: dict[str, Callable[[Game], Learner]] = {
    "self-tuning, order 1": lambda game: SelfTuning(game.stream.dim, loss=game.rules.loss),
    "self-tuning, order 2": lambda game: SelfTuning(game.stream.dim, loss=game.rules.loss, order=2),
    "LEARN with experts": lambda game: LearnWithExperts(
        game.stream.dim, loss=game.rules.loss, a=game.rules.a, b=game.rules.b, meta="robust"
    ),
}
"""Learners without a step; the report says where the first of them loses."""


ABLATED: dict[str, Callable[[Game], Learner]] = {
    f"without {ingredient}": lambda game, ingredient=ingredient: SelfTuning(  # type: ignore[misc]
        game.stream.dim, loss=game.rules.loss, without=[ingredient]
    )
    for ingredient in INGREDIENTS
}
"""The self-tuning learner of order 1 with each of its ingredients left out."""


class Result(NamedTuple):
    """The final regret of a learner, infinite if it diverged, and the step that it had, or NaN for none."""

    learner: str
    regret: float
    step: float


def played(game: Game) -> Iterator[Result]:
    """Every learner's result in a game."""
    for name, untuned in UNTUNED.items():
        yield Result(name, game.final(untuned(game)), np.nan)
    for name in PEERS:
        yield Result(name, *_at(game, name, steps.Horizon(game.rounds)))
        yield Result(f"{name}{BEST}", *_tuned(game, name))


def ablated(game: Game) -> Iterator[Result]:
    """What each ingredient of the self-tuning learner is worth; an adversary that adapts would take too long."""
    if game.setting.when != ADAPTIVE:
        for name, learner in ABLATED.items():
            yield Result(name, game.final(learner(game)), np.nan)


def _at(game: Game, name: str, step: steps.Step) -> tuple[float, float]:
    return game.final(PEERS[name](game, step)), step.settings[0]


def _tuned(game: Game, name: str) -> tuple[float, float]:
    """The lowest regret over steps that are powers of 2.

    The yardstick is searched in full, as every ratio depends on it; a peer at every fourth power, then near the best.
    """
    unit, stride = unit_step(game, name), 1 if name == YARDSTICK else 4

    def at(power: int) -> tuple[float, float]:
        return _at(game, name, steps.Constant(unit * 2.0**power))

    tried = {power: at(power) for power in POWERS[::stride]}
    best = min(tried, key=lambda power: tried[power])
    return min([*tried.values(), *(at(power) for power in POWERS if 0 < abs(power - best) < stride)])


def unit_step(game: Game, name: str) -> float:
    r"""The step that the stream's own scale suggests: 1/N for a gradient step, with N the median of ‖x‖².

    A normalised step has the unit of an action: the root mean square of y, divided by √N.

    Examples
    --------
    >>> from redescend.experiments.suite.design import Setting
    >>> from redescend.game import Stream
    >>> setting = Setting("regression", "synthetic", "none", "gaussian", "1", "none", "none", "0", 1)
    >>> game = Game(setting, Stream([[2.0], [2.0]], [6.0, -6.0]), (0,))
    >>> unit_step(game, "OGD"), unit_step(game, "normalised OGD")
    (0.25, 3.0)
    """
    clean = game.stream.clean
    size = float(np.median(np.square(game.stream.X[clean]).sum(axis=1)))
    return float(np.sqrt(np.mean(game.stream.y[clean] ** 2) / size)) if name == NORMALISED else 1.0 / size
