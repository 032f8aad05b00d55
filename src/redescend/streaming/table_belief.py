"""What a model with trees has learned from a table as a whole: `score` judges records by it as the final look does."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from redescend.engines import NonlinearEngine
from redescend.engines.held_out import HeldOut
from redescend.engines.members import MemberBelief
from redescend.numeric import Array
from redescend.state import Stateful, check_keys


class TableBelief(Stateful):
    """The belief of all members, the sizes of residuals around records, and both predictions for the records of the
    table, made without them. Of labels, only the predictions are needed.

    Parameters
    ----------
    engine : NonlinearEngine
        The model.
    """

    def __init__(self, engine: NonlinearEngine) -> None:
        self._parts: dict[str, Any] = {"held_scores": HeldOut(engine.outputs)}
        if not engine.loss.margin:
            self._parts |= {"held_sizes": HeldOut(1), "sizes": engine.make_size_engine()}
            self._parts |= {"members": MemberBelief(engine.dim)}

    def learn(self, engine: NonlinearEngine, X: Array, targets: Array, scores: Array) -> None:
        """Learn from the records of a table, in an order that looks random, and their `scores`, made without them."""
        self._parts["held_scores"].learn(X, targets, scores)
        if engine.loss.margin:
            return
        predictions = self.recall(X, targets, scores)[0]
        self._parts["sizes"], sizes = engine.fit_sizes(X, targets - predictions, np.ones(len(X)))
        self._parts["held_sizes"].learn(X, targets, sizes[None])
        linear, sizes = engine.linear.predict(X)[0], self._find_sizes(X, targets)
        self._parts["members"].learn_table(X, targets, predictions, linear, sizes)

    def recall(self, X: Array, targets: Array, scores: Array) -> Array:
        """The scores of records, where those of the table have the ones that were made without them."""
        recalled: Array = self._parts["held_scores"].recall(X, targets, scores)
        return recalled

    def judge(self, engine: NonlinearEngine, own: Array, X: Array, targets: Array, predictions: Array) -> Array:
        """Combine the log-odds by residuals, `own`, with those by all members; labels are judged as they are."""
        if engine.loss.margin:
            return own
        linear, sizes = engine.linear.predict(X)[0], self._find_sizes(X, targets)
        log_odds: Array = self._parts["members"].judge(own, X, targets, predictions, linear, sizes)
        return log_odds

    def _find_sizes(self, X: Array, targets: Array) -> Array:
        """The logarithm of the size of residuals around each record."""
        sizes: Array = self._parts["held_sizes"].recall(X, targets, self._parts["sizes"].predict(X))[0]
        return sizes

    def trim(self) -> None:
        """Forget the predictions for most records of a large table."""
        for part in self._parts.values():
            if isinstance(part, HeldOut):
                part.trim()

    def state(self) -> dict[str, Any]:
        return {name: part.state() for name, part in self._parts.items()}

    def restore(self, state: dict[str, Any]) -> None:
        check_keys(state, list(self._parts), type(self).__name__)
        parts = deepcopy(self._parts)
        for name, part in parts.items():
            part.restore(state[name])
        self._parts = parts
