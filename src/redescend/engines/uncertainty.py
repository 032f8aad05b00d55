"""Leave-one-out predictions, and logits that are shrunk where the coefficients are uncertain.

Predictions are linear in the coefficients, whose covariance is the inverse of the curvature of the loss over all rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from redescend.engines.labels import label_probabilities
from redescend.numeric import Array, to_dense
from redescend.state import ArraySpec, read_arrays, require

MOST_LEVERAGE = 0.5  # the largest leverage of a row on its own prediction

WIDEST, LARGEST_TABLE = 300, 2**31
"""In tables with more columns, or more rows × columns², the predictions of the final model are used as they are."""

RIDGE = 1.0  # the curvature of a prior on standardized coefficients of logits: labels that a line separates give none
LONG = 4.0  # a row is long beyond this many typical lengths, as for the learner; logits of long rows are shrunk

SPECS = (
    ArraySpec("typical", (), low=0.0),
    ArraySpec("mean", ("columns",)),
    ArraySpec("spread", ("columns",), low=0.0),
    ArraySpec("covariance", (lambda dims: dims["columns"] + 1, lambda dims: dims["columns"] + 1)),
)


class Uncertainty(NamedTuple):
    """The covariance of standardized coefficients and, in the last row, of the intercept; the mean over outputs.

    `typical`, of shape (), is the median of the mean squares of rows, which the `mean` and the `spread`, or standard
    deviation, of every feature standardize.
    """

    typical: Array
    mean: Array
    spread: Array
    covariance: Array

    def shrink(self, X: Any, logits: Array) -> Array:
        """Shrink logits, a row for each output, to those of the mean probability over uncertain coefficients."""
        table = standardize(X, self.mean, self.spread)
        return logits * _compute_shrinkage(table, np.einsum("ij,ij->i", table @ self.covariance, table), self.typical)

    def state(self) -> dict[str, Array]:
        return {name: array.copy() for name, array in self._asdict().items()}


def restore_uncertainty(state: dict[str, Any], columns: int, owner: Any) -> Uncertainty:
    """The uncertainty of a saved state."""
    uncertainty = Uncertainty(**read_arrays(SPECS, state, {"columns": columns}, owner))
    covariance = uncertainty.covariance
    require(bool(np.allclose(covariance, covariance.T)), owner, "a covariance that is not symmetric")
    return uncertainty


def _compute_shrinkage(table: Array, variances: Array, typical: Array) -> Array:
    """The factor of logits: that of the mean of a logistic function over a normal variable, less for long rows."""
    leverages = np.maximum(_mean_squares(table) / np.maximum(LONG * typical, 1e-300), 1.0)
    return 1.0 / np.sqrt((1.0 + np.pi / 8.0 * np.maximum(variances, 0.0)) * leverages)


def _mean_squares(table: Array) -> Array:
    """The mean square of every row, without the constant."""
    return np.asarray(np.einsum("ij,ij->i", table, table) - 1.0) / max(table.shape[1] - 1, 1)


def standardize(X: Any, mean: Array, spread: Array) -> Array:
    """Standardized features, and a constant; those that do not vary are 0."""
    table = to_dense(X)
    with np.errstate(all="ignore"):
        standard = (table - mean) / spread
    return np.column_stack([np.nan_to_num(standard, posinf=0.0, neginf=0.0), np.ones(len(table))])


def is_too_large(X: Any) -> bool:
    """Whether a table is too large for the curvature of its rows."""
    rows, columns = X.shape
    return bool(columns > WIDEST or rows * columns**2 > LARGEST_TABLE)


def leave_out_numbers(X: Any, Y: Array, predictions: Array, weights: Array) -> Array:
    """Compute leave-one-out predictions, a row for each output.

    Exact for least squares; `weights` are those of the rows.
    """
    if is_too_large(X):
        return predictions
    table, out = standardize(X, *_compute_mean_and_spread(X)), predictions.copy()
    for output, y, weight in zip(out, Y, weights, strict=True):
        covariance = np.linalg.inv(_compute_curvature(table, weight, 1e-9 * len(table)))
        sensitivity = weight * np.einsum("ij,ij->i", table @ covariance, table)
        output -= np.nan_to_num(sensitivity / (1.0 - np.clip(sensitivity, 0.0, MOST_LEVERAGE)) * (y - output))
    return out


def leave_out_logits(X: Any, Y: Array, logits: Array, weights: Array) -> Array:
    """Compute leave-one-out logits of outputs that are learned apart, by one Newton step from the model of all rows."""
    if is_too_large(X):
        return logits
    table, out = standardize(X, *_compute_mean_and_spread(X)), logits.copy()
    for output, y, weight in zip(out, Y, weights, strict=True):
        output -= _influence_on_own_logit(table, y, weight, expit(output))[0]
    return out


def leave_out_labels(X: Any, Y: Array, logits: Array, weights: Array) -> tuple[Array, Uncertainty | None]:
    """Compute leave-one-out logits, already shrunk, by one Newton step from the model of all rows.

    The uncertainty shrinks logits of other rows in the same way.
    """
    if is_too_large(X):
        return logits, None
    mean, spread = _compute_mean_and_spread(X)
    table, out = standardize(X, mean, spread), logits.copy()
    average, variances = np.zeros((table.shape[1],) * 2), np.zeros(len(table))
    for output, y, weight, shares in zip(out, Y, weights, label_probabilities(logits)[-len(Y) :], strict=True):
        change, variance, covariance = _influence_on_own_logit(table, y, weight, shares)
        output -= change
        average += covariance / len(Y)
        variances += variance / len(Y)
    typical = np.asarray(np.median(_mean_squares(table)))
    return out * _compute_shrinkage(table, variances, typical), Uncertainty(typical, mean, spread, average)


def _influence_on_own_logit(table: Array, y: Array, weight: Array, probability: Array) -> tuple[Array, Array, Array]:
    """What each row adds to its own logit, by one Newton step; the variance of the logit without it; the covariance."""
    curvature = weight * probability * (1.0 - probability)
    covariance = np.linalg.inv(_compute_curvature(table, curvature, RIDGE))
    variance = np.einsum("ij,ij->i", table @ covariance, table)
    rest = 1.0 - np.clip(variance * curvature, 0.0, MOST_LEVERAGE)
    return np.nan_to_num(weight * variance / rest * (0.5 * (y + 1.0) - probability)), variance / rest, covariance


def _compute_mean_and_spread(X: Any) -> tuple[Array, Array]:
    table = to_dense(X)
    with np.errstate(all="ignore"):
        return np.nan_to_num(table.mean(axis=0)), np.nan_to_num(table.std(axis=0))


def _compute_curvature(table: Array, weights: Array, ridge: float) -> Array:
    gram: Array = (table * weights[:, None]).T @ table
    gram[np.diag_indices_from(gram)] += ridge
    return gram
