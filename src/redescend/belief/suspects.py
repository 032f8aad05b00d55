"""From probabilities to a list: the q-value of every record, and the largest list with few false alarms."""

from __future__ import annotations

import numpy as np

from redescend.numeric import Array
from redescend.parameters import Interval, check

SHARE = Interval(0, 1, "neither")
LARGEST = 1.0 - 2.0**-53
"""The largest float below 1."""

HALF = 0.5
"""A record that is more likely clean than not is no suspect, however certain the others are."""

LARGEST_NUMBER = 2.0
"""A number in a list is at most this many times as likely clean as the list's share of false alarms: between that and
½, most numbers of real tables are clean."""


def are_suspects(q_value: Array, clean_probability: Array, fdr: float, numbers: Array | bool) -> Array:
    """Which records are in the list with this share of false alarms; `numbers` are the records whose targets are."""
    largest = np.where(numbers, min(LARGEST_NUMBER * fdr, HALF), HALF)
    return np.asarray((q_value <= fdr) & (clean_probability <= largest), bool)


def to_probability(log_odds: Array) -> Array:
    """The probability with these log-odds, never exactly 0 or 1.

    Parameters
    ----------
    log_odds : array of floats
        Logarithms of odds.

    Returns
    -------
    array of floats
        Probabilities.

    Examples
    --------
    >>> probability = to_probability(np.array([-5000.0, 0.0, 5000.0]))
    >>> probability[1], 0.0 < probability[0], probability[2] < 1.0
    (np.float64(0.5), np.True_, np.True_)
    """
    odds = np.exp(-np.abs(np.clip(log_odds, -744.0, 744.0)))
    return np.minimum(np.where(np.asarray(log_odds) < 0.0, odds / (1.0 + odds), 1.0 / (1.0 + odds)), LARGEST)


def q_values(clean_probability: Array) -> Array:
    """The estimated share of false alarms in the list of a record and of all that are less likely clean.

    Parameters
    ----------
    clean_probability : array of floats, shape (rows,)
        The probability of every record that it is clean.

    Returns
    -------
    array of floats, shape (rows,)
        The mean probability of the list; records with equal probabilities are listed together.

    Examples
    --------
    >>> q_values(np.array([0.5, 0.01, 0.99, 0.09]))
    array([0.2   , 0.01  , 0.3975, 0.05  ])
    """
    probability = np.asarray(clean_probability, np.float64)
    order = np.argsort(probability, kind="stable")
    ranked = probability[order]
    means = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    last = np.searchsorted(ranked, ranked, side="right") - 1
    out = np.empty(len(ranked))
    out[order] = means[last]
    return out


def select_suspects(clean_probability: Array, fdr: float = 0.1, numbers: bool = False) -> Array:
    """The largest list of records whose estimated share of false alarms is at most `fdr`.

    Every record in it is at most as likely clean as not.

    Parameters
    ----------
    clean_probability : array of floats, shape (rows,)
        The probability of every record that it is clean.
    fdr : float
        The largest share of false alarms, between 0 and 1.
    numbers : bool
        Whether targets are numbers. Then every record in the list is also at most twice as likely clean as `fdr`.

    Returns
    -------
    array of ints
        Places of the suspects, the least likely clean first.

    Examples
    --------
    >>> select_suspects(np.array([0.9, 0.01, 0.3, 0.02, 0.8]), fdr=0.2)
    array([1, 3, 2])
    """
    fdr = check("select_suspects", "fdr", fdr, SHARE)
    probability = np.asarray(clean_probability, np.float64)
    listed = np.count_nonzero(are_suspects(q_values(probability), probability, fdr, numbers))
    return np.argsort(probability, kind="stable")[:listed]
