"""Beliefs for labels: streams with flipped labels, balanced and with one in twenty positive, and real ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

import redescend as rd
from benchmarks.belief_scores import START, Scores, mean, score
from redescend.belief import LabelBelief, select_suspects
from redescend.numeric import Array
from redescend.streams import real

ROUNDS = 5000


def binary_rows(split: str) -> Iterator[str]:
    """Synthetic streams with an oracle, and real ones."""
    rows, oracle = [], []
    seed = 100 if split == "tune" else 200
    for rare, flips, one_sided, steep in product((False, True), (0.0, 0.05, 0.1, 0.25), (False, True), (1.0, 4.0)):
        seed += 1
        X, y, clean, known = flipped_stream(seed, rare, flips, one_sided, steep)
        rows.append(judge_labels("labels", X, y, clean))
        found = select_suspects(known[START:], 0.1)
        oracle.append(np.count_nonzero(~clean[START:][found]) / max(rows[-1].errors, 1))
    yield describe(f"{split}, labels", rows)
    share = np.mean([value for row, value in zip(rows, oracle, strict=True) if row.errors])
    yield f"  oracle's recall                                   {share:.3f}"
    found_rows = []
    for i, (name, flips) in enumerate(product(real.CLASSIFICATION, (0.0, 0.05, 0.1, 0.2))):
        stream = real.load(name, min(12_000, len(real.load(name))))
        wrong = np.random.default_rng([seed, i]).random(len(stream)) < flips
        found_rows.append(judge_labels(name, stream.X, np.where(wrong, -stream.y, stream.y), ~wrong))
    yield describe(f"{split}, labels of real tables ({', '.join(real.CLASSIFICATION)})", found_rows)


def flipped_stream(
    seed: int, rare: bool, flips: float, one_sided: bool, steep: float
) -> tuple[Array, Array, Array, Array]:
    """A logistic stream; flips are fewer for negative labels if one-sided. The last array is the oracle's P(right)."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(ROUNDS, 5)), np.ones(ROUNDS)])
    theta = steep * rng.normal(size=6)
    theta[-1] = -1.65 * np.linalg.norm(theta[:-1]) - 0.5 if rare else 0.0
    p = 1.0 / (1.0 + np.exp(-X @ theta))
    y = np.where(rng.random(ROUNDS) < p, 1.0, -1.0)
    other = flips / 5 if one_sided else flips
    wrong = rng.random(ROUNDS) < np.where(y > 0, flips, other)
    given = np.where(wrong, -y, y)
    right = np.where(given > 0, (1 - flips) * p, (1 - other) * (1 - p))
    return X, given, ~wrong, right / (right + np.where(given > 0, other * (1 - p), flips * p) + 1e-300)


def judge_labels(name: str, X: Array, y: Array, clean: Array) -> Scores:
    trace = rd.play(rd.SelfTuning(X.shape[1], loss=rd.losses.Logistic(), order=2), rd.Stream(X, y))
    belief, labels = LabelBelief(), (y > 0).astype(int)
    online = belief.update(trace.predictions, labels)
    verdict = belief.judge_log(trace.predictions, labels)
    out = score(name, clean, verdict.clean_probability, online.clean_probability, online.suspect)
    out.add_ranks(clean, verdict.clean_log_odds, trace.weights)
    return out


def describe(title: str, rows: list[Scores]) -> str:
    wrong, right = [row for row in rows if row.errors], [row for row in rows if not row.errors]
    most = max(row.false / row.rounds for row in right)
    numbers = f"{mean(wrong, 'fdp'):.1%}, {mean(wrong, 'recall'):.3f}, {mean(rows, 'ece'):.4f}, {most:.2%}"
    areas = f"{mean(wrong, 'auc'):.4f} / {mean(wrong, 'weight_auc'):.4f}"
    return f"\n{title}\n  false alarms, recall, calibration, most without flips: {numbers}; AUC, weight's: {areas}"
