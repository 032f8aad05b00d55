"""Base class of the regressor and the classifier."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from river.utils import dataframe

from redescend import losses, steps, transforms
from redescend.engines.config import ModelConfig, Task
from redescend.exclusive import exclusive
from redescend.numeric import Array
from redescend.parameters import Order
from redescend.river import records
from redescend.river.dict_model import DictModel
from redescend.river.records import BinaryLabels, key_to_plain, plain_to_key
from redescend.state import Stateful, check_keys, corrupt_state


@dataclass(eq=False, repr=False)
class LinearModel(Stateful):
    """A linear model behind River's methods; subclasses define the encoding of targets."""

    TASK: ClassVar[Task]

    loss: str | losses.LinearLoss = "squared"
    order: Order = "auto"
    transform: transforms.Transform | None = None
    step: steps.Step | None = None
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        chosen = {field.name: getattr(self, field.name) for field in fields(self)}
        self._model = DictModel(ModelConfig.from_parameters(type(self).__name__, self.TASK, **chosen))
        self._labels = BinaryLabels()
        self._y_name: str | None = None

    def _encode(self, y: Any) -> float:
        """A target as the number that is learned."""
        return y

    def _encode_many(self, y: Array, weights: list[float] | None) -> tuple[Array, BinaryLabels]:
        """Targets as numbers, and the labels known after them."""
        return records.read_numbers(y, weights), self._labels

    def _decode_many(self, predictions: Array) -> Any:
        """Decode predictions."""
        return predictions

    def score_one(self, x: dict[Any, Any], y: Any) -> float:
        """Return how anomalous a record is: one minus the probability that it is clean, see `redescend.belief`.

        Parameters
        ----------
        x : dict
            Features.
        y : float or label
            Target.

        Returns
        -------
        score : float
            Between 0 and 1; high for an outlier or a label that is probably flipped. With a transform, one minus its
            weight.

        Examples
        --------
        >>> from redescend.river import RedescendingRegressor
        >>> model = RedescendingRegressor()
        >>> for t in range(300):
        ...     model.learn_one({"a": t % 7}, 2.0 * (t % 7) + t % 3 + 99.0 * (t % 20 == 19))
        >>> model.score_one({"a": 3.0}, 7.0) < 0.1, model.score_one({"a": 3.0}, 99.0) > 0.9
        (True, True)
        """
        return 1.0 - self._model.clean_probability(x, self._encode(y))

    @exclusive
    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from the rows of a frame in turn; from none of them if a number is not finite.

        Parameters
        ----------
        X : DataFrame
            A frame of pandas, or any other that River takes, with a column for each feature.
        y : Series
            Targets.
        w : float or Series
            How much each row counts. Rows of weight 0 are ignored.

        Examples
        --------
        >>> import pandas as pd
        >>> from redescend.river import RedescendingRegressor
        >>> model = RedescendingRegressor()
        >>> model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series([2.0, 4.0]))
        """
        columns, values = self._model.frames.read(X)
        targets, name = records.read_series("y", y, len(values))
        weights = records.read_weights(w, len(values))
        numbers, labels = self._encode_many(targets, weights)
        self._model.learn_rows(columns, values, numbers, weights)
        self._labels, self._y_name = labels, name

    def predict_many(self, X: Any) -> Any:
        """Return a series of predictions for the rows of the frame `X`."""
        columns, values = self._model.frames.read(X)
        predictions = self._decode_many(self._model.predict_rows(columns, values))
        return dataframe.to_native_series(predictions, name=self._y_name, like=dataframe.into_frame(X))

    @property
    def weights(self) -> dict[Any, float]:
        """The coefficient of every feature learned from."""
        return self._model.weights

    @property
    def intercept(self) -> float:
        """The prediction where every feature is 0."""
        return self._model.intercept

    def state(self) -> dict[str, Any]:
        return {"linear": self._model.state(), "labels": self._labels.state(), "target": key_to_plain(self._y_name)}

    def restore(self, state: dict[str, Any]) -> None:
        owner = type(self).__name__
        check_keys(state, ("linear", "labels", "target"), owner)
        labels = BinaryLabels()
        try:
            labels.restore(state["labels"])
        except (TypeError, ValueError):
            raise corrupt_state(owner, "invalid labels") from None
        self._model.restore(state["linear"])
        self._labels, self._y_name = labels, plain_to_key(state["target"])
