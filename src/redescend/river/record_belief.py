"""Beliefs about records that are dicts: the probability that they are clean, and where clean targets lie."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redescend.belief import LabelBelief, ResidualBelief
from redescend.belief.deferred import COMPACT, DeferredBelief
from redescend.belief.suspects import LARGEST
from redescend.numeric import Array
from redescend.state import Stateful


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
