"""Rolling forests once more, in plain NumPy from their statement: no bins are counted, no work is shared.

A tree that was grown is checked node by node against all thresholds of all columns that it may split on. Where two
splits gain the same to rounding, the one that was taken is followed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.kernels.forest.growing import (
    CUT,
    FEW,
    FEW_LABELS,
    FORGET,
    FULL_GAIN,
    HALF,
    KEEP,
    LEAST,
    LEAST_CURVATURE,
    LEAST_EXACT,
    LEAST_FACTOR,
    LEAST_FLIPPED,
    LEAST_LABELS,
    MANY_LABELS,
    MOST_SIZE,
    NOISY,
    OFFSET,
    PRIOR,
    SHRINKAGE,
)
from redescend.kernels.forest.layout import BINS, CELLS, COLUMNS, LEAST_SPLIT, LEAVES, LEAVES_FEW, TREES
from redescend.kernels.forest.rounds import EARLY, EARLY_RECORDS, ONLINE, WORK
from redescend.numeric import Array

MASK = 2**64 - 1

Gains = dict[tuple[int, float], tuple[float, bool]]
"""Of a column and a threshold: the gain of this split, and whether it surely leaves enough on both sides."""


def sigmoid(z: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-np.clip(z, -40.0, 40.0)))


def uniform(count: int) -> float:
    """SplitMix64 of a counter, in Python's integers."""
    z = count * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return ((z ^ z >> 31) >> 11) * 2.0**-53


def draw_columns(gains: Array, draws: int) -> list[int]:
    """Columns drawn without replacement, each with a chance in proportion to its gain."""
    if len(gains) <= COLUMNS:
        return list(range(len(gains)))
    left, chosen = list(range(len(gains))), []
    for k in range(COLUMNS):
        below, u = np.cumsum([gains[j] for j in left]), uniform(draws + k + 1)
        chosen.append(left.pop(min(int(np.searchsorted(below, u * below[-1], side="right")), len(left) - 1)))
    return chosen


def quantile_edges(column: Array) -> Array:
    """Different quantiles of a column, below its largest value; minus infinity first if values are missing."""
    known = np.sort(column[~np.isnan(column)])
    edges = [-np.inf] if len(known) < len(column) else []
    for k in range(1, BINS):
        value = known[k * len(known) // BINS]
        if value < known[-1] and value not in edges and len(edges) < BINS - 1:
            edges.append(value)
    return np.array(edges)


class SlowForest:
    """One forest on a stream; `grown` is told every tree of the compiled one, checks it, and continues with it."""

    def __init__(self, dim: int, draws: int, labels: bool) -> None:
        self.dim, self.draws, self.labels = dim, draws, labels
        self.leaves = LEAVES_FEW if labels else LEAVES
        self.nodes = self.leaves - 1
        self.X, self.y = np.empty((0, dim)), np.empty(0)
        self.base, self.fit = np.empty(0), np.empty(0)
        self.trees: list[dict[str, Any]] = []
        self.oldest, self.credit, self.gains = 0, 0.0, np.ones(dim)

    def leaf(self, tree: dict[str, Any], x: Array) -> int:
        node = 0
        while node < self.nodes:
            node = 2 * node + 1 + int(x[tree["feature"][node]] > tree["threshold"][node])
        return node - self.nodes

    def predict(self, x: Array) -> float:
        return SHRINKAGE * sum(tree["value"][self.leaf(tree, x)] for tree in self.trees)

    def is_right(self, chance: Any, rate: float) -> Any:
        return (1.0 - rate) * chance / (rate + (1.0 - 2.0 * rate) * chance)

    def learn(self, x: Array, y: float, base: float, median: float, rate: float) -> bool:
        """Learn from a record; returns whether a tree is due. `median` and `rate` are those before the record."""
        fit = self.predict(x)
        if self.labels:
            q = sigmoid(base + fit)
            move = 4.0 * ((y > 0) - q) * self.is_right(q if y > 0 else 1.0 - q, rate)
        else:
            z = (y - base - fit) / max(median, 1e-100)
            move = np.clip(z, -CUT, CUT) * median / (1.0 + (z / HALF) ** 2)
        for tree in self.trees:
            place = self.leaf(tree, x)
            tree["value"][place] += ONLINE * move
            tree["leaf"] = np.append(tree["leaf"], place)
        self.X, self.y = np.vstack([self.X, x]), np.append(self.y, y)
        self.base, self.fit = np.append(self.base, base), np.append(self.fit, fit)
        cost = len(self.y) * (3.0 * min(COLUMNS, self.dim) + 40.0)
        self.credit += WORK * float(np.clip(EARLY_RECORDS / len(self.y), 1.0, EARLY))
        if len(self.y) >= LEAST_SPLIT and self.credit >= cost:
            self.credit = min(self.credit - cost, cost)
            return True
        return False

    def asked(self, old: Array, median: float, rate: float) -> tuple[Array, Array]:
        """What records ask of the next tree, and their weights."""
        p = self.base + self.fit
        if self.labels:
            q = sigmoid(p)
            curvature = np.maximum(q * (1.0 - q) / 0.25, LEAST_CURVATURE)
            step = np.clip(((self.y > 0) - q) / 0.25 / curvature, -CUT, CUT)
            return old + step, curvature * self.is_right(np.where(self.y > 0, q, 1.0 - q), rate)
        z = (self.y - p) / median
        factor = self.local_factors(np.log(OFFSET + np.minimum(np.abs(z), MOST_SIZE)))
        return KEEP * old / median + factor * np.clip(z / factor, -CUT, CUT), 1.0 / (1.0 + (z / factor / HALF) ** 2)

    def local_factors(self, sizes: Array) -> Array:
        """How many times larger residuals are where a record is, in the tree to be replaced, from log-sizes."""
        if not self.trees:
            return np.ones(len(sizes))
        places, above = self.trees[min(self.oldest, len(self.trees) - 1)]["leaf"], sizes - sizes.mean()
        means = [above[places == place].sum() / (np.count_nonzero(places == place) + FEW) for place in places]
        return np.maximum(np.exp(means), LEAST_FACTOR)

    def drawn_edges(self, columns: list[int], edges: list[Array]) -> tuple[list[Array], list[int]]:
        """The edges that a tree tries first, of columns with many every second, fourth, …, and their distances."""
        drawn, spacings = list(edges), [1] * self.dim
        for j in columns:
            few = self.labels and len(edges[j]) >= MANY_LABELS
            spacing = 1
            while len(edges[j]) > spacing * (FEW_LABELS if few else CELLS - 1):
                spacing *= 2
            if spacing > 1:
                self.draws += 1
                drawn[j], spacings[j] = edges[j][int(uniform(self.draws) * spacing) :: spacing], spacing
        return drawn, spacings

    def refined(
        self, taken: tuple[int, float], gains: Gains, tried: Gains, edges: list[Array], spacings: list[int]
    ) -> float:
        """Check that a split is the best one tried or, of numbers, the best near it; returns the gain of that one."""
        j, best = taken[0], max((gain for gain, surely in tried.values() if surely), default=0.0)
        place, spacing = int(np.searchsorted(edges[j], taken[1])), 1 if self.labels else spacings[j]

        def near(of: int, among: Gains) -> dict[int, tuple[float, bool]]:
            places = range(max(of - spacing + 1, 0), min(of + spacing, len(edges[j])))
            return {at: among[j, float(edges[j][at])] for at in places if (j, float(edges[j][at])) in among}

        starts = [at for at, (gain, _) in near(place, tried).items() if gain >= best - 1e-4 * (1.0 + abs(best))]
        assert starts, "another split gains more"
        finest = [
            max((gain for gain, surely in near(start, gains).values() if surely), default=0.0) for start in starts
        ]
        assert gains[taken][0] >= min(finest) - 1e-4 * (1.0 + abs(best)), "a split near it gains more"
        return tried[j, float(edges[j][starts[0]])][0]

    def least(self, median: float, rate: float, span: float) -> float:
        """The records that a leaf has at least, where believed targets have a range of this span."""
        if self.labels:
            return LEAST_LABELS + LEAST_FLIPPED * rate
        return LEAST_EXACT + (LEAST - LEAST_EXACT) * (min(median / (NOISY * span), 1.0) if span > 0.0 else 1.0)

    def grown(
        self, feature: Array, threshold: Array, edges: list[Array], median: float, rate: float, span: float
    ) -> dict[str, Any]:
        """Check the splits of a new tree by trying all; returns the tree, with values of its own."""
        count, m = len(self.y), self.oldest
        replaced = self.trees[m] if m < len(self.trees) else None
        old = np.zeros(count) if replaced is None else SHRINKAGE * replaced["value"][replaced["leaf"]]
        asked, weight = self.asked(old, median, rate)
        columns = draw_columns(self.gains, self.draws)
        self.draws += len(columns) if self.dim > COLUMNS else 0
        (drawn, spacings), least = self.drawn_edges(columns, edges), self.least(median, rate, span)
        members, parents = {0: np.ones(count, bool)}, {0: 0.0}
        values = np.zeros(self.leaves)
        for node in range(self.nodes + self.leaves):
            rows = members.pop(node)
            w, v = weight[rows].sum(), (weight * asked)[rows].sum()
            mean = (v + PRIOR * parents[node]) / (w + PRIOR)
            if node >= self.nodes:
                values[node - self.nodes] = mean
                continue
            gains = self.split_gains(rows, weight, weight * asked, columns, edges, least)
            tried = {split: gain for split, gain in gains.items() if split[1] in drawn[split[0]]}
            best = max((gain for gain, surely in tried.values() if surely), default=0.0)
            taken = int(feature[node]), float(threshold[node])
            if threshold[node] == np.inf:
                assert best <= 1e-4 * (1.0 + abs(v * v / (w + PRIOR))), "a split that gains was left out"
            else:
                self.gains[taken[0]] += min(self.refined(taken, gains, tried, edges, spacings) / FULL_GAIN, 1.0)
            right = self.X[:, taken[0]] > taken[1]
            members[2 * node + 1], members[2 * node + 2] = rows & ~right, rows & right
            parents[2 * node + 1] = parents[2 * node + 2] = mean
        tree = {
            "feature": feature.copy(),
            "threshold": threshold.copy(),
            "value": values * (1.0 if self.labels else median),
        }
        tree["leaf"] = np.array([self.leaf(tree, x) for x in self.X])
        self.fit = self.fit - old + SHRINKAGE * tree["value"][tree["leaf"]]
        self.gains = 1.0 + FORGET * (self.gains - 1.0)
        if replaced is None:
            self.trees.append(tree)
        else:
            self.trees[m] = tree
        self.oldest = (m + 1) % TREES
        return tree

    def split_gains(
        self, rows: Array, weight: Array, pull: Array, columns: list[int], edges: list[Array], least: float
    ) -> Gains:
        """The gain of every split of a node that leaves enough on both sides, and whether it surely does."""
        w, v, gains = weight[rows].sum(), pull[rows].sum(), {}
        for j in columns:
            left = rows[:, None] & ~(self.X[:, j, None] > edges[j])
            a, b = weight @ left, pull @ left
            gain = b * b / (a + PRIOR) + (v - b) ** 2 / (w - a + PRIOR) - v * v / (w + PRIOR)
            smaller = np.minimum(a, w - a)
            for k in np.flatnonzero(smaller >= least * (1.0 - 1e-5)):
                gains[j, float(edges[j][k])] = gain[k], smaller[k] >= least * (1.0 + 1e-5)
        return gains
