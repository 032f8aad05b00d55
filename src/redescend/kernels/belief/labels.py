"""The probability that a label is right, from the margin of a model's score, compiled.

With g(m) the probability that the true label is +1 at margin m, and e₁, e₀ the shares of true labels +1 and −1 that are
flipped, a label is +1 with probability (1 − e₁)·g(m) + e₀·(1 − g(m)). Each model has a link and a slope of g. It comes
without flips, and with flips that are fitted by EM to counts of labels by margin. The models are averaged by their
tempered likelihoods.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.kernels.belief.cells import TILT, find_threshold
from redescend.kernels.belief.hypotheses import sigmoid
from redescend.kernels.belief.layout import ALL, DECAYS, FALSE_ALARMS, RECENT, WARM
from redescend.kernels.belief.mixture import share_weights
from redescend.kernels.compiler import kernel, part
from redescend.kernels.views import view
from redescend.numeric import Array

(ROUNDS, INCREMENT, DUE, THRESHOLD) = range(4)
NUMBERS = 4

LOWEST, HIGHEST, FINE = -6, 8, 4
SIDE = (HIGHEST - LOWEST) * FINE
CELLS = 2 * SIDE
"""Cells of margins: a quarter of an octave wide, from the most negative to the most positive."""

TEMPERATURE = 4000.0
"""The effective sample size of the likelihood of a model is at most this."""

UNFLIPPED, PRICE, SLOPE_PRIOR = 0.001, 10.0, 0.25
"""The share of flips in models without them. Where a weak classifier and flips explain the labels equally well, the
price of squared flips prefers the weak classifier. Slopes near 1 are preferred."""

POOLED = 1000.0
"""Prior records of each of two classes with the flips of both: without them, the rarer class looks wrong where margins
say little."""

NUDGE, RAREST = 1e-6, 1e-9
"""Probabilities rise by this much between the two cells in the middle, so that the class with the larger score has the
larger one; none is below the second."""

FLIP_PRIOR, KEEP_PRIOR, MOST_FLIPS = 1.0, 20.0, 0.45
ITERATIONS, FINAL_ITERATIONS = 2, 100

CLEARLY = 0.5
"""By how much more records than a share of them something is clearly more: this, times the root of their number."""


class State(NamedTuple):
    """All that a belief in labels has learned, in the order in which its arrays are saved."""

    numbers: Array
    counts: Array  # histogram, label, cell
    flips: Array  # model, true label
    log_odds: Array  # label, cell
    positive: Array  # cell: the probability that the true label is +1


class Tables(NamedTuple):
    """The probability that the true label is +1, by model and cell, and the log-prior of every model."""

    positive: Array
    log_prior: Array


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
def log_likelihood(counts: Array, positive: Array, minus_flips: float, plus_flips: float) -> float:
    value = 0.0
    for c in range(CELLS):
        if counts[0, c] + counts[1, c] > 0.0:
            said = (1.0 - plus_flips) * positive[c] + minus_flips * (1.0 - positive[c])
            value += counts[1, c] * np.log(said) + counts[0, c] * np.log(1.0 - said)
    return value


@part
def fit_flips(counts: Array, positive: Array, pooled: float, flips: Array) -> None:
    """One iteration of EM for the shares of flipped labels, of which `pooled` prior records have the common share."""
    wrong_plus = wrong_minus = plus = total = 0.0
    for c in range(CELLS):
        total += counts[0, c] + counts[1, c]
        said = (1.0 - flips[1]) * positive[c] + flips[0] * (1.0 - positive[c])
        from_minus = counts[1, c] * flips[0] * (1.0 - positive[c]) / said
        from_plus = counts[0, c] * flips[1] * positive[c] / (1.0 - said)
        wrong_minus += from_minus
        wrong_plus += from_plus
        plus += counts[1, c] - from_minus + from_plus
    minus, prior = total - plus, FLIP_PRIOR + KEEP_PRIOR
    common = FLIP_PRIOR + pooled * (wrong_minus + wrong_plus + FLIP_PRIOR) / (total + prior)
    flips[0] = min((wrong_minus + common) / (minus + pooled + prior), MOST_FLIPS)
    flips[1] = min((wrong_plus + common) / (plus + pooled + prior), MOST_FLIPS)


@part
def weigh_models(counts: Array, tables: Tables, flips: Array, weights: Array) -> None:
    """Write the weights of all models, first of those with flips, then of those without."""
    models, total = len(tables.positive), 0.0
    for c in range(CELLS):
        total += counts[0, c] + counts[1, c]
    tempered = min(1.0, TEMPERATURE / max(total, 1.0))
    for i in range(models):
        price = PRICE * (flips[i, 0] * flips[i, 0] + flips[i, 1] * flips[i, 1])
        prior, positive = tables.log_prior[i], tables.positive[i]
        weights[i] = prior - price + tempered * log_likelihood(counts, positive, flips[i, 0], flips[i, 1])
        weights[models + i] = prior + tempered * log_likelihood(counts, positive, UNFLIPPED, UNFLIPPED)
    share_weights(weights)


@part
def doubt_predictions(counts: Array, log_odds: Array) -> None:
    """Of more than two classes, no label is called wrong where the predictions are not known to be mostly right.

    That takes clearly more than 1 - MOST_FLIPS of the records in which the predicted class has this margin or a larger
    one to be of that class, or of those with some smaller margin. Elsewhere, 1 is added to the odds of a right label.
    """
    right = total = 0.0
    for c in range(SIDE, CELLS):
        right += counts[1, c]
        total += counts[0, c] + counts[1, c]
    for c in range(SIDE, CELLS):
        if right - (1.0 - MOST_FLIPS) * total > CLEARLY * np.sqrt(total):
            return
        against = CELLS - 1 - c
        log_odds[1, against] = np.log1p(np.exp(log_odds[1, against]))
        right -= counts[1, c]
        total -= counts[0, c] + counts[1, c]


class Fitted(NamedTuple):
    """What is fitted to the counts: the last fields of `State`, and a weight for every model with and without flips."""

    flips: Array
    log_odds: Array
    positive: Array
    weights: Array


@kernel
def fit_labels(counts: Array, tables: Tables, iterations: int, pooled: float, fitted: Fitted) -> float:
    """Fit all models to the counts, and write the average of what they say; returns the threshold of suspects."""
    counts, tables, (flips, log_odds, positive, weights) = view((counts, tables, fitted))
    models = len(tables.positive)
    for i in range(models):
        for _ in range(iterations):
            fit_flips(counts, tables.positive[i], pooled, flips[i])
    weigh_models(counts, tables, flips, weights)
    for c in range(CELLS):
        right = wrong = right_minus = wrong_minus = share = 0.0
        for i in range(models):
            g, flipped, plain = tables.positive[i, c], weights[i], weights[models + i]
            from_plus = flipped * flips[i, 1] + plain * UNFLIPPED
            from_minus = flipped * flips[i, 0] + plain * UNFLIPPED
            both = flipped + plain
            right += (both - from_plus) * g
            wrong += from_minus * (1.0 - g)
            right_minus += (both - from_minus) * (1.0 - g)
            wrong_minus += from_plus * g
            share += both * g
        log_odds[1, c] = np.log(right) - np.log(wrong)
        log_odds[0, c] = np.log(right_minus) - np.log(wrong_minus)
        positive[c] = share
    if pooled == 0.0:
        doubt_predictions(counts, log_odds)
    return find_threshold(log_odds, counts, FALSE_ALARMS)


@kernel
def judge_labels(margins: Array, labels: Array, first: int, state: State, log_odds: Array, suspect: Array) -> int:
    """Judge labels, beginning with the one at `first`, and learn from them, until models have to be fitted.

    Rows of `margins` have one column for two classes, else one for every class; labels are the places of classes.
    Returns the place of the next record.
    """
    margins, labels, state, log_odds, suspect = view((margins, labels, state, log_odds, suspect))
    numbers, counts = state.numbers, state.counts
    for t in range(first, len(labels)):
        log_odds[t] = judge_label(margins[t], labels[t], state.log_odds)
        suspect[t] = sigmoid(log_odds[t]) <= numbers[THRESHOLD]
        numbers[ROUNDS] += 1.0
        most, least = DECAYS
        numbers[INCREMENT] /= 1.0 - min(max(1.0 / numbers[ROUNDS], least), most)
        count_label(margins[t], labels[t], numbers[INCREMENT], counts[RECENT])
        if numbers[ROUNDS] > WARM:
            count_label(margins[t], labels[t], 1.0, counts[ALL])
        if numbers[ROUNDS] >= numbers[DUE]:
            return t + 1
    return len(labels)


@kernel
def count_labels(margins: Array, labels: Array, counts: Array) -> None:
    """Add records to both histograms."""
    margins, labels, counts = view((margins, labels, counts))
    for t in range(len(labels)):
        count_label(margins[t], labels[t], 1.0, counts[RECENT])
        count_label(margins[t], labels[t], 1.0, counts[ALL])


@part
def count_label(margins: Array, label: int, amount: float, counts: Array) -> None:
    """Add a record to a histogram: with more than two classes, every class as one against the rest."""
    for k in range(len(margins)):
        given = label if len(margins) == 1 else int(k == label)
        counts[given, find_cell(lead(margins, k))] += amount


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


@kernel
def look_up_labels(margins: Array, labels: Array, log_odds: Array, out: Array) -> None:
    """Write the log-odds that labels are right, from a table by label and cell."""
    margins, labels, log_odds, out = view((margins, labels, log_odds, out))
    for t in range(len(labels)):
        out[t] = judge_label(margins[t], labels[t], log_odds)


@kernel
def look_up_positive(margins: Array, positive: Array, out: Array) -> None:
    """Write for every class the probability that it is the true one, before these sum to 1."""
    margins, positive, out = view((margins, positive, out))
    for t in range(len(margins)):
        for k in range(margins.shape[1]):
            margin = lead(margins[t], k)
            share, nudge = interpolate(margin, positive), NUDGE * min(max(margin * 2.0**-LOWEST, -1.0), 1.0)
            if margins.shape[1] == 1:  # neither label is likelier than the predicted one
                share = max(share, 0.5) if margin > 0.0 else min(share, 0.5)
            out[t, k] = min(max(share + nudge, RAREST), 1.0 - RAREST)
