"""The noise of labels: a lattice of lengths of the posterior's logits and shares of flipped labels, with Bayes weights.

Flipped labels shorten the logits that are learned, and short logits explain flipped labels: neither can be judged
without the other. With the penalty l2, long logits are less likely. Predictions of the hinge loss have a length of
their own, which follows the gradient of the loss.
"""

from __future__ import annotations

from math import exp

from redescend.kernels.compiler import part, rare, shared
from redescend.kernels.selftuning.layout import (
    AGE,
    CLEAN,
    COMMON,
    CREDIT,
    FLIPS,
    LABEL_PRIOR,
    LENGTHS,
    OPENED,
    POSITIVE,
    POSTERIOR,
    RATE,
    RESIZED,
    SEEN,
    STRETCH,
    WIDEST,
    Loss,
    State,
    Work,
)
from redescend.kernels.selftuning.losses import sigmoid
from redescend.kernels.selftuning.noise import PATIENCE
from redescend.numeric import Array

RARE_FLIPS, FLIPS_MOST = 0.25, 0.3
"""The largest share of flipped labels that is believed: where one label is rare, in units of its share, and where both
are as frequent."""

DRIFT = 0.03
"""This part of the share that a round gives to all members is spread over all cells."""

LABEL_REACTION = 0.01
"""The smallest gain of lengths."""

LENGTH_LEAST, LENGTH_MOST = 1e-3, 1e3

DOUBLE = 1.8
"""The posterior is doubled when its logits should be longer by more than this factor, and halved when shorter."""


@part
def label_gain(scalar: Array) -> float:
    """The gain with which lengths follow."""
    return max(4.0 / (scalar[AGE] + 8.0), LABEL_REACTION)


@part
def stretch(length: float, up: float) -> float:
    return min(max(length * (1.0 + min(max(up, -0.2), 0.2)), LENGTH_LEAST), LENGTH_MOST)


@part
def most_flips(scalar: Array) -> float:
    """The largest share of flips that is believed.

    A class that no line can separate is not flipped: the rarer it is, the fewer.
    """
    rarer = min(scalar[POSITIVE], 1.0 - scalar[POSITIVE])
    return max(RARE_FLIPS * rarer, FLIPS_MOST * 4.0 * rarer * rarer)


@shared
def learn_flips(m: float, counts: float, state: State) -> None:
    """Bayes' rule on lengths and shares, where m is the logit of the label at length 1, which `counts` at most once.

    Then a share of the weight of each length goes to its neighbours, half of it to each; nothing leaves the lattice.
    Logits of a truth that is learned ever better grow for ever, and what was seen of earlier ones is out of date.
    """
    cells, scalar, count, most = state.cells, state.scalar, len(FLIPS), most_flips(state.scalar)
    mass = rate = octaves = 0.0
    for k in range(len(LENGTHS)):
        q = sigmoid(m * LENGTHS[k])
        for n in range(count):
            flips = min(FLIPS[n], most)
            likelihood = flips + (1.0 - 2.0 * flips) * q
            cells[k * count + n] *= likelihood if counts == 1.0 else likelihood**counts
            mass += cells[k * count + n]
    share = counts / (PATIENCE + scalar[SEEN])
    for n in range(count):
        shorter = cells[n]
        for k in range(len(LENGTHS)):
            place = k * count + n
            own = cells[place]
            longer = cells[place + count] if k + 1 < len(LENGTHS) else own
            moved = (own + 0.5 * share * (shorter - 2.0 * own + longer)) / mass
            cells[place] = (1.0 - DRIFT * share) * moved + DRIFT * share * LABEL_PRIOR[place]
            rate += cells[place] * min(FLIPS[n], most)
            octaves += cells[place] * (k - 1.0)
            shorter = own
    scalar[RATE], scalar[STRETCH] = rate, 2.0**octaves


@part
def learn_length(loss: Loss, m: float, counts: float, scalar: Array) -> None:
    """A step along the gradient of the hinge loss, where m is the margin of what is played in units of the logit."""
    margin = m * scalar[COMMON]
    if loss.setting > 0.0 and margin < 1.0:
        scalar[COMMON] = stretch(scalar[COMMON], counts * label_gain(scalar) * scalar[CLEAN] * margin)


@rare
def penalise_lengths(loss: Loss, l2: float, turn: int, state: State) -> None:
    """What the penalty on a coefficient tells about lengths."""
    cells, scalar, count, mass = state.cells, state.scalar, len(FLIPS), 0.0
    price = l2 * (scalar[COMMON] * state.scale[POSTERIOR] * state.theta[POSTERIOR, turn]) ** 2
    for k in range(len(LENGTHS)):
        factor = exp(-0.5 * min(price * LENGTHS[k] * LENGTHS[k], 100.0))
        for n in range(count):
            cells[k * count + n] *= factor
            mass += cells[k * count + n]
    for n in range(len(LABEL_PRIOR)):
        cells[n] /= mass
    if loss.setting > 0.0:
        scalar[COMMON] = stretch(scalar[COMMON], -label_gain(scalar) * price * scalar[STRETCH] * scalar[STRETCH])


@rare
def widen(factor: float, state: State, work: Work) -> None:
    """Multiply P."""
    for j in range(len(state.P)):
        state.P[j] = min(factor * state.P[j], WIDEST)
    state.scalar[CREDIT] = 0.0
    work.notes[OPENED] = factor


@part
def resize(state: State, work: Work) -> None:
    """Double or halve the posterior where its logits have another length; the lattice moves along."""
    if not 1.0 / DOUBLE <= state.scalar[STRETCH] <= DOUBLE:
        multiply_posterior(2.0 if state.scalar[STRETCH] > 1.0 else 0.5, state, work)


@rare
def multiply_posterior(factor: float, state: State, work: Work) -> None:
    cells, up, last = state.cells, factor > 1.0, len(LABEL_PRIOR)
    for j in range(state.theta.shape[1]):
        state.theta[POSTERIOR, j] = min(max(factor * state.theta[POSTERIOR, j], -WIDEST), WIDEST)
    widen(factor * factor, state, work)
    for i in range(last):
        n = i if up else last - 1 - i
        k = n + len(FLIPS) if up else n - len(FLIPS)
        cells[n] = cells[k] if 0 <= k < last else 1e-9
    state.scalar[STRETCH] /= factor
    work.notes[RESIZED] = factor
