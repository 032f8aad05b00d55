"""A setting as a game: its stream, its loss, and the paper's constants for the loss."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np

from redescend import adversaries, losses, streams
from redescend.errors import DivergenceError
from redescend.experiments.suite.design import ADAPTIVE, SCALES, SYNTHETIC, Setting
from redescend.game import Stream, Trace, play
from redescend.learners.base import Learner
from redescend.learners.recipes import Oracle
from redescend.regret import clean_dynamic

NOISE = {"regression": 0.05, "classification": 0.1}
"""Standard deviation of the noise, where the signal has 1."""

ADAPTIVE_ROUNDS = 1_000
"""An adversary that tries its choices on the learner takes a thousand times as long."""


@dataclass(frozen=True)
class Rules:
    """What is paid, and the constants of the paper's experiment with that loss.

    There is no l2: where features are of size 0.001 even the paper's 10⁻⁴ would make 0 the best action.
    """

    loss: losses.LinearLoss
    a: float
    b: float
    c: float


RULES = {
    "regression": Rules(losses.Squared(), a=10.0, b=10.0, c=1.0),
    "classification": Rules(losses.Hinge(), a=1e4, b=10.0, c=2.0),
}


@dataclass(frozen=True, eq=False)
class Game:
    """A stream that is ready to be played by anyone, corrupted but for what an adaptive adversary does."""

    setting: Setting
    stream: Stream
    seed: tuple[int, ...]

    @property
    def rules(self) -> Rules:
        return RULES[self.setting.task]

    @property
    def rounds(self) -> int:
        return len(self.stream)

    @property
    def k(self) -> int:
        return count(self.setting.count, self.rounds)

    def final(self, learner: Learner) -> float:
        """Clean dynamic regret after the last round against the minimiser of each; infinite if it diverged."""
        # What an adversary does in rounds that a learner skips is nothing to it.
        adaptive = self.setting.when == ADAPTIVE and not isinstance(learner, Oracle)
        try:
            trace, played = self._answered(learner) if adaptive else (play(learner, self.stream), self.stream)
        except DivergenceError:
            return np.inf
        return float(clean_dynamic(trace, played, self.rules.loss)[-1])

    def _answered(self, learner: Learner) -> tuple[Trace, Stream]:
        # Few residuals, because each is tried on the learner; as large as the signal, and ten times less and more.
        adversary = adversaries.Adaptive(self.rules.loss, smallest=0.1, largest=10.0, sizes=3)
        return adversary.play(learner, self.stream.uncorrupted(), self.k, self.seed)


def count(name: str, rounds: int) -> int:
    """The number of outliers that a name stands for in a game of so many rounds.

    Examples
    --------
    >>> [count(name, 8000) for name in ("0", "√T", "T^⅔", "T/10", "T/4")]
    [0, 89, 400, 800, 2000]
    """
    counts = {"0": 0, "√T": isqrt(rounds), "T^⅔": int(round(rounds ** (2 / 3), 9)), "T/10": rounds // 10}
    return {**counts, "T/4": rounds // 4}[name]


def game(setting: Setting, rounds: int, seed: tuple[int, ...]) -> Game:
    """The setting at a length, which a real stream may fall short of.

    Examples
    --------
    >>> from redescend.experiments.suite.design import chosen
    >>> game(chosen(seed=0)[-1], 400, (0, 1)).stream
    Stream(400 rounds, 10 features, 20 corrupted)
    """
    clean = _clean(setting, rounds, seed)
    k = count(setting.count, len(clean))
    when = "random" if setting.when == ADAPTIVE else setting.when
    # The rounds of an adaptive adversary are marked with the seed that it will draw them with: an oracle skips them.
    return Game(setting, clean if k == 0 else _adversary(setting, clean).corrupt(clean, k, seed, when), seed)


def _clean(setting: Setting, rounds: int, seed: tuple[int, ...]) -> Stream:
    if setting.source != SYNTHETIC:
        return streams.real.load(setting.source, rounds)
    make = {"regression": streams.regression, "classification": streams.classification}[setting.task]
    return make(
        min(rounds, ADAPTIVE_ROUNDS) if setting.when == ADAPTIVE else rounds,
        [*seed, 1],
        setting.dim,
        drift=setting.drift,
        noise=setting.noise,
        noise_scale=NOISE[setting.task],
        feature_scales=SCALES[setting.scales],
    )


def _adversary(setting: Setting, clean: Stream) -> adversaries.Adversary:
    """What is done, in the units of the stream."""
    labels = setting.task == "classification"
    size = float(np.sqrt(np.mean(clean.X**2)))
    return {
        "response replaced": adversaries.ReplaceResponse(),
        # A label that is stuck is what a shift leaves of a label.
        "response shifted": adversaries.UniformResponse(1.0, 1.0)
        if labels
        else adversaries.ShiftResponse(10.0 * float(clean.y.std())),
        "sign flipped": adversaries.ScaleResponse(-1.0),
        "x scaled by 1000": adversaries.ScaleFeatures(1e3),
        "x and y replaced": adversaries.ReplaceRecord(scale=size),
        "record chosen": adversaries.ScaleResponse(-1.0),
    }[setting.what]
