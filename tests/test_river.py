"""River's regressor and classifier: the learner they stand for, features that come and go, batches, weights, labels."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import checks, datasets, linear_model, metrics, multiclass, preprocessing

import redescend as rd
from redescend.belief import LabelBelief, ResidualBelief, to_probability
from redescend.errors import DataError, ParameterError
from redescend.river import RedescendingClassifier, RedescendingFilter, RedescendingRegressor
from tests import river_streams as streams
from tests.refusals import refusal

CHECKED = {
    f"{kind.__name__} {parameters}": kind(**parameters)
    for kind in (RedescendingRegressor, RedescendingClassifier, RedescendingFilter)
    for parameters in kind._unit_test_params()
}
CHECKED["one against the rest"] = multiclass.OneVsRestClassifier(RedescendingClassifier())
CHECKED["behind a filter"] = preprocessing.StandardScaler() | RedescendingFilter() | linear_model.LinearRegression()


MEASURED = ("RedescendingRegressor {}", "RedescendingClassifier {}")
"""Memory takes a second to measure, and the other models have the same parts."""


@pytest.mark.parametrize("name", CHECKED)
def test_passes_every_check_of_river(name):
    model = CHECKED[name]
    skipped = model._unit_test_skips() | (set() if name in MEASURED else {"check_bounded_memory_growth"})
    for check in checks.yield_checks(model):
        if check.__name__ not in skipped:
            check(model.clone())


@pytest.mark.parametrize("kind", [RedescendingRegressor, RedescendingClassifier, RedescendingFilter])
def test_skips_no_check_of_river(kind):
    assert kind()._unit_test_skips() == set()


@pytest.mark.parametrize(
    ("model", "learner"),
    [
        (RedescendingRegressor(), rd.SelfTuning(5, loss=rd.losses.Squared())),
        (RedescendingRegressor(order=2), rd.SelfTuning(5, loss=rd.losses.Squared(), order=2)),
        (RedescendingRegressor("absolute"), rd.SelfTuning(5, loss=rd.losses.Absolute())),
        (RedescendingRegressor(**streams.FIXED), rd.Robust(5, loss=rd.losses.Squared(), **streams.FIXED)),
        (RedescendingClassifier(), rd.SelfTuning(5, loss=rd.losses.Logistic())),
        (RedescendingClassifier("hinge", **streams.FIXED), rd.Robust(5, loss=rd.losses.Hinge(), **streams.FIXED)),
    ],
    ids=repr,
)
def test_is_the_learner_with_a_constant_feature(model, learner):
    labels = isinstance(model, RedescendingClassifier)
    records = streams.stream(300, seed=0, labels=labels)
    X = np.array([[1.0, *x.values()] for x, _ in records])
    y = np.array([2.0 * y - 1.0 if labels else y for _, y in records])
    rd.play(learner, rd.Stream(X, y))
    for x, target in records:
        model.learn_one(x, target)
    np.testing.assert_array_equal([model.intercept, *model.weights.values()], learner.theta)
    x, _ = records[0]
    margin = float(learner.theta @ X[0])
    if labels:
        # Without a transform the probability is calibrated.
        if model.transform is not None:
            assert model.predict_proba_one(x)[True] == pytest.approx(1.0 / (1.0 + np.exp(-margin)), rel=1e-12)
        assert model.predict_one(x) is (margin > 0.0)
    else:
        assert model.predict_one(x) == pytest.approx(margin, rel=1e-12)


def coming_and_going(labels: bool) -> list[tuple[list[str], list[streams.Record]]]:
    """Blocks whose columns come, go, come back and change places."""
    records = streams.stream(60, seed=1, labels=labels)
    columns = [["x2", "x0"], ["x0", "x1", "x2"], ["x3"], ["x3", "x2", "x1", "x0"], ["x1"], ["x0", "x1", "x2", "x3"]]
    blocks = [records[start : start + 10] for start in range(0, 60, 10)]
    return [
        (names, [({n: x[n] for n in names}, y) for x, y in block]) for names, block in zip(columns, blocks, strict=True)
    ]


@pytest.mark.parametrize("frame", [pd, pl], ids=["pandas", "polars"])
@pytest.mark.parametrize("name", [name for name in streams.MODELS if "filter" not in name])
def test_a_block_is_its_rows(name, frame):
    one, many = streams.MODELS[name](), streams.MODELS[name]()
    for names, block in coming_and_going(streams.labelled(one)):
        for x, y in block:
            one.learn_one(dict(reversed(x.items())), y)
        X = frame.DataFrame([x for x, _ in block])[names]
        many.learn_many(X, frame.Series(name="target", **{"data" if frame is pd else "values": [y for _, y in block]}))
        assert same_but_name(one.state(), many.state())
        predicted = many.predict_many(X)
        assert isinstance(predicted, frame.Series)
        assert predicted.name == "target"
        for (x, _), found in zip(block, predicted.to_list(), strict=True):
            assert found == pytest.approx(one.predict_one(x), rel=1e-12)


def same_but_name(one: dict[str, Any], many: dict[str, Any]) -> bool:
    return streams.same({**one, "target": None}, {**many, "target": None})


@pytest.mark.parametrize("parameters", [{}, {"loss": "absolute"}, streams.FIXED], ids=["tuned", "absolute", "fixed"])
def test_growing_changes_nothing_that_was_learned(parameters):
    """A model whose features come one by one is one that has known them all, at 0, from the start.

    Only the order of sums over features differs, so they agree to rounding, which 300 rounds may amplify a little.
    """
    records = streams.stream(300, seed=2, dim=12)
    names = list(records[0][0])
    late, early = RedescendingRegressor(**parameters), RedescendingRegressor(**parameters)
    for t, (x, y) in enumerate(records):
        known = names[: 1 + t // 20]
        late.learn_one({name: x[name] for name in known}, y)
        early.learn_one({name: x[name] * (name in known) for name in names}, y)
        seen = {name: x[name] for name in known}
        assert late.predict_one(x) == pytest.approx(early.predict_one(seen), rel=1e-7)
    assert late.weights.keys() == early.weights.keys()


def test_order_2_grows_too_and_keeps_what_it_knows():
    model = RedescendingRegressor(order=2)
    for x, y in streams.stream(200, seed=3, bad=0.0):
        model.learn_one(x, y)
    before = model.predict_one(x)
    model.learn_one({"new": 1e-9}, model.intercept)
    assert model.predict_one(x) == pytest.approx(before, rel=1e-3)
    others = [x["x0"] for x, _ in streams.stream(400, seed=9)]
    for (x, y), new in zip(streams.stream(400, seed=3, bad=0.0), others, strict=True):
        model.learn_one({**x, "new": new}, y + 3.0 * new)
    assert model.weights["new"] == pytest.approx(3.0, abs=0.05)  # the noise is 0.1, so its error is near 0.1/√400


def test_what_is_missing_is_zero_and_order_never_matters():
    records = streams.stream(100, seed=4)
    full, missing = RedescendingRegressor(), RedescendingRegressor()
    rng = np.random.default_rng(0)
    for t, (x, y) in enumerate(records):
        gone = [name for name in x if rng.random() < 0.3 and t > 0]
        full.learn_one({name: 0.0 if name in gone else value for name, value in x.items()}, y)
        there = [name for name in x if name not in gone]
        missing.learn_one({name: x[name] for name in rng.permutation(there).tolist()}, y)
    assert streams.same(full.state(), missing.state())


def test_a_counter_loses_no_feature():
    """A Counter answers 0 for names that it has not, so as many names are not the same names."""
    model = RedescendingRegressor()
    model.learn_one(Counter("ab"), 1.0)
    model.learn_one(Counter("cd"), 1.0)
    assert set(model.weights) == set("abcd")


@pytest.mark.parametrize("name", [name for name in streams.MODELS if "filter" not in name])
def test_a_record_that_cannot_be_learned_from_is_refused_and_leaves_no_trace(name):
    model = streams.MODELS[name]()
    labels = streams.labelled(model)
    for x, y in streams.stream(50, seed=5, labels=labels):
        model.learn_one(x, y)
    before = model.state()
    bad_features = {
        "Feature 'x1' must be finite. Got nan": {**x, "x1": float("nan")},
        "Feature 'new' must be finite. Got -inf": {**x, "new": -np.inf},
        "Feature 'x0' must be a number. Got 'Paris' instead; encode texts, such as by river.": {**x, "x0": "Paris"},
        "Feature 'x0' must be a number. Got None": {"x0": None},
        "Feature 'x0' must be finite. Got 1000000": {"x0": 10**400},
        "x must be a dict": [1.0],
    }
    for sentence, bad in bad_features.items():
        assert sentence in refusal(DataError, model.learn_one, bad, y)
    bad_targets = [None, float("nan"), [1], pd.NA] if labels else [float("nan"), np.inf, "a", None]
    for bad in bad_targets:
        message = refusal(DataError, model.learn_one, {**x, "new": 1.0}, bad)
        assert message.startswith("y must be")
        assert f"Got {bad!r} instead" in message
    for bad in (-1.0, float("nan"), "a", None):
        assert "w must be" in refusal(DataError, model.learn_one, x, y, bad)
    for bad in ({**x, "x1": float("nan")}, {**x, "x0": "Paris"}, [1.0]):
        refusal(DataError, model.predict_one, bad)
        refusal(DataError, model.score_one, bad, y)
    frame = pd.DataFrame([x, {**x, "x1": np.nan}])
    assert "Feature 'x1' must be finite. Got nan in row 1" in refusal(
        DataError, model.learn_many, frame, pd.Series([y, y])
    )
    assert "y must be a series" in refusal(DataError, model.learn_many, frame[:1], [y])
    assert "as many rows" in refusal(DataError, model.learn_many, frame, pd.Series([y]))
    assert "numbers" in refusal(DataError, model.learn_many, pd.DataFrame({"x0": ["Paris"]}), pd.Series([y]))
    twice = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    assert "one column" in refusal(DataError, model.learn_many, twice, pd.Series([y]))
    assert streams.same(model.state(), before)


@pytest.mark.parametrize("name", [name for name in streams.MODELS if "filter" not in name])
def test_absurd_numbers_never_make_a_model_that_is_not_finite(name):
    model = streams.MODELS[name]()
    labels = streams.labelled(model)
    records = streams.stream(60, seed=6, labels=labels)
    for t, (x, y) in enumerate(records):
        model.learn_one({**x, "x1": 1e308} if t % 20 == 3 else x, y)
        if not labels and t % 20 == 7:
            model.learn_one(x, -1e308)
        assert np.isfinite([model.intercept, *model.weights.values()]).all()
    huge = {**x, "x0": 1e308, "x1": -1e308}
    assert np.isfinite(float(model.predict_one(huge)))
    assert np.isfinite(model.predict_many(pd.DataFrame([huge])).astype(float)).all()
    assert 0.0 <= model.score_one(huge, y) <= 1.0


def test_a_weight_makes_a_record_count_more_or_less():
    records = streams.stream(40, seed=7)
    weighed, plain = RedescendingRegressor(), RedescendingRegressor()
    weights = [(t % 4) / 2 for t in range(40)]
    for (x, y), w in zip(records, weights, strict=True):
        before = weighed.state()
        weighed.learn_one(x, y, w)
        assert streams.same(weighed.state(), before) == (w == 0.0)
        plain.learn_one(x, y)
    assert not streams.same(weighed.state(), plain.state())
    blocks = RedescendingRegressor()
    blocks.learn_many(pd.DataFrame([x for x, _ in records]), pd.Series([y for _, y in records]), pd.Series(weights))
    assert streams.same(blocks.state(), weighed.state())
    once = RedescendingRegressor()
    for x, y in records:
        once.learn_one(x, y, 1.0)
    assert streams.same(once.state(), plain.state())

    transform = rd.transforms.Cauchy(1.0)
    for w in (0.3, 2.5):
        light = RedescendingRegressor(transform=transform, step=rd.steps.Constant(0.01))
        long = RedescendingRegressor(transform=transform, step=rd.steps.Constant(0.01 * w))
        for x, y in records:
            light.learn_one(x, y, w)
            long.learn_one(x, y)
        assert light.weights == pytest.approx(long.weights, rel=1e-12)
        light.learn_one(x, y)
        assert light._model._learner.learner.step == rd.steps.Constant(0.01)


@pytest.mark.parametrize("frame", [pd, pl], ids=["pandas", "polars"])
def test_a_row_of_weight_0_is_as_if_it_were_not_there(frame):
    def series(values):
        return frame.Series(**{"data" if frame is pd else "values": values})

    X = frame.DataFrame({"a": [np.nan, 1.0, 2.0, -1.0], "b": [1.0, 0.0, 1.0, np.inf]})
    weights = [0.0, 1.0, 2.0, 0.0]
    targets = {RedescendingClassifier: ["spam", "ham", "spam", None], RedescendingRegressor: [np.nan, 1.0, 2.0, np.inf]}
    for kind, y in targets.items():
        many, one, fresh = kind(), kind(), kind()
        many.learn_many(X, series(y), series(weights))
        for a, b, target, w in zip(X["a"].to_list(), X["b"].to_list(), y, weights, strict=True):
            one.learn_one({"a": a, "b": b}, target, w)
        assert same_but_name(one.state(), many.state())
        for none in (0.0, series([0.0] * 4)):
            fresh.learn_many(X, series(y), none)
        fresh.learn_many(X[:0], series(y)[:0])
        assert same_but_name(fresh.state(), kind().state())
        assert "Got inf in row 3" in refusal(
            DataError, many.learn_many, X, series([y[1]] * 4), series([0.0, 1.0, 1.0, 1.0])
        )
    assert "Got nan in row 0" in refusal(
        DataError, RedescendingRegressor().learn_many, X[["b"]], series(targets[RedescendingRegressor]), 0.5
    )


@pytest.mark.parametrize("labels", [False, True], ids=["numbers", "labels"])
def test_the_score_is_one_minus_the_probability_that_a_record_is_clean(labels):
    """That of a belief that was told the model's predictions, in one call or in many."""
    model = RedescendingClassifier() if labels else RedescendingRegressor()
    margins, predictions, targets, rows = [], [], [], []
    assert 0.0 < model.score_one({"x0": 1.0}, True) < 0.5
    for x, y in streams.stream(200, seed=8, labels=labels):
        if labels:
            margins.append(model._model.predict(x))
        else:
            predictions.append(model.predict_one(x))
        targets.append(y)
        rows.append([1.0, *x.values(), *np.zeros(35)])
        model.learn_one(x, y)
        before = model.state()
        score = model.score_one(x, y)
        assert streams.same(model.state(), before)
    if labels:
        belief = LabelBelief()
        belief.update(margins, np.array(targets).astype(int))
        expected = belief.judge([model._model.predict(x)], [int(y)])
    else:
        belief = ResidualBelief(40)
        belief.update(predictions, targets, rows)
        expected = belief.judge([model.predict_one(x)], [y], rows[-1:])
        np.testing.assert_allclose(
            model.predict_interval_one(x, 0.8),
            np.ravel(belief.predict_interval([model.predict_one(x)], rows[-1:], 0.8)),
            rtol=1e-9,
        )
    assert score == pytest.approx(1.0 - float(to_probability(expected)[0]), abs=1e-9)
    fixed = RedescendingRegressor(transform=rd.transforms.Huber(2.0))
    assert fixed.score_one({"a": 1.0}, 8.0) == pytest.approx(1.0 - 2.0 / 8.0)


def test_outliers_score_high_however_little_noise_there_is():
    for noise in (1.0, 1e-3, 1e-9):
        model, scores = RedescendingRegressor(), {True: [], False: []}
        for x, y in streams.stream(600, seed=10, noise=noise):
            truth = abs(y) > 10.0
            if model.weights:
                scores[truth].append(model.score_one(x, y))
            model.learn_one(x, y)
        assert np.median(scores[True][20:]) > 0.98
        assert min(scores[True][20:]) > 0.5
        assert np.median(scores[False][300:]) < 0.5


def test_outliers_move_the_usual_model_and_not_this_one():
    """MAE over clean records of a stream whose targets are wrong one time in ten, after the first 20 of them."""
    errors = {}
    for name, model in {"usual": linear_model.LinearRegression(), "ours": RedescendingRegressor()}.items():
        pipeline, metric = preprocessing.StandardScaler() | model, metrics.MAE()
        rng = np.random.default_rng(0)
        for t, (x, y) in enumerate(datasets.TrumpApproval().take(500)):
            wrong = rng.random() < 0.1
            if not wrong and t >= 20:
                metric.update(y, pipeline.predict_one(x))
            pipeline.learn_one(x, 1000.0 if wrong else y)
        errors[name] = metric.get()
    assert errors["ours"] < 1.0 < 40.0 < errors["usual"]


def test_settings_are_checked_when_a_model_is_made():
    wrong = {
        "loss": ["hinge", "cubic", 3, rd.losses.Logistic()],
        "order": [0, 3, True, "2"],
        "fit_intercept": [1, None],
        "step": [rd.steps.Anytime()],
        "transform": ["huber", 1.0],
    }
    for name, values in wrong.items():
        for value in values:
            assert f"The '{name}' parameter of RedescendingRegressor must be" in refusal(
                ParameterError, RedescendingRegressor, **{name: value}
            )
    huber = rd.transforms.Huber(1.0)
    refusal(ParameterError, RedescendingRegressor, transform=huber, step=0.1)
    refusal(ParameterError, RedescendingRegressor, transform=huber, step=0)
    refusal(ParameterError, RedescendingRegressor, transform=huber, order=2)
    refusal(ParameterError, RedescendingClassifier, loss="squared")
    refusal(ParameterError, RedescendingFilter, threshold=0.0)
    refusal(ParameterError, RedescendingFilter, loss="cubic")
