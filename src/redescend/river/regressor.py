"""`RedescendingRegressor`, for River."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from river import base

from redescend import steps, transforms
from redescend.exclusive import exclusive
from redescend.river.linear_model import LinearModel


class RedescendingRegressor(LinearModel, base.MiniBatchRegressor):
    r"""Linear regression that outliers cannot move.

    There is nothing to tune: the scale of the noise, the step size and the share of outliers are estimated from the
    stream, as in `redescend.SelfTuning`. With a `transform`, the model is plain gradient descent on that robust loss
    with that `step`: faster, but tuned by you.

    Parameters
    ----------
    loss : str or LinearLoss
        "squared", "absolute", "epsilon_insensitive", "pinball", or a loss such as ``rd.losses.Pinball(0.9)``. The l2
        of a loss spares the intercept unless a transform is given.
    order : 'auto', 1 or 2
        The order of the self-tuning learner. 2: O(d²) per record instead of O(d), but fewer records to learn from.
        'auto': 2 while there are at most 150 features, otherwise 1.
    transform : Transform, optional
        A fixed robust transform, such as ``rd.transforms.Huber(1.0)``. Without one, the model tunes itself.
    step : Step, optional
        The step that goes with the transform, such as ``rd.steps.Anytime()``; ``rd.steps.Constant(0.01)`` by default.
    fit_intercept : bool
        Whether to learn an intercept.

    Notes
    -----
    A feature that is missing from a record is 0, and new features may appear at any time. What was learned before does
    not change then.

    `learn_many` gives the same model as `learn_one` row by row. A record with a number that is not finite raises an
    error and leaves the model unchanged; an absurd one, such as 1e308, is counted but moves nothing.

    Examples
    --------
    >>> model = RedescendingRegressor()
    >>> for t in range(200):
    ...     x = {"a": float(t % 7), "b": float(t % 3)}
    ...     wrong = t % 10 == 9
    ...     model.learn_one(x, 1000.0 if wrong else 2 * x["a"] - x["b"] + 0.5)
    >>> round(model.predict_one({"a": 3.0, "b": 1.0}), 2)
    5.5
    """

    TASK = "regression"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"order": 2}
        yield {"transform": transforms.Learn(a=2.0, b=0.1), "step": steps.AdaptiveNorm()}

    @exclusive
    def learn_one(self, x: dict[Any, Any], y: float, w: float = 1.0) -> None:
        """Learn from one record.

        Parameters
        ----------
        x : dict
            Features; missing ones are 0.
        y : float
            Target.
        w : float
            How much the record counts: steps are w times as long, and a model that tunes itself divides the variance
            of its noise by w. 0 changes nothing.

        Examples
        --------
        >>> model = RedescendingRegressor()
        >>> model.learn_one({"a": 1.0}, 2.0)
        """
        self._model.learn(x, y, w)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Predict the target of the record `x`; unknown features are ignored."""
        return self._model.predict(x)

    def predict_interval_one(self, x: dict[Any, Any], level: float = 0.9) -> tuple[float, float]:
        """Predict the interval in which a share of clean targets lies; wrong ones need not.

        Parameters
        ----------
        x : dict
            Features.
        level : float
            The share, between 0 and 1.

        Returns
        -------
        low, high : float
            The ends of the interval. Only without a transform.

        Examples
        --------
        >>> model = RedescendingRegressor()
        >>> for t in range(300):
        ...     model.learn_one({"a": t % 7}, 2.0 * (t % 7) + t % 3)
        >>> low, high = model.predict_interval_one({"a": 3.0})
        >>> low < 7.0 < high
        True
        """
        return self._model.predict_interval(x, level)
