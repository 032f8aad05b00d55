"""The verdict on the numbers of a table by all members of a non-linear model.

Where a target is nearly a function of the features, trees are exact in most places and off in some. So a record is odd
only if its residual is large for all residuals and also for those around it. Trees also learn groups of similar errors,
such as rows with two columns swapped, which differ from the others; so they excuse a record that the linear member
doubts only a little.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.belief import ResidualBelief
from redescend.numeric import Array
from redescend.state import Stateful, check_keys

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
