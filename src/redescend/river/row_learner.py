"""Learners whose record is written into one row of floats, the target ahead of the features.

Each calls the compiled round of its learner with few arguments; only a record that this cannot play goes through the
learner's `update`. Beside it is the belief about its records: how probably they are clean, and where clean targets lie.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from redescend.belief import LabelBelief, ResidualBelief
from redescend.belief.deferred import COMPACT, DeferredBelief
from redescend.belief.suspects import LARGEST
from redescend.kernels.selftuning import layout
from redescend.learners.recipes import Robust
from redescend.learners.selftuning import SelfTuning
from redescend.numeric import Array
from redescend.state import Stateful


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

    def learn_weighted(self, w: float) -> bool:
        """Learn from the record with a sample weight; returns whether the compiled round could play it."""
        with self.learner.scaled_step(w):
            self.learn_carefully()
        return False

    def predict(self) -> float:
        """⟨x, θ⟩ of the record; not finite where it overflows."""
        self.learner.write_action(self._theta)
        return float(self._theta.dot(self.x))

    def clean_probability(self) -> float:
        """The probability that the record is clean; nothing is learned."""
        learner: Any = self.learner
        return float(learner.gate.transform.weight(learner.loss.value(learner.theta, self.x, self.record[0])))


class SelfTuningRow:
    """A self-tuning learner of the record in `record`, which its compiled round reads."""

    def __init__(self, learner: SelfTuning) -> None:
        self.learner = learner
        self._caller = learner.caller
        self.record, self.x = self._caller.record, self._caller.x

    def learn(self) -> float:
        return float(self._caller.outcome[1]) if self._caller.learn() else -1.0

    def learn_carefully(self) -> None:
        self.learner.update(self.x.copy(), float(self.record[0]))

    def learn_weighted(self, w: float) -> bool:
        self._caller.sample_weight[0] = min(w, layout.HEAVIEST)
        try:
            if played := self.learn() >= 0.0:
                return played
            self.learn_carefully()
            return False
        finally:
            self._caller.sample_weight[0] = 1.0

    @property
    def last_prediction(self) -> float:
        """The prediction for the record that was learned from last, made before learning from it."""
        return float(self._caller.prediction[0, 0])

    def predict(self) -> float:
        return self._caller.predict()

    def clean_probability(self) -> float:
        return self._caller.clean_probability()


RowLearner: TypeAlias = DescentRow | SelfTuningRow


def make_row_learner(learner: Robust | SelfTuning) -> RowLearner:
    return SelfTuningRow(learner) if isinstance(learner, SelfTuning) else DescentRow(learner)


def infer_dim(state: dict[str, Any]) -> int:
    """The number of features of a learner with this state."""
    return state["theta"].shape[1] if "theta" in state else len(state["previous"])


def widen_state(state: dict[str, Any], wider: dict[str, Any]) -> dict[str, Any]:
    """Widen a state to the features of a new, wider learner; predictions do not change."""
    out = {**state, "learner": wider["learner"]}
    if "P" in state and len(wider["P"]) == wider["theta"].shape[1]:
        # The wider learner may be of order 1, which needs the diagonal of the triangle alone.
        rows = np.arange(state["theta"].shape[1])
        state = {**state, "P": state["P"] if len(state["P"]) == len(rows) else state["P"][rows * (rows + 3) // 2]}
    for name, fresh in wider.items():
        if isinstance(fresh, np.ndarray):
            old: Array = state[name]
            out[name] = fresh.copy()
            out[name][tuple(slice(size) for size in old.shape)] = old
    return out


class RecordBelief(Stateful):
    """A belief about records whose features come and go, with numbers or with `labels` of −1 and 1 as targets.

    Features are known by their places; the scale of the noise may depend on those at the first places.
    """

    def __init__(self, labels: bool) -> None:
        self._labels = labels
        self._deferred = DeferredBelief(LabelBelief(2) if labels else ResidualBelief(COMPACT), verdicts=False)

    def add(self, prediction: float, target: float, x: Array) -> None:
        """Learn from a record and its prediction, which may not be finite in a forged model."""
        if not math.isfinite(prediction):
            prediction = float(np.nan_to_num(prediction))
        self._deferred.add_one(prediction, target > 0.0 if self._labels else target, x)

    def add_rows(self, predictions: Array, targets: Array, X: Array) -> None:
        """Learn from records in turn."""
        predictions = np.nan_to_num(predictions)
        if self._labels:
            self._deferred.add(predictions[:, None], (targets > 0.0).astype(np.int64))
        else:
            self._deferred.add(predictions, targets, _first_features(X))

    def clean_probability(self, prediction: float, target: float, x: Array) -> float:
        """The probability that a record is clean; nothing is learned."""
        log_odds = self._deferred.judge_one(prediction, target > 0.0 if self._labels else target, x)
        # The same as to_probability, ten times as fast for one number.
        odds = math.exp(-min(abs(log_odds), 744.0))
        return odds / (1.0 + odds) if log_odds < 0.0 else min(1.0 / (1.0 + odds), LARGEST)

    def predict_interval(self, prediction: float, x: Array, level: float) -> tuple[float, float]:
        """The interval in which a share of clean targets lies."""
        belief: Any = self._deferred.belief
        low, high = belief.predict_interval(np.array([prediction]), _first_features(x[None]), level)
        return float(low[0]), float(high[0])

    def predict_proba(self, margins: Array) -> Array:
        """The calibrated probability of the label 1."""
        belief: Any = self._deferred.belief
        return np.asarray(belief.predict_proba(margins)[:, 1])

    def state(self) -> dict[str, Any]:
        return self._deferred.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._deferred.restore(state)


def _first_features(X: Array) -> Array:
    """The features at the first places; 0 where there are none."""
    out = np.zeros((len(X), COMPACT))
    out[:, : X.shape[1]] = X[:, :COMPACT]
    return out
