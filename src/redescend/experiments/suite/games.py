"""The game of a setting: its stream, its loss, and the paper's constants for the loss."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from redescend import adversaries, losses, streams
from redescend.errors import DivergenceError
from redescend.experiments.problems import Problem, count_outliers, ridge, svm
from redescend.experiments.suite.settings import ADAPTIVE, SCALES, SYNTHETIC, Setting
from redescend.game import Stream, Trace, play
from redescend.learners.base import Learner
from redescend.learners.recipes import Oracle
from redescend.regret import clean_dynamic

NOISE = {"regression": 0.05, "classification": 0.1}
"""Standard deviation of the noise, relative to that of the signal."""

ADAPTIVE_ROUNDS = 1_000
"""Maximum length with an adversary that tries its choices on the learner, which takes a thousand times as long."""


RULES = {
    "regression": replace(ridge(), loss=losses.Squared()),
    "classification": replace(svm(), loss=losses.Hinge()),
}
"""The paper's constants for each task, without l2: with features of size 0.001 it would make 0 the best action."""


@dataclass(frozen=True, eq=False)
class Game:
    """A stream for every learner; corrupted unless the adversary adapts to the learner."""

    setting: Setting
    stream: Stream
    seed: tuple[int, ...]

    @property
    def rules(self) -> Problem:
        return RULES[self.setting.task]

    @property
    def rounds(self) -> int:
        return len(self.stream)

    @property
    def k(self) -> int:
        return count_outliers(self.setting.count, self.rounds)

    def play(self, learner: Learner) -> float:
        """Final clean dynamic regret against the minimiser of each round; infinite if the learner diverged."""
        # An oracle skips the corrupted rounds, so it does not matter what the adversary does there.
        adaptive = self.setting.when == ADAPTIVE and not isinstance(learner, Oracle)
        try:
            trace, played = self._play_adaptive(learner) if adaptive else (play(learner, self.stream), self.stream)
        except DivergenceError:
            return np.inf
        return float(clean_dynamic(trace, played, self.rules.loss)[-1])

    def _play_adaptive(self, learner: Learner) -> tuple[Trace, Stream]:
        # Only three residuals, because each is tried on the learner: a tenth of the signal, the signal, ten times it.
        adversary = adversaries.Adaptive(self.rules.loss, smallest=0.1, largest=10.0, sizes=3)
        return adversary.play(learner, self.stream.uncorrupted(), self.k, self.seed)


def make_game(setting: Setting, rounds: int, seed: tuple[int, ...]) -> Game:
    """The game of a setting with this length; a real stream may be shorter."""
    clean = _make_clean(setting, rounds, seed)
    k = count_outliers(setting.count, len(clean))
    when = "random" if setting.when == ADAPTIVE else setting.when
    # The seed draws the same rounds for an adaptive adversary, so that an oracle can skip them.
    return Game(setting, clean if k == 0 else _make_adversary(setting, clean).corrupt(clean, k, seed, when), seed)


def _make_clean(setting: Setting, rounds: int, seed: tuple[int, ...]) -> Stream:
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


def _make_adversary(setting: Setting, clean: Stream) -> adversaries.Adversary:
    """The adversary of a setting, at the scale of the stream."""
    labels = setting.task == "classification"
    size = float(np.sqrt(np.mean(clean.X**2)))
    return {
        "response replaced": adversaries.ReplaceResponse(),
        # A shifted label is a label that is always +1.
        "response shifted": adversaries.UniformResponse(1.0, 1.0)
        if labels
        else adversaries.ShiftResponse(10.0 * float(clean.y.std())),
        "sign flipped": adversaries.ScaleResponse(-1.0),
        "x scaled by 1000": adversaries.ScaleFeatures(1e3),
        "x and y replaced": adversaries.ReplaceRecord(scale=size),
        "record chosen": adversaries.ScaleResponse(-1.0),
    }[setting.what]
