"""The state of the self-tuning learner, one row of floats, declared once; its settings, and the buffers of a round."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any, NamedTuple

import numpy as np

from redescend.kernels.compiler import part
from redescend.kernels.views import splitter
from redescend.numeric import Array
from redescend.state import MAX_COUNT, ArraySpec, packed_size, require, unpack

POSTERIOR, SLOW, FAST, TRACKER, FAST_TRACKER, MODE, ORIGIN, SNAPSHOT, STORED, MEMBERS = range(10)
"""Members: the mean of the posterior, a slow and a fast follower, two trackers of a truth that drifts, one that seeks
the mode of the noise, the origin, a snapshot of the leader, and the posterior as it was before a restart."""

SCALES = 16
"""Octaves of the scales of noise."""

MIRRORS = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.8])
MIRROR_PRIOR = np.array([0.98, 0.004, 0.004, 0.004, 0.004, 0.004])
"""Shares of records with the wrong sign, and the prior of each, where predictions are below and above 0. If it seems to
be the majority, the sign of the model is wrong."""

FLIPS, FLIP_PRIOR = np.array([0.001, 0.01, 0.03, 0.1, 0.2, 0.3]), np.array([0.7, 0.2, 0.04, 0.02, 0.02, 0.02])
LENGTHS, LENGTH_PRIOR = np.array([0.5, 1.0, 2.0, 4.0]), np.array([0.15, 0.75, 0.08, 0.02])
LABEL_PRIOR = np.outer(LENGTH_PRIOR, FLIP_PRIOR).ravel()
"""Shares of flipped labels, lengths of the posterior's logits, and the prior of each and of both together."""

FEW, RING = 16, 32
"""Records that are stored, to learn from them again: target, weight and features, in the units of the caller. At order
1 a FEW, the first ones; at order 2 the last ones. A posterior that has learned from fewer than FEW is not restarted."""

LARGE = 1e25
"""Values in their units are cut off here, and are 0 below 1/LARGE."""

SMALLEST = 1e-50
"""The smallest mean square of a feature, and typical size of targets."""

SLACK = 0.5
"""By how much of the range of clean targets predictions may leave it on each side."""

LIGHTEST, HEAVIEST = 1e-6, 1e6
"""A record counts at most HEAVIEST times, and not at all if it counts less than LIGHTEST times."""

UNIT, CENTRE, MEAN, SQUARE, COUNT, PRIOR = range(6)
"""Of a feature: its unit, 0 before its first value; what is subtracted (order 2); its mean (order 1: of values that are
not 0); its mean square where it is not 0, which is 0 until it has a second value; how often it was not 0 (labels at
order 2: nor what is subtracted); and the prior variance of its coefficient."""

(ROUNDS, LAST, SEEN, AGE, STORED_AGE, LEAD, OUT, DUE, CONSTANT, LEVEL) = range(10)
"""Rounds played; records learned from, since the last new start, since the posterior restarted, and until it was
stored; the leader; rounds that the posterior was out of favour; when a snapshot is due; the constant feature, or -1,
and its value."""

(TARGET, BOTTOM, TOP, SIZE, LOW, RATE, MIRRORED, CLEAN) = range(10, 18)
"""The unit of the target; the range of clean targets; their typical size; the lowest scale of noise; the shares of
outliers, or of flipped labels, and of mirrored records; the last weight."""

(COMMON, VARIANCE, INFORMATION, CURVATURE, STRETCH, USUALLY_FLIPPED, POSITIVE) = range(18, 25)
"""The scale of residuals that all members share; the mean variance of the posterior's predictions; the information and
curvature of a record for the mode; the length of the posterior's logits; the usual share of mirrored records; and the
share of labels +1. With labels, the first is the length of predictions, in units of the logit."""

(TYPICAL, STREAK, KNOWN, CREDIT, CHECKSUM, LAST_Y, FAR, NEAR, WIDENED) = range(25, 34)
"""The typical length of a record, and how many in a row were longer (or, below 0, shorter); features that were seen;
non-zeros since all were copied; what identifies the last record; the typical size of far outliers, the share of near
ones, and that of mirrored records when P was widened last."""

(ODDS, SINCE, DOUBT, EVIDENCE, SPREAD, NOISE, JUDGED_Y, MIDDLE) = range(34, 42)
"""The odds that the truth has changed, the records since they rose above 1, how large they have to be, in units of
PATIENCE + t, and the mean of what a record multiplies them by; slow scales of clean targets and of clean residuals; the
last target that was judged; the middle of the noise, 0 but for quantiles."""

SCALARS = 42

RESCALED, RESIZED, OPENED, RESET, NOTES = range(MEMBERS, MEMBERS + 5)
"""What a round notes for features that are not at hand: for every member, from which it was copied; by what the squares
of features, the mean of the posterior and P were multiplied; and to which share of the prior P was reset."""

MOST_ODDS = 1e100

WIDEST = 1e150
"""No part of a model is larger."""


class State(NamedTuple):
    """Everything that is learned, as views of one row, in the order of `SPECS`."""

    theta: Array
    feature: Array
    P: Array
    stored: Array
    weight: Array
    played: Array
    scale: Array
    cells: Array
    ring: Array
    scalar: Array


def _scalar(place: str, **rule: Any) -> ArraySpec:
    return ArraySpec(f"scalar ({place})", **rule)


SPECS = (
    ArraySpec("theta", (MEMBERS, "dim"), low=-WIDEST, high=WIDEST),
    ArraySpec(
        "feature",
        (6, "dim"),
        parts={
            UNIT: ArraySpec("unit", low=0.0),
            CENTRE: ArraySpec("centre", low=-LARGE, high=LARGE),
            MEAN: ArraySpec("mean", low=-LARGE, high=LARGE),
            SQUARE: ArraySpec("square", low=0.0, high=WIDEST),
            COUNT: ArraySpec("count", kind="count"),
            PRIOR: ArraySpec("prior", low=0.0, high=WIDEST),
        },
    ),
    ArraySpec("P", ("packed",), low=-WIDEST, high=WIDEST),
    ArraySpec("stored", ("packed",), low=-WIDEST, high=WIDEST),
    ArraySpec("weight", (MEMBERS,), low=0.0, high=1.0),
    ArraySpec("played", (MEMBERS,), low=0.0, high=1.0),
    ArraySpec("scale", (MEMBERS,), low=1e-40, high=1e40),
    ArraySpec("cells", (SCALES + 2 * len(MIRRORS),), low=0.0, high=1.0),
    ArraySpec("ring", ("records", "wide"), finite=False),
    ArraySpec(
        "scalar",
        (SCALARS,),
        parts={
            ROUNDS: _scalar("rounds", kind="count"),
            LAST: _scalar("last", kind="count"),
            SEEN: _scalar("seen", kind="count"),
            AGE: _scalar("age", kind="count"),
            STORED_AGE: _scalar("stored age", kind="count"),
            LEAD: _scalar("leader", kind="index", high=MEMBERS),
            OUT: _scalar("out", kind="count"),
            DUE: _scalar("due", kind="count"),
            CONSTANT: _scalar("constant", kind="index", low=-1, high="dim"),
            LEVEL: _scalar("level", low=-LARGE, high=LARGE),
            TARGET: _scalar("target", low=0.0),
            BOTTOM: _scalar("bottom", low=-3.0 * LARGE, high=3.0 * LARGE),
            TOP: _scalar("top", low=-3.0 * LARGE, high=3.0 * LARGE),
            SIZE: _scalar("size", low=0.0, high=2.0 * LARGE),
            LOW: _scalar("low", low=0.0, high=1e60),
            RATE: _scalar("rate", low=0.0, high=0.5),
            MIRRORED: _scalar("mirrored", low=0.0, high=0.5),
            CLEAN: _scalar("clean", low=0.0, high=1.0),
            COMMON: _scalar("common", low=1e-40, high=1e40),
            VARIANCE: _scalar("variance", low=0.0),
            INFORMATION: _scalar("information", low=0.0),
            CURVATURE: _scalar("curvature", low=-1.0, high=1.0),
            STRETCH: _scalar("stretch", low=0.1, high=10.0),
            USUALLY_FLIPPED: _scalar("usually flipped", low=0.0, high=1.0),
            POSITIVE: _scalar("positive", low=0.0, high=1.0),
            TYPICAL: _scalar("typical", low=0.0, high=1e60),
            STREAK: _scalar("streak", kind="count", low=-MAX_COUNT),
            KNOWN: _scalar("known", kind="count", high="dim"),
            CREDIT: _scalar("credit", kind="count"),
            CHECKSUM: _scalar("checksum"),
            LAST_Y: _scalar("target of the last", low=-LARGE, high=LARGE),
            FAR: _scalar("far", low=0.0, high=1e40),
            NEAR: _scalar("near", low=0.0, high=1.0),
            WIDENED: _scalar("widened", low=0.0, high=0.5),
            ODDS: _scalar("odds", low=0.0, high=MOST_ODDS),
            SINCE: _scalar("since", kind="count"),
            DOUBT: _scalar("doubt", low=0.0, high=MOST_ODDS),
            EVIDENCE: _scalar("evidence", low=0.0, high=1e40),
            SPREAD: _scalar("spread", low=0.0, high=1e40),
            NOISE: _scalar("noise", low=0.0, high=1e40),
            JUDGED_Y: _scalar("target that was judged", low=-LARGE, high=LARGE),
            MIDDLE: _scalar("middle", low=-1e40, high=1e40),
        },
    ),
)
"""The arrays of a state, one behind the other. The first four have a number for every feature at order 1."""


SQUARED, QUANTILE, INSENSITIVE, LABELS = range(4)
"""The families of losses. The absolute loss is twice the pinball loss of the quantile 1/2."""


class Loss(NamedTuple):
    """The family of a loss, and its setting; of labels 1 if the length of predictions is learned, else 0."""

    family: int
    setting: float


DIAGONAL, FULL = 1, 2
"""The orders. At order 2 the covariance P of the posterior is a matrix, of which the lower triangle is stored."""


class Covariance(NamedTuple):
    """The order, and the number of features."""

    order: int
    dim: int


class Config(NamedTuple):
    """The settings: family of the loss, covariance, l2; code and constant of the loss.

    `missing`, `intercept` and `limited` are 1 if NaN is a missing value, if there is an intercept, and if logits are
    limited, or else 0.

    States begin at `offset` in a row of memory, and have this `length`.
    """

    loss: Loss
    covariance: Covariance
    l2: float
    missing: int
    intercept: int
    limited: int
    kind: int
    c: float
    offset: int
    length: int


class Work(NamedTuple):
    """Buffers of a round: of every feature, of every member, of every scale or stored record."""

    x: Array
    centred: Array
    Px: Array
    Dx: Array
    code: Array
    predictions: Array
    gate: Array
    clean: Array
    outlier: Array
    far: Array
    mirror: Array
    inverse: Array
    notes: Array


WORK = [("dim",)] * 5 + [(MEMBERS,)] * 2 + [(RING,)] * 5 + [(NOTES,)]
"""The shapes of the buffers, one behind the other."""


def work_size(dim: int) -> int:
    """How many floats the buffers of a round take."""
    return sum(dim if size == "dim" else int(size) for (size,) in WORK)


def dims_of(dim: int, order: int) -> dict[str, int]:
    """The named dimensions of the specs."""
    covariance = Covariance(order, dim)
    sizes = {"packed": packed.py_func(covariance), "records": ring_size.py_func(covariance)}  # type: ignore[attr-defined]
    return {"dim": dim, "wide": dim + 2, **sizes}


def row_size(dim: int, order: int) -> int:
    """How many floats the state of an output takes."""
    return packed_size(SPECS, dims_of(dim, order))


@part
def packed(covariance: Covariance) -> int:
    """How many numbers P has."""
    return covariance.dim * (covariance.dim + 1) // 2 if covariance.order == FULL else covariance.dim


@part
def ring_size(covariance: Covariance) -> int:
    """How many records are stored."""
    return RING if covariance.order == FULL else FEW


state_at = splitter(State, [spec.shape for spec in SPECS], ("dim", "wide", "packed", "records"))


@part
def split_state(memory: Array, at: int, covariance: Covariance) -> State:
    """The arrays of the state that begins at a place of a row of floats."""
    return state_at(memory, at, (covariance.dim, covariance.dim + 2, packed(covariance), ring_size(covariance)))


work_at = splitter(Work, WORK, ("dim",))


@part
def split_work(memory: Array, dim: int) -> Work:
    """The buffers of a round in a row of floats."""
    return work_at(memory, 0, (dim,))


def new_row(dim: int, order: int, intercept: bool = False) -> Array:
    """The state before the first record; an intercept is the last feature."""
    row = np.zeros(row_size(dim, order))
    parts = unpack(SPECS, row, dims_of(dim, order))
    parts["weight"][POSTERIOR] = parts["scale"][:] = 1.0
    parts["scalar"][CONSTANT] = -1.0
    parts["scalar"][[CLEAN, COMMON, STRETCH]] = 1.0
    if intercept:
        parts["feature"][UNIT, -1] = parts["scalar"][KNOWN] = parts["scalar"][LEVEL] = 1.0
        parts["scalar"][CONSTANT] = dim - 1
    return row


@part
def widen_range(bottom: float, top: float) -> tuple[float, float]:
    """The range of predictions: that of clean targets, and half of it on both sides, without a sign that none has."""
    slack = SLACK * (top - bottom)
    low, high = bottom - slack, top + slack
    return (low if bottom < 0.0 else max(low, 0.0)), (high if top > 0.0 else min(high, 0.0))


@part
def longest_logit(seen: float, length: float) -> float:
    """The longest logit, times the length of predictions, but at least once.

    The next of n labels that were all equal is another one with probability 1/(n + 2), by Laplace's rule of succession;
    no record tells more, however far it is from all others.
    """
    return max(length, 1.0) * log(seen + 2.0)


def prediction_range(labels: bool, scalars: Array) -> tuple[Array, Array]:
    """The range of predictions, for any number of outputs."""
    if labels:
        pairs = scalars[..., [SEEN, COMMON]].reshape(-1, 2).tolist()
        most = np.array([longest_logit.py_func(*pair) for pair in pairs])  # type: ignore[attr-defined]
        most = most.reshape(scalars.shape[:-1])
        return -most, most
    pairs = scalars[..., [BOTTOM, TOP]].reshape(-1, 2).tolist()
    ends = np.array([widen_range.py_func(*pair) for pair in pairs])  # type: ignore[attr-defined]
    low, high = ends.T.reshape(2, *scalars.shape[:-1])
    return scalars[..., TARGET] * low, scalars[..., TARGET] * high


def check_state(arrays: Mapping[str, Array], order: int, owner: str) -> None:
    """Raise if arrays within their specs are no state; any axes may precede those of the specs."""
    rows = np.arange(arrays["theta"].shape[-1])
    for name in ("P", "stored"):
        variances = arrays[name] if order == 1 else arrays[name][..., rows * (rows + 3) // 2]
        require((variances >= 0.0).all(), owner, "variances below 0")
    require((arrays["weight"].sum(axis=-1) > 0.0).all(), owner, "members without weight")
    require((arrays["scalar"][..., BOTTOM] <= arrays["scalar"][..., TOP]).all(), owner, "a range that is empty")
    begun = arrays["scalar"][..., SEEN] > 0.0
    for cells in np.split(arrays["cells"], [SCALES, SCALES + len(MIRRORS)], axis=-1):
        require((cells.sum(axis=-1) > 0.0)[begun].all(), owner, "a lattice without weight")
    require(not np.isinf(arrays["ring"]).any(), owner, "impossible records")
