"""The self-tuning learner in its slowest and most obvious form: one round a call, dense matrices, roots by SciPy.

Nothing here calls a formula of the package: a loss is only asked for its settings.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from redescend import losses
from tests.reference import loss_pair

STEPS = (16.0, 1.0, 1 / 16)
"""Of the followers, in units of the typical record; once with one length for all features, once with one for each."""

RATES = np.array([0.01, 0.05, 0.1, 0.17, 0.25, 0.33])
BELIEFS = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
OCTAVES, LABEL_OCTAVES = range(-12, 12), range(-2, 7)
DRIFT, LABEL_DRIFT = 1e-4, 1e-5
"""The cells of the noise posterior, and what each of them gets of it in each round."""

OUTLIER = 0.25
"""The density of an outlier is this share of 1/|r|."""

SHARE = 1e-3
"""What every member gets of the weight in each round; below twice as much, a follower starts again at the leader."""

LUCK = 30.0
"""The most that a member gains on the leader in one round."""

NORMS, READY, MEMORY = 15, 5, 1000
RESOLUTION = 2.0**-52
"""Lengths of records remembered, when a feature's scale is known, over how many records it is a mean, its floor."""

FIRST_SNAPSHOT, GROWTH, SNAPSHOTS = 62, 1.25, 2

START, FORGETTING, SHARPEST, FLOOR, YOUNG = 100.0, 1e-3, 1e6, 1e-12, 31
"""Of the second-order follower: P at first, what a round forgets, the most that a round counts, the least P, youth."""


HALF, UNFIT, SLOWLY, KNOWN, LONGER, SIZE_STEP, WIDER = 0.5, 0.01, 0.25, 1e-6, 16.0, 0.4, 1.5
"""Of what is new: how fast it grows old, with records that fit and that do not; the stream; when it is known; how much
longer its steps are; how fast the size of residuals with it moves; how much wider than that its noise may be."""


class Played(NamedTuple):
    """A game: what was played, what it lost, how much of it was believed."""

    actions: np.ndarray
    losses: np.ndarray
    weights: np.ndarray


def play(X: np.ndarray, y: np.ndarray, *, loss: losses.LinearLoss, order: int) -> Played:
    learner = SelfTuning(X.shape[1], loss, order)
    actions, rounds = [], []
    for x, target in zip(X, y, strict=True):
        actions.append(learner.theta)
        rounds.append(learner.update(x, target))
    return Played(np.array(actions), *np.array(rounds).T)


def band(loss: losses.LinearLoss) -> float:
    """How far a residual may be from 0 at no loss."""
    return getattr(loss, "epsilon", 0.0)


def densities(loss: losses.LinearLoss, F: Any, p: Any, y: float, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of a clean record and of an outlier, where F is paid for the prediction p, at every scale s."""
    if loss.margin:
        return expit(y * p / s), expit(-y * p / s)
    size = np.sqrt(F) if isinstance(loss, losses.Squared) else np.abs(p - y)
    # The last scale stands for all that are larger.
    s = np.where(np.arange(len(s)) == len(s) - 1, np.maximum(s, size), s)
    width = s + band(loss)
    match loss:
        case losses.Squared():
            clean = np.exp(-F / s**2 / 2) / np.sqrt(2 * np.pi) / s
        case losses.Pinball():
            clean = np.exp(-size / s) / 2 / s
        case _:
            clean = np.exp(-F / s) / 2 / width
    return clean, OUTLIER / np.maximum(size, width)


def leader_of(weights: np.ndarray) -> int:
    """The first of those whose weight is the largest, but for rounding errors."""
    return int(np.argmax(weights >= (1 - 1e-9) * weights.max()))


def pull(m: float, a: float) -> float:
    """σ(−z) where z = m + a·σ(−z)."""
    slack = 1e-9 * (1 + abs(m))
    return expit(-brentq(lambda z: z - m - a * expit(-z), m - slack, m + a + slack, xtol=1e-300, rtol=1e-15))


def kink(loss: losses.LinearLoss, r: float) -> tuple[float, float]:
    """Of a loss that grows linearly: how steep it is at r = p − y, and how far it is to where it is 0."""
    steep = 1.0
    if isinstance(loss, losses.Pinball):
        steep = 1 - loss.quantile if r > 0 else loss.quantile
    return steep, max(0.0, abs(r) - band(loss))


def implicit(loss: losses.LinearLoss, p: float, y: float, e: float, xx: float, spread: float) -> float:
    """How far along x the minimiser of f + ‖· − θ‖²/(2e) is."""
    if loss.margin:
        return e * pull(y * p, e * xx) * y
    if isinstance(loss, losses.Squared):
        return -2 * e * (p - y) / (1 + 2 * e * xx)
    steep, distance = kink(loss, p - y)
    return -np.sign(p - y) * min(e * spread * steep, distance / xx)


class Noise:
    """Cells (s, ε) with Bayes weights, a row for each scale."""

    def __init__(self, labels: bool) -> None:
        self.labels = labels
        self.octaves = np.array(LABEL_OCTAVES if labels else OCTAVES)
        self.drift = LABEL_DRIFT if labels else DRIFT
        self.prior = np.outer(np.ones(len(self.octaves)) / len(self.octaves), BELIEFS)
        self.cells = self.prior.copy()
        self.scales = 2.0**self.octaves if labels else None
        self.spread = 0.0

    def masses(self) -> tuple[np.ndarray, np.ndarray]:
        """What every scale says of clean records, and of outliers."""
        return self.cells @ (1 - RATES), self.cells @ RATES

    def learn(self, clean: np.ndarray, outlier: np.ndarray) -> None:
        """Bayes' rule for a record with these densities at every scale."""
        self.cells = self.cells * (np.outer(clean, 1 - RATES) + np.outer(outlier, RATES))
        self.cells = (1 - self.drift) * self.cells / self.cells.sum() + self.drift * self.prior
        mass = self.cells.sum(axis=1)
        self.spread = np.exp(mass @ np.log(self.scales))
        if not self.labels:
            self.float_window(int(np.argmax(mass)))

    def float_window(self, mode: int) -> None:
        """Keep the likeliest scale in the middle third."""
        count = len(self.cells)
        third = count // 3
        move = mode - min(max(mode, third), count - 1 - third)
        outside = self.drift * self.prior
        rows = [self.cells[i] if 0 <= i < count else outside[0] for i in np.arange(count) + move]
        self.cells = np.array(rows) / np.sum(rows)
        self.scales = self.scales * 2.0**move


class Measure:
    """The typical ‖x‖², and the typical share of it that each feature has."""

    def __init__(self, dim: int) -> None:
        self.norms: list[float] = []
        self.shares, self.counts = np.zeros(dim), np.zeros(dim)

    def see(self, x: np.ndarray) -> None:
        self.norms = [*self.norms, x @ x][-NORMS:]
        self.typical = np.quantile(self.norms, 0.5, method="inverted_cdf")
        self.long = max(self.typical, x @ x)
        for j in range(len(x)):
            if x[j] ** 2 / self.long > 0 or self.counts[j] >= READY:
                self.counts[j] = min(self.counts[j] + 1, MEMORY)
                self.shares[j] += (x[j] ** 2 / self.long - self.shares[j]) / self.counts[j]
        self.ready = self.counts >= READY
        self.scale = np.maximum(self.shares, RESOLUTION)


class News:
    """How new each feature is, and the median size of residuals with it; how new the stream is."""

    def __init__(self, dim: int) -> None:
        self.newness, self.sizes, self.stream = np.ones(dim), np.zeros(dim), 1.0

    def look(self, x: np.ndarray, metric: np.ndarray, typical: float) -> tuple[float, float, np.ndarray]:
        """The share of the record that is new, how wide residuals with that are, and the metric with longer steps."""
        parts, excess = self.parts(x, metric), np.maximum(self.newness - self.stream, 0.0)
        if parts @ excess == 0.0:
            return 0.0, 0.0, metric
        share = parts @ excess / parts.sum()
        longer = metric * (1 + LONGER * np.maximum(excess - share, 0.0))
        return share * min(1.0, typical / (x @ x)) ** 3, (parts * excess) @ self.sizes / (parts @ excess), longer

    @staticmethod
    def parts(x: np.ndarray, metric: np.ndarray) -> np.ndarray:
        return np.where(x == 0, 0.0, np.where(metric > 0, np.minimum(1.0, x**2 * metric), 1.0))

    def learn(self, x: np.ndarray, metric: np.ndarray, fits: float, size: float) -> None:
        known = HALF * (fits + UNFIT * (1 - fits))
        self.stream = self.old(self.stream * (1 - known * SLOWLY))
        for j, part in enumerate(self.parts(x, metric)):
            if part > 0 and x @ (x * (self.newness > 0)) > 0:
                step = 1 + SIZE_STEP * part
                moved = self.sizes[j] * (step if size > self.sizes[j] else 1 / step)
                self.sizes[j] = moved if self.sizes[j] > 0 else size
        if x @ (x * (self.newness > 0)) > 0:
            self.newness = np.array([self.old(new) for new in self.newness * (1 - known * self.parts(x, metric))])

    @staticmethod
    def old(newness: float) -> float:
        return newness if newness > KNOWN else 0.0


class Newton:
    """Recursive least squares with forgetting, or a Kalman step."""

    def __init__(self, dim: int) -> None:
        self.dim, self.theta, self.P, self.age, self.widest = dim, np.zeros(dim), np.zeros((dim, dim)), 0, 0.0

    def restart(self, measure: Measure, spread: float) -> None:
        self.age, self.widest = 0, spread
        self.P = np.diag(np.where(measure.ready, self.unknown(measure), 0.0))

    def unknown(self, measure: Measure) -> np.ndarray:
        """The variances of features of which nothing is known."""
        return START / (self.dim * measure.typical * measure.scale)

    def advance(
        self, loss: losses.LinearLoss, x: np.ndarray, y: float, gate: float, spread: float, measure: Measure
    ) -> None:
        self.age, self.widest = self.age + 1, max(self.widest, spread)
        unknown = self.unknown(measure)
        for j in range(self.dim):
            if measure.ready[j] and self.P[j, j] == 0:
                self.P[j, j] = unknown[j]
        Px, p = self.P @ x, x @ self.theta
        t = x @ Px
        if t == 0 or t >= 1e100:
            return
        if not t > 0:
            self.restart(measure, spread)
            return
        gain, move = self.gain_and_move(loss, p, y, t, gate, spread)
        self.theta = self.theta + move * Px
        self.P = self.P - (gain / (1 + gain * t) - FORGETTING * gate / t) * np.outer(Px, Px)
        self.P += FLOOR * np.diag(np.where(measure.ready, unknown, 0.0))

    def gain_and_move(
        self, loss: losses.LinearLoss, p: float, y: float, t: float, gate: float, spread: float
    ) -> tuple[float, float]:
        if isinstance(loss, losses.Squared):
            gain = gate * min((self.widest / spread) ** 2, SHARPEST)
            return gain, -gain * (p - y) / (1 + gain * t)
        if loss.margin:
            one = pull(y * p, gate * t)
            return gate * one * (1 - one), gate * one * y
        gain = gate * spread / (spread + band(loss))
        if isinstance(loss, losses.Pinball):
            gain = gate * loss.quantile * (1 - loss.quantile)
        steep, distance = kink(loss, p - y)
        return gain, -np.sign(p - y) * min(gate * spread * steep / (1 + gain * t), distance / t)


class SelfTuning:
    """The whole learner. Its members are followers, perhaps the second-order one, zero, and snapshots."""

    def __init__(self, dim: int, loss: losses.LinearLoss, order: int) -> None:
        self.dim, self.loss, self.paid = dim, loss, loss_pair(loss)[0]
        self.noise, self.measure, self.news = Noise(loss.margin), Measure(dim), News(dim)
        self.followers = [np.zeros(dim) for _ in range(2 * len(STEPS))]
        self.newton = Newton(dim) if order == 2 else None
        self.snapshots = [np.zeros(dim) for _ in range(SNAPSHOTS)]
        active = len(self.followers) + order
        self.weights = np.array([1 / active] * active + [0.0] * SNAPSHOTS)
        self.temperature, self.seen, self.due, self.slot = 1.0, 0, FIRST_SNAPSHOT, 0

    def members(self) -> np.ndarray:
        second = [self.newton.theta] if self.newton else []
        return np.array([*self.followers, *second, np.zeros(self.dim), *self.snapshots])

    @property
    def theta(self) -> np.ndarray:
        return self.temperature * self.weights @ self.members()

    def update(self, x: np.ndarray, y: float) -> tuple[float, float]:
        F, noise, mean = self.paid(self.theta, x, y), self.noise, self.weights @ self.members()
        if not x.any() or (noise.scales is None and F == 0):
            return F, 1.0
        if noise.scales is None:
            noise.spread = np.sqrt(F) if isinstance(self.loss, losses.Squared) else abs(x @ mean - y)
            noise.scales = noise.spread * 2.0**noise.octaves
        self.seen += 1
        self.measure.see(x)

        A, B = noise.masses()
        metric = np.where(self.measure.ready, 1 / (self.measure.long * self.measure.scale), 0.0)
        new, wide, longer = (0.0, 0.0, metric) if self.loss.margin else self.news.look(x, metric, self.measure.typical)
        q, u = densities(self.loss, F, x @ mean, y, noise.scales)
        gate = A @ q / (A @ q + B @ u)
        likelihood, gates = self.judge(x, y, gate, A, B, new, wide)
        if not self.loss.margin:
            # The weight of a round is the leader's, whose noise it is.
            gate = gates[leader_of(self.weights)]
            leader = self.members()[leader_of(self.weights)]
            F_leader = self.paid(leader, x, y)
            q, u = densities(self.loss, F_leader, x @ leader, y, noise.scales)
            heavy = noise.drift <= A + B
            fits = q @ (heavy * A) / (q @ (heavy * A) + u @ (heavy * B))
            size = np.sqrt(F_leader) if isinstance(self.loss, losses.Squared) else abs(x @ leader - y)
            self.news.learn(x, longer, fits, size)
            q = self.blended(q, F_leader, x @ leader, y, new, wide)
        if self.loss.margin or F_leader > 0:
            noise.learn(q, u)

        likelihood = np.minimum(likelihood, LUCK * likelihood[leader_of(self.weights)])
        weights = self.reweighed(likelihood ** min(1.0, self.measure.typical / (x @ x)))
        self.follow(x, y, gates, metric, longer)
        if self.newton:
            self.newton.advance(self.loss, x, y, gates[len(STEPS) * 2], noise.spread, self.measure)
        self.copy_leader(weights)
        self.weights = weights
        if self.seen >= self.due:
            self.keep(mean)
        if self.loss.margin:
            self.temperature = 1 / min(1.0, noise.spread)
        return F, gate

    def blended(self, q: np.ndarray, F: Any, p: Any, y: float, new: float, wide: float) -> np.ndarray:
        """Densities of a clean record of which a share is new."""
        if new == 0.0:
            return q
        size = np.sqrt(F) if isinstance(self.loss, losses.Squared) else np.abs(p - y)
        last = np.arange(len(self.noise.scales)) == len(self.noise.scales) - 1
        s = np.where(last, np.maximum(self.noise.scales, size), self.noise.scales)
        width = np.maximum(s, WIDER * wide if wide > 0 else size)
        wider = np.vectorize(lambda w, F, p: densities(self.loss, F, p, y, np.array([w, np.inf]))[0][0])
        return (1 - new) * q + new * wider(width, F, p)

    def judge(
        self, x: np.ndarray, y: float, gate: float, A: np.ndarray, B: np.ndarray, new: float, wide: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """How likely the record is by each member, and how much of it each believes."""
        members = self.members()
        paid = np.array([self.paid(self.temperature * theta, x, y) for theta in members])
        if self.loss.margin:
            rate = B.sum()
            return rate + (1 - 2 * rate) * np.exp(-paid), np.full(len(members), gate)
        heavy = self.noise.drift <= A + B
        q, u = densities(self.loss, paid[:, None], (members @ x)[:, None], y, self.noise.scales)
        q = self.blended(q, paid[:, None], (members @ x)[:, None], y, new, wide)
        gates = q @ (heavy * A) / (q @ (heavy * A) + u @ (heavy * B))
        if isinstance(self.loss, losses.Pinball):
            # Members of a quantile are compared by what they pay; how far a record is says whether it is clean.
            s, tau = self.noise.scales, self.loss.quantile
            q = np.exp(-paid[:, None] / (2 * tau * (1 - tau) * s)) / 2 / s
        return q @ (heavy * A) + u @ (heavy * B), gates

    def reweighed(self, likelihood: np.ndarray) -> np.ndarray:
        active = self.weights > 0
        posterior = self.weights * likelihood / np.max(likelihood[active])
        return np.where(active, (1 - SHARE) * posterior / posterior.sum() + SHARE / active.sum(), 0.0)

    def follow(self, x: np.ndarray, y: float, gates: np.ndarray, metric: np.ndarray, longer: np.ndarray) -> None:
        for i in range(2 * len(STEPS)):
            if i < len(STEPS):
                direction, length = x, self.measure.long
            else:
                direction = x * longer
                length = max(self.measure.ready.sum(), x @ (x * metric))
            if not direction.any():
                continue
            theta, e = self.followers[i], STEPS[i % len(STEPS)] * gates[i] / length
            move = implicit(self.loss, x @ theta, y, e, x @ direction, self.noise.spread)
            self.followers[i] = theta / (1 + self.loss.l2 * e) + move * direction

    def copy_leader(self, weights: np.ndarray) -> None:
        """Followers that nothing speaks for start again where the leader is."""
        low, leader = weights < 2 * SHARE / np.sum(weights > 0), self.members()[leader_of(weights)]
        self.followers = [leader if low[i] else theta for i, theta in enumerate(self.followers)]
        if self.newton and low[2 * len(STEPS)] and self.newton.age >= max(YOUNG, 4 * self.dim):
            self.newton.theta = leader
            self.newton.restart(self.measure, self.noise.spread)

    def keep(self, mean: np.ndarray) -> None:
        place = len(self.weights) - SNAPSHOTS + self.slot
        if self.weights[place] == 0:
            self.weights[place] = SHARE / (np.sum(self.weights > 0) + 1)
            self.weights = self.weights / self.weights.sum()
        if self.weights[place] <= 0.5:
            self.snapshots[self.slot] = mean
        self.slot, self.due = (self.slot + 1) % SNAPSHOTS, int(GROWTH * self.due) + 1
