"""Classification with trees on real tables: ``python -m benchmarks.nonlinear_labels --split held``.

Every record is predicted before it is learned from, without wrong labels and with 15 % of them. The figures are the
log-loss of calibrated probabilities, relative to that of the linear model, and the share of errors, both on right
labels. Tables are shuffled; at most 2,500 rows of each are used.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from benchmarks.belief_classes import load
from benchmarks.nonlinear import make
from redescend.belief import LabelBelief
from redescend.engines.labels import count_outputs, encode_labels
from redescend.numeric import Array

TABLES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "tune": (
        ("DAAG", "spam7", "yesno"),
        ("AER", "CreditCard", "card"),
        ("modeldata", "two_class_dat", "Class"),
        ("modeldata", "credit_data", "Status"),
        ("modeldata", "wa_churn", "churn"),
        ("DAAG", "dengue", "NoYes"),
        ("sklearn", "load_breast_cancer", ""),
        ("wooldridge", "jtrain3", "train"),
        ("modeldata", "Sacramento", "type"),
        ("modeldata", "hpc_data", "class"),
        ("sklearn", "load_digits", ""),
        ("Stat2Data", "Hawks", "Species"),
        ("dslabs", "gapminder", "continent"),
        ("ggplot2", "diamonds", "cut"),
        ("Ecdat", "Catsup", "choice"),
        ("ratdat", "surveys", "sex"),
    ),
    "held": (
        ("modeldata", "cells", "class"),
        ("modeldata", "mlc_churn", "churn"),
        ("modeldata", "attrition", "Attrition"),
        ("modeldata", "lending_club", "Class"),
        ("openintro", "email", "spam"),
        ("survival", "flchain", "death"),
        ("ISLR", "College", "Private"),
        ("wooldridge", "k401ksubs", "e401k"),
        ("Stat2Data", "Gunnels", "Gunnel"),
        ("mstate", "ebmt3", "rfsstat"),
        ("palmerpenguins", "penguins", "species"),
        ("carData", "Chile", "vote"),
        ("nycflights13", "weather", "origin"),
        ("plm", "RiceFarms", "region"),
        ("stevedata", "fakeAPI", "schooltype"),
        ("Stat2Data", "Kershaw", "PitchType"),
    ),
}
"""Package, table and label. Constants were chosen on the first; the second are held out."""

FLIPS = (0.0, 0.15)
TOGETHER = 50
"""Records whose probabilities are calibrated together."""


class Scores(NamedTuple):
    """The mean log-loss of calibrated probabilities and the share of errors on right labels."""

    loss: float
    wrong: float


def play(features: str, X: Array, labels: Array, flips: float, start: int) -> Scores:
    """Play a table with a share of wrong labels."""
    random, classes = np.random.default_rng(3), int(labels.max()) + 1
    moved = (labels + random.integers(1, classes, len(labels))) % classes
    given = np.where(random.random(len(labels)) < flips, moved, labels)
    engine = make(features, X.shape[1], count_outputs(classes), "classification")
    scores = engine.learn_rounds(np.ascontiguousarray(X), encode_labels(given, classes)).predictions
    probability, belief = np.empty((len(labels), classes)), LabelBelief(classes)
    margins = np.ascontiguousarray(scores.T)
    for first in range(0, len(labels), TOGETHER):
        rows = slice(first, first + TOGETHER)
        probability[rows] = belief.predict_proba(margins[rows])
        belief.update(margins[rows], given[rows])
    loss = -np.log(np.maximum(probability[np.arange(len(labels)), labels], 1e-6))
    found = (scores[0] > 0).astype(int) if len(scores) == 1 else scores.argmax(axis=0)
    counted = (given == labels) & (np.arange(len(labels)) >= start)
    return Scores(float(loss[counted].mean()), float(np.mean((found != labels)[counted])))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--split", choices=list(TABLES), default="tune")
    parser.add_argument("--start", type=int, default=50, help="the first record that counts")
    arguments = parser.parse_args()
    found: dict[float, list[tuple[float, ...]]] = {flips: [] for flips in FLIPS}
    for table in TABLES[arguments.split]:
        X, labels = load(*table)
        for flips in FLIPS:
            ours, linear = (play(name, X, labels, flips, arguments.start) for name in ("auto", "linear"))
            found[flips].append((ours.loss / linear.loss, ours.wrong, linear.wrong))
            where = f"{table[1]:18s} d={X.shape[1]:3d} n={len(labels):5d} {labels.max() + 1:2d} labels {flips:4.0%}"
            told = f"loss {ours.loss:.4f} / {linear.loss:.4f} = {ours.loss / linear.loss:.3f}"
            print(f"{where}  {told}  wrong {ours.wrong:.4f} / {linear.wrong:.4f}", flush=True)
    for flips, rows in found.items():
        ratio, wrong, linear = np.array(rows).T
        mean = np.exp(np.mean(np.log(ratio)))
        print(f"{flips:4.0%} wrong labels: log-loss {mean:.4f} × linear, at most {ratio.max():.3f}; ", end="")
        print(f"errors {wrong.mean():.4f}, linear {linear.mean():.4f}")


if __name__ == "__main__":
    main()
