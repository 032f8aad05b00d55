"""What a model with trees has learned from a table as a whole: the final look and `score` judge its records by it.

Trees predict the noise of records that they have seen, so that their residuals are too small: `HeldOut` stores what was
predicted for the records of a table without them, to judge the same records again in the same way.

Three verdicts on a number are combined (`MemberBelief`): by its residual among all residuals, among those around it,
and by that of the linear member. Where a target is nearly a function of the features, trees are exact in most places
and off in some; where only trees fit, the linear member is off. So a record is odd if two of three say so. But trees
also learn groups of similar errors, such as rows with two columns swapped, which differ from the others: they excuse a
record that the linear member doubts only a little, unless they also predict most other records better.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from redescend.belief import ResidualBelief
from redescend.engines.nonlinear import NonlinearEngine
from redescend.numeric import Array, hash_records
from redescend.state import ArraySpec, Stateful, check_keys, read_arrays, require

MOST_NUMBERS = 1 << 15
"""Numbers that are stored, with a hash for each record: those of 32,768 records if each has one."""

SPECS = (ArraySpec("hashes", ("records",), dtype=np.uint64), ArraySpec("values", ("width", "records")))


class HeldOut(Stateful):
    """Numbers that belong to records, `width` for each, by the hashes of these.

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


EXCUSED, BETTER = 1.0, 4.0
"""Log-odds by which trees may excuse a number that the linear member doubts, and how many more they may for each factor
of e by which their typical residual is smaller."""


def find_excuse(targets: Array, predictions: Array, linear: Array) -> float:
    """How much more trees may excuse because they predict most records better.

    A few records do not change it: trees that merely learn a group of errors do not predict the others better.
    """
    limits = np.finfo(float)
    with np.errstate(over="ignore"):
        sizes = [np.median(np.abs(targets - told)) if len(targets) else 0.0 for told in (predictions, linear)]
    ours, theirs = np.log(np.clip(sizes, limits.tiny, limits.max))
    return float(BETTER * max(theirs - ours, 0.0))


class MemberBelief(Stateful):
    """The beliefs in residuals, whose scale may depend on `dim` features, in local units and in those of the linear
    member.
    """

    def __init__(self, dim: int) -> None:
        self._local, self._linear = ResidualBelief(dim), ResidualBelief(dim)
        self._excuse = 0.0

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
        predictions, linear = np.nan_to_num(predictions), np.nan_to_num(linear)
        self._local.learn_table(predictions, targets, X, sizes)
        self._linear.learn_table(linear, targets, X)
        self._excuse = find_excuse(targets, predictions, linear)

    def judge(self, own: Array, X: Array, targets: Array, predictions: Array, linear: Array, sizes: Array) -> Array:
        """Combine both verdicts with that on residuals, `own`: the log-odds that each row is clean.

        The others are as in `learn_table`, of any rows. Returns the log-odds that each row is clean.
        """
        local = self._local.judge(np.nan_to_num(predictions), targets, X, sizes=sizes)
        limit = self._linear.judge(np.nan_to_num(linear), targets, X) + EXCUSED
        median = np.clip(limit, np.minimum(own, local), np.maximum(own, local))
        return np.minimum(median, limit + self._excuse)

    def state(self) -> dict[str, Any]:
        return {"local": self._local.state(), "linear": self._linear.state(), "excuse": self._excuse}

    def restore(self, state: dict[str, Any]) -> None:
        check_keys(state, ("local", "linear", "excuse"), type(self).__name__)
        excuse = state["excuse"]
        require(type(excuse) is float and 0.0 <= excuse < np.inf, type(self).__name__, f"an excuse of {excuse!r}")
        local, linear = ResidualBelief(self._local.dim), ResidualBelief(self._linear.dim)
        local.restore(state["local"])
        linear.restore(state["linear"])
        self._local, self._linear, self._excuse = local, linear, excuse


def judge_by_members(own: Array, X: Array, targets: Array, predictions: Array, linear: Array, sizes: Array) -> Array:
    """Judge the records of a table by a `MemberBelief` that has learned from them."""
    belief = MemberBelief(X.shape[1])
    belief.learn_table(X, targets, predictions, linear, sizes)
    return belief.judge(own, X, targets, predictions, linear, sizes)


class TableBelief(Stateful):
    """The belief of all members, the sizes of residuals around records, and both predictions for the records of the
    table, made without them. Of labels, only the predictions are needed.
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
