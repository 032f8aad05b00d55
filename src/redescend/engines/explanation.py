"""Predictions of forests as sums of contributions of features."""

from __future__ import annotations

import numpy as np

from redescend.kernels.forest.growing import SHRINKAGE
from redescend.kernels.forest.layout import BUILT, DEPTH, HAVE, LEAVES, NODES, State
from redescend.numeric import Array


def explain_forest(state: State, g: int, X: Array) -> Array:
    """Compute the contribution of each feature to forest g, of shape (rows, features + 1); the last is a constant.

    A split contributes the value of the child that the record goes to less that of the node, where the value of a node
    is the mean of its leaves over the stored records (Saabas 2014).
    """
    out, rows = np.zeros((len(X), X.shape[1] + 1)), np.arange(len(X))
    for m in range(int(state.scalar[BUILT, g])):
        values = SHRINKAGE * _average_nodes(state, g, m)
        at = np.zeros(len(X), np.int64)
        out[:, -1] += values[0]
        for _ in range(DEPTH):
            feature = state.feature[g, m, at]
            child = 2 * at + 1 + (X[rows, feature] > state.threshold[g, m, at])
            out[rows, feature] += values[child] - values[at]
            at = child
    return out


def _average_nodes(state: State, g: int, m: int) -> Array:
    """The mean of the leaves below every node of a tree over the stored records; a leaf is the mean of itself."""
    values, counts = np.zeros(NODES + LEAVES), np.zeros(NODES + LEAVES)
    values[NODES:] = state.value[g, m]
    counts[NODES:] = np.bincount(state.leaf[g, : state.clock[HAVE], m], minlength=LEAVES)
    for node in range(NODES - 1, -1, -1):
        left, right = 2 * node + 1, 2 * node + 2
        counts[node] = counts[left] + counts[right]
        # Where nothing is split, all go to the left.
        share = counts[left] / counts[node] if counts[node] > 0.0 else 0.5
        share = 1.0 if state.threshold[g, m, node] == np.inf else share
        values[node] = share * values[left] + (1.0 - share) * values[right]
    return values
