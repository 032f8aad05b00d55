"""Labels as outputs of an engine: one output for two labels, or one for each of more against the rest."""

from __future__ import annotations

import functools

import numpy as np
from scipy.special import expit

from redescend.numeric import Array


def count_outputs(labels: int) -> int:
    """The number of outputs for this number of labels."""
    return 1 if labels == 2 else labels


def encode_labels(places: Array, labels: int) -> Array:
    """Encode the indices of labels as targets of −1 and 1, a row for each output."""
    if labels == 2:
        return 2.0 * places.reshape(1, -1) - 1.0
    return np.where(np.arange(labels)[:, None] == places, 1.0, -1.0)


def label_probabilities(margins: Array) -> Array:
    """The probability of every label, a row each, given a row of margins for each output."""
    if len(margins) == 1:
        return np.stack([expit(-margins[0]), expit(margins[0])])
    shares = expit(margins)
    totals = sum_outputs(shares)
    return np.where(totals > 0.0, shares / np.where(totals > 0.0, totals, 1.0), 1.0 / len(shares))


def sum_outputs(rows: Array) -> Array:
    """Sum rows from the first to the last; NumPy uses another order if there is a single column."""
    return functools.reduce(np.add, rows)
