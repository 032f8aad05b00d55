"""The self-tuning learner in slow, plain NumPy, written from its statement in docs/selftuning.md."""

from __future__ import annotations

from math import erfc, exp, floor, pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from redescend import losses

POSTERIOR, SLOW, FAST, MODE, ORIGIN, SNAPSHOT, STORED, MEMBERS = range(8)
SCALES, RING, LOST = 16, 16, 8
MIRRORS, MIRROR_PRIOR = np.array([0.0, 0.1, 0.2, 0.3, 0.4]), np.array([0.98, 0.005, 0.005, 0.005, 0.005])
FLIPS, FLIP_PRIOR = np.array([0.001, 0.01, 0.03, 0.1, 0.2, 0.3]), np.array([0.9, 0.06, 0.02, 0.01, 0.005, 0.005])
STEPS = {SLOW: 1.0, FAST: 8.0}
LARGE, LEAST, MOST = 1e25, 2.0**-400, 2.0**400
MEMORY = 1000.0


def sigmoid(z: float) -> float:
    return 1.0 / (1.0 + exp(-z)) if z >= 0 else exp(z) / (1.0 + exp(z))


def implicit_pull(m: float, a: float) -> float:
    """sigma(-z) where z = m + a sigma(-z), by bisection."""
    low, high = m, m + a
    for _ in range(200):
        z = 0.5 * (low + high)
        low, high = (low, z) if z > m + a * sigmoid(-z) else (z, high)
    return sigmoid(-z)


def lower_median(values: Any) -> float:
    return float(np.sort(values)[(len(values) - 1) // 2])


def power_of_two(a: Any) -> Any:
    return np.clip(2.0 ** np.floor(np.log2(np.abs(a))), LEAST, MOST)


def cut(v: Any) -> Any:
    return np.where(np.abs(v) * LARGE > 1, np.clip(v, -LARGE, LARGE), 0.0)


def normal(r: float, S: Any) -> Any:
    a = 0.5 * r * r / S
    return np.exp(-np.minimum(a, 80.0)) * np.minimum(80.0 / np.maximum(a, 80.0), 1.0) / np.sqrt(2 * pi * S)


class Game(NamedTuple):
    """What a trace has: actions before each round, losses and weights."""

    actions: Any
    losses: Any
    weights: Any


def play(X: Any, y: Any, *, loss: losses.LinearLoss, order: int) -> Game:
    """Play a stream."""
    learner, rounds = Reference(X.shape[1], loss, order), []
    for x, target in zip(X, y, strict=True):
        action = learner.action
        prediction, weight = learner.play(x, target)
        rounds.append((action, loss.of_prediction(prediction, target) + 0.5 * loss.l2 * action @ action, weight))
    return Game(*(np.array(column) for column in zip(*rounds, strict=True)))


class Reference:
    """One output; NaN is a missing value if `missing` is true."""

    def __init__(self, dim: int, loss: losses.LinearLoss, order: int = 2, missing: bool = False) -> None:
        self.d, self.loss, self.order, self.labels, self.missing = dim, loss, order, loss.margin, missing
        self.name = type(loss).__name__
        self.prior_variance = (60.0 if order == 2 else 20.0) if self.labels else 256.0
        self.unit, self.centre, self.mean, self.square, self.count, self.prior = np.zeros((6, dim))
        self.theta, self.P, self.stored = np.zeros((MEMBERS, dim)), np.zeros((dim, dim)), np.zeros((dim, dim))
        self.W, self.V, self.scale = np.eye(MEMBERS)[0], np.zeros(MEMBERS), np.ones(MEMBERS)
        self.ring: list[Any] = []
        self.last = self.seen = self.age = self.stored_age = self.lead = self.out = self.credit = 0
        self.bottom = self.top = 0.0
        self.stretch = 1.0
        self.constant, self.target, self.clean, self.before = -1, 0.0, 1.0, None

    @property
    def known(self) -> int:
        return np.count_nonzero(self.unit)

    @property
    def action(self) -> Any:
        """The action, in the units of the caller."""
        mean = (self.V * self.lengths) @ self.theta
        return np.divide(mean, self.unit, out=np.zeros(self.d), where=self.unit > 0)

    @property
    def lengths(self) -> Any:
        """What the predictions of members are multiplied by."""
        if not self.labels:
            return self.target
        return self.scale * np.append(self.stretch, np.ones(MEMBERS - 1)) * (0.6 if self.name == "Hinge" else 1.0)

    def clip(self, prediction: float) -> float:
        if self.labels:
            return prediction
        slack = 0.5 * (self.top - self.bottom)
        return float(np.clip(prediction, self.target * (self.bottom - slack), self.target * (self.top + slack)))

    def play(self, x: Any, y: float, w: float = 1.0) -> tuple[float, float]:
        """The prediction before learning, and the record's weight."""
        x = np.array(x, float)
        learning = w > 0 and (abs(y) >= LEAST or self.target > 0)
        new = (self.unit == 0) & (np.abs(x) >= LEAST)
        if learning:
            self.unit[new] = power_of_two(x[new])
        raw = cut(np.divide(x, self.unit, out=np.zeros(self.d), where=self.unit > 0))
        raw = np.where(np.isnan(x) & (self.unit > 0), np.nan, raw)
        prediction = self.clip(float((self.V * self.lengths) @ (self.theta @ self.fill(raw))))
        if not learning:
            return prediction, 1.0
        if self.target == 0:
            self.target = 1.0 if self.labels else float(power_of_two(y))
        y = float(cut(y / self.target))
        if not np.any(raw):
            return prediction, 1.0
        if not self.labels and self.last > 1 and np.array_equal(self.before, np.append(raw, y), True):
            return prediction, self.clean
        self.before = np.append(raw, y)
        self.learn_from(raw, y, w, bool(new.any()))
        if self.loss.l2 > 0:
            self.shrink(self.last % self.d)
        return prediction, self.clean

    def fill(self, x: Any) -> Any:
        return np.where(np.isnan(x), self.mean * np.minimum(1.0, self.count / max(self.seen, 1)), x)

    def learn_from(self, raw: Any, y: float, w: float, new: bool) -> None:
        self.last += 1
        if self.last <= RING or self.order == 2:
            self.ring = [*self.ring, (raw, y, w)][-RING:]
        if self.constant >= 0 and self.fill(raw)[self.constant] != self.level:
            self.constant = -1
        records = [(raw, y, w)]
        if self.last <= RING and self.last & (self.last - 1) == 0:
            self.begin()
            records = list(self.ring)
        elif new:
            self.add_features(raw)
        while records:
            for record in records:
                self.learn_record(*record)
            records = self.ring[-LOST:] if self.recover() and self.order == 2 else []
        if self.clean > 0.5:
            self.bottom, self.top = min(self.bottom, y), max(self.top, y)

    # --- the start ---

    def begin(self) -> None:
        X, y = np.array([record[0] for record in self.ring]), np.array([record[1] for record in self.ring])
        n = len(y)
        same = [j for j in range(self.d) if n > 1 and X[0, j] != 0 and np.all(X[:, j] == X[0, j])]
        self.constant = same[-1] if same else -1
        self.level = X[0, self.constant] if same else 0.0
        origin = lower_median(y) if same and not self.labels else 0.0
        away = np.abs(y[y != origin] - origin)
        self.size = 1.0 if self.labels else lower_median(away) if len(away) else max(abs(origin), 1e-50)
        self.theta[:] = 0.0
        if same:
            self.theta[:, self.constant] = origin / self.level
        self.W = np.array([0.7, 0.1, 0.1, 0.1 if self.name == "Squared" else 0.0, 0.1, 0.0, 0.0])
        if self.labels:
            self.W = np.array([0.8, 2e-6 / 3, 0.0, 0.0, 0.2 / 3, 0.0, 0.0])
        self.V, self.scale[:] = self.W.copy(), self.size
        self.cells, self.flips = np.full(SCALES, 1 / SCALES), FLIP_PRIOR.copy()
        self.mirrors, self.far, self.near, self.widened = np.array([MIRROR_PRIOR] * 2), self.size, 0.5, 0.0
        self.seen = self.age = self.stored_age = self.lead = self.out = self.credit = 0
        self.bottom, self.top = origin - self.size, origin + self.size
        self.common = self.usual = self.size
        self.information, self.curvature, self.stretch = 0.0, 0.0, 1.0
        self.streak, self.flipped, self.usually_flipped, self.positive = 0, 0.0, 0.0, 0.5
        self.typical, self.due, self.low, self.clean = 1.0, 62, self.size * 2.0 ** (-SCALES // 2), 1.0
        self.rate, self.mirrored = FLIPS @ FLIP_PRIOR if self.labels else 0.15, MIRRORS @ MIRROR_PRIOR
        for j in range(self.d):
            present = X[~np.isnan(X[:, j]), j]
            v = present[present != 0]
            middle = lower_median(v) if len(v) else 0.0
            dense = same and j != self.constant and 2 * len(v) > len(present)
            self.centre[j], self.mean[j], self.count[j] = middle if dense else 0.0, middle, len(v)
            u = (v - self.centre[j])[v != self.centre[j]] ** 2
            self.square[j] = max(2 * lower_median(u), 1e-50) if len(u) else self.centre[j] ** 2
            self.prior[j] = 0.0
            if self.square[j] > 0:
                often = len(v) / n
                self.prior[j] = self.prior_variance * self.size**2 / (self.known * self.square[j] * often)
        self.P = np.diag(self.prior)

    def add_features(self, x: Any) -> None:
        for j in np.flatnonzero((self.square == 0) & (x != 0) & ~np.isnan(x)):
            often = max(1 / (self.seen + 1), 1 / RING)
            self.square[j], self.mean[j] = max(x[j] ** 2, 1e-50), x[j]
            self.prior[j] = self.prior_variance * self.size**2 / (self.known * x[j] ** 2 * often)
            self.P[j, j] = self.stored[j, j] = self.prior[j]

    # --- a record ---

    def learn_record(self, raw: Any, y: float, w: float) -> None:
        x = self.fill(raw)
        xc = self.centred(x)
        self.x, self.xc = x, xc
        c = xc @ self.P @ xc
        predictions = self.theta @ x
        self.seen += 1
        self.age += 1
        leverage = self.measure_leverage(x, xc)
        if self.labels:
            g, h, gate, likelihood = self.judge_label(y, w, predictions, c, leverage)
        else:
            g, h, gate, likelihood = self.judge_residual(y, predictions, c, leverage, leverage / w)
        self.likelihood, self.W = likelihood, self.W * likelihood
        self.move_posterior(x, xc, c, g, h, y - predictions[MODE])
        self.move_followers(x, xc, y, predictions, gate)
        self.share_weights()

    def centred(self, x: Any) -> Any:
        if self.constant < 0:
            return x.copy()
        if self.order == 2:
            return x - self.centre
        dense = (x != 0) & (self.count > 0.5 * self.seen) & (np.arange(self.d) != self.constant) & (self.seen > 0)
        return x - np.where(dense, self.mean * np.minimum(1.0, self.count / max(self.seen, 1)), 0.0)

    def measure_leverage(self, x: Any, xc: Any) -> float:
        some = xc != 0
        length = np.sum(xc[some] ** 2 / self.square[some]) / max(some.sum(), 1)
        longer = length > self.typical
        self.streak = max(self.streak, 0) + 1 if longer else min(self.streak, 0) - 1
        up = 1 + max(2 / (self.seen + 1), 0.02) * 2.0 ** min(max(abs(self.streak) - 8, 0), 6)
        if length > 0:
            self.typical = min(max(self.typical * up if longer else self.typical / up, 1e-60), 1e60)
        cap = min(1.0, self.typical / length) if length > 0 else 1.0
        self.count += x != 0
        self.credit += np.count_nonzero(x)
        near = 1 / np.minimum(np.maximum(self.count, 1), MEMORY)
        self.square = np.where(
            xc**2 > 0, np.maximum(self.square + (xc**2 * cap - self.square) * near, 1e-50), self.square
        )
        if self.order == 1:
            self.mean += np.where(x != 0, (x - self.mean) * cap / np.minimum(self.count + RING, MEMORY), 0.0)
        elif self.missing:
            self.mean += (x - self.mean) * cap / min(self.seen + RING, MEMORY)
        return max(1.0, length / (4.0 * self.typical))

    # --- judging ---

    def densities(self, r: float, mirror: float, wide: float, c: float) -> Any:
        """S, and the densities of clean, mirrored and outlying records of every scale, times their chances."""
        S = wide * self.low**2 * 4.0 ** np.arange(SCALES) + c
        S[-1] = max(S[-1], r * r)
        size = max(abs(r), 1e-300)
        far = (1 - self.near) * np.minimum(0.5 / max(size, 2 * self.far), 0.125 / np.sqrt(S))
        outlier = self.near * 0.125 / np.maximum(size, np.sqrt(S)) + far
        self.away = self.rate * far * self.cells
        plain = 1 - self.rate - self.mirrored
        return S, *(
            share * density * self.cells
            for share, density in ((plain, normal(r, S)), (self.mirrored, normal(mirror, S)), (self.rate, outlier))
        )

    def judge_residual(self, y: float, predictions: Any, c: float, leverage: float, wide: float) -> Any:
        r, mirror = y - predictions[0], y + predictions[0]
        S, q, m, u = self.densities(r, mirror, wide, c)
        Z = np.sum(q + m + u)
        first = np.sum(q * r / S - m * mirror / S) / Z
        second = np.sum(q * (r * r / S - 1) / S + m * (mirror**2 / S - 1) / S) / Z
        g, h = first, first * first - second
        if self.name != "Squared":
            g, h = self.slope_and_bend(r, c, np.sum(q) / np.sum(q / S), np.sum(q) / Z)
        lead = self.noise_leader
        if lead != POSTERIOR:
            r, mirror = y - predictions[lead], y + predictions[lead]
            S, q, m, u = self.densities(r, mirror, wide, 0.0)
            Z = np.sum(q + m + u)
        self.clean = np.sum(q) / Z
        if abs(r) > 3e-14 * abs(y):
            self.learn_noise(r, mirror, wide, S, q, m, u)
        R, s, u = y - predictions, self.scale * sqrt(wide), self.common * sqrt(wide)
        exact = np.abs(R) <= 3e-14 * abs(y)
        if self.name == "Pinball":
            R = 2 * R * np.where(R > 0, self.loss.setting, 1 - self.loss.setting)
        e, b, M = self.rate, min(self.mirrored, self.usually_flipped), y + predictions
        likelihood = (1 - e - b) * (s / (R**2 + s**2) + u / (R**2 + u**2)) + 2 * e * self.far / (R**2 + self.far**2)
        if b > 1e-6:
            likelihood += b * (s / (M**2 + s**2) + u / (M**2 + u**2))
        likelihood[MODE] *= 1 - 2 / (self.seen + 100)
        gain = max(4 / (self.age + 8), 0.15) / leverage
        change = 1 + gain * (R**2 - s**2) / (R**2 + s**2)
        self.scale = np.where(exact, self.scale, np.clip(self.scale * change, 1e-40, 1e40))
        if not exact[self.lead]:
            gain, r2 = max(2 / (self.seen + 4), 3e-4) / leverage, R[self.lead] ** 2
            self.common = np.clip(self.common * (1 + gain * (r2 - u**2) / (r2 + u**2)), 1e-40, 1e40)
        return g, h, 9 * s * s / (R * R + 9 * s * s), likelihood ** (1 / leverage)

    @property
    def noise_leader(self) -> int:
        return POSTERIOR if self.lead == MODE else self.lead

    def learn_noise(self, r: float, mirror: float, wide: float, S: Any, q: Any, m: Any, u: Any) -> None:
        Z, t = np.sum(q + m + u), self.seen
        v = wide * self.low**2 * 4.0 ** np.arange(SCALES)
        score = np.sum(q * (r * r / S - 1) * v / S) / Z
        drift, plain = 0.1 / (1000 + t), np.sum(q) / (1 - self.rate - self.mirrored)
        side = int(mirror > r)
        mirrors = self.mirrors[side] * np.maximum(
            Z + (MIRRORS - self.mirrored) * (np.sum(self.cells * normal(mirror, S)) - plain), 0.0
        )
        outlier, away, gain = np.sum(u) / Z, np.sum(self.away) / Z, max(1 / (self.rate * t + 8), 0.01) / max(wide, 1.0)
        self.near = min(max(self.near + gain * (outlier - away - self.near * outlier), 0.02), 0.98)
        self.far *= 1 + 2 * gain * away * (r * r - self.far**2) / (r * r + self.far**2)
        self.cells = (1 - drift) * (q + m + u) / Z + drift / SCALES
        self.low *= 1 + np.clip(0.5 * score * max(1 / (t + 10), 1e-3), -0.1, 0.1)
        rate = self.rate + max(1 / (t + 20), 5e-4) * (np.sum(u) / Z - self.rate)
        self.flipped += 0.03 / max(wide, 1.0) * (np.sum(m) / Z - self.flipped)
        self.usually_flipped += max(1 / (t + 20), 5e-4) * (np.sum(m) / Z - self.usually_flipped)
        self.mirrors[side] = (1 - drift) * mirrors / mirrors.sum() + drift * MIRROR_PRIOR
        self.mirrored = min(self.mirrors @ MIRRORS)
        self.rate = min(max(rate, 0.02), 0.45 - self.mirrored)
        if t < 64 or t % 8 == 0:
            third, mode = SCALES // 3, int(np.argmax(self.cells))
            move = min(mode - third, 0) + max(mode - (SCALES - 1 - third), 0)
            if move:
                old = self.cells
                self.cells = np.array([old[k + move] if 0 <= k + move < SCALES else 1e-9 for k in range(SCALES)])
                self.low *= 2.0**move

    def slope_and_bend(self, r: float, c: float, S: float, clean: float) -> tuple[float, float]:
        """Slope and bend of the loss, smoothed by N(0, c + own/16), over the clean scale, times P(clean)."""
        own = max(S - c, 0.01 * S)
        root, width = sqrt(own), sqrt(c + 0.0625 * own)

        def bell(z: float) -> float:
            return exp(-0.5 * min(z * z, 1400.0)) / sqrt(2 * pi) / width

        def above(z: float) -> float:
            return 0.5 * erfc(z / sqrt(2))

        z = r / width
        if self.name == "EpsilonInsensitive":
            e = self.loss.setting / self.target / width
            slope, bend = above(e - z) - above(e + z), bell(z - e) + bell(z + e)
        else:
            quantile = self.loss.setting if self.name == "Pinball" else 0.5
            slope, bend = 2 * (quantile - above(z)) if r != 0 else 0.0, 2 * bell(z)
        return clean * slope / root / (1 + bend / root * c), clean * bend / root / (1 + bend / root * c)

    def judge_label(self, y: float, w: float, predictions: Any, c: float, leverage: float) -> Any:
        long, e = sqrt(leverage), self.rate
        k = 1 / sqrt(1 + pi / 8 * c / leverage)
        q = sigmoid(y * predictions[0] / long * k)
        Z, slope = e + (1 - 2 * e) * q, (1 - 2 * e) * q * (1 - q) * k
        g, h = y * slope / Z / long, ((slope / Z) ** 2 - slope * (1 - 2 * q) * k / Z) / leverage
        self.scale[0] += 0.03 * (k - self.scale[0])
        lengths = np.append(k * self.stretch, self.scale[1:])
        margin = y * predictions[self.lead] * lengths[self.lead] / long
        right = sigmoid(margin)
        self.clean = (1 - e) * right / (e + (1 - 2 * e) * right)
        longer = np.array([sigmoid(margin * ((1 - 2 * e) / (1 - 2 * share)) ** 2) for share in FLIPS])
        drift, flips = 0.1 / (1000 + self.seen), self.flips * (FLIPS + (1 - 2 * FLIPS) * longer)
        self.flips = (1 - drift) * flips / flips.sum() + drift * FLIP_PRIOR
        self.positive += ((y > 0) - self.positive) / min(self.seen + 10, 1000)
        rarer = min(self.positive, 1 - self.positive)
        self.rate = e = min(FLIPS @ self.flips, max(0.05, 1.2 * rarer**2))
        gate, likelihood, gain = np.zeros(MEMBERS), np.zeros(MEMBERS), max(4 / (self.age + 8), 0.01)
        for i in np.flatnonzero(self.W > 0):
            m = y * predictions[i] * lengths[i] / long
            q = sigmoid(m)
            likelihood[i] = e + (1 - 2 * e) * q
            gate[i] = (1 - e) * q / likelihood[i]
            up = min(max(gain * m * (1 - 2 * e) * q * (1 - q) / likelihood[i], -0.2), 0.2)
            if i == POSTERIOR:
                self.stretch = min(max(self.stretch * (1 + 0.3 * up), 0.1), 10.0)
            else:
                self.scale[i] = min(max(self.scale[i] * (1 + up), 1e-3), 1e3)
        return g * w, h * w, gate, likelihood

    def clean_probability(self, x: Any, y: float) -> float:
        """The probability that a record is clean, at the leader's prediction; nothing is learned."""
        x = np.array(x, float)
        x = self.fill(cut(np.divide(x, self.unit, out=np.zeros(self.d), where=self.unit > 0)))
        xc, y, predictions = self.centred(x), float(cut(y / self.target)), self.theta @ x
        some, c = xc != 0, xc @ self.P @ xc
        length = np.sum(xc[some] ** 2 / self.square[some]) / max(some.sum(), 1)
        leverage = max(1.0, length / (4.0 * self.typical))
        if self.labels:
            k = self.scale[self.lead] if self.lead != POSTERIOR else self.stretch / sqrt(1 + pi / 8 * c / leverage)
            right, e = sigmoid(y * predictions[self.lead] * k / sqrt(leverage)), self.rate
            return (1 - e) * right / (e + (1 - 2 * e) * right)
        lead = self.noise_leader
        r, mirror = y - predictions[lead], y + predictions[lead]
        _, q, m, u = self.densities(r, mirror, leverage, c if lead == POSTERIOR else 0.0)
        return float(np.sum(q) / np.sum(q + m + u))

    # --- members ---

    def move_along(self, i: int, step: float, v: Any) -> None:
        """theta_i += step v, for v along centred features."""
        self.theta[i] += step * v
        if self.constant >= 0:
            self.theta[i, self.constant] -= step * (self.x - self.xc) @ v / self.x[self.constant]

    def move_posterior(self, x: Any, xc: Any, c: float, g: float, h: float, r: float) -> None:
        if c > 0:
            Px = self.P @ xc
            self.move_along(POSTERIOR, g, Px)
            h = min(h, (1 - 1e-9) / c)
            self.P = self.P - h * (np.outer(Px, Px) if self.order == 2 else np.diag(Px**2))
            if self.name == "Squared":
                near, width = max(1 / (self.age + 4), 1e-3), 0.5 * self.scale[MODE] ** 2
                gate = width / (width + r * r)
                self.information += near * (max(h / (1 - h * c), 0.0) - self.information)
                self.curvature += near * (gate * (2 * gate - 1) - self.curvature)
                e = self.information / max(self.curvature, 0.15) * gate
                self.move_along(MODE, e * r / (1 + e * c), Px)

    def move_followers(self, x: Any, xc: Any, y: float, predictions: Any, gate: Any) -> None:
        usual = self.square * self.count
        D = np.divide(xc * self.seen, usual, out=np.zeros(self.d), where=usual > 0)
        far = xc @ D
        for i, step in STEPS.items():
            if self.W[i] == 0:
                continue
            e, r = step * gate[i] / max(self.known, far), y - predictions[i]
            if self.labels:
                move = 4 * e * implicit_pull(y * predictions[i], 4 * e * far) * y
            elif self.name in ("Absolute", "Pinball"):
                quantile = self.loss.setting if self.name == "Pinball" else 0.5
                full = 2 * e * self.scale[i] * (quantile if r > 0 else 1 - quantile)
                move = min(full, abs(r) / max(far, 1e-300)) * (1 if r > 0 else -1)
            else:
                move = e * r / (1 + e * far)
            self.move_along(i, move, D)

    def share_weights(self) -> None:
        active = self.W > 0
        self.V[active] = self.W[active] / self.W.sum()
        share = 1 / (1000 + self.seen)
        least = share / active.sum()
        self.W = np.where(active, (1 - share) * self.V + least, 0.0)
        if not self.labels:
            self.W[ORIGIN] -= 0.9 * least
        self.lead = 0
        for i in range(MEMBERS):
            if self.W[i] > self.W[self.lead] * (1 + 1e-9):
                self.lead = i
        may = self.may_copy()
        for i in (SLOW, FAST, MODE):
            if may and i != self.lead and 0 < self.W[i] < 2 * least:
                self.copy(self.lead, i)
                self.credit = 0
        if self.seen >= self.due:
            self.due = floor(1.25 * self.due) + 1
            if self.lead != SNAPSHOT and self.W[SNAPSHOT] <= 0.5:
                self.copy(self.lead, SNAPSHOT)
                self.W[SNAPSHOT] = least
        wide = self.labels or self.scale[0] > 2 * self.usual
        self.usual *= (self.scale[0] / self.usual) ** max(1 / self.age, 0.01)
        self.out = self.out + 1 if self.W[0] < max(2 * least, 0.01 if wide else 0.0) else 0

    def may_copy(self) -> bool:
        return self.order == 2 or self.credit >= self.d

    def copy(self, source: int, target: int) -> None:
        self.theta[target], self.scale[target] = self.theta[source], self.scale[source]

    def recover(self) -> bool:
        """Bring the stored posterior back, or restart the posterior; returns whether it restarted."""
        if not self.may_copy():
            return False
        if self.flipped > 0.6:
            self.store()
            self.theta[:ORIGIN] *= -1
            self.mirrors, self.flipped, self.mirrored = np.array([MIRROR_PRIOR] * 2), 0.0, MIRRORS @ MIRROR_PRIOR
            self.credit = 0
            return False
        if not self.labels and self.mirrored > self.widened + 0.08 and self.age >= RING:
            self.P, self.widened, self.credit = 8 * self.P, self.mirrored, 0
        shifted = self.age >= RING and not 1 / 64 <= self.typical <= 64
        if shifted:
            self.square = np.where(self.square > 0, np.maximum(self.square * self.typical, 1e-50), 0.0)
            self.prior, self.centre = self.prior / self.typical, self.centre * sqrt(self.typical)
            self.typical, self.streak = 1.0, 0
        elif self.stored_age > 0 and self.W[STORED] > max(0.05, 2 * self.W[0]):
            self.copy(STORED, POSTERIOR)
            self.P = self.stored.copy()
            self.W[0] += self.W[STORED] - 1e-6
            self.W[STORED] = 1e-6
            self.age, self.stored_age, self.lead, self.usual = self.stored_age, 0, POSTERIOR, self.common
            self.out = self.credit = 0
            return False
        if not shifted and (self.out < LOST or self.age < RING):
            return False
        self.store()
        self.copy(self.lead, POSTERIOR)
        variance = 4.0 if self.labels else 8 * (self.scale[self.lead] / self.size) ** 2
        self.P = np.diag(variance / self.prior_variance * self.prior)
        self.usual = self.scale[self.lead]
        self.out = self.age = self.credit = 0
        self.W[self.lead] *= 0.5
        self.W[0] = self.W[self.lead]
        return True

    def store(self) -> None:
        if self.age >= 0.5 * self.stored_age and self.lead != STORED:
            self.copy(POSTERIOR, STORED)
            self.stored, self.stored_age = self.P.copy(), self.age
            if self.W[STORED] == 0:
                self.W[STORED] = min(0.5 * self.W[0], 0.01)
                self.W[0] -= self.W[STORED]

    def shrink(self, j: int) -> None:
        if j == self.constant or self.unit[j] == 0:
            return
        s = 1.6 * self.scale[self.lead]
        w = self.loss.l2 * self.d / self.unit[j] ** 2
        w *= 1.0 if self.labels else 0.5 / s**2 if self.name == "Squared" else self.target / s
        w = min(w, 1e100)
        v = self.P[:, j].copy()
        h = w / (1 + w * v[j])
        self.move_along(POSTERIOR, -h * self.theta[0, j], v)
        self.theta[SLOW : MODE + 1, j] /= 1 + w * v[j]
        self.P = self.P - h * (np.outer(v, v) if self.order == 2 else np.diag(v**2))
