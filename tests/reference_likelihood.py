"""What the self-tuning learner takes from a residual or a margin, in slow, plain NumPy: likelihoods and noise."""

from __future__ import annotations

from math import erfc, exp, pi, sqrt
from typing import Any

import numpy as np

from redescend import losses

POSTERIOR, SLOW, FAST, TRACKER, FAST_TRACKER, MODE, ORIGIN, SNAPSHOT, STORED, MEMBERS = range(10)
SCALES, FEW, RING, LOST = 16, 16, 32, 8
MIRRORS, MIRROR_PRIOR = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.8]), np.array([0.98] + 5 * [0.004])
FLIPS, FLIP_PRIOR = np.array([0.001, 0.01, 0.03, 0.1, 0.2, 0.3]), np.array([0.7, 0.2, 0.04, 0.02, 0.02, 0.02])
LENGTHS, LENGTH_PRIOR = np.array([0.5, 1.0, 2.0, 4.0]), np.array([0.15, 0.75, 0.08, 0.02])
LABEL_PRIOR = np.outer(LENGTH_PRIOR, FLIP_PRIOR)
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


def least_median(values: Any) -> float:
    """Of all medians, the one nearest to 0."""
    low, high = np.sort(values)[[(len(values) - 1) // 2, len(values) // 2]]
    return 0.0 if low < 0 < high else float(low if abs(low) <= abs(high) else high)


def first_median(values: Any) -> float:
    """The first of the values that is a median."""
    low, high = np.sort(values)[[(len(values) - 1) // 2, len(values) // 2]]
    return float(values[np.argmax((values == low) | (values == high))])


def upper_median(values: Any) -> float:
    return float(np.sort(values)[len(values) // 2])


def power_of_two(a: Any) -> Any:
    return np.clip(2.0 ** np.floor(np.log2(np.abs(a))), LEAST, MOST)


def typical_unit(values: Any) -> float:
    """The power of two near the upper median of values that are not 0."""
    return float(power_of_two(upper_median(np.abs(values[np.abs(values) >= LEAST]))))


def cut(v: Any) -> Any:
    return np.where(np.abs(v) > 1 / LARGE, np.clip(v, -LARGE, LARGE), 0.0)


def stretched(length: float, up: float) -> float:
    return min(max(length * (1 + min(max(up, -0.2), 0.2)), 1e-3), 1e3)


def normal(r: float, S: Any) -> Any:
    a = 0.5 * r * r / S
    return np.exp(-np.minimum(a, 80.0)) * np.minimum(80.0 / np.maximum(a, 80.0), 1.0) / np.sqrt(2 * pi * S)


def student3(r: Any, scale: Any) -> Any:
    """The density of Student's t with three degrees of freedom."""
    return 2 / (pi * sqrt(3) * scale * (1 + (r / scale) ** 2 / 3) ** 2)


def cauchy(r: Any, scale: Any) -> Any:
    return 1 / (pi * scale * (1 + (r / scale) ** 2))


def residual_density(r: Any, s: Any, u: float) -> Any:
    return pi * (student3(r, 2 / sqrt(3) * s) + cauchy(r, u))


class Likelihood:
    """Judges records, and learns the scale of the noise and the shares of outliers; `Reference` has the state."""

    name: str
    loss: losses.LinearLoss
    labels: bool

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

    def judge_residual(self, y: float, predictions: Any, c: float, leverage: float, w: float) -> Any:
        wide = leverage / w
        r, mirror = y - predictions[0] - self.middle, y + predictions[0] + self.middle
        S, q, m, u = self.densities(r, mirror, wide, c)
        Z = np.sum(q + m + u)
        first = np.sum(q * r / S - m * mirror / S) / Z
        second = np.sum(q * (r * r / S - 1) / S + m * (mirror**2 / S - 1) / S) / Z
        g, h = first, first * first - second
        if self.name != "Squared":
            g, h = self.slope_and_bend(y - predictions[0], c, np.sum(q) / np.sum(q / S), np.sum(q) / Z)
        self.weigh_change(y, r, y - predictions[ORIGIN], c, wide, np.sum(q) / Z)
        lead = self.noise_leader
        if lead != POSTERIOR:
            r, mirror = y - predictions[lead] - self.middle, y + predictions[lead] + self.middle
            S, q, m, u = self.densities(r, mirror, wide, 0.0)
            Z = np.sum(q + m + u)
        self.clean = np.sum(q) / Z
        if abs(r) > 3e-14 * abs(y):
            self.learn_noise(r, mirror, wide, min(w, 1.0), S, q, m, u)
            if self.name in ("Absolute", "Pinball"):
                believed = self.believe_quantile(r, wide)
                self.middle += max(2 / (self.seen + 4), 0.01) / max(wide, 1.0) * believed * r
        R, s, u = y - predictions, self.scale * sqrt(wide), self.common * sqrt(wide)
        exact, r2 = np.abs(R) <= 3e-14 * abs(y), (R[self.lead] - self.middle) ** 2
        if self.name == "Pinball":
            R = 2 * R * np.where(R > 0, self.loss.setting, 1 - self.loss.setting)
        e, b, M = self.rate, min(self.mirrored, self.usually_flipped), y + predictions
        likelihood = (1 - e - b) * residual_density(R, s, u) + 2 * e * self.far / (R**2 + self.far**2)
        if b > 1e-6 and self.name not in ("Absolute", "Pinball"):
            likelihood += b * residual_density(M, s, u)
        gate = 9 * s * s / (R * R + 9 * s * s)
        if self.name in ("Absolute", "Pinball"):
            believed = 0.98 * self.believe_quantile(y - predictions[self.lead] - self.middle, wide)
            likelihood = believed * np.exp(-np.minimum(np.abs(R) / u, 8.0)) + (1 - believed) * u * likelihood
            gate = 100 * s * s / (R * R + 100 * s * s)
        likelihood[MODE] *= 1 - 2 / (self.seen + 100)
        gain = max(4 / (self.age + 8), 0.15) / max(wide, 1.0)
        change = 1 + gain * (R**2 - s**2) / (R**2 + s**2)
        self.scale = np.where(exact, self.scale, np.clip(self.scale * change, 1e-40, 1e40))
        if not exact[self.lead]:
            gain = max(2 / (self.seen + 4), 3e-4) / max(wide, 1.0)
            self.common = np.clip(self.common * (1 + gain * (r2 - u**2) / (r2 + u**2)), 1e-40, 1e40)
        return g, h, gate, likelihood ** (1 / max(wide, 1.0))

    def believe_quantile(self, r: float, wide: float) -> float:
        """The weight of a record for a quantile, from its distance to the middle of the noise."""
        width = 100 * wide * self.common**2
        return self.clean * width / (r * r + width)

    def weigh_change(self, y: float, r: float, away: float, c: float, wide: float, clean: float) -> None:
        """Bayes' rule on the odds that the truth has changed."""
        noise, spread = wide * self.noise**2, wide * self.spread**2
        variance = 2.67 * noise + c
        changed = normal(away, 2.67 * spread + c)
        outlier = self.rate * max(changed, 0.125 / max(abs(r), sqrt(variance)))
        other = outlier + self.mirrored * (changed + normal(2 * y - r, variance))
        factor = (changed + other) / (normal(r, variance) + other)
        usual = y != self.judged and away**2 <= 9 * 2.67 * spread
        slow, self.judged = self.multiply_odds(factor, usual, wide), y
        gain, r2, v2 = clean * slow / max(wide, 1.0), away**2, spread
        self.spread = np.clip(self.spread * (1 + gain * (r2 - v2) / (r2 + v2)), 1e-40, 1e40)
        if abs(r) > 3e-14 * abs(y):
            self.noise *= 1 + gain * (r**2 - variance / 2.67) / (r**2 + variance / 2.67)
            self.noise = np.clip(self.noise, 1e-40, 1e40)

    def multiply_odds(self, factor: float, usual: bool, wide: float) -> float:
        """Multiply the odds of a change; returns the gain of slow scales."""
        by = factor / max(self.evidence, 1.0)
        odds = self.odds * (by if usual else min(by, 1.0)) ** (1 / max(wide, 1.0))
        self.odds, self.since = min(max(odds, 1.0), 1e100), self.since + 1 if odds > 1 else 0
        slow = max(2 / (self.seen + 4), 3e-4)
        self.evidence += slow / max(wide, 1.0) * (factor - self.evidence)
        self.doubt = max(0.999 * self.doubt, 1.0)
        return slow

    @property
    def noise_leader(self) -> int:
        return POSTERIOR if self.lead == MODE else self.lead

    def learn_noise(self, r: float, mirror: float, wide: float, counts: float, S: Any, q: Any, m: Any, u: Any) -> None:
        Z, t = np.sum(q + m + u), self.seen
        v = wide * self.low**2 * 4.0 ** np.arange(SCALES)
        score = np.sum(q * (r * r / S - 1) * v / S) / Z
        drift, plain = 0.1 / (1000 + t), np.sum(q) / (1 - self.rate - self.mirrored)
        side = int(mirror > r)
        likelihood = Z + (MIRRORS - self.mirrored) * (np.sum(self.cells * normal(mirror, S)) - plain)
        mirrors = self.mirrors[side] * (1 - counts + counts * np.maximum(likelihood, 0.0) / Z)
        outlier, away, gain = np.sum(u) / Z, np.sum(self.away) / Z, max(1 / (self.rate * t + 8), 0.01) / max(wide, 1.0)
        self.near = min(max(self.near + gain * (outlier - away - self.near * outlier), 0.02), 0.98)
        self.far *= 1 + 2 * gain * away * (r * r - self.far**2) / (r * r + self.far**2)
        self.cells = (1 - counts) * self.cells + counts * ((1 - drift) * (q + m + u) / Z + drift / SCALES)
        self.low *= 1 + counts * np.clip(0.5 * score * max(1 / (t + 10), 1e-3), -0.1, 0.1)
        rate = self.rate + counts * max(1 / (t + 20), 5e-4) * (np.sum(u) / Z - self.rate)
        self.usually_flipped += counts * max(1 / (t + 20), 5e-4) * (np.sum(m) / Z - self.usually_flipped)
        self.mirrors[side] = (1 - drift) * mirrors / mirrors.sum() + drift * MIRROR_PRIOR
        self.mirrored = min(self.mirrors @ MIRRORS)
        if self.mirrored > 0.43:
            self.mirrors = np.array([MIRROR_PRIOR] * 2)
            self.mirrored, self.widened = MIRRORS @ MIRROR_PRIOR, 0.0
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
        played = y * (self.V * self.lengths) @ predictions / long
        k = 1 / sqrt(1 + pi / 8 * c / leverage)
        q = sigmoid(y * predictions[0] / long * k)
        Z, slope = e + (1 - 2 * e) * q, (1 - 2 * e) * q * (1 - q) * k
        g, h = y * slope / Z / long, ((slope / Z) ** 2 - slope * (1 - 2 * q) * k / Z) / leverage
        counts = min(w, 1.0)
        self.scale[0] += 0.03 * counts * (k - self.scale[0])
        lengths = np.append(k * self.stretch, self.scale[1:])
        margin = y * predictions[self.lead] * lengths[self.lead] / long
        right = sigmoid(margin)
        self.clean = (1 - e) * right / (e + (1 - 2 * e) * right)
        own = sigmoid(y * predictions[0] * k * self.stretch / long)
        usual, wide = self.positive if y > 0 else 1 - self.positive, leverage / w
        self.multiply_odds(usual / (e + (1 - 2 * e) * own), True, wide)
        if self.name == "Hinge" and played < 1:
            self.stretch_prediction(counts * self.label_gain * self.clean * played)
        self.positive += counts * ((y > 0) - self.positive) / min(self.seen + 10, 1000)
        plain = margin / self.stretch if self.lead == POSTERIOR else margin
        q, shares = np.array([[sigmoid(plain * length)] for length in LENGTHS]), self.shares
        share = counts / (1000 + self.seen)
        labels = self.label_cells * (shares + (1 - 2 * shares) * q) ** counts
        labels /= labels.sum()
        shorter, longer = np.vstack([labels[:1], labels[:-1]]), np.vstack([labels[1:], labels[-1:]])
        labels = labels + share * ((shorter + longer) / 2 - labels)
        self.label_cells = (1 - 0.03 * share) * labels + 0.03 * share * LABEL_PRIOR
        self.rate = e = np.sum(self.label_cells * shares)
        self.stretch = 2 ** np.sum(self.label_cells.T * np.log2(LENGTHS))
        lengths[0] = k * self.stretch
        gate, likelihood, gain = np.zeros(MEMBERS), np.zeros(MEMBERS), counts * self.label_gain
        for i in np.flatnonzero(self.W > 0):
            m = y * predictions[i] * lengths[i] / long
            q = sigmoid(m)
            likelihood[i] = e + (1 - 2 * e) * q
            gate[i] = (1 - e) * q / likelihood[i]
            if i != POSTERIOR:
                self.scale[i] = stretched(self.scale[i], gain * m * (1 - 2 * e) * q * (1 - q) / likelihood[i])
        times = w / (1 + (w - 1) * max(h * c, 0.0))
        return g * times, h * times, gate, likelihood**counts

    @property
    def label_gain(self) -> float:
        return max(4 / (self.age + 8), 0.01)

    @property
    def shares(self) -> Any:
        """Shares of flipped labels, none larger than what is believed where one label is rare."""
        rarer = min(self.positive, 1 - self.positive)
        return np.minimum(FLIPS, max(0.25 * rarer, 1.2 * rarer**2))

    def stretch_prediction(self, up: float) -> None:
        self.length = stretched(self.length, up)

    def penalise_lengths(self, l2: float, j: int) -> None:
        """What l2 on a coefficient tells about lengths of labels."""
        price = l2 * (self.length * self.scale[0] * self.theta[0, j]) ** 2
        self.label_cells *= np.exp(-0.5 * np.minimum(price * LENGTHS**2, 100.0))[:, None]
        self.label_cells /= self.label_cells.sum()
        if self.name == "Hinge":
            self.stretch_prediction(-self.label_gain * price * self.stretch**2)

    def resize(self) -> None:
        """Double or halve the posterior, with its lattice, where its logits have another length."""
        if not 1 / 1.8 <= self.stretch <= 1.8:
            factor = 2.0 if self.stretch > 1 else 0.5
            none = np.full((1, len(FLIPS)), 1e-9)
            parts = [self.label_cells[1:], none] if factor > 1 else [none, self.label_cells[:-1]]
            self.label_cells = np.concatenate(parts)
            self.theta[0] *= factor
            self.P = factor**2 * self.P
            self.stretch /= factor
            self.credit = 0

    def clean_probability(self, x: Any, y: float) -> float:
        """The probability that a record is clean, at the leader's prediction; nothing is learned."""
        x = np.array(x, float)
        x = self.fill(cut(np.divide(x, self.unit, out=np.zeros(self.d), where=self.unit > 0)))
        xc, y, predictions = self.centred(x), float(cut(y / self.target)), self.theta @ x
        some, c = (xc != 0) & (self.square > 0), xc @ self.P @ xc
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
