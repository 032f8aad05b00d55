"""Models of every family and their records: what tests save, and what the files in `tests/files` were made from.

``python -m tests.saved_models`` writes the files of the version at hand, beside those of earlier versions, which stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import redescend as rd
from redescend import checkpoint, domains, gates, losses, river, steps, transforms
from redescend import sklearn as estimators
from tests import reference

FILES = Path(__file__).parent / "files"
DIM, ROUNDS = 3, 120
BEFORE, AFTER = slice(0, ROUNDS // 2), slice(ROUNDS // 2, ROUNDS)

COMMON: dict[str, Any] = {"loss": losses.Squared(l2=0.01), "step": steps.Anytime(0.5)}
SPREAD: list[losses.LinearLoss] = [
    losses.Squared(),
    losses.Squared(l2=0.01),
    losses.Hinge(),
    losses.Logistic(l2=0.001),
    losses.Absolute(),
    losses.EpsilonInsensitive(0.1),
    losses.Pinball(0.8),
]
ODD_DOMAIN = domains.Intersection(domains.Ball(2.0), domains.Box(-1.0, [1.0, np.inf, 0.5]))

FAMILIES: dict[str, Callable[[], rd.Learner]] = {
    "ogd": lambda: rd.OGD(DIM, domain=domains.L1Ball(3.0), start=[0.1, 0.2, 0.3], **COMMON),
    "learn": lambda: rd.Learn(DIM, a=0.5, b=0.1, domain=domains.Ball(2.0), **COMMON),
    "robust": lambda: rd.Robust(DIM, transform=transforms.Barron(-np.inf, 0.7), domain=ODD_DOMAIN, **COMMON),
    "top-k": lambda: rd.TopK(DIM, k=12, loss=losses.Absolute(), step=steps.AdaptiveNorm()),
    "oracle": lambda: rd.Oracle(DIM, clean=np.arange(ROUNDS) % 7 > 0, **COMMON),
    "normalised": lambda: rd.NormalisedOGD(DIM, dtype="float32", **COMMON),
    "clipped": lambda: rd.ClippedOGD(DIM, quantile=0.7, window=11, domain=domains.Simplex(), **COMMON),
    "descent": lambda: rd.Descent(DIM, gate=gates.Robust(transforms.Huber(0.3)), dtype=np.float64, **COMMON),
    "experts-paper": lambda: rd.LearnWithExperts(DIM, loss=losses.Squared(), a=0.5, b=0.1, rounds=ROUNDS, epsilon=2.0),
    "experts-robust": lambda: rd.LearnWithExperts(
        DIM, loss=losses.Squared(), a=0.5, b=0.1, meta="robust", domain=ODD_DOMAIN
    ),
    "ader": lambda: rd.Ader(
        DIM, loss=losses.Absolute(), domain=domains.Ball(2.0), rounds=ROUNDS, gradient=2.0, span=9.0
    ),
    "jacobsen-cutkosky": lambda: rd.JacobsenCutkosky(
        DIM, loss=losses.Squared(), rounds=ROUNDS, gradient=4.0, smoothness=8.0
    ),
    "selftuning": lambda: rd.SelfTuning(DIM, loss=losses.Squared()),
    "selftuning-labels": lambda: rd.SelfTuning(DIM, loss=losses.Logistic(), order=2),
}

LEARNERS: dict[str, Callable[[], rd.Learner]] = {
    **FAMILIES,
    **{
        f"{loss} order {order}": lambda loss=loss, order=order: rd.SelfTuning(DIM, loss=loss, order=order)
        for loss in SPREAD
        for order in (1, 2)
    },
}

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "sklearn-regressor": lambda: estimators.RedescendingRegressor(order=2, average=5),
    "sklearn-regressor-sparse": lambda: estimators.RedescendingRegressor(alpha=0.01),
    "sklearn-regressor-transform": lambda: estimators.RedescendingRegressor(
        "absolute", transform=transforms.Huber(1.0)
    ),
    "sklearn-classifier": lambda: estimators.RedescendingClassifier(features="linear"),
    "sklearn-scaler": lambda: estimators.MedianScaler(size=16),
    "river-regressor": lambda: river.RedescendingRegressor(order=2),
    "river-regressor-transform": lambda: river.RedescendingRegressor(transform=transforms.Huber(1.0)),
    "river-classifier": lambda: river.RedescendingClassifier(),
    "river-filter": lambda: river.RedescendingFilter(),
}


def teach(name: str, model: Any, part: slice) -> None:
    """Let an estimator learn from a part of the records."""
    X, y = reference.records_for(losses.Squared(), ROUNDS, DIM, seed=7)
    targets = np.where(y > 0.0, "high", "low") if "classifier" in name else y
    if name.startswith("river"):
        for row, target in zip(X[part].tolist(), targets[part].tolist(), strict=True):
            model.learn_one(dict(enumerate(row)), target)
        return
    classes = {"classes": ["high", "low"]} if "classifier" in name else {}
    model.partial_fit(sparse.csr_array(X[part]) if "sparse" in name else X[part], targets[part], **classes)


def answers(name: str, model: Any) -> list[float]:
    """What an estimator says in the end: coefficients, units or predictions."""
    if name == "sklearn-scaler":
        return [*model.center_, *model.scale_]
    if name.startswith("sklearn"):
        return [*model.coef_.ravel(), *model.intercept_]
    x = {0: 1.0, 1: -2.0, 2: 0.5}
    if "classifier" in name:
        return [model.predict_proba_one(x)["high"]]
    return [model.score_one(x, 3.0)] if "filter" in name else [model.predict_one(x)]


def streams(learner: rd.Learner) -> tuple[rd.Stream, rd.Stream]:
    """What is learned before a model is saved, and what it goes on with."""
    X, y = reference.records_for(learner.loss, ROUNDS, DIM, seed=7)  # type: ignore[attr-defined]
    return rd.Stream(X[BEFORE], y[BEFORE]), rd.Stream(X[AFTER], y[AFTER])


def write() -> None:
    folder = FILES / rd.__version__
    folder.mkdir(parents=True, exist_ok=True)
    ends = {}
    for name, make in FAMILIES.items():
        learner = make()
        before, after = streams(learner)
        rd.play(learner, before)
        checkpoint.save(learner, folder / f"{name}.safetensors")
        ends[name] = rd.play(learner, after).theta.tolist()
    for name, make in ESTIMATORS.items():
        model = make()
        teach(name, model, BEFORE)
        checkpoint.save(model, folder / f"{name}.safetensors")
        teach(name, model, AFTER)
        ends[name] = [float(number) for number in answers(name, model)]
    (folder / "ends.json").write_text(json.dumps(ends, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
