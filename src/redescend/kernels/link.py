"""From one score for each class against the rest to logits of all classes together, learned record by record, compiled.

A class that lies between two others is no half-space, and its own score says little; the scores of the others say more.
With z the K scores, less their mean, and v = (z, 1), the logits are u = A v. A begins as (I, 0). Given π = softmax(κu),
a label y has the probability Z = (1 − e)·π_y + e·(1 − π_y)/(K − 1), where e, the share of wrong labels, is one of
`FLIPS` by Bayes' rule. All rows of A share a covariance P. With c = v'Pv, κ = 1/√(1 + πc/8), w = ∂ ln Z/∂ ln π_y, which
is small for a label that is probably wrong, and the largest curvature h = w·κ²·max π_k(1 − π_k), a record moves

    A_k += w·κ·(1[y = k] − π_k)·Pv/(1 + hc),   P −= h·Pv(Pv)'/(1 + hc),

and every variance returns to its prior by a small share, because the scores themselves change while they are learned.
"""

from __future__ import annotations

from math import exp, pi, sqrt
from typing import NamedTuple

import numpy as np

from redescend.kernels.compiler import kernel, part
from redescend.kernels.selftuning.covariance import multiply_full, subtract_full
from redescend.kernels.selftuning.layout import FLIPS, HEAVIEST
from redescend.kernels.views import splitter, view
from redescend.numeric import Array
from redescend.state import ArraySpec, packed_size, unpack

PRIOR = 0.5
"""The variance of an entry of A at first, times the number of classes."""

FLIP_PRIOR = np.array([0.9, 0.06, 0.02, 0.01, 0.005, 0.005])
"""The prior of every share of wrong labels. One of two labels is flipped more often: see `selftuning.layout`."""

RETURNING = 3e-4
"""The share of its distance to the prior that a variance returns in a round."""

DRIFT = 1e-4
"""The share of the belief in e that returns to its prior in a round."""

LONGEST = 30.0
"""Scores of a record are shortened to this before A learns from them."""

WIDEST, RAREST = 1e100, 1e-12
"""No entry of A and no score is larger, and no label less probable."""

SPECS = (
    ArraySpec("A", ("classes", lambda dims: dims["classes"] + 1), low=-WIDEST, high=WIDEST),
    ArraySpec("P", (lambda dims: (dims["classes"] + 1) * (dims["classes"] + 2) // 2,), low=-1.0, high=1.0),
    ArraySpec("flips", (len(FLIPS),), kind="share"),
)
"""The arrays of a link, one behind the other in a row of floats."""


class Link(NamedTuple):
    """A; the lower triangle of P, row by row; and the probability of every share of wrong labels."""

    A: Array
    P: Array
    flips: Array


class Work(NamedTuple):
    """Buffers of a round: v, Pv and the probabilities of classes."""

    v: Array
    Pv: Array
    shares: Array


link_at = splitter(Link, [("classes", "wide"), ("packed",), (len(FLIPS),)], ("classes", "wide", "packed"))
work_at = splitter(Work, [("wide",), ("wide",), ("classes",)], ("classes", "wide"))


def new_link(classes: int) -> Array:
    """A link that changes nothing yet."""
    row = np.zeros(packed_size(SPECS, {"classes": classes}))
    parts = read_link(row, classes)
    places = np.arange(classes + 1)
    parts["A"][:, :classes] = np.eye(classes)
    parts["P"][places * (places + 3) // 2] = PRIOR / classes
    parts["flips"][:] = FLIP_PRIOR
    return row


def read_link(rows: Array, classes: int) -> dict[str, Array]:
    """The arrays of a link, or of many, by name; views."""
    return unpack(SPECS, rows, {"classes": classes})


@part
def find_label(Y: Array, row: int) -> int:
    for k in range(len(Y)):
        if Y[k, row] > 0.0:
            return k
    return -1


@part
def write_logits(scores: Array, row: int, link: Link, work: Work) -> None:
    """Write the logits of a record over its scores, and v, shortened, to the buffer."""
    v, classes, mean, longest = work.v, len(scores), 0.0, LONGEST
    for k in range(classes):
        v[k] = min(max(scores[k, row], -WIDEST), WIDEST)
    for k in range(classes):
        mean += v[k] / classes
    for k in range(classes):
        v[k] -= mean
    for k in range(classes):
        longest = max(longest, abs(v[k]))
    v[classes] = 1.0
    for k in range(classes + 1):
        v[k] *= LONGEST / longest
    for k in range(classes):
        total = 0.0
        for j in range(classes + 1):
            total += link.A[k, j] * v[j]
        scores[k, row] = total * (longest / LONGEST)
        work.shares[k] = total


@part
def write_shares(shares: Array, length: float) -> float:
    """Write the softmax of logits of this length over them, and return the largest curvature."""
    top, total, curvature = -np.inf, 0.0, 0.0
    for k in range(len(shares)):
        top = max(top, shares[k])
    for k in range(len(shares)):
        shares[k] = exp(length * (shares[k] - top))
    for k in range(len(shares)):
        total += shares[k]
    for k in range(len(shares)):
        shares[k] /= total
    for k in range(len(shares)):
        curvature = max(curvature, shares[k] * (1.0 - shares[k]))
    return curvature


@part
def learn_flips(q: float, classes: int, flips: Array) -> float:
    """Bayes' rule on the share of wrong labels, for a label of probability q; returns w."""
    slope = mass = 0.0
    for n in range(len(FLIPS)):
        slope += flips[n] * (1.0 - FLIPS[n] * classes / (classes - 1)) * q
    for n in range(len(FLIPS)):
        flips[n] *= (1.0 - FLIPS[n]) * q + FLIPS[n] * (1.0 - q) / (classes - 1)
    for n in range(len(FLIPS)):
        mass += flips[n]
    for n in range(len(FLIPS)):
        flips[n] = (1.0 - DRIFT) * flips[n] / mass + DRIFT * FLIP_PRIOR[n]
    return slope / mass


@part
def learn_record(label: int, weight: float, link: Link, work: Work) -> None:
    """Learn from a record whose scores and logits are in the buffers."""
    v, Pv, shares, classes = work.v, work.Pv, work.shares, len(work.shares)
    c = max(multiply_full(link.P, v, Pv), 0.0)
    length = 1.0 / sqrt(1.0 + pi / 8.0 * c)
    curvature = write_shares(shares, length)
    w = weight * learn_flips(max(shares[label], RAREST), classes, link.flips)
    h = w * length * length * curvature
    gain = w * length / (1.0 + h * c)
    for k in range(classes):
        g = gain * ((1.0 if k == label else 0.0) - shares[k])
        for j in range(classes + 1):
            link.A[k, j] = min(max(link.A[k, j] + g * Pv[j], -WIDEST), WIDEST)
    subtract_full(link.P, h / (1.0 + h * c), Pv)
    at = 0
    for j in range(classes + 1):
        link.P[at] += RETURNING * (PRIOR / classes - link.P[at])
        at += j + 2


@kernel
def learn_link(
    memory: Array, at: int, starts: Array, places: Array, Y: Array, weights: Array, scores: Array, buffers: Array
) -> None:
    """Write logits over the scores of all records, and learn from those with a weight.

    `memory` has a row for each model, with a link that begins at `at`; run i of records, from ``starts[i]`` up to
    ``starts[i + 1]``, is of the model ``places[i]``. `buffers` has 3·classes + 2 floats.
    """
    memory, starts, places, Y, weights, scores, buffers = view((memory, starts, places, Y, weights, scores, buffers))
    classes, width = len(Y), memory.shape[1]
    work = work_at(buffers, 0, (classes, classes + 1))
    for run in range(len(places)):
        sizes = (classes, classes + 1, (classes + 1) * (classes + 2) // 2)
        link = link_at(memory, places[run] * width + at, sizes)
        for row in range(starts[run], starts[run + 1]):
            write_logits(scores, row, link, work)
            label = find_label(Y, row)
            if weights[row] > 0.0 and label >= 0:
                learn_record(label, min(weights[row], HEAVIEST), link, work)
