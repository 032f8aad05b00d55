"""What columns are taken for, rule by rule."""

from __future__ import annotations

import datetime
import io
import json
from typing import Any

import pytest

from redescend.errors import DataError, ParameterError
from redescend.sources import Kind, open_source
from redescend.streaming.encoding.schema import Schema
from tests.refusals import refusal
from tests.streaming.tables import decided

MANY = 600
X = [float(row % 7) for row in range(MANY)]
DAY = datetime.datetime(2024, 2, 29)


def texts(different: int, count: int = MANY) -> list[str]:
    return [f"w{row % different}" for row in range(count)]


# --- the target ---


@pytest.mark.parametrize(
    ("target", "named", "task", "labels"),
    [
        (X, {}, "regression", []),
        ([3.0] * MANY, {}, "regression", []),
        ([-0.0, 0.0] * (MANY // 2), {}, "regression", []),
        ([DAY] * MANY, {}, "regression", []),
        ([True, False] * (MANY // 2), {"task": "regression"}, "regression", []),
        ([2.0, 1.5] * (MANY // 2), {}, "classification", ["1.5", "2"]),
        ([2.0, 1.5] * (MANY // 2), {"task": "regression"}, "regression", []),
        ([float("inf"), 1.0, 2.0, None] * (MANY // 4), {}, "classification", ["1", "2"]),
        (X, {"task": "classification"}, "classification", ["0", "1", "2", "3", "4", "5", "6"]),
        (X, {"labels": [5, "3.0", 9]}, "classification", ["5", "3", "9"]),
        ([True] * MANY, {}, "classification", ["false", "true"]),
        ([True] * MANY, {"labels": [True, "False"]}, "classification", ["true", "false"]),
        (["true", "no", "", "é🎉"] * (MANY // 4), {}, "classification", ["", "no", "true", "é🎉"]),
        (["a"] * MANY, {"labels": ["b", "a"]}, "classification", ["b", "a"]),
        (texts(100), {}, "classification", sorted(set(texts(100)))),
    ],
)
def test_what_is_predicted(target, named, task, labels):
    schema = decided({"x": X, "y": target}, "y", **named)
    assert (schema.task, schema.labels) == (task, labels)
    assert schema.outputs == (1 if len(labels) < 3 else len(labels))


@pytest.mark.parametrize(
    ("target", "named", "words"),
    [
        ([None] * MANY, {}, "'y' has no value in the first 600 records"),
        (["a"] * MANY, {}, "always 'a' in the first 600 records"),
        ([float("inf")] * MANY, {"task": "classification"}, "no number in the first 600 records that can be a label"),
        (texts(101), {}, "has 101 distinct values"),
        (texts(3), {"task": "regression"}, "is text, such as 'w0'"),
        # Most of these are numbers: those that are not are the reason.
        (["1.5", "2.5", "[3]"] * (MANY // 3), {"task": "regression"}, "is text, such as '[3]'"),
        (
            [f"{row}" if row % 5 else f"[{row}]" for row in range(MANY)],
            {},
            "600 distinct values in the first 600 records, such as '[0]'",
        ),
        ([DAY] * MANY, {"task": "classification"}, "a date, which cannot be a label"),
        (texts(3), {"labels": ["w0"]}, "2 to 100 distinct labels"),
        (texts(3), {"labels": ["w0", "w0"]}, "2 to 100 distinct labels"),
        (texts(3), {"labels": [f"{number}" for number in range(101)]}, "2 to 100 distinct labels"),
        (texts(3), {"labels": "w0"}, "a list of labels"),
        (X, {"labels": ["1", "one"]}, "'one' cannot be a label: the target 'y' is a number"),
        (X, {"labels": ["1", "nan"]}, "'nan' cannot be a label"),
        ([True] * MANY, {"labels": [True, "yes"]}, "'yes' cannot be a label: the target 'y' is true or false"),
        (X, {"task": "regression", "labels": [1, 2]}, "None in regression"),
        (X, {"task": "ranking"}, "'auto', 'regression' or 'classification'"),
    ],
)
def test_targets_that_cannot_be_predicted(target, named, words):
    assert words in refusal((DataError, ParameterError), decided, {"x": X, "y": target}, "y", **named)


def test_where_no_record_can_be_read_the_reason_is_told():
    source = open_source(io.BytesIO(b"x,y\n1\n2\n3\n"), format="csv")
    said = refusal(DataError, Schema.infer, source.sample, source.kinds, "y")
    assert "None of the first 3 records can be read; row 1 of 'the file object': 1 value where the header has 2" in said


def test_a_sentence_is_one_line_and_short_whatever_names_and_labels_hold():
    for columns in (
        {"a\nb": [1.0] * MANY, "y": X},
        {"x" * 5000: [1.0] * MANY, "y": X},
        {"x": X, "y": ["é" * 5000] * MANY},
    ):
        for target in ("y", "z"):
            said = refusal(DataError, decided, columns, target)
            assert said.isprintable()
            assert len(said) < 300


# --- features ---


@pytest.mark.parametrize(
    ("values", "how", "levels", "missing"),
    [
        (X, "number", [], False),
        ([*X[:-1], None], "number", [], True),
        ([*X[:-1], float("nan")], "number", [], True),
        ([True, False] * (MANY // 2), "boolean", [], False),
        ([DAY, DAY + datetime.timedelta(1)] * (MANY // 2), "date", [], False),
        (texts(256), "levels", sorted(set(texts(256))), False),
        (texts(257), "hashed", [], False),
        (texts(290), "hashed", [], False),
        (["é", "", None, "E"] * (MANY // 4), "levels", ["", "E", "é"], True),
        ([f"w{row}" for row in range(270)] * 2 + [None] * 60, "hashed", [], True),
        (["only", None] * (MANY // 2), "levels", ["only"], True),
        ([5.0, None] * (MANY // 2), "number", [], True),
    ],
)
def test_what_becomes_of_a_column(values, how, levels, missing):
    (feature,) = decided({"x": values, "y": X}, "y").features
    assert (feature.how, feature.levels, feature.missing) == (how, levels, missing)
    width = {"levels": len(levels) + 8, "hashed": 256}.get(how, 1)
    assert len(feature.encoded) == len(set(feature.encoded)) == width + missing


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([None] * MANY, "no value in the first 600 records"),
        ([4.0] * MANY, "always 4 in"),
        (["a"] * MANY, "always 'a' in"),
        ([True] * MANY, "always true in"),
        (texts(301), "301 distinct texts in 600 values, such as 'w0', so it looks like an identifier"),
        ([*texts(51, 100), *[None] * 500], "51 distinct texts in 100 values"),
    ],
)
def test_columns_that_are_left_out_unless_asked_for(values, words):
    columns = {"z": X, "x": values, "y": X}
    schema = decided(columns, "y")
    assert schema.inputs == ["z"]
    ((column, reason),) = schema.excluded
    assert column == "x"
    assert words in reason
    asked = decided(columns, "y", features=["x"])
    assert (asked.inputs, asked.excluded) == (["x"], [])


def test_few_texts_that_all_differ_are_no_identifiers():
    assert decided({"x": texts(99, 99), "y": X[:99]}, "y").features[0].how == "levels"


def test_the_columns_that_are_asked_for():
    columns = dict.fromkeys("abcdy", X)
    assert decided(columns, "y").columns == ["a", "b", "c", "d", "y"]
    schema = decided(columns, "y", features=["c", "a", "c"], by="d")
    assert (schema.inputs, schema.columns) == (["c", "a"], ["c", "a", "y", "d"])
    schema = decided(columns, "y", ignore=["b"], by="d")
    assert schema.inputs == ["a", "c"]
    assert schema.excluded == [("b", "is ignored, as requested")]


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"target": "z"}, "no column 'z', named as the target; there are 'x', 'y', 'k'"),
        ({"features": ["z"]}, "no column 'z', named as a feature"),
        ({"ignore": ["z"]}, "no column 'z', named as ignored"),
        ({"by": "z"}, "no column 'z', named as the key"),
        ({"features": "x"}, "'features' parameter of fit_stream must be a list of columns"),
        ({"ignore": "x"}, "'ignore' parameter of fit_stream must be a list of columns"),
        ({"features": ["x", "y"]}, "'y' cannot be both the target and a feature."),
        ({"features": ["x"], "ignore": ["x"]}, "'x' cannot be"),
        ({"features": ["k"], "by": "k"}, "'k' cannot be"),
        ({"by": "y"}, "'y' cannot be"),
        ({"ignore": ["x", "k"]}, "No column is left to predict 'y' from: 'x' is ignored, as requested; 'k' is ignored"),
        ({"features": []}, "No column is left"),
    ],
)
def test_columns_that_cannot_be_asked_for(named, words):
    named = {"target": "y", **named}
    assert words in refusal((DataError, ParameterError), decided, {"x": X, "y": X, "k": X}, **named)


# --- plain values ---


def everything(target: Any = None) -> Schema:
    columns = {
        "number": [*X[:-1], None],
        "truth": [value > 3 for value in X],
        "day": [DAY + datetime.timedelta(value) for value in X],
        "few": texts(3),
        "many": texts(280),
        "name": [f"{row}" for row in range(MANY)],
        "key": texts(5),
    }
    return decided({**columns, "y": texts(4) if target is None else target}, "y", by="key")


@pytest.mark.parametrize(("target", "how"), [(None, "levels"), (X, "hashed")])
def test_a_schema_survives_json(target, how):
    schema = everything(target)
    assert [feature.how for feature in schema.features] == ["number", "boolean", "date", "levels", how]
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    width = 149 if target is None else 2 + 1 + 1 + 3 + 8 + 256 + 1
    assert schema.dim == len(schema.encoded) == len(set(schema.encoded)) == width
    assert [schema.encoded[place] for place in schema.indicators] == [
        name for name in schema.encoded if name not in ("number", "truth", "day")
    ]
    assert schema.kinds["few"] is Kind.TEXT


ALTERED = {
    "no target": lambda plain: plain.pop("target"),
    "another setting": lambda plain: plain.update(more=1),
    "a number for a name": lambda plain: plain.update(target=5),
    "an unknown kind": lambda plain: plain.update(kind="colour"),
    "an unknown task": lambda plain: plain.update(task="ranking"),
    "no features": lambda plain: plain.update(features=[]),
    "a feature twice": lambda plain: plain["features"].append(plain["features"][0]),
    "the target a feature": lambda plain: plain["features"][0].update(name="y"),
    "labels in regression": lambda plain: plain.update(task="regression"),
    "one label": lambda plain: plain.update(labels=["w0"]),
    "a label twice": lambda plain: plain.update(labels=["w0", "w0"]),
    "labels that are no numbers": lambda plain: plain.update(kind="number"),
    "too many labels": lambda plain: plain.update(labels=texts(101)),
    "another way": lambda plain: plain["features"][0].update(how="hashed"),
    "levels of a number": lambda plain: plain["features"][0].update(levels=["a"]),
    "too many levels": lambda plain: plain["features"][3].update(levels=texts(257, 257)),
    "missing perhaps": lambda plain: plain["features"][0].update(missing=1),
    "no reason": lambda plain: plain["excluded"].append(["x"]),
    "nothing": lambda plain: plain.clear(),
}


@pytest.mark.parametrize("alteration", ALTERED)
def test_an_altered_schema_is_refused(alteration):
    plain = everything().to_dict()
    ALTERED[alteration](plain)
    assert "the file is corrupt or was written by an incompatible version" in refusal(
        DataError, Schema.from_dict, plain
    )


def test_rare_texts_share_features_if_labels_are_learned_from_too_many():
    often = ["Rome" if row % 2 else f"village {row % 400}" for row in range(MANY)]
    labels = decided({"x": X, "town": often, "y": texts(3)}, "y")
    assert labels.dim + 1 == 150  # the widest model of order 2
    assert "Rome" in labels.features[1].levels
    numbers = decided({"x": X, "town": often, "y": [*X[1:], 0.5]}, "y")
    assert numbers.dim + 1 > 150
    few = decided({"x": X, "town": texts(20), "y": texts(3)}, "y")
    assert len(few.features[1].levels) == 20
    wide = {f"x{place}": [value + place for value in X] for place in range(150)}
    assert len(decided({**wide, "town": often, "y": texts(3)}, "y").features[-1].levels) > 150


def test_a_constant_target_has_a_note():
    assert decided({"x": X, "y": [3.0] * MANY}, "y").notes == [
        ("y", "is always 3 in the first 600 records, so that there is nothing to predict")
    ]
    assert decided({"x": X, "y": [3.0, None] * (MANY // 2)}, "y").notes == []
