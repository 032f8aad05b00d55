"""The verdict on the numbers of a table by all members of a non-linear model.

Where a target is nearly a function of the features, trees are exact in most places and off in some. So a record is odd
only if its residual is large for all residuals and also for those around it. Trees also learn groups of similar errors,
such as rows with two columns swapped, which differ from the others; so they excuse a record that the linear member
doubts only a little.
"""

from __future__ import annotations

import numpy as np

from redescend.belief import ResidualBelief
from redescend.numeric import Array

EXCUSED = 1.0
"""Log-odds by which trees may excuse a number that the linear member doubts."""

MOST_APART = 100.0
"""By how much the logarithms of sizes around two records differ at most."""


def judge_by_members(own: Array, X: Array, targets: Array, predictions: Array, linear: Array, sizes: Array) -> Array:
    """Combine the verdict on residuals with that on residuals in local units and that of the linear member.

    Parameters
    ----------
    own : array of floats, shape (rows,)
        The log-odds that each row is clean, by its residual.
    X : array of floats, shape (rows, columns)
        The features on which the scale of residuals may depend.
    targets, predictions : arrays of floats, shape (rows,)
        The targets and what was predicted for them without knowing them.
    linear : array of floats, shape (rows,)
        The predictions of the linear member.
    sizes : array of floats, shape (rows,)
        The logarithm of the size of residuals around each row, see `NonlinearEngine.predict_sizes`.

    Returns
    -------
    array of floats, shape (rows,)
        The log-odds that each row is clean.
    """
    if not len(targets):
        return own
    predictions, linear = np.nan_to_num(predictions), np.nan_to_num(linear)
    factors = np.exp(np.clip(np.median(sizes) - sizes, -MOST_APART, MOST_APART))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.nan_to_num(predictions + factors * (targets - predictions))
    local = _judge_residuals(X, predictions, scaled)
    return np.minimum(np.maximum(own, local), _judge_residuals(X, linear, targets) + EXCUSED)


def _judge_residuals(X: Array, predictions: Array, targets: Array) -> Array:
    belief = ResidualBelief(X.shape[1])
    belief.learn_table(predictions, targets, X)
    return belief.judge(predictions, targets, X)
