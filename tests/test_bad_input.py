"""What cannot be used is refused in one sentence, and leaves the learner as it was."""

from __future__ import annotations

import re

import numpy as np
import pytest

import redescend as rd
from redescend import domains, errors, gates, losses, steps, transforms
from tests import reference
from tests.catalogue import DIM, name_of
from tests.refusals import COMMON, DIMS, RECIPES, learners, played, refusal, refused_unchanged

# --- making streams ---

ROWS, TARGETS = np.ones((4, 3)), np.ones(4)
STREAMS = {
    "X is a row": (ROWS[0], TARGETS, "X must have shape (rows, features)"),
    "X is a cube": (ROWS[None], TARGETS, "X must have shape (rows, features)"),
    "X is a number": (1.0, TARGETS, "X must have shape (rows, features)"),
    "X is nothing": (None, TARGETS, "X must be an array of floats, not of object"),
    "y is a column": (ROWS, TARGETS[:, None], "y must have shape (rows,)"),
    "y is a number": (ROWS, 1.0, "y must have shape (rows,)"),
    "y is short": (ROWS, TARGETS[:3], "one value for each of the 4 rows of X. Got 3"),
    "y is long": (ROWS, np.ones(5), "one value for each of the 4 rows of X. Got 5"),
    "no rows": (ROWS[:0], TARGETS[:0], "at least one row and one feature"),
    "no features": (ROWS[:, :0], TARGETS, "at least one row and one feature"),
    "empty list": ([], [], "X must have shape"),
    "integers": (ROWS.astype(int), TARGETS, "X must be an array of floats, not of int64"),
    "integer targets": (ROWS, TARGETS.astype(int), "y must be an array of floats, not of int64"),
    "bools": (ROWS.astype(bool), TARGETS, "X must be an array of floats, not of bool"),
    "objects": (ROWS.astype(object), TARGETS, "X must be an array of floats, not of object"),
    "strings": (ROWS.astype(str), TARGETS, "X must be an array of floats, not of <U"),
    "complex": (ROWS.astype(complex), TARGETS, "X must be an array of floats, not of complex128"),
    "dates": (np.zeros((4, 3), "M8[s]"), TARGETS, "X must be an array of floats, not of datetime64"),
    "list of words": ([["a", "b"]], [1.0], "X must be an array of floats"),
    "ragged list": ([[1.0], [1.0, 2.0]], [1.0, 1.0], "X must be an array of floats"),
    "words": ("ab", [1.0], "X must be an array of floats"),
}


@pytest.mark.parametrize("case", STREAMS)
def test_streams_of_the_wrong_kind(case):
    X, y, words = STREAMS[case]
    assert words in refusal(errors.DataError, rd.Stream, X, y)


@pytest.mark.parametrize(
    "named",
    [
        {"clean": [True]},
        {"clean": [1, 1, 1, 1]},
        {"clean": np.ones((4, 1), bool)},
        {"truth": np.ones(2)},
        {"truth": np.ones((3, 3))},
        {"truth": [1.0, np.nan, 1.0]},
        {"originals": ([9], ROWS[:1], TARGETS[:1])},
        {"originals": ([-1], ROWS[:1], TARGETS[:1])},
        {"originals": ([0, 1], ROWS[:1], TARGETS[:1])},
        {"originals": ([0.5], ROWS[:1], TARGETS[:1])},
    ],
    ids=str,
)
def test_what_is_known_about_a_stream_must_fit(named):
    assert next(iter(named)) in refusal(errors.DataError, rd.Stream, ROWS, TARGETS, **named)


# --- making learners ---


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"dim": 0}, "'dim' parameter of {} must be a whole number in [1, inf). Got 0"),
        ({"dim": -1}, "'dim' parameter of {} must be"),
        ({"dim": 2.0}, "'dim' parameter of {} must be"),
        ({"dim": True}, "'dim' parameter of {} must be"),
        ({"dim": "2"}, "'dim' parameter of {} must be"),
        ({"dim": None}, "'dim' parameter of {} must be"),
        ({"loss": "squared"}, "'loss' parameter of {} must be a loss"),
        ({"loss": losses.Squared}, "'loss' parameter of {} must be a loss"),
        ({"loss": None}, "'loss' parameter of {} must be a loss"),
        ({"step": 0.1}, "'step' parameter of {} must be a step"),
        ({"step": steps.Anytime}, "'step' parameter of {} must be a step"),
        ({"domain": 1.0}, "'domain' parameter of {} must be a domain"),
        ({"domain": None}, "'domain' parameter of {} must be a domain"),
        ({"dtype": "float16"}, "'dtype' parameter of {} must be float32 or float64"),
        ({"dtype": int}, "'dtype' parameter of {} must be float32 or float64"),
        ({"dtype": "nonsense"}, "'dtype' parameter of {} must be float32 or float64"),
    ],
    ids=str,
)
def test_settings_of_learners(recipe, changed, words):
    named = {"dim": DIM, **RECIPES[recipe], **COMMON, **changed}
    assert words.format(recipe.__name__) in refusal(errors.ParameterError, recipe, **named)


@pytest.mark.parametrize("domain", [domains.Reals(), domains.Ball(1.0), domains.Box(-1.0, 1.0)], ids=name_of)
@pytest.mark.parametrize(
    "start",
    [[0.1], [0.1] * 4, [], 0.1, "start", [0.1, np.nan, 0.1], [0.1, np.inf, 0.1], [[0.1] * 3], np.zeros(3, int)],
    ids=str,
)
def test_start_must_be_an_action(domain, start):
    assert "start" in refusal(errors.RedescendError, rd.OGD, DIM, start=start, domain=domain, **COMMON)


@pytest.mark.parametrize(
    "domain", [domains.Ball(1.0), domains.Box(0.0, 1.0), domains.L1Ball(1.0), domains.Simplex()], ids=name_of
)
def test_start_must_be_in_the_domain(domain):
    message = refusal(errors.RedescendError, rd.OGD, 2, start=[0.9, -1.1], domain=domain, **COMMON)
    assert re.search(r"'start' parameter of OGD must be a point of ", message)


@pytest.mark.parametrize(
    ("recipe", "named", "name"),
    [
        (rd.Learn, {"a": 0.0, "b": 1.0}, "a"),
        (rd.Learn, {"a": 1.0, "b": 0.0}, "b"),
        (rd.TopK, {"k": -1}, "k"),
        (rd.Robust, {"transform": "Huber"}, "transform"),
        (rd.Oracle, {"clean": [1, 0]}, "clean"),
        (rd.ClippedOGD, {"quantile": 0.0}, "quantile"),
        (rd.ClippedOGD, {"window": 0}, "window"),
        *[(rd.Descent, {"gate": bad}, "gate") for bad in (gates.Always, None, transforms.Huber(1.0))],
    ],
    ids=str,
)
def test_settings_of_gates(recipe, named, name):
    assert f"'{name}' parameter" in refusal(errors.ParameterError, recipe, DIM, **named, **COMMON)


@pytest.mark.parametrize("missing", COMMON)
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_missing_setting_is_named(recipe, missing):
    rest = {name: value for name, value in COMMON.items() if name != missing}
    with pytest.raises(TypeError, match=f"'{missing}'"):
        recipe(DIM, **RECIPES[recipe], **rest)


# --- playing ---


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_bad_row_and_its_feature_are_named(value, dim):
    X, y = reference.records(40, dim, seed=2)
    feature = dim // 2
    X[13, feature:] = value
    X[20, 0] = np.nan
    y[30] = np.inf
    for learner in learners(dim):
        message = refused_unchanged(errors.DataError, learner, played, learner, X, y)
        assert message == f"Row 13: x must be finite. Got {value} in feature {feature} instead."
        assert "feature 0" in refused_unchanged(errors.DataError, learner, played, learner, X[20:], y[20:])
        message = refused_unchanged(errors.DataError, learner, played, learner, X[21:], y[21:])
        assert message == "Row 9: y must be finite. Got inf instead."


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("loss", [losses.Hinge(), losses.Logistic(l2=0.1)], ids=name_of)
@pytest.mark.parametrize("label", [0.0, 2.0, 0.5, -1.0000001, np.nan, np.inf])
def test_labels_must_be_signs(loss, label, dim):
    X, y = reference.records(40, dim, seed=3, labels=True)
    y[17] = label
    for learner in learners(dim, loss=loss):
        message = refused_unchanged(errors.DataError, learner, played, learner, X, y)
        assert message.startswith("Row 17: y must be ")
        assert refused_unchanged(errors.DataError, learner, learner.update, X[17], y[17]) in message


@pytest.mark.parametrize("dim", DIMS)
def test_records_that_update_refuses(dim):
    good = np.full(dim, 0.1)
    bad = good.copy()
    bad[-1] = np.nan
    records = {
        "x is nothing": (None, 1.0, "x must be an array of floats, not of object"),
        "x is a word": ("x", 1.0, "x must be an array of floats"),
        "x is a number": (0.5, 1.0, "x must have shape (features,)"),
        "x is a matrix": (good[None], 1.0, "x must have shape (features,)"),
        "x is long": (np.append(good, 1.0), 1.0, f"x must have {dim} features. Got {dim + 1} instead."),
        "x is short": (good[1:], 1.0, f"x must have {dim} features. Got {dim - 1} instead."),
        "x is whole": (np.ones(dim, int), 1.0, "x must be an array of floats, not of int64"),
        "x is complex": (good + 0j, 1.0, "x must be an array of floats, not of complex128"),
        "x is made of objects": (good.astype(object), 1.0, "x must be an array of floats, not of object"),
        "x is not finite": (bad, 1.0, f"x must be finite. Got nan in feature {dim - 1} instead."),
        "x list is not finite": (bad.tolist(), 1.0, f"x must be finite. Got nan in feature {dim - 1} instead."),
        "y is nothing": (good, None, "y must be a number. Got None"),
        "y is a word": (good, "1.0", "y must be a number. Got '1.0'"),
        "y is an array": (good, np.ones(1), "y must be a number. Got array([1.])"),
        "y is a list": (good, [1.0], "y must be a number. Got [1.0]"),
        "y is complex": (good, 1j, "y must be a number. Got 1j"),
        "y is NumPy's complex": (good, np.complex128(1j), "y must be a number. Got "),
        "y is a date": (good, np.datetime64("2020-01-01"), "y must be a number. Got "),
        "y is NaN": (good, np.nan, "y must be finite. Got nan instead."),
        "y is infinite": (good, -np.inf, "y must be finite. Got -inf instead."),
        "y is a NaN of another type": (good, np.float32("nan"), "y must be finite. Got nan instead."),
    }
    for learner in learners(dim):
        for x, y, words in records.values():
            assert words in refused_unchanged(errors.DataError, learner, learner.update, x, y)


@pytest.mark.parametrize("x", [np.ones(DIM, np.float32), np.array([0.0, np.nan, 0.0], np.float32)], ids=str)
def test_a_refused_first_record_does_not_settle_the_precision(x):
    learner = rd.OGD(DIM, **COMMON)
    refused_unchanged(errors.DataError, learner, learner.update, x, None if np.isfinite(x).all() else 1.0)
    assert learner.dtype == np.float64


def test_a_refused_first_stream_does_not_settle_the_precision():
    learner = rd.OGD(1, **COMMON)
    refused_unchanged(errors.DataError, learner, played, learner, np.full((3, 1), np.nan, np.float32), np.ones(3))
    assert learner.dtype == np.float64


def test_what_play_refuses():
    for learner in learners(DIM):
        X, y = reference.records(5, DIM, seed=4)
        for thing in (None, (X, y), X, "stream"):
            message = refused_unchanged(errors.DataError, learner, rd.play, learner, thing)
            assert f"Stream(X, y). Got {type(thing).__name__} instead." in message
        for option in ("ignore", None, True, ""):
            message = refused_unchanged(errors.ParameterError, learner, played, learner, X, y, bad_rows=option)
            assert f"must be 'raise' or 'skip'. Got {option!r} instead." in message
        for dim in (DIM - 1, DIM + 1):
            message = refused_unchanged(errors.DataError, learner, played, learner, np.ones((5, dim)), y)
            assert f"The learner has {DIM} features and the stream has {dim}" in message


@pytest.mark.parametrize("thing", [None, "learner", rd.OGD, losses.Squared()], ids=str)
def test_play_needs_a_learner(thing):
    assert "learner" in refusal(errors.RedescendError, rd.play, thing, rd.Stream(ROWS, TARGETS)).lower()


@pytest.mark.parametrize("bad_rows", ["raise", "skip"])
@pytest.mark.parametrize("dim", DIMS)
def test_an_oracle_must_be_told_of_every_round(dim, bad_rows):
    X, y = reference.records(10, dim, seed=5)
    oracle = rd.Oracle(dim, clean=[True] * 7, **COMMON)
    message = refused_unchanged(errors.DataError, oracle, played, oracle, X, y, bad_rows=bad_rows)
    assert "Oracle has no label for round 8" in message
    played(oracle, X[:7], y[:7])
    assert "Oracle has no label for round 8" in refused_unchanged(errors.DataError, oracle, oracle.update, X[7], y[7])


def test_custom_functions_must_return_what_they_should():
    for value, gradient in (
        (lambda theta, x, y: -1.0, lambda theta, x, y: x),
        (lambda theta, x, y: np.nan, lambda theta, x, y: x),
        (lambda theta, x, y: 1.0, lambda theta, x, y: 1.0),
        (lambda theta, x, y: 1.0, lambda theta, x, y: x[:1]),
    ):
        learner = rd.OGD(DIM, loss=losses.Custom(value, gradient), step=steps.Constant(0.1))
        assert "Custom" in refused_unchanged(errors.DataError, learner, learner.update, [1.0, 2.0, 3.0], 1.0)
        assert "Custom" in refused_unchanged(errors.DataError, learner, played, learner, ROWS, TARGETS)
