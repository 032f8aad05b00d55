"""One tree, grown from histograms of coded features on what the other trees of its forest leave."""

from __future__ import annotations

from math import exp, log

import numpy as np

from redescend.kernels.compiler import part, shared
from redescend.kernels.forest.layout import (
    BINS,
    BUILT,
    CELLS,
    DRAWS,
    FORESTS,
    HAVE,
    HIGH,
    LOW,
    MEDIAN,
    RATE,
    TREE,
    TREES,
    State,
    Work,
)
from redescend.numeric import Array, splitmix64

SHRINKAGE = 0.2
"""A tree adds this much of what it found."""

KEEP = 2.0
"""A tree of numbers asks for this many times what the tree that it replaces added, and for what all trees leave. As it
adds only a part of that, its forest leaves a share of the target even where it is exact, but a small one."""

PRIOR = 2.0
"""The mean of a node is shrunk to that of its parent as by this many records."""

LEAST, LEAST_EXACT, NOISY = 8.0, 4.0, 0.03
"""Records of a leaf, by their weights: LEAST if the median residual is at least NOISY times the range of targets, down
to LEAST_EXACT where trees are exact."""

LEAST_LABELS, LEAST_FLIPPED = 1.0, 40.0
"""The same for labels: LEAST_LABELS, and LEAST_FLIPPED times the share of flipped ones."""

FEW_LABELS, MANY_LABELS = 8, 31
"""Of a column with many edges, a tree splits at every second, fourth, … only, from a random one on: as trees split at
different edges, a forest has finer steps, and does not follow single records. A tree of labels splits columns of
MANY_LABELS edges or more at FEW_LABELS of them."""

CUT, HALF = 4.0, 3.6
"""Residuals are cut off at CUT times the median, and have weight 1/2 at HALF times it. The median is multiplied by how
much larger residuals are in a leaf: noise differs within a table, such as with the size of the target."""

OFFSET, MOST_SIZE, FEW, LEAST_FACTOR = 0.3, 100.0, 8.0, 0.1
"""The typical size of residuals in a leaf is measured by the mean of log(OFFSET + size), in medians and at most
MOST_SIZE: a few wild records must not open a leaf to others. It is shrunk to that of all records as by FEW of them, and
is at least LEAST_FACTOR times as large."""

LEAST_CURVATURE = 0.08
"""The weight of a label: the curvature of the logistic loss in units of its largest, 1/4; it is at least this."""

FORGET, FULL_GAIN = 0.98, 50.0
"""Gains of features are forgotten at this rate with every tree; one of a split counts 1 from FULL_GAIN records on."""

TINY, LARGE = 1e-300, 1e6
"""What an old tree added is cut off at LARGE medians of residuals, because the median may have changed since."""


@part
def sigmoid(z: float) -> float:
    return 1.0 / (1.0 + exp(-min(max(z, -40.0), 40.0)))


@part
def is_right(chance: float, rate: float) -> float:
    """The probability that a label is right, given the model's chance of it and the share of flipped labels."""
    return (1.0 - rate) * chance / (rate + (1.0 - 2.0 * rate) * chance)


@part
def find_bin(edges: Array, value: float) -> int:
    """The number of edges below a value; a missing value is below all."""
    below, half = 0, BINS // 2
    while half > 0:
        below += half if edges[below + half - 1] < value else 0
        half //= 2
    return below


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
def draw_edges(state: State, g: int, labels: bool, work: Work) -> None:
    """Draw the edges that a tree may split at: of each of its columns, the first one and the distance of the others."""
    for c in range(len(work.column)):
        edges, first, shift = find_bin(state.edges[work.column[c]], np.inf), 0, 0
        most = FEW_LABELS if labels and edges >= MANY_LABELS else CELLS - 1
        while edges > most << shift:
            shift += 1
        if shift > 0:
            first = int((1 << shift) * draw(state, g))
        work.first[c], work.shift[c], work.edges[c] = first, shift, ((edges - first - 1) >> shift) + 1


@part
def measure_leaves(state: State, g: int, m: int, work: Work) -> None:
    """Write to `work.mean` how many times larger residuals are in each leaf of tree m than among all records."""
    count, k, leaf, sums, total = state.clock[HAVE], g // FORESTS, state.leaf[g], work.sums, 0.0
    leaves = state.value.shape[2]
    scale = 1.0 / (state.scalar[MEDIAN, g] + TINY)
    for at in range(leaves):
        sums[at, 0] = sums[at, 1] = 0.0
    for i in range(count):
        size = abs(state.target[i, k] - state.base[g, i] - state.fit[g, i]) * scale
        told = log(OFFSET + min(size, MOST_SIZE))
        sums[leaf[i, m], 0] += 1.0
        sums[leaf[i, m], 1] += told
        total += told
    for at in range(leaves):
        above = sums[at, 1] - sums[at, 0] * total / count
        work.mean[at] = max(exp(above / (sums[at, 0] + FEW)), LEAST_FACTOR)


@part
def ask(state: State, g: int, m: int, labels: bool, work: Work) -> None:
    """Take tree m out of forest g; write what every record asks of the new one times its weight, and its weight."""
    k, old_tree = g // FORESTS, m < state.scalar[BUILT, g]
    base, fit, leaf, value = state.base[g], state.fit[g], state.leaf[g], state.value[g, m]
    rate, scale = state.output[RATE, k], 1.0 / (state.scalar[MEDIAN, g] + TINY)
    known = m if old_tree else max(m - 1, 0)  # before the first tree, all records are in one leaf
    if not labels:
        measure_leaves(state, g, known, work)
    for i in range(state.clock[HAVE]):
        old = SHRINKAGE * value[leaf[i, m]] if old_tree else 0.0
        y, p = state.target[i, k], base[i] + fit[i]
        fit[i] -= old
        if labels:
            q = sigmoid(p)
            w = max(4.0 * q * (1.0 - q), LEAST_CURVATURE)
            asked = old + min(max(4.0 * (0.5 + 0.5 * y - q) / w, -CUT), CUT)
            w *= is_right(q if y > 0.0 else 1.0 - q, rate)
        else:
            factor = work.mean[leaf[i, known]]
            z = (y - p) * scale / factor
            asked = min(max(KEEP * old * scale, -LARGE), LARGE) + factor * min(max(z, -CUT), CUT)
            w = 1.0 / (1.0 + (z * (1.0 / HALF)) ** 2)
        w *= state.sample_weight[i]
        work.pull[i], work.weight[i], work.order[i] = w * asked, w, i
        for c in range(len(work.column)):
            joined = (1 << work.shift[c]) - 1 - work.first[c]
            work.part[i, c] = (state.code[i, work.column[c]] + joined) >> work.shift[c]


@part
def count_histogram(h: Array, k: int, first: int, last: int, work: Work) -> None:
    """The histograms of node k, whose records are in the places from first to last."""
    columns, order = len(work.column), work.order
    for c in range(columns):
        for q in range(CELLS):
            h[k, c, q, 0] = h[k, c, q, 1] = 0.0
    for place in range(first, last):
        i = order[place]
        w, v = work.weight[i], work.pull[i]
        for c in range(columns):
            q = work.part[i, c]
            h[k, c, q, 0] += w
            h[k, c, q, 1] += v


@shared
def divide_histogram(pair: int, work: Work) -> None:
    """Histograms of the children of a node: counted for the one with fewer records, the other is what is left."""
    h, start = work.histogram, work.start
    first, middle, last = start[2 * pair], start[2 * pair + 1], start[2 * pair + 2]
    few = 2 * pair + (1 if last - middle < middle - first else 0)
    many = few ^ 1
    if many != pair:
        for c in range(len(work.column)):
            for q in range(CELLS):
                h[many, c, q, 0], h[many, c, q, 1] = h[pair, c, q, 0], h[pair, c, q, 1]
    count_histogram(h, few, start[few], start[few + 1], work)
    for c in range(len(work.column)):
        for q in range(CELLS):
            h[many, c, q, 0] -= h[few, c, q, 0]
            h[many, c, q, 1] -= h[few, c, q, 1]


@shared
def find_split(state: State, g: int, place: int, k: int, least: float, labels: bool, work: Work) -> bool:
    """Split node k of a level, which is number `place` of its tree, where it gains most, if it gains anywhere.

    Each child has at least the weight `least`. Trees of numbers also try the edges next to the best one of those drawn.
    """
    h, m, weight, pull = work.histogram, int(state.scalar[TREE, g]), 0.0, 0.0
    for q in range(CELLS):
        weight += h[k, 0, q, 0]
        pull += h[k, 0, q, 1]
    whole = pull * pull / (weight + PRIOR)
    best, column, cell = whole, -1, CELLS
    if weight < 2.0 * least:
        return False
    for c in range(len(work.column)):
        w = v = 0.0
        for q in range(work.edges[c]):
            w += h[k, c, q, 0]
            v += h[k, c, q, 1]
            if w < least:
                continue
            if weight - w < least:
                break
            # The gain is v² / left + (pull − v)² / right; as most splits are not the best, none is divided in vain.
            left, right = w + PRIOR, weight - w + PRIOR
            gain = v * v * right + (pull - v) ** 2 * left
            if gain > best * (left * right):
                best, column, cell = gain / (left * right), c, q
    if column < 0:
        return False
    j, edge = work.column[column], work.first[column] + (cell << work.shift[column])
    if work.shift[column] > 0 and not labels:
        edge = refine_split(state, k, column, cell, weight, pull, least, work)
    state.feature[g, m, place], state.threshold[g, m, place] = j, state.edges[j, edge]
    state.gain[g, j] += min((best - whole) / FULL_GAIN, 1.0)
    divide_records(state, k, j, edge, work)
    return True


@part
def refine_split(
    state: State, k: int, column: int, cell: int, weight: float, pull: float, least: float, work: Work
) -> int:
    """The edge at which node k gains most among that at the end of a cell and those within this cell and the next."""
    h, fine, j, width = work.histogram, work.fine, work.column[column], 1 << work.shift[column]
    edge = work.first[column] + cell * width
    low, best = max(edge + 1 - width, 0), 0.0
    for q in range(len(fine)):
        fine[q, 0] = fine[q, 1] = 0.0
    for place in range(work.start[k], work.start[k + 1]):
        i = work.order[place]
        if work.part[i, column] == cell or work.part[i, column] == cell + 1:
            bin_ = state.code[i, j] - low
            fine[bin_, 0] += work.weight[i]
            fine[bin_, 1] += work.pull[i]
    w = v = 0.0
    for q in range(cell):
        w += h[k, column, q, 0]
        v += h[k, column, q, 1]
    for other in range(low, min(edge + width, BINS - 1)):
        w += fine[other - low, 0]
        v += fine[other - low, 1]
        if w >= least and weight - w >= least:
            gain = v * v / (w + PRIOR) + (pull - v) ** 2 / (weight - w + PRIOR)
            if gain > best:
                best, edge = gain, other
    return edge


@part
def divide_records(state: State, k: int, j: int, edge: int, work: Work) -> None:
    """Order the records of node k of a level: those of its left child first. Where the right ones start is written."""
    order, spare, left, right = work.order, work.spare, work.start[k], 0
    for place in range(work.start[k], work.start[k + 1]):
        i = order[place]
        order[left] = spare[right] = i
        larger = 1 if state.code[i, j] > edge else 0
        left, right = left + 1 - larger, right + larger
    for place in range(right):
        order[left + place] = spare[place]
    work.middle[k] = left


@shared
def split_level(state: State, g: int, width: int, least: float, labels: bool, work: Work) -> None:
    """Split the nodes of a level that can gain, and send all records of the others to the left."""
    m, start, middle, open_ = int(state.scalar[TREE, g]), work.start, work.middle, work.open
    for k in range(width):
        place = width - 1 + k
        state.feature[g, m, place], state.threshold[g, m, place], middle[k] = 0, np.inf, start[k + 1]
        open_[k] = open_[k] and find_split(state, g, place, k, least, labels, work)
    for k in range(width - 1, -1, -1):
        start[2 * k + 2], start[2 * k + 1] = start[k + 1], middle[k]
        open_[2 * k] = open_[2 * k + 1] = open_[k]
    for pair in range(width - 1, -1, -1):
        if open_[2 * pair] and 2 * width < state.value.shape[2]:
            divide_histogram(pair, work)


@shared
def set_values(state: State, g: int, m: int, unit: float, work: Work) -> None:
    """The values of leaves: means of what their records ask, the mean of a node being shrunk to that of its parent."""
    sums, mean, value, start = work.sums, work.mean, state.value[g, m], work.start
    leaves, nodes = len(value), len(value) - 1
    for k in range(leaves):
        w = v = 0.0
        for place in range(start[k], start[k + 1]):
            w += work.weight[work.order[place]]
            v += work.pull[work.order[place]]
        sums[nodes + k, 0], sums[nodes + k, 1] = w, v
    for k in range(nodes - 1, -1, -1):
        sums[k, 0], sums[k, 1] = sums[2 * k + 1, 0] + sums[2 * k + 2, 0], sums[2 * k + 1, 1] + sums[2 * k + 2, 1]
    for k in range(nodes + leaves):
        above = mean[(k - 1) // 2] if k > 0 else 0.0
        mean[k] = (sums[k, 1] + PRIOR * above) / (sums[k, 0] + PRIOR)
    for k in range(leaves):
        value[k] = mean[nodes + k] * unit
        for place in range(start[k], start[k + 1]):
            i = work.order[place]
            state.leaf[g, i, m] = k
            state.fit[g, i] += SHRINKAGE * value[k]


@part
def least_records(state: State, g: int, labels: bool) -> float:
    """The records that a leaf has at least, by their weights: the fewer, the less noise there is."""
    k = g // FORESTS
    if labels:
        return LEAST_LABELS + LEAST_FLIPPED * state.output[RATE, k]
    noise = state.scalar[MEDIAN, g] / (NOISY * (state.output[HIGH, k] - state.output[LOW, k]) + TINY)
    return LEAST_EXACT + (LEAST - LEAST_EXACT) * min(noise, 1.0)


@shared
def grow(state: State, g: int, labels: bool, work: Work) -> None:
    """Grow the next tree of forest g anew, on all stored records. A complete tree: a node may send all to the left."""
    m, count, width = int(state.scalar[TREE, g]), state.clock[HAVE], 1
    least = least_records(state, g, labels)
    draw_columns(state, g, work)
    draw_edges(state, g, labels, work)
    ask(state, g, m, labels, work)
    work.start[0], work.start[1], work.open[0] = 0, count, True
    count_histogram(work.histogram, 0, 0, count, work)
    while width < state.value.shape[2]:
        split_level(state, g, width, least, labels, work)
        width *= 2
    set_values(state, g, m, 1.0 if labels else state.scalar[MEDIAN, g] + TINY, work)
    for j in range(state.gain.shape[1]):
        state.gain[g, j] = 1.0 + FORGET * (state.gain[g, j] - 1.0)
    state.scalar[BUILT, g], state.scalar[TREE, g] = max(state.scalar[BUILT, g], m + 1.0), (m + 1) % TREES
