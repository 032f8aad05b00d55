"""Regression that outliers cannot move, for River."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from river import base
from river.utils import dataframe

from redescend import losses, steps, transforms
from redescend.river import records
from redescend.river.labels import Labels
from redescend.river.linear import Linear
from redescend.river.model import Model
from redescend.river.settings import checked


class RedescendingRegressor(Model, base.MiniBatchRegressor):
    r"""Linear regression in which a record counts as much as it is believed.

    Nothing needs a value: the scale of clean records, the share of outliers and the step follow the stream, as
    `redescend.SelfTuning` does. With a `transform` the model is plain descent on that robust loss with that `step`:
    faster, and tuned by you.

    Parameters
    ----------
    loss
        What is paid: "squared", "absolute", or a loss of numbers such as ``rd.losses.Pinball(0.9)``. An l2 is that of
        the loss, and shrinks the intercept as well.
    order
        1, or 2 for a second-order follower among those that the model plays: O(d²) a record instead of O(d).
    transform
        A robust transform with constants of your own, such as ``rd.transforms.Huber(1.0)``; none lets the model tune
        itself.
    step
        The step that goes with the transform, such as ``rd.steps.Anytime()``; 0.01 unless given.
    fit_intercept
        Whether there is a constant feature.

    Notes
    -----
    A feature that a record does not have is 0, and new ones may come at any time. Growing changes nothing that was
    learned. Only the second-order follower knows how many features there are: what it expects of a new one, and how
    soon it may start again, follow the number at that time.

    `learn_many` gives what `learn_one` gives row by row. A record with a number that is not finite is refused in one
    sentence, and the model stays as it was; one that is merely absurd, such as 1e308, is counted and moves nothing.

    Examples
    --------
    >>> model = RedescendingRegressor()
    >>> for t in range(200):
    ...     x = {"a": float(t % 7), "b": float(t % 3)}
    ...     wrong = t % 10 == 9
    ...     model.learn_one(x, 1000.0 if wrong else 2 * x["a"] - x["b"] + 0.5)
    >>> round(model.predict_one({"a": 3.0, "b": 1.0}), 2)
    5.5
    >>> model.score_one({"a": 3.0, "b": 1.0}, 5.5) < 0.5, model.score_one({"a": 3.0, "b": 1.0}, 1000.0) > 0.9
    (True, True)
    """

    def __init__(
        self,
        loss: str | losses.LinearLoss = "squared",
        order: Literal[1, 2] = 1,
        transform: transforms.Transform | None = None,
        step: steps.Step | None = None,
        fit_intercept: bool = True,
    ) -> None:
        self.loss = loss
        self.order = order
        self.transform = transform
        self.step = step
        self.fit_intercept = fit_intercept
        self._linear = Linear(checked(type(self).__name__, False, loss, order, transform, step, fit_intercept))
        self._labels = Labels()
        self._y_name: str | None = None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"order": 2}
        yield {"transform": transforms.Learn(a=2.0, b=0.1), "step": steps.AdaptiveNorm()}

    def learn_one(self, x: dict[Any, Any], y: float, w: float = 1.0) -> None:
        """Learn from one record.

        Parameters
        ----------
        x
            Its features; those that it has not are 0.
        y
            Its target.
        w
            How much it counts; 0 changes nothing. Steps are w times as long, and for a model that tunes itself the
            likelihood of the record is taken to the power w.
        """
        self._linear.learn(x, y, w)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The prediction for one record; features that were never learned from count nothing."""
        return self._linear.predict(x)

    def score_one(self, x: dict[Any, Any], y: float) -> float:
        """How anomalous a record is, from 0 to 1: one minus the probability that it is clean, high for outliers."""
        return 1.0 - self._linear.judge(x, y)

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from the rows of a frame, one after the other; from none if a number in it is not finite.

        Parameters
        ----------
        X
            A frame of pandas, or any other that River takes, with a column for each feature.
        y
            The targets, a series.
        w
            How often each row counts: one number, or a series. A row of weight 0 is not even looked at.
        """
        columns, values = self._linear.frames.read(X)
        targets, name = records.series("y", y, len(values))
        weights = records.weights(w, len(values))
        self._linear.learn_table(columns, values, records.numbers(targets, weights), weights)
        self._y_name = name

    def predict_many(self, X: Any) -> Any:
        """The prediction for every row of a frame, as a series."""
        columns, values = self._linear.frames.read(X)
        found = self._linear.predict_table(columns, values)
        return dataframe.to_native_series(found, name=self._y_name, like=dataframe.into_frame(X))
