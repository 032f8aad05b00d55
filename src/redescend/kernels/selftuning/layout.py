"""Settings and scalar state of the self-tuning learner, each in one row of floats; and its constants."""

from __future__ import annotations

from typing import NamedTuple

from redescend.kernels.compiler import inlined
from redescend.numeric import Array

# settings; the switches are 0 where an ingredient is left out, PENALISED where l2 spares the last feature, an intercept
(LOSS, LOSS_C, L2, LABELS, GATED, COPYING, TEMPERED, WARMED, SHARE_CELLS, PENALISED, CURIOUS) = range(11)
SETTINGS = 11

# state: rounds played and learned from; the lowest scale, 0 until it is known; the next slot for a snapshot, and when;
# what the mean is multiplied by; age of the second-order follower and the largest spread in its life; the spread now;
# how new the stream is
(ROUNDS, SEEN, LOWEST, SLOT, DUE, TEMPERATURE, AGE, WIDEST, SPREAD, NEW) = range(10)
SCALARS = 10

FOLLOWERS = 3
"""Followers with each metric: steps of 16, 1 and 1/16 times the typical record's."""

LONGEST, RATIO = 16.0, 0.0625

SHARE = 1e-3
"""What every member gets of the weight in each round."""

NORMS, READY, MEMORY = 15, 5.0, 1000.0
"""Lengths of records that are remembered; when the scale of a feature is known; over how many records it is a mean."""

FIRST_SNAPSHOT, GROWTH = 62.0, 1.25

HEAVIEST = 1e6
"""A record counts at most this many times."""

RESOLUTION = 2.0**-52
FARTHEST, HUGE = 1e150, 1e300
"""Predictions and actions beyond the first are not told apart, so that their squares are floats."""


class State(NamedTuple):
    """All that the learner has learned, in the order in which its arrays are saved."""

    thetas: Array
    weights: Array
    cells: Array
    norms: Array
    squares: Array
    counts: Array
    news: Array
    P: Array
    scalars: Array


class Config(NamedTuple):
    """The settings, the prior of the noise cells, and the rates of outliers of its columns."""

    settings: Array
    prior: Array
    rates: Array


class Settings(NamedTuple):
    """What stays the same from round to round."""

    kind: int
    c: float
    l2: float
    labels: bool
    share: float
    gated: bool
    copying: bool
    tempered: bool
    warmed: bool
    curious: bool


class Scratch(NamedTuple):
    """Buffers of a round: of every scale, and of every member."""

    clean: Array
    outlier: Array
    predictions: Array
    sizes2: Array
    paid: Array
    logs: Array
    gates: Array


class Record(NamedTuple):
    """One record at the action: loss, residual and target, the factor of the mean, and how much the record counts."""

    f: float
    size: float
    target: float
    factor: float
    power: float
    times: float


class Lengths(NamedTuple):
    """The length of a record and the typical one, Σ x_j²·metric_j before and after new features, how many have one."""

    norm2: float
    typical: float
    scaled: float
    longer: float
    ready: float


@inlined
def settings_of(settings: Array) -> Settings:
    return Settings(
        int(settings[LOSS]),
        settings[LOSS_C],
        settings[L2],
        settings[LABELS] != 0.0,
        settings[SHARE_CELLS],
        settings[GATED] != 0.0,
        settings[COPYING] != 0.0,
        settings[TEMPERED] != 0.0,
        settings[WARMED] != 0.0,
        settings[CURIOUS] != 0.0,
    )


@inlined
def scratch_of(memory: Array, members: int, scales: int) -> Scratch:
    """Cut the buffers of a round from a row of 2·scales + 5·members floats."""
    at = 2 * scales
    return Scratch(
        memory[:scales],
        memory[scales:at],
        memory[at : at + members],
        memory[at + members : at + 2 * members],
        memory[at + 2 * members : at + 3 * members],
        memory[at + 3 * members : at + 4 * members],
        memory[at + 4 * members : at + 5 * members],
    )
