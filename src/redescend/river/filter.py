"""`RedescendingFilter`, which holds outliers back from the models behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from river import base

from redescend import losses, steps, transforms
from redescend.engines.config import check_loss
from redescend.exclusive import exclusive
from redescend.parameters import COUNT, Interval, check
from redescend.river.linear_model import RedescendingClassifier, RedescendingRegressor
from redescend.river.records import NotFiniteError, check_record, key_to_plain, plain_to_key
from redescend.state import Stateful, check_keys, corrupt_state, require

THRESHOLDS = Interval(0, 1, "right")
THRESHOLD, WEIGHT_THRESHOLD = 0.5, 0.99


@dataclass(eq=False, repr=False)
class RedescendingFilter(Stateful, base.AnomalyFilter):
    r"""Hold outliers back from the model that follows in a pipeline.

    The filter learns the stream like a `RedescendingRegressor`, or like a `RedescendingClassifier` if the loss is one
    for labels, and passes on the records that it finds clean. Records that are not finite are held back too. For more
    than two labels, wrap it and the model behind it in River's ``multiclass.OneVsRestClassifier``.

    Parameters
    ----------
    threshold : float, optional
        Hold a record back if its score, one minus the probability that it is clean, is at least this. Default: 0.5, or
        0.99 for numbers with a transform, whose weight is not a probability.
    loss : str or LinearLoss
        "squared", "absolute", "epsilon_insensitive", "pinball", "logistic", "hinge", or a loss.
    order, transform, step, fit_intercept
        As in `RedescendingRegressor`.

    Attributes
    ----------
    seen : int
        Number of records.
    held_back : int
        Number of records that were held back.

    Examples
    --------
    >>> from river import linear_model
    >>> model = RedescendingFilter() | linear_model.LinearRegression()
    >>> for t in range(500):
    ...     x = {"a": (t % 7) / 7}
    ...     model.learn_one(x, float("inf") if t % 10 == 9 else 2 * x["a"] + 1 + 0.01 * (t % 3))
    >>> model["RedescendingFilter"].held_back
    50
    >>> 1 < model.predict_one({"a": 0.0}) < 2
    True
    """

    threshold: float | None = None
    loss: str | losses.LinearLoss = "squared"
    order: Literal[1, 2] = 1
    transform: transforms.Transform | None = None
    step: steps.Step | None = None
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        owner = type(self).__name__
        self._has_labels = check_loss(owner, self.loss).margin
        kind = RedescendingClassifier if self._has_labels else RedescendingRegressor
        model = kind(self.loss, self.order, self.transform, self.step, self.fit_intercept)
        super().__init__(model, protect_anomaly_detector=False)
        default = THRESHOLD if self._has_labels or self.transform is None else WEIGHT_THRESHOLD
        self._limit = default if self.threshold is None else check(owner, "threshold", self.threshold, THRESHOLDS)
        self.seen = self.held_back = 0
        self._last: tuple[dict[Any, Any], Any, float] | None = None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"loss": "logistic"}

    def classify(self, score: float) -> bool:
        """Return whether a record with this `score` is held back."""
        return score >= self._limit

    def score_one(self, x: dict[Any, Any], y: Any, **kwargs: Any) -> float:
        """Return how anomalous the record `x`, `y` is, from 0 to 1; 1 if it is not finite. `kwargs` are ignored."""
        # A pipeline asks after the filter has learned, so the record learned last keeps the score it had before.
        if self._last is not None and self._last[0] == x and self._last[1] == y:
            return self._last[2]
        try:
            # The model alone would ignore a feature that it does not know.
            check_record(x, 0.0 if self._has_labels else y)
            return self.anomaly_detector.score_one(x, y)
        except NotFiniteError:
            return 1.0

    @exclusive
    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0, **kwargs: Any) -> None:
        """Learn from the record `x`, `y` with weight `w`, and count it; `kwargs` are ignored."""
        if w == 0.0:
            return
        try:
            score = self.anomaly_detector.score_one(x, y)
            self.anomaly_detector.learn_one(x, y, w)
            self._last = dict(x), y, score
        except NotFiniteError:
            score = 1.0
            self._last = None
        self.seen += 1
        self.held_back += self.classify(score)

    def transform_one(self, x: dict[Any, Any]) -> dict[Any, Any]:
        """Return the record `x` as it is; the `debug_one` of a pipeline calls this."""
        return x

    def state(self) -> dict[str, Any]:
        last = None
        if self._last is not None:
            x, y, score = self._last
            target = key_to_plain(y) if self._has_labels else float(y)
            last = [[[key_to_plain(name), float(value)] for name, value in x.items()], target, score]
        counts = {"seen": self.seen, "held_back": self.held_back}
        return {"model": self.anomaly_detector.state(), **counts, "last": last}

    def restore(self, state: dict[str, Any]) -> None:
        owner = type(self).__name__
        check_keys(state, ("model", "seen", "held_back", "last"), owner)
        require(all(count in COUNT for count in (state["seen"], state["held_back"])), owner, "impossible counts")
        try:
            last = _read_record(state["last"])
        except (TypeError, ValueError):
            raise corrupt_state(owner, "an invalid last record") from None
        self.anomaly_detector.restore(state["model"])
        self._last = last
        self.seen, self.held_back = int(state["seen"]), int(state["held_back"])


def _read_record(state: Any) -> tuple[dict[Any, Any], Any, float] | None:
    """The record learned last and its score, from a state."""
    if state is None:
        return None
    features, target, score = state
    return {plain_to_key(name): float(value) for name, value in features}, plain_to_key(target), float(score)
