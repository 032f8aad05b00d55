"""Learners whose record is written into one row of floats, the target ahead of the features.

Each calls the compiled round of its learner with few arguments; only a record that this cannot play goes through the
learner's `update`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from redescend.kernels.selftuning import single
from redescend.kernels.selftuning.layout import HEAVIEST
from redescend.learners.recipes import Robust
from redescend.learners.selftuning import SelfTuning
from redescend.numeric import Array


class DescentRow:
    """A learner with a transform and a step, of the record in `record`: the target and then the features `x`."""

    def __init__(self, learner: Robust) -> None:
        self.learner = learner
        self._theta = np.empty(learner.dim)
        self.record = np.zeros(1 + learner.dim)
        self.x = self.record[1:]

    def learn(self) -> float:
        """Learn from the record and return its weight, or a negative number if the compiled round cannot play it."""
        return self.learner.play_one(self.x, self.record[0])[1]

    def learn_carefully(self) -> None:
        """Learn from a record that the compiled round could not play."""
        self.learner.update(self.x, float(self.record[0]))

    def learn_weighted(self, w: float) -> None:
        """Learn from the record with a sample weight."""
        with self.learner.scaled_step(w):
            self.learn_carefully()

    def predict(self) -> float:
        """⟨x, θ⟩ of the record; not finite where it overflows."""
        self.learner.write_action(self._theta)
        return float(self._theta.dot(self.x))

    def clean_probability(self) -> float:
        """The probability that the record is clean; nothing is learned."""
        learner: Any = self.learner
        return float(learner.gate.transform.weight(learner.loss.value(learner.theta, self.x, self.record[0])))


class SelfTuningRow:
    """The same for the self-tuning learner, with its state in the row of the compiled round."""

    def __init__(self, learner: SelfTuning) -> None:
        self.learner = learner
        self._row = learner.move_to_row()
        self.record = self._row[single.TARGET : single.RECORD + learner.dim]
        self.x = self.record[1:]

    def learn(self) -> float:
        return single.run_one(self._row)

    def learn_carefully(self) -> None:
        self.learner.update(self.x, float(self.record[0]))

    def learn_weighted(self, w: float) -> None:
        self._row[single.TIMES] = min(w, HEAVIEST)
        try:
            if self.learn() < 0.0:
                self.learn_carefully()
        finally:
            self._row[single.TIMES] = 1.0

    def predict(self) -> float:
        return single.predict_one(self._row)

    def clean_probability(self) -> float:
        return single.judge_one(self._row)


RowLearner: TypeAlias = DescentRow | SelfTuningRow


def make_row_learner(learner: Robust | SelfTuning) -> RowLearner:
    return SelfTuningRow(learner) if isinstance(learner, SelfTuning) else DescentRow(learner)


def infer_dim(state: dict[str, Any]) -> int:
    """The number of features of a learner with this state."""
    return len(state["squares"] if "squares" in state else state["previous"])


def widen_state(state: dict[str, Any], wider: dict[str, Any]) -> dict[str, Any]:
    """A state with as many features as that of a wider, fresh learner; what was learned does not change."""
    out = {**state, "learner": wider["learner"]}
    for name, fresh in wider.items():
        if isinstance(fresh, np.ndarray):
            old: Array = state[name]
            out[name] = fresh.copy()
            out[name][tuple(slice(size) for size in old.shape)] = old
    return out
