"""Learners of every family and their records: what tests save, and what the files in `tests/files` were made from.

``python -m tests.saved_models`` writes the files of the version at hand, beside those of earlier versions, which stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import redescend as rd
from redescend import checkpoint, domains, gates, losses, steps, transforms
from tests import reference

FILES = Path(__file__).parent / "files"
DIM, ROUNDS = 3, 120

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
    "ablated": lambda: rd.SelfTuning(DIM, loss=losses.Squared(), without=["zero", "diagonal"]),
}


def streams(learner: rd.Learner) -> tuple[rd.Stream, rd.Stream]:
    """What is learned before a model is saved, and what it goes on with."""
    X, y = reference.records_for(learner.loss, ROUNDS, DIM, seed=7)  # type: ignore[attr-defined]
    half = ROUNDS // 2
    return rd.Stream(X[:half], y[:half]), rd.Stream(X[half:], y[half:])


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
    (folder / "ends.json").write_text(json.dumps(ends, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
