"""What the regressor and the classifier share: everything but what a target is."""

from __future__ import annotations

from typing import Any

from redescend.errors import DataError
from redescend.river.labels import Labels
from redescend.river.linear import Linear
from redescend.river.names import plain, unplain


class Model:
    """A linear model behind River's methods."""

    _linear: Linear
    _labels: Labels
    _y_name: str | None

    @property
    def weights(self) -> dict[Any, float]:
        """The weight of every feature that was learned from."""
        return self._linear.weights

    @property
    def intercept(self) -> float:
        """What is predicted where every feature is 0."""
        return self._linear.intercept

    def state(self) -> dict[str, Any]:
        """All that was learned, as arrays and plain values; copies.

        A model made with the same parameters that restores it goes on as this one would, bit for bit.
        """
        return {"linear": self._linear.state(), "labels": self._labels.state(), "target": plain(self._y_name)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that a model with the same parameters gave."""
        expected, name = ["linear", "labels", "target"], type(self).__name__
        if not isinstance(state, dict) or sorted(state) != sorted(expected):
            raise DataError(f"The state of {name} must be a dict with the keys {', '.join(expected)}.")
        labels = Labels()
        try:
            labels.restore(state["labels"])
        except (TypeError, ValueError):
            raise DataError(f"The state of {name} has labels that cannot be; it has been altered.") from None
        self._linear.restore(state["linear"])
        self._labels, self._y_name = labels, unplain(state["target"])
