"""The self-tuning learner in slow, plain NumPy, written from its statement in docs/selftuning.md."""

from __future__ import annotations

from math import floor, sqrt
from typing import Any, NamedTuple

import numpy as np

from redescend import losses
from tests.reference_likelihood import (
    FAST_TRACKER,
    FEW,
    LEAST,
    LOST,
    MEMBERS,
    MEMORY,
    MODE,
    ORIGIN,
    POSTERIOR,
    RING,
    SCALES,
    SLOW,
    SNAPSHOT,
    STEPS,
    STORED,
    TRACKER,
    cut,
    implicit_pull,
    power_of_two,
)
from tests.reference_start import Start, deviation, fits_level


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


class Reference(Start):
    """One output; NaN is a missing value if `missing` is true."""

    def __init__(self, dim: int, loss: losses.LinearLoss, order: int = 2, missing: bool = False) -> None:
        self.d, self.loss, self.order, self.labels, self.missing = dim, loss, order, loss.margin, missing
        self.name = type(loss).__name__
        self.unit, self.centre, self.mean, self.square, self.count, self.prior = np.zeros((6, dim))
        self.theta, self.P, self.stored = np.zeros((MEMBERS, dim)), np.zeros((dim, dim)), np.zeros((dim, dim))
        self.W, self.V, self.scale = np.eye(MEMBERS)[0], np.zeros(MEMBERS), np.ones(MEMBERS)
        self.ring: list[Any] = []
        self.last = self.seen = self.age = self.stored_age = self.lead = self.out = self.credit = 0
        self.bottom = self.top = 0.0
        self.stretch = self.length = 1.0
        self.constant, self.target, self.clean, self.before, self.judged = -1, 0.0, 1.0, None, 0.0

    @property
    def known(self) -> int:
        return np.count_nonzero(self.unit)

    @property
    def prior_variance(self) -> float:
        return min(self.known, 20.0) if self.labels else 4.0 if self.order == 2 else 256.0

    @property
    def new_variance(self) -> float:
        return min(self.known, 20.0) if self.labels else 256.0

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
        return self.scale * np.append(self.stretch, np.ones(MEMBERS - 1)) * self.length

    def clip(self, prediction: float) -> float:
        if self.labels:
            most = max(self.length, 1.0) * np.log(self.seen + 2)
            return float(np.clip(prediction, -most, most))
        slack = 0.5 * (self.top - self.bottom)
        low, high = self.bottom - slack, self.top + slack
        low, high = low if self.bottom < 0 else max(low, 0.0), high if self.top > 0 else min(high, 0.0)
        return float(np.clip(prediction, self.target * low, self.target * high))

    def play(self, x: Any, y: float, w: float = 1.0) -> tuple[float, float]:
        """The prediction before learning, and the record's weight."""
        x = np.array(x, float)
        learning = w > 0 and (abs(y) >= LEAST or self.target > 0)
        new = (self.unit == 0) & (np.abs(x) >= LEAST)
        if learning:
            self.unit[new] = power_of_two(x[new])
        raw = self.in_units(x)
        prediction = self.clip(float((self.V * self.lengths) @ (self.theta @ self.fill(raw))))
        if not learning:
            return prediction, 1.0
        if self.target == 0:
            self.target = 1.0 if self.labels else float(power_of_two(y))
        if not np.any(raw):
            return prediction, 1.0
        if not self.labels and self.last > 1 and np.array_equal(self.before, np.append(x, y), True):
            return prediction, self.clean
        self.before = np.append(x, y)
        self.learn_from(x, y, w)
        if self.loss.l2 > 0:
            self.shrink(self.last % self.d)
        return prediction, self.clean

    def in_units(self, x: Any) -> Any:
        with np.errstate(over="ignore"):
            raw = cut(np.divide(x, self.unit, out=np.zeros(self.d), where=self.unit > 0))
        return np.where(np.isnan(x) & (self.unit > 0), np.nan, raw)

    def fill(self, x: Any) -> Any:
        share = 1.0 if self.order == 2 else np.minimum(1.0, self.count / max(self.seen, 1))
        return np.where(np.isnan(x), self.mean * share, x)

    def learn_from(self, x: Any, y: float, w: float) -> None:
        self.last += 1
        stored = RING if self.order == 2 else FEW
        if self.last <= stored or self.order == 2:
            self.ring = [*self.ring, (x, y, w)][-stored:]
        if self.constant >= 0 and not fits_level(self.fill(self.in_units(x))[self.constant], self.level):
            self.constant = -1
        records = [(x, y, w)]
        if self.last <= (FEW if self.labels else stored) and self.last & (self.last - 1) == 0:
            self.begin()
            records = list(self.ring)
        while records:
            for record in records if self.last > 1 or self.labels else []:
                self.learn_record(*record)
            again = self.recover()
            records = self.ring[-again:] if again and self.order == 2 else []
        if self.order == 2 and not self.labels:
            self.withdraw(np.flatnonzero(self.unit)[self.seen % self.known])
        y = float(cut(y / self.target))
        if self.clean > 0.5:
            self.bottom, self.top = min(self.bottom, y), max(self.top, y)

    # --- a record ---

    def learn_record(self, x: Any, y: float, w: float) -> None:
        x, y = self.fill(self.in_units(x)), float(cut(y / self.target))
        self.add_features(x, self.centred(x))
        xc = self.centred(x)
        self.x, self.xc = x, xc
        c = xc @ self.P @ xc
        predictions = self.theta @ x
        self.seen += 1
        self.age += 1
        leverage = self.measure_leverage(x, xc)
        self.variance += (c / leverage - self.variance) * max(1 / self.age, 0.02)
        if self.labels:
            g, h, gate, likelihood = self.judge_label(y, w, predictions, c, leverage)
        else:
            g, h, gate, likelihood = self.judge_residual(y, predictions, c, leverage, w)
        self.likelihood, self.W = likelihood, self.W * likelihood
        Px = self.P @ xc
        counts = min(w, 1.0)
        self.move_posterior(x, xc, c, g, h, y - predictions[MODE], counts)
        self.move_followers(xc, y, predictions, counts * gate, Px, c)
        self.share_weights()

    def centred(self, x: Any) -> Any:
        if self.constant < 0:
            return x.copy()
        larger = x[self.constant] / self.level
        if self.order == 2:
            return deviation(x, larger * self.centre)
        dense = (x != 0) & (self.count > 0.5 * self.seen) & (np.arange(self.d) != self.constant) & (self.seen > 0)
        return deviation(x, np.where(dense, larger * self.mean * np.minimum(1.0, self.count / max(self.seen, 1)), 0.0))

    def measure_leverage(self, x: Any, xc: Any) -> float:
        some = (xc != 0) & (self.square > 0)
        length = np.sum(xc[some] ** 2 / self.square[some]) / max(some.sum(), 1)
        longer = length > self.typical
        self.streak = max(self.streak, 0) + 1 if longer else min(self.streak, 0) - 1
        up = 1 + max(2 / (self.seen + 1), 0.02) * 2.0 ** min(max(abs(self.streak) - 8, 0), 6)
        if length > 0:
            self.typical = min(max(self.typical * up if longer else self.typical / up, 1e-60), 1e60)
        cap = min(1.0, self.typical / length) if length > 0 else 1.0
        counted = (xc if self.order == 2 and self.labels else x) != 0
        self.count += counted
        self.credit += np.count_nonzero(counted)
        near = 1 / np.minimum(np.maximum(self.count, 1), MEMORY)
        self.square = np.where(
            xc**2 > 0, np.maximum(self.square + (xc**2 * cap - self.square) * near, 1e-50), self.square
        )
        if self.order == 1:
            self.mean += np.where(x != 0, (x - self.mean) * cap / np.minimum(self.count + FEW, MEMORY), 0.0)
        elif self.missing:
            self.mean += (x - self.mean) * cap / min(self.seen + FEW, MEMORY)
        return max(1.0, length / (4.0 * self.typical))

    # --- members ---

    def move_along(self, i: int, step: float, v: Any) -> None:
        """theta_i += step v, for v along centred features."""
        self.theta[i] += step * v
        if self.constant >= 0:
            self.theta[i, self.constant] -= step * (self.x - self.xc) @ v / self.x[self.constant]

    def subtract(self, h: float, v: Any) -> None:
        """P -= h v v', where at least 1e-9 of every variance is left."""
        least = 1e-9 * np.diag(self.P)
        self.P = self.P - h * (np.outer(v, v) if self.order == 2 else np.diag(v**2))
        np.fill_diagonal(self.P, np.maximum(np.diag(self.P), least))

    def move_posterior(self, x: Any, xc: Any, c: float, g: float, h: float, r: float, counts: float) -> None:
        if c > 0:
            Px = self.P @ xc
            self.move_along(POSTERIOR, g, Px)
            h = min(h, (1 - 1e-9) / c)
            self.subtract(h, Px)
            if self.name == "Squared":
                near, width = counts * max(1 / (self.age + 4), 1e-3), 0.5 * self.scale[MODE] ** 2
                gate = width / (width + r * r)
                self.information += near * (max(h / (1 - h * c), 0.0) - self.information)
                self.curvature += near * (gate * (2 * gate - 1) - self.curvature)
                e = counts * self.information / max(self.curvature, 0.15) * gate
                self.move_along(MODE, e * r / (1 + e * c), Px)

    def move_followers(self, xc: Any, y: float, predictions: Any, gate: Any, Px: Any, c: float) -> None:
        usual = self.square * self.count
        D = np.divide(xc * self.seen, usual, out=np.zeros(self.d), where=usual > 0)
        far = xc @ D
        steps = {i: (step / max(self.known, far), far, D) for i, step in STEPS.items()}
        if self.variance > 0:
            unit = self.known / self.variance
            steps |= {TRACKER: (0.01 * unit, c, Px), FAST_TRACKER: (0.1 * unit, c, Px)}
        for i, (step, far, v) in steps.items():
            if self.W[i] == 0:
                continue
            e, r = step * gate[i], y - predictions[i]
            if self.labels:
                move = 4 * e * implicit_pull(y * predictions[i], 4 * e * far) * y
            elif self.name in ("Absolute", "Pinball"):
                quantile = self.loss.setting if self.name == "Pinball" else 0.5
                full = 2 * e * self.scale[i] * (quantile if r > 0 else 1 - quantile)
                move = min(full, abs(r) / max(far, 1e-300)) * (1 if r > 0 else -1)
            else:
                move = e * r / (1 + e * far)
            self.move_along(i, move, v)

    def share_weights(self) -> None:
        active = self.W > 0
        self.V[active] = self.W[active] / self.W.sum()
        share = 1 / (1000 + self.seen)
        least = share / active.sum()
        own = np.full(MEMBERS, least)
        if not self.labels:
            own[[TRACKER, FAST_TRACKER, ORIGIN]] *= 0.1
        self.W = np.where(active, (1 - share) * self.V + own, 0.0)
        self.lead = 0
        for i in range(MEMBERS):
            if self.W[i] > self.W[self.lead] * (1 + 1e-9):
                self.lead = i
        may = self.may_copy()
        for i in range(SLOW, ORIGIN):
            if may and i != self.lead and 0 < self.W[i] < 2 * own[i]:
                self.copy(self.lead, i)
                self.credit = 0
        if self.seen >= self.due:
            self.due = floor(1.25 * self.due) + 1
            if self.lead != SNAPSHOT and self.W[SNAPSHOT] <= 0.5:
                self.copy(self.lead, SNAPSHOT)
                self.W[SNAPSHOT] = least
        lost = self.W[0] < 2 * least and self.scale[0] > 2 * self.scale[self.lead]
        near = self.W[[POSTERIOR, TRACKER, FAST_TRACKER, MODE]].sum()
        lost = (lost or near < max(2 * least, 0.01)) and self.scale[0] > 1e-9 * self.size
        self.out = self.out + 1 if lost else 0

    def may_copy(self) -> bool:
        return self.order == 2 or self.credit >= self.d

    def copy(self, source: int, target: int) -> None:
        self.theta[target], self.scale[target] = self.theta[source], self.scale[source]

    def recover(self) -> int:
        """Bring the stored posterior back, or restart the posterior; returns how many records are learned again."""
        if not self.may_copy():
            return 0
        if self.labels:
            self.resize()
        elif self.mirrored > self.widened + 0.08 and self.age >= FEW:
            self.P, self.widened, self.credit = 8 * self.P, self.mirrored, 0
        shifted = self.age >= FEW and not 1 / 64 <= self.typical <= 64
        if shifted:
            self.square = np.where(self.square > 0, np.maximum(self.square * self.typical, 1e-50), 0.0)
            self.prior, self.centre = self.prior / self.typical, self.centre * sqrt(self.typical)
            self.typical, self.streak = 1.0, 0
        elif self.age < self.stored_age and self.W[STORED] > max(0.05, 2 * self.W[0]):
            self.copy(STORED, POSTERIOR)
            self.P = self.stored.copy()
            self.W[0] += self.W[STORED] - 1e-6
            self.W[STORED] = 1e-6
            self.age, self.stored_age, self.lead = self.stored_age, 0, POSTERIOR
            self.doubt = min(1000 * self.doubt, 1e6)
            self.out = self.credit = 0
            return 0
        changed = self.odds > self.doubt * (1000 + self.seen)
        if self.age < FEW or not (shifted or changed or self.out >= LOST):
            return 0
        return self.restart(shifted, changed and not shifted)

    def restart(self, shifted: bool, changed: bool) -> int:
        start, variance, count = self.lead, 4.0 if self.labels else 8 * self.scale[self.lead] ** 2, LOST
        if changed:
            start, count = ORIGIN, min(self.since, RING)
            variance = self.prior_variance if self.labels else 2.67 * self.spread**2
        self.odds, self.since = 1.0, 0
        factor = variance / max(self.variance, 1e-100)
        lost = self.scale[0] > 2 * self.scale[self.lead] and self.out >= LOST + 4 * self.known
        learning = factor <= (2 if self.order == 2 else 64) and not lost
        if learning and not (shifted or self.labels):
            return 0
        if changed and not self.labels:
            self.cells = 0.5 * self.cells + 0.5 / SCALES
        self.store()
        self.copy(start, POSTERIOR)
        share = variance / (self.prior_variance * (1.0 if self.labels else self.size**2))
        if self.order == 2 and not self.labels:
            share = variance / (np.sum(self.prior * self.square * self.count) / self.seen)
        if shifted or self.order == 1 or self.labels:
            self.P = np.diag(share * self.prior)
        else:
            own = np.diag(self.P)
            ratio = np.divide(max(share, 1.0) * self.prior, own, out=np.ones(self.d), where=own > 0)
            by = np.sqrt(np.where(own > 0, np.minimum(max(factor, 1.0), ratio), 1.0))
            self.P = np.outer(by, by) * self.P
        self.out = self.age = self.credit = 0
        self.W[0] = (1.0 if self.labels else 0.5) * self.W[self.lead]
        return count

    def store(self) -> None:
        if self.age >= 0.5 * self.stored_age and self.lead != STORED:
            self.copy(POSTERIOR, STORED)
            self.stored, self.stored_age = self.P.copy(), self.age
            self.W[STORED] = max(self.W[STORED], 0.5 * self.W[0])

    def withdraw(self, j: int) -> None:
        """Double the prior variance of a feature, as if it had always been that."""
        if self.age < self.seen or self.seen < 4 * self.known or self.count[j] < 32:
            return
        if not 0 < self.prior[j] * self.square[j] * self.known < 4096 * self.size**2:
            return
        v, away = self.P[:, j].copy(), self.theta[POSTERIOR, j]
        if j == self.constant:
            away += (self.x - self.xc) @ self.theta[POSTERIOR] / self.x[j] - self.theta[ORIGIN, j]
        if v[j] < self.prior[j]:
            most, w = 5 * sqrt(self.prior[j] - v[j]), 0.5 / self.prior[j]
            h = w / (1 - w * v[j])
            self.move_along(POSTERIOR, h * min(max(away, -most), most), v)
            self.subtract(-h, v)
        self.prior[j] *= 2

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
        self.subtract(h, v)
        if self.labels:
            self.penalise_lengths(self.loss.l2 * self.d / self.unit[j] ** 2, j)
