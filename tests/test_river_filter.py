"""The filter keeps records from the models behind it, and counts them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from river import base, datasets, linear_model, multiclass, preprocessing

import redescend as rd
from redescend.errors import DataError
from redescend.river import RedescendingFilter
from tests import river_streams as streams
from tests.refusals import refusal


class Spy(base.Regressor):
    """Remembers what it was taught."""

    def __init__(self):
        self.taught = []

    def learn_one(self, x, y):
        self.taught.append(y)

    def predict_one(self, x):
        return 0.0


def test_what_is_held_back_is_not_learned_downstream():
    spy, filtered = Spy(), RedescendingFilter()
    pipeline = preprocessing.StandardScaler() | filtered | spy
    records = streams.stream(500, seed=0, bad=0.2)
    for t, (x, y) in enumerate(records):
        taught, held = len(spy.taught), filtered.held_back
        pipeline.learn_one(x, math.nan if t % 50 == 49 else y)
        assert (len(spy.taught) - taught) + (filtered.held_back - held) == 1
    assert filtered.seen == 500
    assert filtered.held_back == 500 - len(spy.taught)
    assert np.isfinite(spy.taught).all()
    clean = [y for _, y in records[50:] if abs(y) < 5.0]
    assert np.mean(np.abs(spy.taught[50:]) > 10.0) == 0.0
    assert len(spy.taught) > 0.85 * len(clean)


def test_a_plain_model_behind_it_survives():
    errors = {}
    for name, ahead in {"bare": None, "behind": RedescendingFilter()}.items():
        model = linear_model.LinearRegression()
        pipeline = model if ahead is None else ahead | model
        lost = []
        for x, y in streams.stream(1000, seed=1, bad=0.2):
            if abs(y) < 5.0:
                lost.append(abs(y - pipeline.predict_one(x)))
            pipeline.learn_one(x, y)
        errors[name] = np.mean(lost[500:])
    assert errors["behind"] < 0.25  # the noise has a mean size of 0.08, and one outlier in ten is as small as 5
    assert errors["bare"] > 5 * errors["behind"]


def test_flipped_labels():
    filtered, wrong = RedescendingFilter(loss="logistic"), []
    pipeline = filtered | linear_model.LogisticRegression()
    flips = [(t, x, y) for t, (x, y) in enumerate(streams.stream(1000, seed=2, labels=True, bad=0.0, noise=0.0))]
    for t, x, y in flips:
        held = filtered.held_back
        pipeline.learn_one(x, y != (t % 5 == 4))
        if filtered.held_back > held and t >= 200:
            wrong.append(t % 5 == 4)
    assert len(wrong) > 70  # of 160 flipped
    assert np.mean(wrong) > 0.8


def test_a_record_has_the_score_with_which_it_came():
    filtered = RedescendingFilter()
    for x, y in streams.stream(50, seed=3):
        before = filtered.score_one(x, y)
        filtered.learn_one(x, y)
        assert filtered.score_one(x, y) == before
        assert filtered.score_one(x, math.inf) == 1.0
        assert filtered.score_one({**x, "x0": math.nan}, y) == 1.0
    seen = filtered.seen
    filtered.learn_one(x, y, w=0.0)
    assert filtered.seen == seen
    assert filtered.classify(0.5)
    assert not filtered.classify(0.49)
    assert RedescendingFilter(0.3).classify(0.3)
    assert RedescendingFilter(loss="hinge").classify(0.5)


def test_what_becomes_the_rule_is_passed_on():
    """It learns from what it holds back, so a lasting change is held back for some dozens of records and no longer."""
    filtered, held = RedescendingFilter(), []
    for t, (x, y) in enumerate(streams.stream(600, seed=4, bad=0.0)):
        before = filtered.held_back
        filtered.learn_one(x, y + 30.0 * (t >= 300))
        held.append(filtered.held_back > before)
    assert np.mean(held[300:305]) >= 0.6
    assert np.mean(held[400:]) < 0.1


def test_a_text_is_a_mistake_and_not_an_outlier():
    with pytest.raises(ValueError, match="'city' must be a number"):
        RedescendingFilter().learn_one({"city": "Paris"}, 1.0)


@pytest.mark.parametrize("labels", [False, True], ids=["numbers", "labels"])
def test_the_score_of_the_last_record_is_saved_too(labels, tmp_path):
    filtered = RedescendingFilter(loss="logistic" if labels else "squared")
    for x, y in streams.stream(50, seed=5, labels=labels):
        target = ("is", np.bool_(y)) if labels else np.float32(y)
        filtered.learn_one({("name", name): np.float32(value) for name, value in x.items()}, target)
    last = {("name", name): np.float32(value) for name, value in x.items()}, target
    path = tmp_path / "filter.safetensors"
    rd.save(filtered, path)
    loaded = rd.load(path)
    assert loaded.score_one(*last) == filtered.score_one(*last) != filtered.anomaly_detector.score_one(*last)
    assert streams.same(loaded.state(), filtered.state())
    before = filtered.state()
    for bad in (3, [], [[["a"]], 1.0, 0.5], [[["a", 1.0]], 1.0, "high"]):
        assert "invalid last record" in refusal(DataError, filtered.restore, {**before, "last": bad})
    assert streams.same(filtered.state(), before)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_number_that_is_not_finite_is_never_passed_on_even_of_a_feature_not_seen_before(loss):
    spy, filtered = Spy(), RedescendingFilter(loss=loss)
    pipeline = filtered | spy
    pipeline.learn_one({"new": math.nan}, True)
    pipeline.learn_one({"a": 1.0}, True)
    pipeline.learn_one({"a": 1.0, "other": math.inf}, True)
    assert (filtered.seen, filtered.held_back, spy.taught) == (3, 2, [True])
    again = RedescendingFilter(loss=loss)
    again.restore(filtered.state())
    assert again.score_one({"a": 1.0, "other": math.inf}, True) == 1.0


def test_more_than_two_labels_are_refused_with_what_to_do_and_that_works():
    filtered = RedescendingFilter(loss="logistic")
    pipeline = filtered | linear_model.LogisticRegression()
    for label in ("a", "b"):
        filtered.learn_one({"x": 1.0}, label)
    message = refusal(DataError, pipeline.learn_one, {"x": 1.0}, "c")
    assert "'a' or 'b'" in message
    assert "with any filter of labels ahead of it, in river.multiclass.OneVsRestClassifier" in message
    assert filtered.seen == 2
    model = preprocessing.StandardScaler() | multiclass.OneVsRestClassifier(
        RedescendingFilter(loss="logistic") | linear_model.LogisticRegression()
    )
    right = []
    for x, y in datasets.ImageSegments().take(300):
        right.append(model.predict_one(x) == y)
        model.learn_one(x, y)
    assert np.mean(right[100:]) > 0.6  # seven labels, so guessing gives 0.14
