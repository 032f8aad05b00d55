"""The contestants, each with the same two methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.peers.contest import Entry
from redescend.numeric import Array

STEPS = tuple(10.0 ** (power / 2) for power in range(-8, 1))
"""Tried by every contestant with a step."""

WINDOW, EVERY = 5_000, 1_000
"""Batch models are refitted after this number of records, on the last ones."""


class Batches:
    """A scikit-learn model that learns from a block at a time."""

    def __init__(self, model: Any, labels: bool) -> None:
        self.model, self.labels, self.known = model, labels, False

    def predict(self, X: Array) -> Array:
        return self.model.predict(X) if self.known else np.zeros(len(X))

    def learn(self, X: Array, y: Array) -> None:
        more = {"classes": [-1.0, 1.0]} if self.labels and not self.known else {}
        self.model.partial_fit(X, y, **more)
        self.known = True


class Refitted:
    """A scikit-learn model that is refitted at intervals."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.seen = make, 0
        self.model: Any = None
        self.X: list[Array] = []
        self.y: list[Array] = []

    def predict(self, X: Array) -> Array:
        return np.zeros(len(X)) if self.model is None else self.model.predict(X)

    def learn(self, X: Array, y: Array) -> None:
        self.X.append(X)
        self.y.append(y)
        before, self.seen = self.seen, self.seen + len(y)
        if before // EVERY < self.seen // EVERY:
            X, y = np.concatenate(self.X)[-WINDOW:], np.concatenate(self.y)[-WINDOW:]
            self.model, self.X, self.y = self.make().fit(X, y), [X], [y]


class RiverRows:
    """A River model, one dict at a time."""

    def __init__(self, model: Any, labels: bool) -> None:
        self.model, self.labels = model, labels
        self.waiting: list[Any] = []

    def predict(self, X: Array) -> Array:
        self.waiting = [dict(enumerate(row)) for row in X.tolist()]
        if self.labels:
            return np.array([2.0 * self.model.predict_proba_one(row).get(True, 0.5) - 1.0 for row in self.waiting])
        return np.array([self.model.predict_one(row) for row in self.waiting])

    def learn(self, X: Array, y: Array) -> None:
        for row, target in zip(self.waiting, y.tolist(), strict=True):
            self.model.learn_one(row, target > 0.0 if self.labels else target)


class Padasip:
    """An adaptive filter with a generalized maximum correntropy criterion."""

    def __init__(self, dim: int, step: float) -> None:
        import padasip

        self.filter = padasip.filters.FilterGMCC(n=dim, mu=step, w="zeros")

    def predict(self, X: Array) -> Array:
        return X @ self.filter.w

    def learn(self, X: Array, y: Array) -> None:
        for row, target in zip(X, y, strict=True):
            self.filter.adapt(target, row)


class VowpalWabbit:
    """Vowpal Wabbit with its own adaptive updates; the time includes parsing."""

    def __init__(self, options: str) -> None:
        from vowpalwabbit import Workspace

        self.model = Workspace(f"--quiet {options}")

    @staticmethod
    def _text(row: Any) -> str:
        return "| " + " ".join(f"{place}:{value:.6g}" for place, value in enumerate(row))

    def predict(self, X: Array) -> Array:
        return np.array([self.model.predict(self._text(row)) for row in X.tolist()])

    def learn(self, X: Array, y: Array) -> None:
        for row, target in zip(X.tolist(), y.tolist(), strict=True):
            self.model.learn(f"{target} {self._text(row)}")


def regressors(dim: int, steps: Sequence[float] = STEPS) -> list[Entry]:
    from river import linear_model, optim
    from sklearn.linear_model import HuberRegressor, RANSACRegressor, SGDRegressor

    from redescend.sklearn import RedescendingRegressor

    def sgd(loss: str) -> Callable[[float], Batches]:
        options = {"learning_rate": "constant", "shuffle": False, "alpha": 1e-6}
        return lambda step: Batches(SGDRegressor(loss=loss, eta0=step, **options), labels=False)

    def river(loss: Any) -> Callable[[float], RiverRows]:
        return lambda step: RiverRows(
            linear_model.LinearRegression(optimizer=optim.SGD(step), loss=loss(), intercept_lr=step), labels=False
        )

    passive = {"loss": "epsilon_insensitive", "penalty": None, "learning_rate": "pa1", "shuffle": False}
    return [
        Entry("redescend", lambda step: Batches(RedescendingRegressor(features="linear"), labels=False), ours=True),
        Entry("redescend, order 2", lambda step: Batches(RedescendingRegressor(order=2), labels=False), ours=True),
        Entry("SGDRegressor, squared", sgd("squared_error"), steps),
        Entry("SGDRegressor, Huber", sgd("huber"), steps),
        Entry("SGDRegressor, ε-insensitive", sgd("epsilon_insensitive"), steps),
        Entry("passive-aggressive", lambda step: Batches(SGDRegressor(eta0=step, **passive), labels=False), steps),
        Entry("River, Squared", river(optim.losses.Squared), steps[1::2]),
        Entry("River, Huber", river(optim.losses.Huber), steps[1::2]),
        Entry("River, Cauchy", river(optim.losses.Cauchy), steps[1::2]),
        Entry("padasip GMCC", lambda step: Padasip(dim, step), steps),
        Entry("Vowpal Wabbit", lambda step: VowpalWabbit(f"-l {step}"), steps[1::2]),
        Entry("Vowpal Wabbit, quantile", lambda step: VowpalWabbit(f"-l {step} --loss_function quantile"), steps[1::2]),
        Entry("HuberRegressor, refitted", lambda step: Refitted(lambda: HuberRegressor(max_iter=1000))),
        Entry("RANSAC, refitted", lambda step: Refitted(lambda: RANSACRegressor(random_state=0))),
    ]


def classifiers(dim: int, steps: Sequence[float] = STEPS) -> list[Entry]:
    from river import linear_model, optim
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    from redescend.sklearn import RedescendingClassifier

    def sgd(loss: str) -> Callable[[float], Batches]:
        options = {"learning_rate": "constant", "shuffle": False, "alpha": 1e-6}
        return lambda step: Batches(SGDClassifier(loss=loss, eta0=step, **options), labels=True)

    def river(step: float) -> RiverRows:
        return RiverRows(linear_model.LogisticRegression(optimizer=optim.SGD(step), intercept_lr=step), labels=True)

    passive = {"loss": "hinge", "penalty": None, "learning_rate": "pa1", "shuffle": False}
    return [
        Entry("redescend", lambda step: Batches(RedescendingClassifier(features="linear"), labels=True), ours=True),
        Entry("redescend, order 2", lambda step: Batches(RedescendingClassifier(order=2), labels=True), ours=True),
        Entry("SGDClassifier, logistic", sgd("log_loss"), steps),
        Entry("SGDClassifier, hinge", sgd("hinge"), steps),
        Entry("SGDClassifier, modified Huber", sgd("modified_huber"), steps),
        Entry("passive-aggressive", lambda step: Batches(SGDClassifier(eta0=step, **passive), labels=True), steps),
        Entry("River, logistic", river, steps[1::2]),
        Entry("Vowpal Wabbit, logistic", lambda step: VowpalWabbit(f"-l {step} --loss_function logistic"), steps[1::2]),
        Entry("LogisticRegression, refitted", lambda step: Refitted(lambda: LogisticRegression(max_iter=1000))),
    ]
