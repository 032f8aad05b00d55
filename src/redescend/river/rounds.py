"""What plays a record that has been written into one row, the target ahead of the features: a learner, and few calls.

Each calls the compiled round of its learner; only a record that this cannot play goes through the learner's `update`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from redescend import steps
from redescend.kernels import layout
from redescend.kernels.descent import radial
from redescend.kernels.selftuning import single
from redescend.kernels.selftuning.layout import HEAVIEST
from redescend.learners.recipes import Robust
from redescend.learners.selftuning import SelfTuning
from redescend.numeric import Array


class Engine(ABC):
    """A learner that plays the record in `record`: the target, and the features `x`."""

    learner: Robust | SelfTuning
    record: Array
    x: Array

    @abstractmethod
    def play(self) -> float:
        """Learn from the record; returns its weight, or a negative number if the compiled round cannot play it."""

    @abstractmethod
    def play_weighted(self, w: float) -> None:
        """Learn from a record that counts w times."""

    @abstractmethod
    def predict(self) -> float:
        """⟨x, θ⟩ of the record; not finite where it overflows."""

    @abstractmethod
    def judge(self) -> float:
        """How likely the record is clean; nothing is learned."""

    def play_carefully(self) -> None:
        """Learn from a record that the compiled round could not play."""
        self.learner.update(self.x, float(self.record[0]))


class Fixed(Engine):
    """A learner with a transform and a step."""

    learner: Robust

    def __init__(self, learner: Robust) -> None:
        self.learner = learner
        self._theta = np.empty(learner.dim)
        self.record = np.zeros(1 + learner.dim)
        self.x = self.record[1:]

    def play(self) -> float:
        learner = self.learner
        return learner._run_one(self.x, self.record[0], learner._pair, learner._numbers)[1]

    def play_weighted(self, w: float) -> None:
        learner, usual = self.learner, self.learner.step
        learner.step = Scaled(usual, w)
        learner._numbers[layout.SCALE] = learner.step.settings[0]
        try:
            self.play_carefully()
        finally:
            learner.step = usual
            learner._numbers[layout.SCALE] = usual.settings[0]

    def predict(self) -> float:
        learner = self.learner
        radial.action(learner._pair, learner._numbers, self._theta)
        return float(self._theta.dot(self.x))

    def judge(self) -> float:
        learner: Any = self.learner
        return float(learner.gate.transform.weight(learner.loss.value(learner.theta, self.x, self.record[0])))


class Tuned(Engine):
    """The self-tuning learner, its state in the row of the compiled round."""

    learner: SelfTuning

    def __init__(self, learner: SelfTuning) -> None:
        self.learner = learner
        settings = learner._settings, learner._prior, learner._rates
        self._row, learner._arrays = single.in_one_row(learner._arrays, *settings)
        self.record = self._row[single.TARGET : single.RECORD + learner.dim]
        self.x = self.record[1:]

    def play(self) -> float:
        return single.run_one(self._row)

    def play_weighted(self, w: float) -> None:
        self._row[single.TIMES] = min(w, HEAVIEST)
        try:
            if self.play() < 0.0:
                self.play_carefully()
        finally:
            self._row[single.TIMES] = 1.0

    def predict(self) -> float:
        return single.predict_one(self._row)

    def judge(self) -> float:
        return single.judge_one(self._row)


@dataclass(frozen=True)
class Scaled(steps.Step):
    """Another step, times a factor: that of a record that counts so much."""

    step: steps.Step
    factor: float

    @property
    def kind(self) -> int:  # type: ignore[override]
        return self.step.kind

    @property
    def settings(self) -> tuple[float, float]:
        scale, normalised = self.step.settings
        return scale * self.factor, normalised


def engine_of(learner: Robust | SelfTuning) -> Engine:
    return Tuned(learner) if isinstance(learner, SelfTuning) else Fixed(learner)


def width(state: dict[str, Any]) -> int:
    """How many features a learner with this state has."""
    return len(state["squares"] if "squares" in state else state["previous"])


def widened(state: dict[str, Any], wider: dict[str, Any]) -> dict[str, Any]:
    """A state with as many features as a fresh learner's, the new ones fresh: nothing that was learned changes."""
    out = {**state, "learner": wider["learner"]}
    for name, fresh in wider.items():
        if isinstance(fresh, np.ndarray):
            old: Array = state[name]
            out[name] = fresh.copy()
            out[name][tuple(slice(size) for size in old.shape)] = old
    return out
