r"""The posterior of the noise over distances, from which `RobustFrechetMean` weighs records.

A cell is a typical distance τ of clean records, a dimension k in which they spread, and a share ε of outliers. The
distance of a clean record is that of a Gaussian in k dimensions from its centre, with E[d²] = τ²; the distance of an
outlier has a density that falls like 1/d, whatever τ and k. With z = d/τ, both times d:

    clean    exp(C_k + k·(ln z − z²/2)),   C_k = (1 − k/2)·ln 2 − ln Γ(k/2) + (k/2)·ln k
    outlier  ½·min(z, 1)^k

A cell's weight (1 − ε)·clean/((1 − ε)·clean + ε·outlier) falls as d grows. As long as z < 1 it is LEARN's weight
1/(1 + b·exp(f/a)) for f = d²/2, with a = τ²/k and b = ε·e^{−C_k}/(2(1 − ε)). Bayes' rule over the cells makes a and b
follow the stream.

Why k: in n dimensions clean distances are within about 1/√(2n) of τ, so a record at 1.5·τ is an outlier, unless the
records spread mostly in a few directions. The stream decides between k = 1, 2, 4, … and n.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from redescend.numeric import Array

RATES = (0.01, 0.05, 0.1, 0.17, 0.25, 0.33)  # shares of outliers that a cell may expect
BELIEFS = (0.5, 0.1, 0.1, 0.1, 0.1, 0.1)  # the prior of each share
DRIFT = 1e-4  # the share of the prior that is mixed into the posterior in each round
OCTAVES = 12  # width of the window of scales, which follows the distances
FINEST = 12  # maximum scales per octave; √n of them are about as fine as one record can resolve

SMALLEST, LONGEST = 1e-140, 1e140
MOST = 300.0


class DistanceDensities(NamedTuple):
    """Densities of a clean record and of an outlier for every distance, τ and k, without a factor exp(tops) by k."""

    clean: Array
    outlier: Array
    tops: Array
    logs: Array


class NoisePosterior:
    """The posterior over cells (τ, k, ε)."""

    def __init__(self, dim: int) -> None:
        self.fineness = min(math.ceil(math.sqrt(dim)), FINEST)
        self.kinds = np.array([2.0**power for power in range(dim.bit_length()) if 2**power < dim] + [float(dim)])
        half = 0.5 * self.kinds
        self._constants = (1.0 - half) * math.log(2.0) - gammaln(half) + half * np.log(self.kinds)
        self._rates = np.array(RATES)
        self._offsets = (math.log(2.0) / self.fineness) * np.arange(OCTAVES * self.fineness)
        shape = (len(self._offsets), len(self.kinds), len(RATES))
        self._prior = np.broadcast_to(np.array(BELIEFS) / (shape[0] * shape[1]), shape)
        self.lowest = math.nan  # ln τ of the lowest cell; NaN before the first positive distance
        self.cells = self._prior.copy()

    @property
    def cells(self) -> Array:
        """Probabilities of (τ, k, ε)."""
        return self._cells

    @cells.setter
    def cells(self, cells: Array) -> None:
        self._cells = cells
        self._masses = cells.sum(axis=2)
        self._bad = cells @ self._rates

    @property
    def ready(self) -> bool:
        return not math.isnan(self.lowest)

    @property
    def typical(self) -> float:
        """exp(E[ln τ]), the typical distance of clean records."""
        return math.exp(self.lowest + float(self._offsets @ self._masses.sum(axis=1)))

    def compute_densities(self, distances: Array) -> DistanceDensities:
        """Densities of a record at its distances from several points; the first positive one places the window."""
        logs = np.log(np.clip(distances, SMALLEST, LONGEST))
        if not self.ready:
            self.lowest = float(logs.max()) - 0.5 * float(self._offsets[-1])
        z = logs[:, None] - self.lowest - self._offsets
        # The top scale stands for all larger ones: no record is beyond it, so the gate can always open again.
        z[:, -1] = np.minimum(z[:, -1], 0.0)
        core = (z - 0.5 * np.exp(2.0 * np.minimum(z, 300.0)))[..., None]
        clean = self._constants + self.kinds * core
        outlier = self.kinds * np.minimum(z, 0.0)[..., None] - math.log(2.0)
        tops = np.maximum(clean, outlier).max(axis=1, keepdims=True)
        return DistanceDensities(np.exp(clean - tops), np.exp(outlier - tops), tops, logs)

    def weigh(self, densities: DistanceDensities) -> Array:
        """The probability that the record is clean, from each point."""
        factor = np.exp(densities.tops - densities.tops.max(axis=2, keepdims=True))
        clean = ((self._masses - self._bad) * densities.clean * factor).sum(axis=(1, 2))
        return clean / (clean + (self._bad * densities.outlier * factor).sum(axis=(1, 2)))

    def likelihood_ratios(self, densities: DistanceDensities, leader: int) -> Array:
        """Likelihood ratio of the record for each point against the leader, averaged over k.

        In k dimensions, the density of a record at distance d is that of its distance over d^(k−1).
        """
        likely = ((self._masses - self._bad) * densities.clean + self._bad * densities.outlier).sum(axis=1)
        logs = np.log(likely) + densities.tops[:, 0] - self.kinds * densities.logs[:, None]
        return np.exp(np.minimum(logs - logs[leader], MOST)) @ self._masses.sum(axis=0)

    def learn(self, densities: DistanceDensities, place: int) -> None:
        """Apply Bayes' rule to the cells for the distance from one point, and mix in a share of the prior."""
        factor = np.exp(densities.tops[place] - densities.tops[place].max())
        clean, outlier = (densities.clean[place] * factor)[..., None], (densities.outlier[place] * factor)[..., None]
        cells = self._cells * (clean + self._rates * (outlier - clean))
        cells *= (1.0 - DRIFT) / cells.sum()
        self.cells = cells + DRIFT * self._prior
        self._recentre(float(densities.logs[place]))

    def _recentre(self, distance: float) -> None:
        """Shift the window by octaves so that the likeliest scale stays in its middle third.

        If the likeliest scale is at an end and the record lies beyond it, move the window to the record.
        """
        scales = len(self._offsets)
        third, mode = scales // 3, int(self._masses.sum(axis=1).argmax())
        place = (distance - self.lowest) / float(self._offsets[1])
        if (mode == 0 and place < 0.0) or (mode == scales - 1 and place > mode):
            mode = round(place)
        beyond = min(mode - third, 0) + max(mode - (scales - 1 - third), 0)
        if beyond == 0:
            return
        octaves = math.copysign(math.ceil(abs(beyond) / self.fineness), beyond)
        move = int(octaves) * self.fineness
        cells = DRIFT * self._prior
        if abs(move) < scales:
            cells[max(-move, 0) : scales - max(move, 0)] = self._cells[max(move, 0) : scales + min(move, 0)]
        self.cells = cells / cells.sum()
        self.lowest += octaves * math.log(2.0)
