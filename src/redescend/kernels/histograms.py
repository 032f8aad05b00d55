"""Summaries of a stream's rounds in a fixed size: histograms, the rounds of least weight, and hashes for a sample.

Counts are whole numbers, and records are selected one by one, so that the result does not depend on the batches.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import kernel, part
from redescend.kernels.views import view
from redescend.numeric import Array, splitmix64

LEVELS = (1e-6, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9)
"""Edges between the cells of a histogram of weights, as shares of the largest weight."""

OCTAVES, STEPS = 512, 64
"""Cells of losses are between 2⁻²⁵⁶ and 2²⁵⁶, STEPS per octave; the first and the last include what is beyond."""

CELLS = OCTAVES * STEPS
COARSE = 32
"""How many cells are one cell of the histograms along the stream."""

FINE = 1 << 20
"""Probabilities are added as whole multiples of 1/FINE, whose sum is exact in any order."""

_MANTISSA = 52 - 6
_FIRST = (1023 - OCTAVES // 2) * STEPS


def find_levels(weights: Array, full: float) -> Array:
    """The cell of every weight, where `full` is the largest one; that of NaN is the first.

    Examples
    --------
    >>> find_levels(np.array([0.0, np.nan, 0.01, 0.1, 1.0]), 1.0)
    array([0, 0, 3, 4, 8])
    """
    return np.searchsorted(LEVELS, np.nan_to_num(weights / full, nan=-1.0), side="right")


@kernel
def count_rounds(
    rows: Array, levels: Array, bits: Array, shift: int, losses: Array, by_weight: Array, by_loss: Array
) -> None:
    """Count the losses of all rounds, and weights and losses along the stream in bins of 2^shift rows.

    `levels` are the cells of the weights, `bits` the losses viewed as integers: the exponent and the digits after it
    are the cell.
    """
    rows, levels, bits, losses, by_weight, by_loss = view((rows, levels, bits, losses, by_weight, by_loss))
    for i in range(len(rows)):
        place = (rows[i] - 1) >> shift
        cell = min(max((bits[i] >> _MANTISSA) - _FIRST, 0), CELLS - 1)
        losses[cell] += 1
        by_loss[place, cell // COARSE] += 1
        by_weight[place, levels[i]] += 1


@kernel
def add_errors(
    errors: Array, bits: Array, targets: Array, clean: Array, sums: Array, spread: Array, cells: Array
) -> None:
    """Add absolute errors, of several ways to predict, one record after the other.

    `bits` are the errors viewed as integers. The first axis of `sums` and `spread` is all records, and clean ones; the
    second is a value and its square, of errors and of targets.
    """
    errors, bits, targets, clean, sums, spread, cells = view((errors, bits, targets, clean, sums, spread, cells))
    for i in range(len(targets)):
        for group in range(1 + clean[i]):
            spread[group, 0] += targets[i]
            spread[group, 1] += targets[i] * targets[i]
        for way in range(len(errors)):
            error = errors[way, i]
            for group in range(1 + clean[i]):
                sums[group, 0, way] += error
                sums[group, 1, way] += error * error
            cells[way, min(max((bits[way, i] >> _MANTISSA) - _FIRST, 0), CELLS - 1)] += 1


def cell_edges(cells: Array) -> Array:
    """The lower edges of cells of losses; that of the first is 0.

    Examples
    --------
    >>> cell_edges(np.array([0, CELLS // 2, CELLS // 2 + 1, CELLS // 2 + STEPS]))
    array([0.      , 1.      , 1.015625, 2.      ])
    """
    cells = np.asarray(cells, dtype=np.int64)
    return np.where(cells == 0, 0.0, ((cells + _FIRST) << _MANTISSA).view(np.float64))


@kernel
def count_labels(
    targets: Array, predictions: Array, probabilities: Array, suspect: Array, confusion: Array, calibration: Array
) -> None:
    """Count labels by prediction, and how often predictions with a probability are right.

    The axes of `confusion` are label, prediction, and whether the record is suspect. `calibration` has for each cell of
    probabilities how many predictions are wrong and how many right, and the sum of the probabilities in 1/FINE.
    """
    targets, predictions, probabilities, suspect = view((targets, predictions, probabilities, suspect))
    confusion, calibration = view((confusion, calibration))
    cells = len(calibration)
    for i in range(len(targets)):
        label, predicted = int(targets[i]), int(predictions[i])
        confusion[label, predicted, suspect[i]] += 1
        cell = min(int(cells * probabilities[i]), cells - 1) if probabilities[i] > 0.0 else 0
        calibration[cell, int(label == predicted)] += 1
        calibration[cell, 2] += int(FINE * probabilities[i] + 0.5)


@part
def _precedes(weight: float, loss: float, row: int, other_weight: float, other_loss: float, other_row: int) -> bool:
    """Whether a record has less weight than another; among equals the larger loss is first, then the earlier row."""
    if weight != other_weight:
        return weight < other_weight
    return loss > other_loss or (loss == other_loss and row < other_row)


@kernel
def insert_suspects(
    rows: Array, weights: Array, losses: Array, size: int, found_rows: Array, found: Array, places: Array
) -> int:
    """Insert rounds into the sorted list of those with the least weight; returns its new size.

    `found` has the weights and the losses of the list, `places` where in these rounds each of them is, or −1.
    """
    rows, weights, losses, found_rows, found, places = view((rows, weights, losses, found_rows, found, places))
    for i in range(len(rows)):
        weight, loss, row = weights[i], losses[i], rows[i]
        if size == len(found_rows):
            last = size - 1
            if not _precedes(weight, loss, row, found[0, last], found[1, last], found_rows[last]):
                continue
            size -= 1
        at = size
        while at > 0 and _precedes(weight, loss, row, found[0, at - 1], found[1, at - 1], found_rows[at - 1]):
            found_rows[at], places[at] = found_rows[at - 1], places[at - 1]
            found[0, at], found[1, at] = found[0, at - 1], found[1, at - 1]
            at -= 1
        found_rows[at], places[at], found[0, at], found[1, at] = row, i, weight, loss
        size += 1
    return size


def hash_rows(rows: Array) -> Array:
    """A number between 0 and 2⁶³ for every row that looks random: the smallest are a uniform sample of the rows."""
    return (splitmix64(rows) >> np.uint64(1)).astype(np.int64)
