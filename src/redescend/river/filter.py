"""A filter that keeps records it does not believe from the models behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from river import base

from redescend import losses, steps, transforms
from redescend.errors import DataError
from redescend.parameters import COUNT, Interval, check
from redescend.river.classifier import RedescendingClassifier
from redescend.river.names import plain, unplain
from redescend.river.records import NotFiniteError
from redescend.river.records import check as check_record
from redescend.river.regressor import RedescendingRegressor
from redescend.river.settings import loss_of

SHARE = Interval(0, 1, "right")
THRESHOLD, LABEL_THRESHOLD = 0.99, 0.5


class RedescendingFilter(base.AnomalyFilter):
    r"""Keeps the records that it does not believe from whatever model follows it in a pipeline.

    It learns the stream as a `RedescendingRegressor` does, or as a `RedescendingClassifier` if the loss is one of
    labels, and passes on what it believes. It learns from every record, as much as it is believed, and so it notices
    when what was an outlier becomes the rule. It tells two labels apart and refuses a third: for more, put it and the
    model behind it in River's ``multiclass.OneVsRestClassifier``.

    A record with a number that is not finite is held back too. `seen` and `held_back` count: no record is lost without
    a trace.

    Parameters
    ----------
    threshold
        A record is held back if its score, one minus the probability that it is clean, is at least this. Unless given
        it is 0.5 for labels, and 0.99 for numbers, of which the model suspects too many rather than too few.
    loss
        "squared", "absolute", "logistic", "hinge", or a loss.
    order
        1, or 2 for a second-order follower among those that the model plays.
    transform
        A robust transform with constants of your own; none lets the model tune itself.
    step
        The step that goes with the transform; 0.01 unless given.
    fit_intercept
        Whether there is a constant feature.

    Examples
    --------
    >>> from river import linear_model
    >>> model = RedescendingFilter() | linear_model.LinearRegression()
    >>> for t in range(500):
    ...     x = {"a": (t % 7) / 7}
    ...     model.learn_one(x, float("inf") if t % 10 == 9 else 2 * x["a"] + 1)
    >>> model["RedescendingFilter"].held_back
    50
    >>> 1 < model.predict_one({"a": 0.0}) < 2
    True
    """

    def __init__(
        self,
        threshold: float | None = None,
        loss: str | losses.LinearLoss = "squared",
        order: Literal[1, 2] = 1,
        transform: transforms.Transform | None = None,
        step: steps.Step | None = None,
        fit_intercept: bool = True,
    ) -> None:
        name = type(self).__name__
        labels = loss_of(name, loss, None).margin
        kind = RedescendingClassifier if labels else RedescendingRegressor
        usual = LABEL_THRESHOLD if labels else THRESHOLD
        super().__init__(kind(loss, order, transform, step, fit_intercept), protect_anomaly_detector=False)
        self._of_labels = labels
        self._limit = usual if threshold is None else check(name, "threshold", threshold, SHARE)
        self.threshold = threshold
        self.loss = loss
        self.order = order
        self.transform = transform
        self.step = step
        self.fit_intercept = fit_intercept
        self.seen = 0
        self.held_back = 0
        self._last: tuple[dict[Any, Any], Any, float] | None = None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"loss": "logistic"}

    def classify(self, score: float) -> bool:
        """Whether a record with this score is held back."""
        return score >= self._limit

    def score_one(self, x: dict[Any, Any], y: Any, **kwargs: Any) -> float:
        """How anomalous a record is, from 0 to 1; 1 if a number in it is not finite.

        The record that was learned last has the score with which it came, so that a pipeline, which asks after the
        filter has learned, is told what was thought of it before.
        """
        if self._last is not None and self._last[0] == x and self._last[1] == y:
            return self._last[2]
        try:
            # The model alone would not look at a feature that it does not know.
            check_record(x, 0.0 if self._of_labels else y)
            return self.anomaly_detector.score_one(x, y)
        except NotFiniteError:
            return 1.0

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0, **kwargs: Any) -> None:
        """Learn from a record, as much as it is believed, and count it."""
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
        """The record as it is: what a pipeline's `debug_one` shows."""
        return x

    def state(self) -> dict[str, Any]:
        """All that was learned, as arrays and plain values; copies."""
        last = None
        if self._last is not None:
            x, y, score = self._last
            target = plain(y) if self._of_labels else float(y)
            last = [[[plain(name), float(value)] for name, value in x.items()], target, score]
        counts = {"seen": self.seen, "held_back": self.held_back}
        return {"model": self.anomaly_detector.state(), **counts, "last": last}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that a filter with the same parameters gave."""
        if not isinstance(state, dict) or state.keys() != {"model", "seen", "held_back", "last"}:
            raise DataError(
                "The state of RedescendingFilter must be a dict with the keys model, seen, held_back and last."
            )
        if not all(count in COUNT for count in (state["seen"], state["held_back"])):
            raise DataError("The state of RedescendingFilter has counts that cannot be; it has been altered.")
        try:
            last = _record(state["last"])
        except (TypeError, ValueError):
            raise DataError("The state of RedescendingFilter has no record as its last; it has been altered.") from None
        self.anomaly_detector.restore(state["model"])
        self._last = last
        self.seen, self.held_back = int(state["seen"]), int(state["held_back"])


def _record(state: Any) -> tuple[dict[Any, Any], Any, float] | None:
    """The record that was learned last and its score, from a state."""
    if state is None:
        return None
    features, target, score = state
    return {unplain(name): float(value) for name, value in features}, unplain(target), float(score)
