"""Records as numbers, against a slow reference that looks at one value at a time."""

from __future__ import annotations

import datetime
import math
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redescend.engines.labels import sum_outputs
from redescend.sources import Kind
from redescend.streaming.encoding.encoder import EncodedBatch
from redescend.streaming.encoding.features import Feature
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.target import encode_target
from tests.streaming.tables import TYPES, batch_of

EPOCH = datetime.datetime(1970, 1, 1)
FEATURES = [
    Feature("n", Kind.NUMBER, "number", [], True),
    Feature("m", Kind.NUMBER, "number"),
    Feature("b", Kind.BOOLEAN, "boolean"),
    Feature("d", Kind.DATE, "date", [], True),
    Feature("l", Kind.TEXT, "levels", ["", "red", "é🎉"], True),
    Feature("h", Kind.TEXT, "hashed"),
]
SCHEMA = Schema("y", Kind.NUMBER, "regression", [], FEATURES)
KINDS = {feature.name: feature.kind for feature in FEATURES}


def encode(schema, table):
    """The rows of all records, and why some are rejected."""
    batch = EncodedBatch(schema, table, target=False)
    return batch.rows(0, table.num_rows), batch.rejected


def encoded_slowly(record: dict[str, Any]) -> list[float] | str:
    """The numbers of a record by the names of the columns, or why it is refused."""
    out = dict.fromkeys(SCHEMA.encoded, 0.0)
    for feature in FEATURES:
        name, value = feature.name, record[feature.name]
        if isinstance(value, float) and math.isnan(value):
            value = None
        if value is None:
            out[f"{name} is missing" if feature.missing else "another column is missing"] = 1.0
            if feature.kind is not Kind.TEXT:
                out[name] = math.nan
        elif feature.how == "levels" and value in feature.levels:
            out[f"{name} = {value}"] = 1.0
        elif feature.how == "levels":
            out[f"{name} is another ({zlib.crc32(value.encode('utf-8')) % 8 + 1})"] = 1.0
        elif feature.how == "hashed":
            out[f"{name} ({zlib.crc32(value.encode('utf-8')) % 256 + 1})"] = 1.0
        elif feature.how == "date":
            out[name] = float((value - EPOCH) // datetime.timedelta(microseconds=1)) / 86_400_000_000.0
        elif math.isinf(value):
            return f"column '{name}': {value} is not finite"
        elif abs(value) > 1e100:
            return f"column '{name}': {repr(value).replace('e+', 'e')} is too large to compute with (at most 1e100)"
        else:
            out[name] = float(value)
    return list(out.values())


NUMBERS = st.sampled_from([1e100, -1e100, 1.0000001e100, 1e308, -0.0, 5e-324, math.inf, -math.inf]) | st.floats()
TEXTS = st.sampled_from(["", "red", "Red", "é🎉", "e\u0301", "NA", "true", "\x00"]) | st.text(max_size=5)
RECORDS = st.fixed_dictionaries(
    {
        "n": st.none() | NUMBERS,
        "m": st.none() | NUMBERS,
        "b": st.none() | st.booleans(),
        "d": st.none() | st.datetimes(),
        "l": st.none() | TEXTS,
        "h": st.none() | TEXTS,
    }
)


@pytest.mark.parametrize("examples", [60, pytest.param(2000, marks=pytest.mark.soak)])
def test_records_are_encoded_each_by_itself(examples):
    check = given(records=st.lists(RECORDS, max_size=8), cut=st.integers(0, 8))(check_encoding)
    settings(deadline=None, derandomize=True, max_examples=examples)(check)()


def check_encoding(records, cut):
    expected = [encoded_slowly(record) for record in records]
    table = batch_of({name: [record[name] for record in records] for name in KINDS}, KINDS).table
    X, refused = encode(SCHEMA, table)
    assert X.shape == (len(records), SCHEMA.dim)
    assert X.flags.c_contiguous
    assert refused == {at: row for at, row in enumerate(expected) if isinstance(row, str)}
    for at, row in enumerate(expected):
        if not isinstance(row, str):
            np.testing.assert_array_equal(X[at], row)
    # Wherever a table is cut, and whichever rows are asked for, they are the same.
    cut = min(cut, len(records))
    rest = table.slice(cut)
    np.testing.assert_array_equal(encode(SCHEMA, rest)[0], X[cut:])
    np.testing.assert_array_equal(EncodedBatch(SCHEMA, table, target=False).rows(cut, len(records)), X[cut:])


def test_hashes_never_change():
    """A model in a file relies on them."""
    table = batch_of({"h": ["", "a", "é🎉"], **{name: [None] * 3 for name in "nmbdl"}}, KINDS).table
    X, _ = encode(SCHEMA, table)
    first = SCHEMA.encoded.index("h (1)")
    assert X[:, first : first + 256].argmax(axis=1).tolist() == [0, 67, 117]


def test_tables_without_gaps_are_read_in_place_and_left_as_they_are():
    values = np.arange(100.0)
    schema = Schema("y", Kind.NUMBER, "regression", [], [Feature("x", Kind.NUMBER, "number")])
    X, refused = encode(schema, pa.record_batch({"x": values}))
    X[:] = -1.0
    assert not refused
    np.testing.assert_array_equal(values, np.arange(100.0))


# --- targets ---

NUMERIC = Schema("y", Kind.NUMBER, "classification", ["3", "-1", "0.5"], FEATURES)
TARGETS = {
    "regression": (SCHEMA, [1.5, None, math.nan, math.inf, -1e308, 1e100], [1.5, None, None, 3, 4, 1e100]),
    "numbers as labels": (NUMERIC, [0.5, 3.0, -1.0, None, 7.0, math.inf, 1e308], [2, 0, 1, None, 4, 5, 6]),
    "truths": (
        Schema("y", Kind.BOOLEAN, "classification", ["true", "false"], FEATURES),
        [True, False, None],
        [0, 1, None],
    ),
    "truths as numbers": (Schema("y", Kind.BOOLEAN, "regression", [], FEATURES), [True, False, None], [1, 0, None]),
    "texts": (
        Schema("y", Kind.TEXT, "classification", ["", "é"], FEATURES),
        ["é", "", None, "e", "É"],
        [1, 0, None, 3, 4],
    ),
    "none at all": (Schema("y", Kind.TEXT, "classification", ["a", "b"], FEATURES), [None, None], [None, None]),
    "no records": (Schema("y", Kind.TEXT, "classification", ["a", "b"], FEATURES), [], []),
    "dates": (
        Schema("y", Kind.DATE, "regression", [], FEATURES),
        [EPOCH + datetime.timedelta(days=2, hours=12), None],
        [2.5, None],
    ),
}
REASONS = {
    "regression": {3: "column 'y': inf is not finite", 4: "column 'y': -1e308 is too large"},
    "numbers as labels": {4: "7 is none of the 3 labels", 5: "inf is not finite", 6: "1e308 is too large"},
    "texts": {3: "the target 'y': 'e' is none of the 2 labels", 4: "'É' is none of the 2 labels"},
}


@pytest.mark.parametrize("case", TARGETS)
def test_targets(case):
    schema, values, expected = TARGETS[case]
    got, refused = encode_target(schema, pa.array(values, TYPES[schema.kind]))
    reasons = REASONS.get(case, {})
    missing = {at for at, value in enumerate(expected) if value is None}
    assert refused.keys() == missing | reasons.keys()
    assert all(refused[at] == "the target 'y' is missing" for at in missing)
    assert all(reason in refused[at] for at, reason in reasons.items())
    kept = [at for at in range(len(values)) if at not in refused]
    assert [got[at] for at in kept] == [expected[at] for at in kept]


def test_losses_are_added_up_in_the_same_order_for_one_record_and_for_many():
    paid = np.random.default_rng(0).exponential(size=(100, 50))
    one_by_one = [sum_outputs(paid[:, [column]].copy()).item() for column in range(50)]
    assert sum_outputs(paid).tolist() == one_by_one == [sum(paid[:, column].tolist()) for column in range(50)]
