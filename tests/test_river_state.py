"""What River's models have learned goes into plain values and back; and copies of every kind."""

from __future__ import annotations

import copy
import json
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest

from redescend.errors import DataError
from redescend.river import RedescendingClassifier, RedescendingRegressor, dict_model
from tests import river_streams as streams
from tests.refusals import alter, refusal


@pytest.mark.parametrize("name", streams.MODELS)
def test_goes_on_as_if_it_had_never_stopped(name):
    model = streams.MODELS[name]()
    records = streams.stream(120, seed=0, labels=streams.labelled(model))
    for x, y in records[:60]:
        model.learn_one(x, y)
    restored = streams.MODELS[name]()
    restored.restore(model.state())
    copies = [restored, pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.clone(include_attributes=True)]
    untaught = model.clone()
    for x, y in records[60:]:
        x = {**x, "new": x["x0"] + 1.0}
        for one in (model, *copies):
            one.learn_one(x, y)
        expected = streams.answer(model, x, y)
        assert all(streams.answer(one, x, y) == expected for one in copies)
    assert all(streams.same(one.state(), model.state()) for one in copies)
    assert streams.same(untaught.state(), streams.MODELS[name]().state())


def test_a_state_is_plain_and_a_copy():
    model = RedescendingClassifier()
    for t in range(20):
        model.learn_one({("bigram", ("of", 2)): float(t % 3), 7: 1.0, "text": 2.0}, ("label", t % 2))
    state = model.state()
    before = model.state()
    text = json.dumps(state, default=lambda array: {"array": array.ravel().tolist(), "shape": array.shape})
    again = json.loads(text, object_hook=lambda o: np.reshape(o["array"], o["shape"]) if "array" in o else o)
    other = RedescendingClassifier()
    other.restore(again)
    assert other.weights == model.weights
    assert other.predict_proba_one({7: 1.0}) == model.predict_proba_one({7: 1.0})
    state["linear"]["learner"]["theta"][:] = 5.0
    assert streams.same(model.state(), before)


@pytest.mark.parametrize("name", streams.MODELS)
def test_an_altered_state_is_refused_and_leaves_no_trace(name):
    model = streams.MODELS[name]()
    for x, y in streams.stream(30, seed=1, labels=streams.labelled(model)):
        model.learn_one(x, y)
    before = model.state()
    altered = partial(alter, before)
    ahead = ("model",) if "model" in before else ()
    bad = [
        None,
        {},
        altered(*ahead, "labels", value=[["a", 3.0]]),
        altered(*ahead, "labels", value=7),
        altered(*ahead, "linear", value=[]),
        altered(*ahead, "linear", "features", value=["a"] * 4),
        altered(*ahead, "linear", "features", value=[f"f{j}" for j in range(50)]),
        altered(*ahead, "linear", "features", value=3),
        altered(*ahead, "linear", "learner", value={}),
        altered(*ahead, "linear", "learner", value="text"),
        altered(*ahead, "linear", "learner", "learner", value="OGD(5)"),
    ]
    bad += [altered(key, value=-1) for key in ("seen", "held_back") if key in before]
    for state in bad:
        refusal(DataError, model.restore, state)
    assert streams.same(model.state(), before)


def test_after_restoring_a_block_finds_the_places_of_that_state():
    block = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, -4.0]}), pd.Series([1.0, 2.0])
    model, other = RedescendingRegressor(), RedescendingRegressor()
    model.learn_many(*block)
    other.learn_one({"z": 5.0}, 1.0)
    other.learn_many(*block)
    model.restore(other.state())
    for one in (model, other):
        one.learn_many(*block)
    assert streams.same(model.state(), other.state())


def test_a_state_of_other_settings_is_refused():
    model = RedescendingRegressor()
    model.learn_one({"a": 1.0}, 2.0)
    assert "belongs to" in refusal(DataError, RedescendingRegressor("absolute").restore, model.state())
    refusal(DataError, RedescendingRegressor(**streams.FIXED).restore, model.state())


def test_ever_new_names_end_with_a_sentence(monkeypatch):
    """A stream with ever new names would fill the memory."""
    monkeypatch.setattr(dict_model, "MOST_FEATURES", {1: 30, 2: 10})
    for order, most in ((1, 30), (2, 10)):
        model = RedescendingRegressor(order=order)
        for number in range(most):
            model.learn_one({f"name {number}": 1.0}, 1.0)
        with pytest.raises(DataError, match=rf"at most {most} features, .*FeatureHasher"):
            model.learn_one({"one more": 1.0}, 1.0)
        model.learn_one({"name 0": 2.0}, 1.0)
