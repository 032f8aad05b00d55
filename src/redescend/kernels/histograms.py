"""What is kept of a stream's rounds in a fixed size: histograms, those least believed, and a sample.

All counts are whole numbers, and both what is least and what is sampled are decided record by record, so that the same
rounds leave the same bits in whatever batches they come.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import compiled, inlined
from redescend.numeric import Array

LEVELS = (1e-6, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9)
"""Where the cells of a histogram of weights meet, as shares of all that a record can be believed."""

OCTAVES, STEPS = 512, 64
"""A loss has a cell between 2⁻²⁵⁶ and 2²⁵⁶, so many an octave; what lies beyond is in the first or the last."""

CELLS = OCTAVES * STEPS
COARSE = 32
"""How many cells make one along the stream."""

FINE = 1 << 20
"""Whole numbers of this part can be added up in any order."""

_MANTISSA = 52 - 6
_FIRST = (1023 - OCTAVES // 2) * STEPS


@inlined
def level(weight: float, full: float) -> int:
    """The cell of a weight whose largest value is `full`; a weight that is not a number is none at all."""
    share, cell = weight / full, 0
    for edge in LEVELS:
        cell += share >= edge
    return cell


@compiled
def levels(weights: Array, full: float) -> Array:
    """The cell of every weight.

    Examples
    --------
    >>> levels(np.array([0.0, np.nan, 0.01, 0.1, 1.0]), 1.0)
    array([0, 0, 3, 4, 8])
    """
    out = np.empty(len(weights), np.int64)
    for i in range(len(weights)):
        out[i] = level(weights[i], full)
    return out


@compiled
def count(
    rows: Array, weights: Array, bits: Array, full: float, shift: int, cells: Array, believed: Array, paid: Array
) -> None:
    """Count rounds: the losses of all, and both weights and losses along the stream, 2^shift rows a place.

    `bits` are those of the losses, as whole numbers: the exponent and the digits after it are the cell.
    """
    for i in range(len(rows)):
        place = (rows[i] - 1) >> shift
        cell = min(max((bits[i] >> _MANTISSA) - _FIRST, 0), CELLS - 1)
        cells[cell] += 1
        paid[place, cell // COARSE] += 1
        believed[place, level(weights[i], full)] += 1


def edges(cells: Array) -> Array:
    """Where cells of losses begin; the first is at 0.

    Examples
    --------
    >>> edges(np.array([0, CELLS // 2, CELLS // 2 + 1, CELLS // 2 + STEPS]))
    array([0.      , 1.      , 1.015625, 2.      ])
    """
    cells = np.asarray(cells, dtype=np.int64)
    return np.where(cells == 0, 0.0, ((cells + _FIRST) << _MANTISSA).view(np.float64))


@compiled
def count_labels(
    targets: Array, predictions: Array, probabilities: Array, doubted: Array, labels: Array, sure: Array
) -> None:
    """Count what was predicted where, and how often what was said with a probability came true.

    `labels` has the label, what was predicted, and whether the record was doubted; `sure` the cell of the probability,
    and in it how many were wrong, how many came true, and the sum of the probabilities in units of 1/FINE.
    """
    most = len(sure)
    for i in range(len(targets)):
        label, predicted = int(targets[i]), int(predictions[i])
        labels[label, predicted, doubted[i]] += 1
        cell = min(int(most * probabilities[i]), most - 1) if probabilities[i] > 0.0 else 0
        sure[cell, int(label == predicted)] += 1
        sure[cell, 2] += int(FINE * probabilities[i] + 0.5)


@inlined
def _before(weight: float, loss: float, row: int, other: float, paid: float, later: int) -> bool:
    """Whether a record is believed less than another; of equals that with the larger loss, and then the earlier one."""
    if weight != other:
        return weight < other
    return loss > paid or (loss == paid and row < later)


@compiled
def least(
    rows: Array, weights: Array, losses: Array, kept: int, least_rows: Array, numbers: Array, places: Array
) -> int:
    """Put the rounds among those least believed, in order; returns how many are kept.

    `numbers` has the weights and the losses of those kept, `places` where in these rounds each is, or −1.
    """
    most = len(least_rows)
    for i in range(len(rows)):
        weight, loss, row = weights[i], losses[i], rows[i]
        if kept == most:
            last = kept - 1
            if not _before(weight, loss, row, numbers[0, last], numbers[1, last], least_rows[last]):
                continue
            kept -= 1
        at = kept
        while at > 0 and _before(weight, loss, row, numbers[0, at - 1], numbers[1, at - 1], least_rows[at - 1]):
            least_rows[at], places[at] = least_rows[at - 1], places[at - 1]
            numbers[0, at], numbers[1, at] = numbers[0, at - 1], numbers[1, at - 1]
            at -= 1
        least_rows[at], places[at], numbers[0, at], numbers[1, at] = row, i, weight, loss
        kept += 1
    return kept


@compiled
def shuffled(rows: Array) -> Array:
    """A number between 0 and 2⁶³ for every row, as good as random: Steele, Lea and Flood's SplitMix64."""
    out = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        z = np.uint64(rows[i]) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        out[i] = np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(1))
    return out
