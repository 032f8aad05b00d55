"""Beliefs as they are stated, in plain NumPy: slow, and without state that is kept from one call to the next."""

from __future__ import annotations

from itertools import groupby

import numpy as np
from scipy import stats

EDGES = np.concatenate([[0.0], 2.0 ** np.arange(-3.75, 5.0, 0.25), 2.0 ** np.arange(5, 26)])
CENTERS = np.concatenate([[-4.0], (np.log2(EDGES[1:-1]) + np.log2(EDGES[2:])) / 2])
OCTAVES = np.arange(-2, 2.1, 0.25)


def cells(cdf):
    return np.diff(np.append(cdf(EDGES[:-1]), 1.0))


def folded(distribution):
    """Cells of |z|, by the octave of its median."""
    median = distribution.ppf(0.75)
    return np.array([cells(lambda z, k=k: 2 * distribution.cdf(z * median / 2**k) - 1) for k in OCTAVES])


def hat(start, peak, end):
    triangle = stats.triang((peak - start) / (end - start), start, end - start)
    return cells(lambda z: np.append(0.0, triangle.cdf(np.log2(z[1:]))))


# The last is the normal one again, with outliers nearby.
NAMED = (stats.norm, stats.laplace, stats.t(4), stats.t(2), stats.t(1), stats.t(0.7), stats.norm)
FAMILIES = np.array([folded(family) for family in NAMED])
LOG_CLEAN = np.log(np.maximum(FAMILIES, 1e-300))
PEAKS = [3, 4, 5, 6, 7, 8, 9, 10, 13, 16, 19, 22]
ATOMS = np.array(
    [cells(lambda z: np.minimum(z / 12, 1.0))]
    + [hat(a, b, c) for a, b, c in zip([2.5, *PEAKS[:-1]], PEAKS, [*PEAKS[1:], 25], strict=True)]
    + [hat(1, 2, 3)]
)
PRIOR = np.array(6 * [[0.3] + [0.7 / 12] * 12 + [0]] + [[0.3] + [0.7 / 12] * 12 + [1]])
FAMILY_PRIOR = np.array([1, 1, 1, 1, 1, 1, 0.005])


def psi(u):
    return (u * u - 1) / (u * u + 1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rising_likelihood(ended, exposure):
    """The largest log-likelihood of hazards that never fall, by the minimax formula of isotonic regression."""
    deaths, time = (np.append(0.0, np.cumsum(part)) for part in (ended, exposure))
    with np.errstate(all="ignore"):  # rates of cells from a to b; those with b < a are not used
        rates = (deaths[1:] - deaths[:-1, None]) / (time[1:] - time[:-1, None])
    total = 0.0
    for i in range(len(ended)):
        hazard = rates[: i + 1, i:].min(axis=1).max()
        total += (ended[i] * np.log(hazard) if ended[i] > 0 else 0.0) - hazard * exposure[i]
    return total


def begin_tail(h):
    """The cell of the scale, or of the median if that is lower."""
    half = np.flatnonzero(2 * np.cumsum(h) > h.sum())
    return min([16, *half])


def measure_exposure(h, more=0.0):
    """How many residuals, and `more` beyond all, pass every cell, times its width in octaves."""
    beyond = np.cumsum(h[::-1])[::-1]
    return (beyond - h / 2 + more) * np.where(np.arange(56) < 36, 0.25, 1.0)


def find_drops(h):
    """For every cell, the gain in log-likelihood if the hazard of log-sizes may fall once, there or before."""
    first, exposure, gains = begin_tail(h), measure_exposure(h), np.zeros(56)
    end = np.flatnonzero(h)[-1] + 1 if h.any() else 0
    for t in range(first + 1, end):
        parts = [rising_likelihood(h[some], exposure[some]) for some in (slice(first, t), slice(t, end))]
        gains[t] = sum(parts) - rising_likelihood(h[first:end], exposure[first:end])
    return np.maximum.accumulate(gains)


def find_gaps(h):
    """Beyond the last residual, the loss in log-likelihood if one more passes the empty cells before this one."""
    first, exposure, losses = begin_tail(h), measure_exposure(h, 1.0), np.zeros(56)
    gap = max([first + 1, *(np.flatnonzero(np.cumsum(h[::-1])[::-1] >= 0.5) + 1)])
    h = np.where(np.arange(56) < gap, h, 0.0)
    for c in range(gap + 1, 56):
        known, passed = slice(first, gap), slice(first, c)
        losses[c] = rising_likelihood(h[known], exposure[known]) - rising_likelihood(h[passed], exposure[passed])
    return losses


class Densities:
    """Both groups of residuals, by sign; EM continues from the last fit."""

    def __init__(self):
        self.scale = np.full((2, 7), 8)
        self.W = np.array(2 * [[row / (10 + row.sum()) for row in PRIOR]])
        self.fit(np.zeros((2, 56)), 1)

    def fit(self, counts, iterations):
        self.clean, self.bad = np.zeros((2, 56)), np.zeros((2, 56))
        for sign in range(2):
            h = counts[sign] + 0.1 * counts[1 - sign]
            scores = []
            n = max(h.sum(), 1)
            tempered = min(1, min(5 * np.sqrt(n), 200) / n)
            for i in range(7):
                W = self.W[sign, i]
                for _ in range(iterations):
                    good, bad = (1 - W.sum()) * self.shape(sign, i), W @ ATOMS
                    credit = h * good / (good + bad)
                    j = self.scale[sign, i]
                    near = range(max(0, j - 6), min(17, j + 7))
                    value = [credit @ LOG_CLEAN[i, k] for k in near]
                    self.scale[sign, i] = near[int(np.argmax(value))]
                    W = W * (ATOMS @ (h / (good + bad))) + PRIOR[i]
                    W = W / (W.sum() + credit.sum() + 10)
                self.W[sign, i] = W
                density = np.maximum((1 - W.sum()) * self.shape(sign, i) + W @ ATOMS, 1e-300)
                scores.append(np.log(FAMILY_PRIOR[i]) + tempered * (h @ np.log(density)))
            omega = np.exp(np.array(scores) - max(scores))
            omega /= omega.sum()
            for i in range(7):
                self.clean[sign] += omega[i] * (1 - self.W[sign, i].sum()) * self.shape(sign, i)
                self.bad[sign] += omega[i] * (self.W[sign, i] @ ATOMS)
        n = counts.sum(axis=1) + 1
        share = (self.bad.sum(axis=1) @ n) / n.sum()
        self.n, self.eps = n, max(share, 0.01)
        good, bad = np.maximum(self.clean, 1e-300), np.maximum(self.bad, 1e-300)
        # The log-odds that what is far away is another population, or only a heavy tail.
        histograms = [counts.sum(axis=0), counts[0] + 0.1 * counts[1], counts[1] + 0.1 * counts[0]]
        seen = np.max([*map(find_drops, histograms), find_gaps(histograms[0])], axis=0)
        plain = np.log(good) - np.log(bad)
        needed = 2 * (np.log(max(counts[plain < -1.1].sum(), 1)) - 1)
        group = self.bad[:, seen > needed].sum(axis=1) @ n / n.sum()
        tail = np.minimum(needed - seen, -1.1)
        another = np.maximum(120 * (group - 0.35), tail)
        plain = np.log(good + sigmoid(another) * bad) - np.log(sigmoid(-another) * bad)
        # They fall with the size of the residual, by a thousandth a cell at least.
        tilt = 1e-3 * np.arange(56)
        self.log_odds = np.minimum.accumulate(plain + tilt, axis=1) - tilt

    def shape(self, sign, i):
        """Clean residuals of a family."""
        return FAMILIES[i, self.scale[sign, i]]

    def look_up(self, z):
        table, a = self.log_odds[int(z > 0)], abs(z)
        if a <= 2.0**-4:
            return table[0] + 1e-3 * (1 - 16 * a)
        x = np.log2(a)
        if x > CENTERS[-1]:
            return table[-1] - 1e-3 * (x - CENTERS[-1])
        return np.interp(x, CENTERS, table)

    def threshold(self):
        p = sigmoid(self.log_odds).ravel()
        mass = ((self.clean + self.bad) * self.n[:, None]).ravel()
        order = np.argsort(p)
        order = order[p[order] <= 0.5]
        share = np.cumsum((p * mass)[order]) / np.cumsum(mass[order])
        listed = np.flatnonzero(share <= 0.1)
        return max(p[order[listed[-1]]], 0.1) if len(listed) else 0.0

    def quantiles(self, level):
        mass = self.clean.sum(axis=1) * self.n
        out = []
        for sign in range(2):
            left = min((1 - level) / 2 * mass.sum() / mass[sign], 1) * self.clean[sign].sum()
            tails = np.append(np.cumsum(self.clean[sign][::-1])[::-1], 0.0)
            c = int(np.flatnonzero(tails >= left)[-1])
            part = (left - tails[c + 1]) / self.clean[sign, c]
            out.append(EDGES[1] * (1 - part) if c == 0 else EDGES[c + 1] * (EDGES[c] / EDGES[c + 1]) ** part)
        return out


def divisor(a, b, error):
    """The largest number of which both are multiples."""
    return a if b <= error else divisor(b, abs(a - round(a / b) * b), error)


class Key:
    """What is known of one key."""

    def __init__(self, d):
        self.believed = []
        self.rows, self.theta, self.lost = [], np.zeros(2), 0.5
        self.beta, self.travelled, self.evidence = np.zeros(d), np.full(d, 1e-3), -3.0
        self.level = self.adjusted = self.quick = None
        self.age = self.repeats = self.stuck_odds = self.grid = self.multiples = 0
        self.point, self.at_point, self.since = 0.0, [], 0  # a frequent target, and the predictions of its records
        self.spread, self.differences = 0.0, 0

    def smallest(self):
        """Smaller residuals are not told apart: they are rounding errors, or next to nothing."""
        rounding = self.grid / 4 if self.multiples >= 16 else 0.0
        return max(rounding, 2.0**-14 * np.exp(self.spread) if self.differences >= 6 else 0.0)

    def is_natural(self, target, predictions):
        """Whether targets are cut off at this one: it is frequent where predictions are near it or beyond."""
        if target != self.point or len(self.at_point) < max(8, 0.02 * self.since):
            return False
        away = np.mean(predictions) - target
        common = len(self.at_point) >= 0.25 * self.since
        return common or np.sign(away) * (np.mean(self.at_point) - target) < 0.5 * abs(away)


def judge_residuals(X, predictions, targets, keys=None):
    """Log-odds, interval, scale, stuck and suspect of every record; then the final log-odds."""
    n, F = len(targets), np.column_stack([X, predictions])  # missing features are replaced on the way
    d = F.shape[1]
    r = targets - predictions
    keys = np.zeros(n, int) if keys is None else keys
    known = {key: Key(d) for key in set(keys)}
    fit, quantiles, threshold = Densities(), [4.0, 4.0], 0.0
    z, recent, every = np.zeros(n), np.zeros((2, 56)), np.zeros((2, 56))
    due, counted = 16, 0
    ties, chances = np.array([1.0, 1.0]), np.array([20.0, 4.0])
    out = []
    for t in range(n):
        k = known[keys[t]]
        past, missing = F[k.rows], np.isnan(F[t])
        F[t, missing] = past[:, missing].mean(axis=0) if len(past) else 0.0
        first = k.level is None and r[t] != 0
        if first:
            k.level = k.adjusted = k.quick = np.log(abs(r[t]))
        smallest = k.smallest() if k.level is not None else 0.0
        if smallest > 0:
            k.level, k.adjusted, k.quick = (max(one, np.log(smallest)) for one in (k.level, k.adjusted, k.quick))
        f = np.zeros(d)
        if len(past):
            mean, spread = past.mean(axis=0), past.std(axis=0)
            varies = spread > 1e-12 * abs(mean)
            f[varies] = np.clip((F[t] - mean)[varies] / spread[varies], -3, 3)
        m = np.clip(k.beta @ f, -2.5, 2.5)
        trust = sigmoid(k.evidence)
        s = width = 1.0
        if k.level is not None:
            s = np.exp((1 - trust) * k.level + trust * (k.adjusted + m))
            width = np.exp(k.adjusted + m if k.evidence > 0 else k.level)
        size = max(abs(r[t]), smallest)
        z[t] = size / s if r[t] > 0 else -size / s
        plain = fit.look_up(z[t])
        cut_off = k.is_natural(targets[t], predictions[[*k.rows, t]])
        if cut_off:
            plain = max(plain, max(np.log((1 - fit.eps) / fit.eps), 0))
        before = 0.9 * k.lost + 0.001 * (1 - k.lost)
        ratio = sigmoid(-plain) / fit.eps
        k.lost = lost = before * ratio / (before * ratio + 1 - before)
        tie = len(past) > 0 and targets[t] == targets[k.rows[-1]]
        copy = tie and (X[t] == X[k.rows[-1]]).all()
        if copy:
            stuck = sigmoid(k.stuck_odds) if k.repeats else 0.0
        elif tie:
            runs = (8 * ties[1] / chances[1] + k.repeats) / (8 + k.repeats)
            natural = runs if k.repeats else ties[0] / chances[0]
            k.stuck_odds = min((k.stuck_odds if k.repeats else np.log(1e-5)) - np.log(natural), 36)
            stuck, k.repeats = sigmoid(k.stuck_odds), k.repeats + 1
        else:
            if k.repeats:
                share = sigmoid(-k.stuck_odds)
                ties += share * np.array([1, min(k.repeats - 1, 3)])
                chances += share * np.array([1, min(k.repeats, 4)])
            else:
                chances[0] += 1
            stuck, k.repeats = 0.0, 0
        good = (lost * (1 - fit.eps) + (1 - lost) * sigmoid(plain)) * (1 - stuck)
        bad = (lost * fit.eps + (1 - lost) * sigmoid(-plain)) * (1 - stuck) + stuck
        p = good / (good + bad)
        low = predictions[t] - quantiles[0] * np.exp(k.theta[0]) * width
        high = predictions[t] + quantiles[1] * np.exp(k.theta[1]) * width
        signs = {np.sign(targets[row]) for row in k.believed} - {0.0}
        only = signs.pop() if len(k.rows) >= 16 and len(signs) == 1 else 0.0
        ends = [0.0 if only * end < 0 and low < 0 < high else end for end in (low, high)]
        out.append((np.log(good / bad), *ends, s, stuck, p <= threshold))
        if p > 0.5:
            missed = np.array([targets[t] < low, targets[t] > high])
            k.theta = np.maximum(k.theta + 0.05 * (missed - 0.05), -3.0)
            k.believed.append(t)
        if k.rows:
            last = targets[k.rows[-1]]
            gap, error = abs(targets[t] - last), 1e-10 * max(abs(targets[t]), abs(last))
            if k.grid >= 0 and gap > error and not 0 < k.grid <= 100 * error:
                unlike = 0 < min(gap, k.grid) <= 1e-10 * max(gap, k.grid)
                common = 0 if unlike else divisor(gap, k.grid, error) if k.grid else gap
                if common <= 100 * error:
                    k.grid = k.multiples = -1
                else:
                    k.multiples = 0 if common < 0.999 * k.grid else k.multiples + 1
                    k.grid = gap / round(gap / common)
            if gap > 0:
                if k.differences < 6:
                    k.spread = min(k.spread, np.log(gap)) if k.differences else np.log(gap)
                else:
                    k.spread += max(2 / (k.differences + 3), 0.005) * psi(gap / np.exp(k.spread))
                k.differences += 1
            if targets[t] != last:
                k.since += 1
                if targets[t] == k.point:
                    k.at_point.append(predictions[t])
            elif not copy and last != k.point and len(k.at_point) <= 0.02 * k.since:
                k.point, k.at_point, k.since = last, [predictions[t]], 1
        k.rows.append(t)
        if k.level is not None and not first and not copy and not cut_off and size > 0:
            if k.age >= 16 or counted < 16:
                counted += 1
                recent *= 1 - min(max(1 / counted, 1 / 20000), 0.05)
                cell = min(np.searchsorted(EDGES, abs(z[t]), side="right") - 1, 55)
                recent[int(z[t] > 0), cell] += 1
                every[int(z[t] > 0), cell] += t >= 100
            if k.age < 6:
                k.level, k.adjusted, k.quick = (min(one, np.log(size) + 5) for one in (k.level, k.adjusted, k.quick))
            u, v = size / np.exp(k.level), size / np.exp(k.adjusted + m)
            if k.age > 50:
                gain = (-k.adjusted - m - np.log1p(v * v)) - (-k.level - np.log1p(u * u))
                k.evidence = np.clip(0.999 * k.evidence + gain, -10, 10)
                g = psi(v) * f
                k.travelled += g * g
                k.beta += 0.1 * g / np.sqrt(k.travelled)
            early = 2 / (k.age + 3)
            k.level, k.adjusted = k.level + max(early, 0.005) * psi(u), k.adjusted + max(early, 0.005) * psi(v)
            k.quick += max(early, 0.05) * psi(size / np.exp(k.quick))
            k.age += 1
            if k.age > 101 and abs(k.quick - k.level) > 0.8:
                k.adjusted, k.level, k.age = k.adjusted + k.quick - k.level, k.quick, 20
        if t + 1 >= due:
            fit.fit(recent, 3)
            threshold, quantiles = fit.threshold(), fit.quantiles(0.9)
            due = t + 1 + min(max(16, (t + 1) // 4), 512)
    fit.fit(every if every.sum() >= 100 else recent, 100)
    final, stuck = np.empty(n), np.array([said[4] for said in out])
    for run in find_ordinary_runs([k.rows for k in known.values()], targets, stuck > 0.5):
        stuck[run] = 0.0
    plain, held = np.empty(n), stuck > 0.5
    for k in known.values():
        scale = np.maximum([out[t][3] for t in k.rows], k.smallest())
        plain[k.rows] = [fit.look_up(value) for value in r[k.rows] / scale]
        cut_off = [t for t in k.rows if k.is_natural(targets[t], predictions[k.rows])]
        plain[cut_off] = np.maximum(plain[cut_off], max(np.log((1 - fit.eps) / fit.eps), 0))
    if np.mean(held) > 0.15:
        value, right = np.median(targets[held]), plain >= 0
        beyond = min(np.mean((targets < value) & right), np.mean((targets > value) & right))
        stuck = np.zeros(n) if beyond <= 0.01 or np.mean(held) > 0.5 else stuck
    for k in known.values():
        final[k.rows], stuck[k.rows] = final_verdict(fit, plain[k.rows], targets[k.rows], stuck[k.rows])
    return [np.array(column) for column in zip(*out, strict=True)], (final, stuck)


def find_ordinary_runs(rows_of_keys, targets, held):
    """Runs that were taken for stuck and are not longer than other runs of the table let expect."""
    runs = [list(run) for rows in rows_of_keys for _, run in groupby(rows, key=lambda row: targets[row])]
    for i, run in enumerate(runs):
        rest, value = runs[:i] + runs[i + 1 :], targets[run[0]]
        alike = {targets[other[0]] for other in rest if 3 * len(other) >= len(run)} - {value}
        same = sorted((len(other) for other in rest if targets[other[0]] == value), reverse=True)
        expected = 0.0
        if len(same) > 4 and sum(same) >= 0.25 * (len(targets) - len(run)):
            logs = np.log(np.add(same[:5], 3) / (same[4] + 3))
            power = 4 / logs.sum() if logs.sum() > 0 else np.inf
            expected = 1.0 if len(run) <= same[0] else 4 * ((len(run) + 3) / (same[4] + 3)) ** -power
        repeating = sum(len(other) == 1 for other in runs) <= len(targets) / 3
        if held[run].any() and ((repeating and len(alike) >= 3) or expected >= 0.01):
            yield run


def final_verdict(fit, plain, targets, stuck):
    """Forward and backward over whether the model is lost; a run is stuck as a whole."""
    seen = np.column_stack([sigmoid(-plain) / fit.eps, np.ones(len(plain))])  # lost, not lost
    move = np.array([[0.9, 0.1], [0.001, 0.999]])
    ahead, state = [], np.array([0.5, 0.5])
    for row in seen:
        state = (state @ move) * row
        state /= state.sum()
        ahead.append(state)
    behind, state = [], np.array([0.5, 0.5])
    for row in seen[::-1]:
        behind.append(state)
        state = move @ (row * state)
        state /= state.sum()
    both = np.array(ahead) * np.array(behind[::-1])
    lost = both[:, 0] / both.sum(axis=1)
    held, start = np.array(stuck), 0
    for t in range(1, len(plain) + 1):
        if t == len(plain) or targets[t] != targets[start]:
            held[start + 1 : t] = max(stuck[start + 1 : t], default=0.0)
            start = t
    good = (lost * (1 - fit.eps) + (1 - lost) * sigmoid(plain)) * (1 - held)
    bad = (lost * fit.eps + (1 - lost) * sigmoid(-plain)) * (1 - held) + held
    return np.log(good / bad), held
