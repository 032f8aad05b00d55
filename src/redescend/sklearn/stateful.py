"""Base class of estimators, whose learned attributes can be saved as plain values and restored."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from redescend.errors import DataError
from redescend.state import CORRUPT, Stateful, require


class StatefulEstimator(BaseEstimator, Stateful):
    """An estimator that sets attributes when it is fitted."""

    FITTED: ClassVar[str]
    """The attribute that only a fitted estimator has."""

    LEARNED: ClassVar[tuple[str, ...]]
    """All attributes that fitting sets."""

    n_features_in_: int

    @abstractmethod
    def _learned_state(self) -> dict[str, Any]:
        """Return a copy of everything that was learned, as arrays and plain values."""

    @abstractmethod
    def _read_state(self, state: dict[str, Any]) -> dict[str, Any]:
        """The learned attributes in the state of a fitted estimator, checked."""

    def __sklearn_is_fitted__(self) -> bool:
        return self.FITTED in self.__dict__

    def _fitted(self) -> Any:
        """Return the fitted attribute; an AttributeError makes fitted attributes absent before."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"This {type(self).__name__} is not fitted yet. Call fit or partial_fit first.")
        return self.__dict__[self.FITTED]

    def state(self) -> dict[str, Any]:
        if not self.__sklearn_is_fitted__():
            return {"fitted": False}
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else [str(name) for name in names]
        return {"fitted": True, "feature_names": names, **self._learned_state()}

    def restore(self, state: dict[str, Any]) -> None:
        owner = type(self).__name__
        if not isinstance(state, dict) or not isinstance(state.get("fitted"), bool):
            raise DataError(f"The state of {owner} must be a dict that its state() returned.")
        learned: dict[str, Any] = {}
        if state["fitted"]:
            try:
                learned = self._read_state(state)
                learned |= self._read_names(state["feature_names"], learned["n_features_in_"])
            except DataError:
                raise
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
                raise DataError(f"The state of {owner} cannot be read ({error}): {CORRUPT}.") from None
        for name in self.LEARNED:
            self.__dict__.pop(name, None)
        self.__dict__.update(learned)

    def _read_names(self, names: Any, dim: int) -> dict[str, Any]:
        if names is None:
            return {}
        is_valid = isinstance(names, list) and len(names) == dim and all(isinstance(name, str) for name in names)
        require(is_valid, type(self).__name__, f"feature names that are not {dim} strings")
        return {"feature_names_in_": np.array(names, dtype=object)}
