"""How the self-tuning learner starts, and starts again, in slow, plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.reference_likelihood import (
    FEW,
    FLIPS,
    LABEL_PRIOR,
    MEMBERS,
    MIRROR_PRIOR,
    MIRRORS,
    ORIGIN,
    RING,
    SCALES,
    Likelihood,
    cut,
    first_median,
    least_median,
    typical_unit,
    upper_median,
)


def fits_level(x: Any, level: Any) -> Any:
    """A constant feature has its level, but for values that are more than 32 times as large."""
    return (x == level) | (np.abs(x) > 32 * np.abs(level))


def deviation(x: Any, middle: Any) -> Any:
    """By how much values differ, and 0 if only by rounding errors."""
    return np.where(np.abs(x - middle) > 2.0**-44 * np.abs(middle), x - middle, 0.0)


class Start(Likelihood):
    """The first records, up to `RING`: units, scales, priors and the weights of members."""

    def begin(self) -> None:
        X, y = np.array([record[0] for record in self.ring]), np.array([record[1] for record in self.ring])
        before = self.target
        if not self.labels:
            self.target = typical_unit(y)
        self.unit = np.array([typical_unit(X[:, j]) if self.unit[j] > 0 else 0.0 for j in range(self.d)])
        X, y, n = np.array([self.in_units(x) for x in X]), cut(y / self.target), len(y)
        levels = X[np.argmin(np.abs(X), axis=0), range(self.d)]
        fits = fits_level(X, levels).all(axis=0) & (2 * np.sum(levels == X, axis=0) > max(n, 2)) & (levels != 0)
        same = list(np.flatnonzero(fits))
        self.constant = same[-1] if same else -1
        self.level = levels[self.constant] if same else 0.0
        origin = least_median(y) if same and not self.labels else 0.0
        away = np.abs(y[y != origin] - origin)
        self.size = 1.0 if self.labels else least_median(away) if len(away) else max(abs(origin), 1e-50)
        self.theta[:] = 0.0
        if same:
            self.theta[:, self.constant] = origin / self.level
        self.W = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1 if self.name == "Squared" else 0.0, 0.2, 0.0, 0.0])
        if self.labels:
            self.W = np.array([0.8, 2e-6 / 3, 0.0, 0.0, 0.0, 0.0, 0.2 / 3, 0.0, 0.0])
        self.V, self.scale[:] = np.eye(MEMBERS)[ORIGIN], self.size
        if n < RING:
            self.cells, self.label_cells = np.full(SCALES, 1 / SCALES), LABEL_PRIOR.copy()
            self.mirrors, self.far, self.near, self.widened = np.array([MIRROR_PRIOR] * 2), self.size, 0.5, 0.0
            self.low = self.size * 2.0 ** (-SCALES // 2)
            self.rate, self.mirrored = np.sum(LABEL_PRIOR @ FLIPS) if self.labels else 0.15, MIRRORS @ MIRROR_PRIOR
        else:
            self.cells = 0.5 * self.cells + 0.5 / SCALES
            self.low, self.far = np.clip(np.array([self.low, self.far]) * before / self.target, 1e-40, 1e40)
        self.seen = self.age = self.stored_age = self.lead = self.out = self.credit = 0
        self.bottom, self.top = origin - self.size, origin + self.size
        if n >= FEW:
            self.bottom = self.bottom if min(y) < 0 else max(self.bottom, 0.0)
            self.top = self.top if max(y) > 0 else min(self.top, 0.0)
        self.common, self.variance, self.middle = self.size, 0.0, 0.0
        self.information, self.curvature, self.stretch, self.length = 0.0, 0.0, 1.0, 1.0
        self.streak, self.usually_flipped, self.positive = 0, 0.0, 0.5
        self.odds, self.since, self.doubt, self.evidence = 1.0, 0, 1.0, 1.0
        self.spread = self.noise = self.size
        self.typical, self.due, self.clean = 1.0, 62, 1.0
        for j in range(self.d):
            present = X[~np.isnan(X[:, j]), j]
            v = present[present != 0]
            middle = first_median(v) if len(v) else 0.0
            dense = same and j != self.constant and 2 * len(v) > len(present)
            self.centre[j] = middle if dense else 0.0
            away = deviation(present, self.centre[j])
            u = away[away != 0] ** 2
            self.mean[j], self.count[j] = middle, len(v)
            if self.order == 2:
                self.mean[j] = middle * len(v) / max(len(present), 1)
                self.count[j] = len(u) if self.labels else len(v)
            self.square[j] = self.prior[j] = 0.0
            if len(u):
                self.square[j] = max(2 * upper_median(u), 1e-50)
                often = len(u) / n
                variance = self.new_variance if 2 * len(u) < n else self.prior_variance
                self.prior[j] = variance * self.size**2 / (self.known * self.square[j] * often)
                if self.labels and j == self.constant:
                    self.prior[j] = 10.0 / (self.square[j] * often)
        self.P = np.diag(self.prior)

    def add_features(self, x: Any, xc: Any) -> None:
        """Features that have their first value other than 0, or other than their centre."""
        for j in np.flatnonzero((self.square == 0) & (xc != 0)):
            often = max(1 / (self.seen + 1), 1 / FEW)
            self.square[j] = max(xc[j] ** 2, 1e-50)
            if self.order == 1:
                self.mean[j] = x[j]
            self.prior[j] = self.new_variance * self.size**2 / (self.known * self.square[j] * often)
            self.P[j, j] = self.stored[j, j] = self.prior[j]
