"""Belief in labels as it is stated, in plain NumPy: slow, and without state that is kept from one call to the next."""

from __future__ import annotations

import numpy as np
from scipy import stats

SIZES = 2.0 ** (-6 + (np.arange(56) + 0.5) / 4)
MARGINS = np.concatenate([-SIZES[::-1], SIZES])
SLOPES = np.tile(np.arange(-4, 5), 4)
LINKS = [lambda m, b=b: stats.logistic.cdf(b + m) for b in (-1, 0, 1)] + [lambda m: stats.t.cdf(m / 1.5, 3)]
MODELS = np.clip([link(MARGINS * 2.0**k) for link in LINKS for k in range(-4, 5)], 1e-9, 1 - 1e-9)


def place(margin):
    """Cells in order, the middle of a cell being a whole number."""
    size = np.clip(4 * (np.log2(max(abs(margin), 1e-300)) + 6), 0, 56)
    return 55.5 + (size if margin >= 0 else -size)


def fit_labels(counts, flips, iterations, pooled):
    """Flips of all models by EM; returns tables of log-odds by label, and the probability of the second label."""
    for g, e in zip(MODELS, flips, strict=True):
        for _ in range(iterations):
            said = (1 - e[1]) * g + e[0] * (1 - g)
            from_0, from_1 = (counts[1] * e[0] * (1 - g) / said).sum(), (counts[0] * e[1] * g / (1 - said)).sum()
            true_1 = counts[1].sum() - from_0 + from_1
            true_0 = counts.sum() - true_1
            both = (from_0 + from_1 + 1) / (counts.sum() + 21)
            shares = [(w + pooled * both + 1) / (n + pooled + 21) for w, n in ((from_0, true_0), (from_1, true_1))]
            e[:] = np.minimum(shares, 0.45)
    # Every model with its flips, and again without flips.
    models, slopes = np.tile(MODELS, (2, 1)), np.tile(SLOPES, 2)
    shares = np.concatenate([flips, np.full_like(flips, 0.001)])
    said = (1 - shares[:, 1:]) * models + shares[:, :1] * (1 - models)
    scores = min(1, 4000 / max(counts.sum(), 1)) * (np.log(said) @ counts[1] + np.log(1 - said) @ counts[0])
    scores -= 0.25 * slopes**2.0
    scores[: len(MODELS)] -= 10 * (flips**2).sum(axis=1)
    w = np.exp(scores - scores.max())
    w /= w.sum()
    right_1, wrong_1 = w @ ((1 - shares[:, 1:]) * models), w @ (shares[:, :1] * (1 - models))
    right_0, wrong_0 = w @ ((1 - shares[:, :1]) * (1 - models)), w @ (shares[:, 1:] * models)
    odds_0, odds_1 = right_0 / wrong_0, right_1 / wrong_1
    # Of more than two classes, predictions must be mostly right with some margin, up to that for another class.
    for c in range(56 if pooled == 0 else 0):
        heard = [counts[:, k:].sum(axis=1) for k in range(56, 112 - c)]
        if not any(n_1 - 0.55 * (n_0 + n_1) > 0.5 * np.sqrt(n_0 + n_1) for n_0, n_1 in heard):
            odds_1[c] += 1
    return np.log([odds_0, odds_1]), w @ models


def judge_labels(margins, labels):
    """Log-odds of every label before it was learned from, and in the end; calibrated probabilities at the end."""
    margins = np.asarray(margins)
    pairs = []
    for row, label in zip(margins, labels, strict=True):
        if row.ndim == 0:
            pairs.append([(float(row), int(label))])
        else:
            leads = [row[k] - max(np.delete(row, k)) for k in range(len(row))]
            pairs.append([(leads[k], int(k == label)) for k in np.argsort(np.arange(len(row)) != label, kind="stable")])
    flips, due, pooled = np.full((len(MODELS), 2), 0.1), 16, 1000 if margins.ndim == 1 else 0
    recent, every = np.zeros((2, 112)), np.zeros((2, 112))
    table, positive = fit_labels(recent, flips, 0, pooled)

    def judge(pair):
        margin, label = pair
        small = np.clip(64 * margin, -1, 1) * (1 + max(np.log2(max(abs(margin), 1e-300)) - 8, 0))
        return np.interp(place(margin), range(112), table[label]) + 1e-3 * (small if label else -small)

    out = []
    for t, record in enumerate(pairs):
        out.append(judge(record[0]))
        recent *= 1 - min(max(1 / (t + 1), 1 / 20000), 0.05)
        for margin, label in record:
            cell = int(np.clip(np.floor(place(margin) + 0.5), 0, 111))
            recent[label, cell] += 1
            every[label, cell] += t >= 100
        if t + 1 >= due:
            table, positive = fit_labels(recent, flips, 2, pooled)
            due += min(max(16, (t + 1) // 4), 512)
    online_positive = positive
    table, _ = fit_labels(every if every.sum() >= 100 else recent, flips, 100, pooled)
    return np.array(out), np.array([judge(record[0]) for record in pairs]), online_positive
