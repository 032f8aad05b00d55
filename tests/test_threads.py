"""A learner or an estimator that several threads use at once says so, instead of losing rounds."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

import redescend as rd
from redescend import losses, river, sklearn, steps
from redescend.errors import ConcurrentUseError
from redescend.sources import open_source
from redescend.streaming import fit_stream

LEARNERS = {
    "descent": lambda: rd.OGD(50, loss=losses.Squared(), step=steps.Anytime(0.1)),
    "self-tuning": lambda: rd.SelfTuning(50, loss=losses.Squared()),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_rounds_are_played_or_refused(name):
    """The rounds of all games that were not refused, and no others."""
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 50))
    stream = rd.Stream(X, X[:, 0])
    learner, refused, played = LEARNERS[name](), [], []
    rd.play(learner, rd.Stream(X[:10], X[:10, 0]))  # compiles

    def play():
        barrier.wait()
        for _ in range(4):
            try:
                rd.play(learner, stream)
            except ConcurrentUseError as error:
                refused.append(str(error))
            else:
                played.append(len(stream))

    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=play) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) + len(played) == 8
    assert learner.rounds == 10 + sum(played)
    assert all("is played by another thread, and rounds would be lost" in sentence for sentence in refused)
    learner.update(X[0], 1.0)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_that_is_playing_takes_no_other_round(name):
    learner = LEARNERS[name]()
    learner._is_playing = True
    with pytest.raises(ConcurrentUseError, match="use one learner for each thread, or a lock"):
        learner.update(np.ones(50), 1.0)
    assert learner.rounds == 0
    learner._is_playing = False
    learner.update(np.ones(50), 1.0)
    with pytest.raises(rd.errors.DataError):
        learner.update(np.full(50, np.nan), 1.0)
    learner.update(np.ones(50), 1.0)
    assert learner.rounds == 2


X = np.random.default_rng(1).normal(size=(3000, 20))
Y = X[:, 0] + 0.1 * X[:, 1]


def test_rows_of_an_estimator_are_learned_or_refused():
    model, refused, learned = sklearn.RedescendingRegressor(features="linear").partial_fit(X[:10], Y[:10]), [], [10]
    barrier = threading.Barrier(2)

    def learn():
        barrier.wait()
        for _ in range(6):
            try:
                model.partial_fit(X, Y)
            except ConcurrentUseError as error:
                refused.append(str(error))
            else:
                learned.append(len(X))

    threads = [threading.Thread(target=learn) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) + len(learned) == 13
    assert model.t_ == sum(learned)


class Meanwhile(dict):
    """A record during whose reading something else is called, as another thread might."""

    def __init__(self, call):
        super().__init__(a=1.0, b=2.0)
        self.call = call

    def __iter__(self):
        self.call()
        return super().__iter__()


class Table:
    """The same for a table."""

    def __init__(self, call):
        self.call = call

    def __array__(self, dtype=None, copy=None):
        self.call()
        return X[:10].astype(dtype)


def stream_model(**options):
    table = {"x": [1.0, 2.0, 3.0, 4.0] * 10, "y": [1.0, 2.0, 3.0, 4.0] * 10, "key": ["a", "b"] * 20}
    model, rounds = fit_stream(pa.table(table), "y", task="regression", **options)
    rounds.run()
    (batch,) = open_source(pa.table(table), kinds=model.schema.kinds).batches(model.schema.columns)
    return model, batch


@pytest.mark.parametrize(
    ("model", "learn"),
    [
        (sklearn.RedescendingRegressor(), "fit"),
        (sklearn.RedescendingRegressor(), "partial_fit"),
        (sklearn.MedianScaler(), "partial_fit"),
        (river.RedescendingRegressor(), "learn_one"),
        (river.RedescendingClassifier(), "learn_one"),
        (river.RedescendingFilter(), "learn_one"),
    ],
)
def test_an_estimator_that_is_learning_takes_no_other_records(model, learn):
    rows = learn != "learn_one"
    arguments = (X[:10], Y[:10]) if rows else ({"a": 1.0, "b": 0.5}, True)

    def again():
        getattr(model, learn)(*arguments)

    slow = Table(again) if rows else Meanwhile(again)
    with pytest.raises(ConcurrentUseError, match=f"This {type(model).__name__} is learning in another thread"):
        getattr(model, learn)(slow, Y[:10] if rows else True)
    again()  # alone, it learns


@pytest.mark.parametrize("options", [{}, {"by": "key"}])
def test_a_stream_model_that_is_learning_takes_no_other_records(options, monkeypatch):
    model, batch = stream_model(**options)
    encode, records = type(model)._make_rounds, model.records

    def learn_meanwhile(self, *arguments):
        with pytest.raises(ConcurrentUseError, match="use one model for each thread, or a lock"):
            self.learn(batch)
        return encode(self, *arguments)

    monkeypatch.setattr(type(model), "_make_rounds", learn_meanwhile)
    model.learn(batch)
    assert model.records == records + 40
