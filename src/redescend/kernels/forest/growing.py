"""One tree, grown from histograms of coded features on what the other trees of its forest leave."""

from __future__ import annotations

from math import exp

import numpy as np

from redescend.kernels.compiler import part
from redescend.kernels.forest.layout import (
    BINS,
    BUILT,
    DRAWS,
    FORESTS,
    HAVE,
    LEAVES,
    MEDIAN,
    RATE,
    TREE,
    TREES,
    State,
    Work,
)
from redescend.numeric import splitmix64

SHRINKAGE = 0.2
"""A tree adds this much of what it found."""

PRIOR = 4.0
"""The mean of a node is shrunk to that of its parent as by this many records."""

LEAST = 8.0
"""Records of a leaf, by their weights."""

CUT, HALF = 4.0, 3.6
"""Residuals are cut off at CUT medians, and have weight 1/2 at HALF."""

LEAST_CURVATURE = 0.02
"""The curvature of the logistic loss is at least this in a Newton step."""

FORGET, FULL_GAIN = 0.98, 50.0
"""Gains of features are forgotten at this rate with every tree; one of a split counts 1 from FULL_GAIN records on."""

TINY = 1e-300


@part
def sigmoid(z: float) -> float:
    return 1.0 / (1.0 + exp(-min(max(z, -40.0), 40.0)))


@part
def is_right(chance: float, rate: float) -> float:
    """The probability that a label is right, given the model's chance of it and the share of flipped labels."""
    return (1.0 - rate) * chance / (rate + (1.0 - 2.0 * rate) * chance)


@part
def draw(state: State, g: int) -> float:
    """A random number in [0, 1) that depends on a counter in the state alone."""
    state.scalar[DRAWS, g] += 1.0
    return np.float64(splitmix64(int(state.scalar[DRAWS, g])) >> np.uint64(11)) * 2.0**-53


@part
def draw_columns(state: State, g: int, work: Work) -> None:
    """Draw the features that a tree may split on, without replacement, by their gains."""
    gain, column = state.gain[g], work.column
    count, total = len(column), 0.0
    for j in range(len(gain)):
        total += gain[j]
    for c in range(count):
        if count == len(gain):
            column[c] = c
            continue
        u, below, pick = draw(state, g) * total, 0.0, -1
        for j in range(len(gain)):
            taken = False
            for other in range(c):
                taken |= column[other] == j
            if not taken:
                below += gain[j]
                pick = j
                if below > u:
                    break
        total -= gain[pick]
        column[c] = pick


@part
def ask(state: State, g: int, m: int, labels: bool, work: Work) -> None:
    """Take tree m out of forest g; write what every record asks of the new one times its weight, and its weight."""
    k, old_tree = g // FORESTS, m < state.scalar[BUILT, g]
    base, fit, leaf, value = state.base[g], state.fit[g], state.leaf[g], state.value[g, m]
    rate, scale = state.output[RATE, k], state.scalar[MEDIAN, g] + TINY
    for i in range(state.clock[HAVE]):
        old = SHRINKAGE * value[leaf[i, m]] if old_tree else 0.0
        y, p = state.target[i, k], base[i] + fit[i]
        fit[i] -= old
        if labels:
            q = sigmoid(p)
            w = max(q * (1.0 - q), LEAST_CURVATURE)
            asked = old + min(max((0.5 + 0.5 * y - q) / w, -CUT), CUT)
            w *= is_right(q if y > 0.0 else 1.0 - q, rate)
        else:
            z = (y - p) / scale
            asked = min(max(old / scale, -LARGE), LARGE) + min(max(z, -CUT), CUT)
            w = 1.0 / (1.0 + (z / HALF) ** 2)
        w *= state.sample_weight[i]
        work.pull[i], work.weight[i], work.node[i] = w * asked, w, 0
        for c in range(len(work.column)):
            work.part[i, c] = state.code[i, work.column[c]]


LARGE = 1e6
"""What an old tree added, in medians of residuals, is cut off here: the median can have changed since."""


@part
def sum_nodes(count: int, width: int, work: Work) -> None:
    """The weights and pulls of the nodes of a level, and their means, each shrunk to that of its parent."""
    total, mean = work.total, work.mean
    for k in range(width):
        total[k, 0] = total[k, 1] = 0.0
    for i in range(count):
        k = work.node[i]
        total[k, 0] += work.weight[i]
        total[k, 1] += work.pull[i]
    for k in range(width - 1, -1, -1):
        mean[k] = (total[k, 1] + PRIOR * mean[k // 2]) / (total[k, 0] + PRIOR)


@part
def lighter(total: object, pair: int) -> int:
    """The lighter of the two children of a node, the right one if they weigh the same."""
    return 2 * pair + (1 if total[2 * pair + 1, 0] <= total[2 * pair, 0] else 0)  # type: ignore[index]


@part
def count_histograms(count: int, width: int, work: Work) -> None:
    """Histograms of a level: counted for the lighter child of every node; the other is what is left of the node's."""
    h, total, columns = work.histogram, work.total, len(work.column)
    if width == 1:
        for c in range(columns):
            for q in range(BINS):
                h[0, c, q, 0] = h[0, c, q, 1] = 0.0
    for pair in range(width // 2 - 1, -1, -1):
        light = lighter(total, pair)
        for c in range(columns):
            for q in range(BINS):
                h[light ^ 1, c, q, 0], h[light ^ 1, c, q, 1] = h[pair, c, q, 0], h[pair, c, q, 1]
                h[light, c, q, 0] = h[light, c, q, 1] = 0.0
    for i in range(count):
        k = work.node[i]
        if width == 1 or lighter(total, k // 2) == k:
            w, v = work.weight[i], work.pull[i]
            for c in range(columns):
                q = work.part[i, c]
                h[k, c, q, 0] += w
                h[k, c, q, 1] += v
    for pair in range(width // 2):
        light = lighter(total, pair)
        for c in range(columns):
            for q in range(BINS):
                h[light ^ 1, c, q, 0] -= h[light, c, q, 0]
                h[light ^ 1, c, q, 1] -= h[light, c, q, 1]


@part
def split_node(state: State, g: int, place: int, k: int, work: Work) -> None:
    """Split node k of a level, which is number `place` of its tree, where it gains most; or send all to the left."""
    h, m, edges = work.histogram, int(state.scalar[TREE, g]), state.edges
    weight, pull = work.total[k, 0], work.total[k, 1]
    whole = pull * pull / (weight + PRIOR)
    best, column, bin_ = whole, -1, BINS
    if weight >= 2.0 * LEAST:
        for c in range(len(work.column)):
            w = v = 0.0
            for q in range(BINS - 1):
                w += h[k, c, q, 0]
                v += h[k, c, q, 1]
                if w < LEAST:
                    continue
                if weight - w < LEAST:
                    break
                gain = v * v / (w + PRIOR) + (pull - v) ** 2 / (weight - w + PRIOR)
                if gain > best:
                    best, column, bin_ = gain, c, q
    state.feature[g, m, place], state.threshold[g, m, place] = 0, np.inf
    work.split[k, 0], work.split[k, 1] = 0, BINS
    if column >= 0 and edges[work.column[column], bin_] < np.inf:
        j = work.column[column]
        state.feature[g, m, place], state.threshold[g, m, place] = j, edges[j, bin_]
        state.gain[g, j] += min((best - whole) / FULL_GAIN, 1.0)
        work.split[k, 0], work.split[k, 1] = column, bin_


@part
def grow(state: State, g: int, labels: bool, work: Work) -> None:
    """Grow the next tree of forest g anew, on all stored records. A complete tree: a node may send all to the left."""
    m, count = int(state.scalar[TREE, g]), state.clock[HAVE]
    draw_columns(state, g, work)
    ask(state, g, m, labels, work)
    first, width = 0, 1
    work.mean[0] = 0.0
    sum_nodes(count, width, work)
    while width < LEAVES:
        count_histograms(count, width, work)
        for k in range(width):
            split_node(state, g, first + k, k, work)
        for i in range(count):
            k = work.node[i]
            work.node[i] = 2 * k + (1 if work.part[i, work.split[k, 0]] > work.split[k, 1] else 0)
        first, width = 2 * first + 1, 2 * width
        sum_nodes(count, width, work)
    unit = 1.0 if labels else state.scalar[MEDIAN, g] + TINY
    value, fit = state.value[g, m], state.fit[g]
    for k in range(LEAVES):
        value[k] = work.mean[k] * unit
    for i in range(count):
        state.leaf[g, i, m] = work.node[i]
        fit[i] += SHRINKAGE * value[work.node[i]]
    for j in range(state.gain.shape[1]):
        state.gain[g, j] = 1.0 + FORGET * (state.gain[g, j] - 1.0)
    state.scalar[BUILT, g], state.scalar[TREE, g] = max(state.scalar[BUILT, g], m + 1.0), (m + 1) % TREES
