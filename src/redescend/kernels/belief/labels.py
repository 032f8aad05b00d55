"""The probability that a label is right, from the margin of a model's score, compiled.

With g(m) the probability that the true label is +1 at margin m, and e₁, e₀ the shares of true labels +1 and −1 that are
flipped, a label is +1 with probability (1 − e₁)·g(m) + e₀·(1 − g(m)). Each model has a link and a slope of g; its flips
are fitted by EM to counts of labels by margin. The models are averaged by their tempered likelihoods.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.kernels.belief.cells import TILT
from redescend.kernels.belief.hypotheses import sigmoid
from redescend.kernels.belief.layout import ALL, DECAYS, FALSE_ALARMS, RECENT, WARM
from redescend.kernels.belief.lists import find_threshold
from redescend.kernels.belief.mixture import share_weights
from redescend.kernels.compiler import compiled, part
from redescend.numeric import Array

(ROUNDS, INCREMENT, DUE, THRESHOLD) = range(4)
NUMBERS = 4

LOWEST, HIGHEST, FINE = -6, 8, 4
SIDE = (HIGHEST - LOWEST) * FINE
CELLS = 2 * SIDE
"""Cells of margins: a quarter of an octave wide, from the most negative to the most positive."""

TEMPERATURE, PRICE = 1000.0, 50.0
"""The effective sample size of the likelihood of a model is at most the first. Where a weak classifier and many flips
explain the labels equally well, the price of squared flips prefers the weak classifier."""

NUDGE, RAREST = 1e-6, 1e-9
"""Probabilities rise by this much between the two cells in the middle, so that the class with the larger score has the
larger one; none is below the second."""

FLIP_PRIOR, KEEP_PRIOR, MOST_FLIPS = 1.0, 20.0, 0.45
ITERATIONS, FINAL_ITERATIONS = 2, 100


class State(NamedTuple):
    """All that a belief in labels has learned, in the order in which its arrays are saved."""

    numbers: Array
    counts: Array  # histogram, label, cell
    flips: Array  # model, true label
    log_odds: Array  # label, cell
    positive: Array  # cell: the probability that the true label is +1


class Tables(NamedTuple):
    """The probability that the true label is +1, by model and cell."""

    positive: Array


@part
def find_position(margin: float) -> float:
    """Where a margin is among the cells; a whole number is the middle of a cell."""
    size = min(max(np.log2(max(abs(margin), 1e-300)) - LOWEST, 0.0) * FINE, float(SIDE))
    return SIDE - 0.5 + (size if margin >= 0.0 else -size)


@part
def find_cell(margin: float) -> int:
    return min(max(int(np.floor(find_position(margin) + 0.5)), 0), CELLS - 1)


@part
def interpolate(margin: float, table: Array) -> float:
    """The entry of a table of cells, interpolated between the middles of cells."""
    position = find_position(margin)
    cell = min(max(int(np.floor(position)), 0), CELLS - 2)
    part = min(max(position - cell, 0.0), 1.0)
    return (1.0 - part) * table[cell] + part * table[cell + 1]


@part
def log_likelihood(counts: Array, positive: Array, flips: Array) -> float:
    value = 0.0
    for c in range(CELLS):
        if counts[0, c] + counts[1, c] > 0.0:
            said = (1.0 - flips[1]) * positive[c] + flips[0] * (1.0 - positive[c])
            value += counts[1, c] * np.log(said) + counts[0, c] * np.log(1.0 - said)
    return value


@part
def fit_flips(counts: Array, positive: Array, flips: Array) -> None:
    """One iteration of EM for the shares of flipped labels."""
    wrong_plus = wrong_minus = plus = total = 0.0
    for c in range(CELLS):
        total += counts[0, c] + counts[1, c]
        said = (1.0 - flips[1]) * positive[c] + flips[0] * (1.0 - positive[c])
        from_minus = counts[1, c] * flips[0] * (1.0 - positive[c]) / said
        from_plus = counts[0, c] * flips[1] * positive[c] / (1.0 - said)
        wrong_minus += from_minus
        wrong_plus += from_plus
        plus += counts[1, c] - from_minus + from_plus
    minus = total - plus
    flips[0] = min((wrong_minus + FLIP_PRIOR) / (minus + FLIP_PRIOR + KEEP_PRIOR), MOST_FLIPS)
    flips[1] = min((wrong_plus + FLIP_PRIOR) / (plus + FLIP_PRIOR + KEEP_PRIOR), MOST_FLIPS)


@compiled
def fit_labels(counts: Array, tables: Tables, iterations: int, flips: Array, log_odds: Array, positive: Array) -> float:
    """Fit all models to the counts, and write the average of what they say; returns the threshold of suspects."""
    models, total = len(tables.positive), 0.0
    for c in range(CELLS):
        total += counts[0, c] + counts[1, c]
    tempered = min(1.0, TEMPERATURE / max(total, 1.0))
    weights = np.empty(models)
    for i in range(models):
        for _ in range(iterations):
            fit_flips(counts, tables.positive[i], flips[i])
        price = PRICE * (flips[i, 0] * flips[i, 0] + flips[i, 1] * flips[i, 1])
        weights[i] = tempered * log_likelihood(counts, tables.positive[i], flips[i]) - price
    share_weights(weights)
    for c in range(CELLS):
        right = wrong = right_minus = wrong_minus = share = 0.0
        for i in range(models):
            g = tables.positive[i, c]
            right += weights[i] * (1.0 - flips[i, 1]) * g
            wrong += weights[i] * flips[i, 0] * (1.0 - g)
            right_minus += weights[i] * (1.0 - flips[i, 0]) * (1.0 - g)
            wrong_minus += weights[i] * flips[i, 1] * g
            share += weights[i] * g
        log_odds[1, c] = np.log(right) - np.log(wrong)
        log_odds[0, c] = np.log(right_minus) - np.log(wrong_minus)
        positive[c] = share
    return find_threshold(log_odds, counts, FALSE_ALARMS)


@compiled
def judge_labels(margins: Array, labels: Array, first: int, state: State, log_odds: Array, suspect: Array) -> int:
    """Judge labels, beginning with the one at `first`, and learn from them, until models have to be fitted.

    Rows of `margins` have one column for two classes, else one for every class; labels are the places of classes.
    Returns the place of the next record.
    """
    numbers, counts, classes = state.numbers, state.counts, margins.shape[1]
    for t in range(first, len(labels)):
        log_odds[t] = judge_label(margins[t], labels[t], state.log_odds)
        suspect[t] = sigmoid(log_odds[t]) <= numbers[THRESHOLD]
        numbers[ROUNDS] += 1.0
        most, least = DECAYS
        numbers[INCREMENT] /= 1.0 - min(max(1.0 / numbers[ROUNDS], least), most)
        for k in range(classes):
            cell = find_cell(lead(margins[t], k))
            label = labels[t] if classes == 1 else int(k == labels[t])
            counts[RECENT, label, cell] += numbers[INCREMENT]
            if numbers[ROUNDS] > WARM:
                counts[ALL, label, cell] += 1.0
        if numbers[ROUNDS] >= numbers[DUE]:
            return t + 1
    return len(labels)


@part
def lead(margins: Array, k: int) -> float:
    """By how much the score of a class is above the largest of the others; with one column, the score itself."""
    if len(margins) == 1:
        return margins[0]
    best = -np.inf
    for j in range(len(margins)):
        if j != k:
            best = max(best, margins[j])
    return min(max(margins[k] - best, -1e300), 1e300)


@part
def judge_label(margins: Array, label: int, table: Array) -> float:
    given = label if len(margins) == 1 else 1
    margin = lead(margins, label)
    # Beyond the last cells and between the two in the middle, records are still ranked.
    small = min(max(margin * 2.0**-LOWEST, -1.0), 1.0)
    beyond = small * (1.0 + max(np.log2(max(abs(margin), 1e-300)) - HIGHEST, 0.0))
    return interpolate(margin, table[given]) + TILT * (beyond if given == 1 else -beyond)


@compiled
def look_up_labels(margins: Array, labels: Array, log_odds: Array) -> Array:
    """The log-odds that labels are right, from a table by label and cell."""
    out = np.empty(len(labels))
    for t in range(len(labels)):
        out[t] = judge_label(margins[t], labels[t], log_odds)
    return out


@compiled
def look_up_positive(margins: Array, positive: Array) -> Array:
    """For every class, the probability that it is the true one, before these sum to 1."""
    out = np.empty(margins.shape)
    for t in range(len(margins)):
        for k in range(margins.shape[1]):
            margin = lead(margins[t], k)
            nudge = NUDGE * min(max(margin * 2.0**-LOWEST, -1.0), 1.0)
            out[t, k] = min(max(interpolate(margin, positive) + nudge, RAREST), 1.0 - RAREST)
    return out
