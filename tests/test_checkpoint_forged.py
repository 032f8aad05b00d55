"""A file with numbers that no estimator could have learned is refused, or goes on as any other: it never crashes.

``python -m tests.test_checkpoint_forged 25`` alters numbers in 25 states of each estimator at random. A crash would end
that process.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import redescend as rd
from redescend.checkpoint import write_chunks
from redescend.checkpoint.serialization import Serializer
from redescend.errors import DataError, DivergenceError
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.sparse import COLUMNS
from redescend.kernels.tabular import standardize
from redescend.sklearn import MedianScaler, RedescendingClassifier, RedescendingRegressor
from redescend.state import CORRUPT, unpack

HUBER = rd.transforms.Huber(1.0)
ESTIMATORS: dict[str, Any] = {
    "dense": RedescendingRegressor(average=5),
    "second order": RedescendingRegressor(features="linear", order=2),
    "trees": RedescendingRegressor(),
    "sparse": RedescendingRegressor(alpha=0.01),
    "labels": RedescendingClassifier(alpha=0.01),
    "sparse labels": RedescendingClassifier("hinge"),
    "transform": RedescendingRegressor(transform=HUBER),
    "sparse transform": RedescendingRegressor("absolute", transform=HUBER, alpha=0.01),
    "scaler": MedianScaler(size=16),
}
ROWS, TRIALS, SOAK_TRIALS = 90, 25, 1000


def learned(name: str) -> tuple[Any, Any, Any]:
    """An estimator, and records to go on with."""
    random, model = np.random.default_rng(0), clone(ESTIMATORS[name])
    X = random.normal(size=(ROWS, 4)) * (random.random((ROWS, 4)) < 0.7)
    y = X @ [1.0, 2.0, 3.0, 0.0] + 4.0 + 0.1 * random.normal(size=ROWS)
    more = {}
    if isinstance(model, RedescendingClassifier):
        y, more = np.digitize(y, [2.0, 6.0]), {"classes": [0, 1, 2]}
    X = sparse.csr_array(X) if "sparse" in name else X
    return model.partial_fit(X[:70], y[:70], **more), X[70:], y[70:]


def numbers(state: Any) -> list[Any]:
    """All arrays of floats in a state."""
    if isinstance(state, dict):
        return [array for part in state.values() for array in numbers(part)]
    return [state] if isinstance(state, np.ndarray) and state.size and state.dtype.kind == "f" else []


def go_on(model: Any, X: Any, y: Any) -> None:
    """Learn, and predict finite numbers."""
    with contextlib.suppress(DivergenceError):
        model.partial_fit(X, y)
    if isinstance(model, MedianScaler):
        assert np.isfinite(model.transform(X)).all()
        return
    model.state()
    coefficients = (model.coef_, model.intercept_) if hasattr(model, "coef_") else ()
    for part in (*coefficients, model.predict(X), model.score_samples(X, y), model.score_samples(X)):
        assert np.isfinite(part).all()


def alter_at_random(name: str, trials: int) -> int:
    """How many altered states were accepted."""
    random, taken = np.random.default_rng(1), 0
    model, X, y = learned(name)
    for _ in range(trials):
        state = model.state()
        for _ in range(random.integers(1, 4)):
            arrays = numbers(state)
            array = arrays[random.integers(len(arrays))].reshape(-1)
            place = random.integers(len(array))
            old = array[place]
            values = (np.nan, np.inf, -1.0, 0.0, 0.5, 1.0, 7.0, 31.0, 1e18, -3e8, 1e140, 1e300, 2 * old, -old, old + 1)
            array[place] = random.choice(values)
        other = clone(model)
        try:
            other.restore(state)
        except DataError:
            continue
        taken += 1
        go_on(other, X, y)
    return taken


@pytest.mark.parametrize("trials", [TRIALS, pytest.param(SOAK_TRIALS, marks=pytest.mark.soak)])
def test_numbers_altered_at_random_crash_nothing(trials: int) -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.test_checkpoint_forged", str(trials)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stderr
    taken = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert taken.keys() == ESTIMATORS.keys()
    assert all(0 < int(count) < trials for count in taken.values())


def part(model: Any, name: str) -> Any:
    """An array of the first output of a self-tuning model; a view, also where features are stored one by one."""
    engine = model._engine
    if not engine.sparse:
        return unpack(layout.SPECS, engine.models[0], layout.dims_of(engine.width, engine.order))[name]
    assert name not in ("theta", "feature", "P", "stored")
    return unpack(layout.SPECS, engine.models[0], layout.dims_of(engine.width, 1))[name]


def put(array: Any, value: float) -> None:
    array[...] = value


ALTERED: dict[str, tuple[str, Callable[[Any], None]]] = {
    "nan": ("dense", lambda model: put(model._engine.models[0, :1], np.nan)),
    "weights": ("dense", lambda model: put(part(model, "weight"), 3.0)),
    "cells": ("second order", lambda model: put(part(model, "cells"), 2.0)),
    "count": ("labels", lambda model: put(part(model, "feature")[layout.COUNT], -5.0)),
    "half": ("labels", lambda model: put(part(model, "feature")[layout.COUNT], 0.5)),
    "rounds": ("labels", lambda model: put(part(model, "scalar")[layout.ROUNDS :][:1], 1e300)),
    "variance": ("second order", lambda model: put(part(model, "P")[:1], -1.0)),
    "leader": ("sparse", lambda model: put(part(model, "scalar")[layout.LEAD :][:1], 1e9)),
    "constant": ("sparse", lambda model: put(part(model, "scalar")[layout.CONSTANT :][:1], -7e8)),
    "feature": ("sparse", lambda model: put(model._engine.models[:, :COLUMNS], np.nan)),
    "ring": ("sparse labels", lambda model: put(part(model, "ring"), np.inf)),
    "scale": ("sparse labels", lambda model: put(part(model, "scale"), 0.0)),
    "standing": ("transform", lambda model: put(model._engine.target_stats[standardize.COUNT], -9.0)),
    "model": ("sparse transform", lambda model: put(model._engine.models, np.inf)),
    "search": ("scaler", lambda model: put(model._quantiles._summaries[:, 0, -1], -3e8)),
    "kept values": ("scaler", lambda model: put(model._quantiles._sizes, 1e6)),
}


@pytest.mark.parametrize("name", ALTERED)
def test_a_file_with_impossible_numbers_is_refused(name: str, tmp_path: Any) -> None:
    kind, alter = ALTERED[name]
    model, X, y = learned(kind)
    rd.save(model, tmp_path / "sound")
    go_on(rd.load(tmp_path / "sound"), X, y)
    alter(model)
    rd.save(model, tmp_path / "forged")
    with pytest.raises(
        DataError, match=rf"cannot be loaded: The state of .* has .*: {CORRUPT}; fit the model again\.$"
    ):
        rd.load(tmp_path / "forged")


def test_a_small_file_asks_for_little(tmp_path: Any) -> None:
    """A state that says that it has 60 000 features, of which a model of order 2 would need 29 GB."""
    model, _, _ = learned("second order")
    writer = Serializer()
    description = writer.serialize(model)
    state = dict(description["state"]["dict"])
    engine = dict(state["engine"]["dict"]) | {"dim": 60_000}
    state["engine"] = {"dict": list(engine.items())}
    description["state"] = {"dict": list(state.items())}
    (tmp_path / "model").write_bytes(b"".join(write_chunks(description, writer.arrays)))
    with pytest.raises(DataError, match=r"the order 2|states of shape"):
        rd.load(tmp_path / "model")


if __name__ == "__main__":
    for name in ESTIMATORS:
        print(name, alter_at_random(name, int(sys.argv[1])))
