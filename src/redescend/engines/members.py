"""What a model with trees has learned from a table as a whole: the final look and `score` judge its records by it.

Trees predict the noise of records that they have seen, so that their residuals are too small: `HeldOut` stores what was
predicted for the records of a table without them, to judge the same records again in the same way.

Where a target is nearly a function of the features, trees are exact in most places and off in some. So a record is odd
only if its residual is large for all residuals and also for those around it. Trees also learn groups of similar errors,
such as rows with two columns swapped, which differ from the others; so they excuse a record that the linear member
doubts only a little (`MemberBelief`).
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from redescend.belief import ResidualBelief
from redescend.engines.nonlinear import NonlinearEngine
from redescend.numeric import Array, hash_records
from redescend.state import ArraySpec, Stateful, check_keys, read_arrays

MOST_NUMBERS = 1 << 15
"""Numbers that are stored, with a hash for each record: those of 32,768 records if each has one."""

SPECS = (
    ArraySpec("hashes", ("records",), dtype=np.uint64),
    ArraySpec("values", ("width", "records")),
)


class HeldOut(Stateful):
    """Numbers that belong to records, by the hashes of these.

    Parameters
    ----------
    width : int
        How many numbers each record has.

    Examples
    --------
    >>> held, X, targets = HeldOut(1), np.array([[1.0], [2.0]]), np.array([3.0, 4.0])
    >>> held.learn(X, targets, np.array([[7.0, 8.0]]))
    >>> held.recall(np.array([[2.0], [5.0]]), np.array([4.0, 4.0]), np.array([[0.5, 0.5]]))
    array([[8. , 0.5]])
    """

    def __init__(self, width: int) -> None:
        self._hashes, self._values = np.empty(0, np.uint64), np.empty((width, 0))

    def learn(self, X: Array, targets: Array, values: Array) -> None:
        """Store the `values` of records, of shape (width, rows); of equal records, those of the first."""
        self._hashes, first = np.unique(hash_records(X, targets), return_index=True)
        self._values = np.nan_to_num(values[:, first])

    def recall(self, X: Array, targets: Array, values: Array) -> Array:
        """These values of records, where those that are known have the stored ones."""
        if not len(self._hashes):
            return values
        hashes = hash_records(X, targets)
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        return np.where(self._hashes[places] == hashes, self._values[:, places], values)

    def trim(self) -> None:
        """Forget most records of a large table; which ones is random, but depends on the records alone."""
        most = MOST_NUMBERS // len(self._values)
        self._hashes, self._values = self._hashes[:most].copy(), self._values[:, :most].copy()

    def state(self) -> dict[str, Any]:
        return {"hashes": self._hashes.copy(), "values": self._values.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        arrays = read_arrays(SPECS, state, {"width": len(self._values)}, type(self).__name__)
        self._hashes, self._values = arrays["hashes"], arrays["values"]


EXCUSED = 1.0
"""Log-odds by which trees may excuse a number that the linear member doubts."""


class MemberBelief(Stateful):
    """The beliefs in residuals in local units and in those of the linear member.

    Parameters
    ----------
    dim : int
        Number of features on which the scale of residuals may depend.
    """

    def __init__(self, dim: int) -> None:
        self._local, self._linear = ResidualBelief(dim), ResidualBelief(dim)

    def learn_table(self, X: Array, targets: Array, predictions: Array, linear: Array, sizes: Array) -> None:
        """Learn from all records of a table.

        Parameters
        ----------
        X : array of floats, shape (rows, dim)
            The features on which the scale of residuals may depend.
        targets, predictions : arrays of floats, shape (rows,)
            The targets and what was predicted for them without knowing them.
        linear : array of floats, shape (rows,)
            The predictions of the linear member.
        sizes : array of floats, shape (rows,)
            The logarithm of the size of residuals around each row, see `NonlinearEngine.fit_sizes`.
        """
        self._local.learn_table(np.nan_to_num(predictions), targets, X, sizes)
        self._linear.learn_table(np.nan_to_num(linear), targets, X)

    def judge(self, own: Array, X: Array, targets: Array, predictions: Array, linear: Array, sizes: Array) -> Array:
        """Combine both verdicts with that on residuals, `own`: the log-odds that each row is clean.

        The others are as in `learn_table`, of any rows. Returns the log-odds that each row is clean.
        """
        local = self._local.judge(np.nan_to_num(predictions), targets, X, sizes=sizes)
        return np.minimum(np.maximum(own, local), self._linear.judge(np.nan_to_num(linear), targets, X) + EXCUSED)

    def state(self) -> dict[str, Any]:
        return {"local": self._local.state(), "linear": self._linear.state()}

    def restore(self, state: dict[str, Any]) -> None:
        check_keys(state, ("local", "linear"), type(self).__name__)
        local, linear = ResidualBelief(self._local.dim), ResidualBelief(self._linear.dim)
        local.restore(state["local"])
        linear.restore(state["linear"])
        self._local, self._linear = local, linear


def judge_by_members(own: Array, X: Array, targets: Array, predictions: Array, linear: Array, sizes: Array) -> Array:
    """Judge the records of a table by a `MemberBelief` that has learned from them."""
    belief = MemberBelief(X.shape[1])
    belief.learn_table(X, targets, predictions, linear, sizes)
    return belief.judge(own, X, targets, predictions, linear, sizes)


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
