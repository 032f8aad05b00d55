"""Labels as outputs of an engine: one output for two labels, or one for each of more."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np
import scipy

from redescend.losses import LinearLoss, Logistic
from redescend.numeric import LARGEST, Array


def count_outputs(labels: int) -> int:
    """The number of outputs for this number of labels."""
    return 1 if labels <= 2 else labels


def encode_labels(places: Array, labels: int) -> Array:
    """Encode the indices of labels as targets of −1 and 1, a row for each output."""
    if labels <= 2:
        return 2.0 * places.reshape(1, -1) - 1.0
    return np.where(np.arange(labels)[:, None] == places, 1.0, -1.0)


def label_probabilities(logits: Array) -> Array:
    """The probability of every label, a row each, given a row of logits for each output."""
    if len(logits) == 1:
        return scipy.special.expit(np.stack([-logits[0], logits[0]]))
    with np.errstate(over="ignore"):
        shares = np.exp(logits - logits.max(axis=0))
    return shares / sum_outputs(shares)


def count_losses(loss: LinearLoss, predictions: Array, Y: Array) -> Array:
    """The loss of every record: with three or more labels and a logistic loss −ln of the probability of the label,
    otherwise the sum over outputs; at most the largest float.
    """
    if len(Y) > 1 and isinstance(loss, Logistic):
        with np.errstate(over="ignore"):
            below = predictions - predictions.max(axis=0)
            return np.minimum(
                np.log(sum_outputs(np.exp(below))) - np.where(Y > 0.0, below, -np.inf).max(axis=0), LARGEST
            )
    return sum_outputs(np.minimum(loss.of_prediction(predictions, Y), LARGEST))


def sum_outputs(rows: Iterable[Array]) -> Array:
    """Sum rows from the first to the last; NumPy uses another order if there is a single column."""
    return functools.reduce(np.add, rows)
