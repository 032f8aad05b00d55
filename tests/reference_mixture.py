"""The mixture of the members of a non-linear model once more, in plain Python from its statement."""

from __future__ import annotations

import numpy as np

from redescend.kernels.forest.layout import FIRST_RATE
from redescend.kernels.forest.mixture import (
    CLEAR,
    EVIDENCE,
    FAR,
    GAIN,
    LEAST_RATIO,
    LIGHT,
    MEMORY,
    OFTEN,
    PATIENCE,
    PRIOR,
    REACTION,
    SMALL,
)
from redescend.kernels.forest.rounds import FAST_RATE, LEAST_RATE, MOST_RATE
from redescend.numeric import Array


class SlowMixture:
    """Weights of members by Bayes' rule, on a logarithmic scale; `losses` are −ln of what each round was worth."""

    def __init__(self, labels: bool) -> None:
        self.labels, self.count, self.rate = labels, 0, FIRST_RATE
        self.logs, self.played, self.scales = np.log(PRIOR), np.array(PRIOR), np.full(len(PRIOR), np.nan)
        self.costs, self.distances, self.nearer = np.zeros((3, len(PRIOR)))
        self.member_losses: list[Array] = []
        self.losses: list[float] = []

    def predict(self, members: Array) -> float:
        return float(self.played @ members)

    def likelihoods(self, members: Array, y: float) -> Array:
        """How likely a target is for every member: with the share of flipped labels, or by a law of Cauchy's."""
        if self.labels:
            return self.rate + (1.0 - 2.0 * self.rate) / (1.0 + np.exp(-y * members))
        sizes = np.minimum(np.abs(y - members), FAR * self.scales)
        return self.scales[0] / (self.scales * (1.0 + (sizes / self.scales) ** 2))

    def follow(self, members: Array, y: float, counts: float) -> None:
        """Follow the share of flipped labels, or the scales of residuals, which start at the first of them."""
        if self.labels:
            chance = 1.0 / (1.0 + np.exp(-y * self.predict(members)))
            wrong = self.rate * (1.0 - chance) / (self.rate * (1.0 - chance) + (1.0 - self.rate) * chance)
            rate = self.rate + max(FAST_RATE, 1.0 / (100.0 + self.count)) * (wrong - self.rate)
            self.rate = float(np.clip(rate, LEAST_RATE, MOST_RATE))
            return
        sizes = np.abs(y - members)
        scales = np.maximum(np.where(np.isnan(self.scales), sizes, self.scales), 1e-12 * np.abs(members) + 1e-140)
        gain = max(4.0 / (self.count + 8.0), REACTION)
        shrunk = scales * np.exp(gain * np.log(np.maximum(sizes / scales, LEAST_RATIO)))
        followed = scales * (1.0 + gain * (sizes**2 - scales**2) / (sizes**2 + scales**2))
        self.scales = np.where(sizes < SMALL * scales, shrunk, followed)
        apart, gain = np.abs(members - members[0]), counts * max(1.0 / (self.count + 1.0), MEMORY)
        unit = np.maximum(apart, np.maximum(self.scales, self.scales[0]))
        far = np.minimum(sizes, sizes[0]) > FAR * unit  # such a target does not tell which one is better
        self.costs += gain * (np.where(far, 0.0, np.clip(sizes - sizes[0], -apart, apart)) - self.costs)
        self.distances += gain * (apart - self.distances)
        self.nearer += gain * ((sizes < sizes[0]) - self.nearer)

    def learn(self, members: Array, y: float, counts: float = 1.0) -> None:
        self.follow(members, y, counts)
        told = (1.0 if self.labels else counts) * np.log(self.likelihoods(members, y))
        total = np.logaddexp.reduce(self.logs + told)
        posterior = np.exp(self.logs + told - total)
        linear = np.arange(len(posterior)) == 0
        doubt = max(EVIDENCE / np.sqrt(self.count + 1.0) - EVIDENCE * np.sqrt(MEMORY), 0.0)
        best = self.nearer >= OFTEN
        tried, clear = ((self.distances > 0.0) & (self.costs <= -e * doubt * self.distances) for e in (1.0, CLEAR))
        least = np.where(clear & best, self.costs, 0.0).min()
        usable = (linear | tried) & (self.costs <= GAIN * least)
        cheap = np.where(self.labels | usable, posterior, 0.0)
        heavy = np.where(self.labels | (cheap >= LIGHT * cheap.max()), cheap, 0.0)
        self.played = heavy / heavy.sum()
        share = 1.0 / (PATIENCE + self.count)
        self.logs = np.log((1.0 - share) * posterior + share / len(posterior))
        self.count += 1
        self.member_losses.append(-told)
        self.losses.append(-float(total))
