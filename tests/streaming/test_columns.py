"""Columns as people have them: counters are left out, dates have cycles, and missing values are no suspects."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from redescend.errors import DataError
from redescend.sources import Kind, open_source
from redescend.streaming import fit_stream
from redescend.streaming.audit import audit_source
from redescend.streaming.encoding.features import CYCLES, Feature, find_count, infer_feature
from redescend.streaming.encoding.remarks import explain_thousands
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.report.describe import describe_schema

ROWS = 4000


def pipe(header: str, *rows: str) -> io.BytesIO:
    """A source that can be read once."""
    return io.BytesIO("".join([f"{header}\n", *rows]).encode())


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        ("n", np.arange(1, 201), "counts the records"),
        ("n", np.arange(200)[::-1], "counts the records"),
        ("n", np.cumsum(1 + np.arange(200) % 3), "looks like an identifier"),
        ("n", np.random.default_rng(0).permutation(200), "counts the records"),
        ("n", np.random.default_rng(0).permutation(10 * np.arange(200)), "looks like an identifier"),
        ("customer_id", np.random.default_rng(0).permutation(5000)[:200], "looks like an identifier"),
        ("value", np.random.default_rng(0).permutation(5000)[:200], None),
        ("year", np.arange(1800, 2000), None),
        ("n", np.arange(200) + 0.5, None),
        ("n", np.repeat(np.arange(100), 2), None),
        ("n", np.arange(10), None),
    ],
)
def test_numbers_that_only_number_the_records(name, values, found):
    reason = find_count(name, Kind.NUMBER, pa.array(values.astype(float)))
    assert (found is None and reason is None) or found in reason


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        ("depth", np.arange(200), "counts the records"),
        ("depth", np.arange(1, 201), "counts the records"),
        ("depth", np.arange(20, 220), None),
        ("depth", np.arange(200)[::-1], None),
        ("depth", np.cumsum(1 + np.arange(200) % 3), None),
        ("order_id", np.cumsum(1 + np.arange(200) % 3), "looks like an identifier"),
        *(
            (name, np.arange(20, 220), "counts the records")
            for name in ("Unnamed: 0", "Row", "rownames", "No.", "number")
        ),
    ],
)
def test_of_a_stream_only_a_count_from_the_start_or_by_name_numbers_the_records(name, values, found):
    reason = find_count(name, Kind.NUMBER, pa.array(values.astype(float)), stream=True)
    assert (found is None and reason is None) or found in reason


@pytest.mark.parametrize("gap", [1, 3])
def test_a_file_that_only_begins_sorted_has_no_counter(gap):
    start = 20 + gap * np.arange(1000)
    later = np.random.default_rng(0).permutation(4000)
    counter, feature = np.concatenate([start, start[-1] + 1 + np.sort(later)]), np.concatenate([start, later])
    assert find_count("depth", Kind.NUMBER, pa.array(counter.astype(float)))
    assert find_count("depth", Kind.NUMBER, pa.array(feature.astype(float))) is None


def test_a_column_that_may_count_the_records_of_a_stream_is_kept_with_a_note():
    rows = [f"{depth},{depth % 7},{2 * depth}\n" for depth in range(20, 1120)]
    schema = fit_stream(pipe("depth,x,y", *rows), "y", format="csv")[0].schema
    assert schema.inputs == ["depth", "x"]
    assert schema.notes == [
        ("depth", "only grows, or only falls, in the first 1,000 records; ignore it if it numbers the records")
    ]
    ended = fit_stream(pipe("depth,x,y", *rows[:200]), "y", format="csv")[0].schema  # all of it is known
    assert (ended.inputs, ended.notes) == (["x"], [])
    assert Schema.from_dict(schema.to_dict()) == schema
    assert describe_schema(schema)["Notes"][0].startswith("'depth': only grows")
    assert "notes" not in replace(schema, notes=[]).to_dict()


def test_a_column_of_a_stream_that_is_constant_at_first_is_used_once_it_varies():
    random = np.random.default_rng(0)
    x, late = random.normal(size=(2, ROWS))
    late[:1500] = 5.0
    towns = np.where(np.arange(ROWS) < 1500, "Rome", random.choice(["Rome", "Oslo"], ROWS))
    y = 2.0 * x + 3.0 * late + 4.0 * (towns == "Oslo") + 0.1 * random.normal(size=ROWS)
    rows = [f"{a},{b},{town},{c}\n" for a, b, town, c in zip(x, late, towns, y, strict=True)]
    model, run = fit_stream(pipe("x,late,town,y", *rows), "y")
    assert model.schema.inputs == ["x", "late", "town"]
    assert model.schema.notes == [
        ("late", "is always 5 in the first 1,000 records; it is used as soon as it varies"),
        ("town", "is always 'Rome' in the first 1,000 records; it is used as soon as it varies"),
    ]
    errors = np.concatenate([np.abs(rounds.predictions - rounds.targets) for rounds in run.batches()])
    assert np.median(errors[1600:]) < 0.15
    ended, _ = fit_stream(pipe("x,late,town,y", *rows[:900]), "y")
    assert ended.schema.inputs == ["x"]


def test_a_counter_is_left_out_unless_it_is_all_there_is_or_is_requested():
    random = np.random.default_rng(0)
    x = random.normal(size=ROWS)
    table = pa.table({"n": np.arange(ROWS), "x": x, "y": x + random.normal(size=ROWS)})
    assert fit_stream(table, "y")[0].schema.inputs == ["x"]
    assert fit_stream(table, "y")[0].schema.excluded == [("n", "counts the records")]
    assert fit_stream(table, "y", features=["n", "x"])[0].schema.inputs == ["n", "x"]
    assert fit_stream(table.select(["n", "y"]), "y")[0].schema.inputs == ["n"]


def test_a_column_of_no_kind_is_left_out_with_the_reason():
    lines = [json.dumps({"tags": [n], "x": n % 7, "meta": {"z": n}, "a\ud800": n, "y": n % 7}) for n in range(60)]
    records = "\n".join(lines).encode()
    excluded = [
        ("tags", "is nested: not a number, date or text"),
        ("meta", "is nested: not a number, date or text"),
        (r"a\ud800", "is not valid Unicode: not a number, date or text"),
    ]
    assert fit_stream(io.BytesIO(records), "y")[0].schema.excluded == excluded
    asked = fit_stream(io.BytesIO(records), "y", ignore=["meta"])[0].schema.excluded
    assert asked == [("meta", "is ignored, as requested"), excluded[0], excluded[2]]
    for role, named in (("the target", {"target": "tags"}), ("a feature", {"target": "y", "features": ["tags"]})):
        with pytest.raises(DataError, match=f"'tags', named as {role}, is nested: not a number, date or text"):
            fit_stream(io.BytesIO(records), **named)


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M", "%d.%m.%Y", "%m/%d/%Y"])
@pytest.mark.parametrize("repeats", [1, 3])
def test_of_dates_that_are_texts_it_is_said_that_they_are(form, repeats):
    dates = [(datetime(2020, 1, 1) + timedelta(hours=7 * hour)).strftime(form) for hour in range(400)]
    table = pa.table({"t": dates * repeats, "x": np.arange(400 * repeats) % 7, "y": np.arange(400 * repeats) % 17})
    schema = fit_stream(table, "y")[0].schema
    said = f"has dates that are read as text, such as '{dates[0]}'; store them as dates to use them"
    assert ("t", said) in (schema.notes + schema.excluded)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([f"{n / 10:.1f}".replace(".", ",") + " °C" for n in range(-40, 40)], "the unit '°C', which"),
        ([f"{n}kg" for n in range(76)] + ["heavy"] * 4, "the unit 'kg', which are read as text; remove the unit"),
        ([f"{n}kg" for n in range(70)] + ["heavy"] * 10, None),
        ([f"{n} {'lb' if n % 3 else 'kg'}" for n in range(80)], "different units, such as 'lb' and 'kg', which"),
        ([f"A{n}" for n in range(80)], None),
        (["2wd", "4wd"] * 40, None),
    ],
)
def test_of_numbers_with_a_unit_it_is_said_that_they_are_text(texts, said):
    table = pa.table({"x": texts * 20, "y": np.arange(len(texts) * 20) % 17})
    schema = fit_stream(table, "y")[0].schema
    assert schema.inputs == ["x"]
    assert [name for name, _ in schema.notes] == ["x"] * (said is not None)
    assert all(text.startswith(f"has numbers with {said}") for _, text in schema.notes)


def test_numbers_with_a_unit_that_all_differ_are_not_called_identifiers():
    numbers = np.arange(1000) % 7
    table = pa.table({"x": [f"{n + 0.5} kg" for n in range(1000)], "z": numbers, "y": numbers})
    (excluded,) = fit_stream(table, "y")[0].schema.excluded
    assert excluded.column == "x"
    assert "numbers with the unit 'kg'" in excluded.reason


def test_of_numbers_among_a_few_words_it_is_said_that_they_are_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = ["unknown" if row % 8 == 0 else str(row) for row in range(400)]
    with open("t.csv", "w") as file:
        file.write("size,level,y\n")
        for row, value in enumerate(values):
            file.write(f"{value},{'high' if row % 8 == 0 else row % 30},{row % 7}\n")
    schema = fit_stream("t.csv", "y")[0].schema
    said = "is read as text: of 400 values looked at, 350 are numbers, but not {}; leave such values empty"
    assert dict(schema.excluded)["size"] == said.format("'unknown'")
    assert dict(schema.notes)["level"] == said.format("'high'")
    schema = fit_stream("t.csv", "level")[0].schema
    assert dict(schema.notes)["level"] == said.format("'high'")


def test_cycles_of_dates():
    start = datetime(2024, 1, 1)
    hourly = pa.array([start + timedelta(hours=hour) for hour in range(1000)], pa.timestamp("us"))
    daily = pa.array([start + timedelta(days=day) for day in range(1000)], pa.timestamp("us"))
    few = pa.array([start + timedelta(days=day) for day in range(10)], pa.timestamp("us"))
    kinds = [infer_feature("t", Kind.DATE, column).levels for column in (hourly, daily, few)]
    assert kinds == [["time of day", "day of the week"], ["day of the week", "day of the year"], []]
    feature = Feature("t", Kind.DATE, "date", ["day of the week"])
    days = np.arange(14.0)
    waves = np.stack(list(feature.waves(days)))
    assert len(feature.encoded) == 1 + len(waves) == 1 + 2 * CYCLES["day of the week"][1]
    np.testing.assert_allclose(waves[:, :7], waves[:, 7:], atol=1e-12)
    np.testing.assert_allclose(waves[2], np.sin(2 * 2 * np.pi * days / 7), atol=1e-12)
    # Any pattern of seven days is a sum of these waves and a constant.
    assert np.linalg.matrix_rank(np.vstack([np.ones(14), waves])) == 7


def test_dates_that_stand_for_months_have_no_day_of_the_week():
    months = np.arange("2020-01", "2024-01", dtype="M8[M]").astype("M8[us]")
    assert infer_feature("month", Kind.DATE, pa.array(months)).levels == ["day of the year"]
    assert infer_feature("year", Kind.DATE, pa.array(months[::12])).levels == []
    days = np.arange("2020-01-01", "2020-03-01", dtype="M8[D]").astype("M8[us]")
    assert infer_feature("day", Kind.DATE, pa.array(days)).levels == ["day of the week"]


def test_a_daily_pattern_is_learned_from_the_time():
    random = np.random.default_rng(0)
    times = [datetime(2024, 1, 1) + timedelta(hours=hour) for hour in range(ROWS)]
    y = 5.0 * np.sin(2 * np.pi * np.arange(ROWS) / 24) + 0.1 * random.normal(size=ROWS)
    table = pa.table({"time": pa.array(times, pa.timestamp("us")), "y": y})
    model, run = fit_stream(table, "y")
    run.run()
    assert np.abs(model.predict(table)[-500:] - y[-500:]).mean() < 0.2


def test_of_a_clean_table_no_more_records_with_missing_values_are_suspects():
    random = np.random.default_rng(0)
    x = random.normal(size=(ROWS, 3))
    y = x @ [2.0, -1.0, 0.5] + 0.3 * random.normal(size=ROWS)
    missing = random.random(ROWS) < 0.17
    first = np.where(missing, np.nan, x[:, 0])
    table = pa.table({"a": pa.array(first, from_pandas=True), "b": x[:, 1], "c": x[:, 2], "y": y})
    _, run = fit_stream(table, "y", passes=2, final_look=True)
    run.run()
    listed = run.final.rounds.rows[: run.final.listed] - 1
    assert missing[listed].sum() <= 0.01 * missing.sum()


def test_a_point_between_thousands_in_a_part_of_a_column_is_noted():
    random = np.random.default_rng(0)
    prices = random.integers(500, 20_000, 600)
    texts = [f"{price:,}".replace(",", ".") if row >= 300 else f"{price}" for row, price in enumerate(prices)]
    for target in ("price", "size"):
        text = "size,price\n" + "".join(
            f"{price / 100:.1f},{text}\n" for price, text in zip(prices, texts, strict=True)
        )
        model, _ = fit_stream(io.BytesIO(text.encode()), target)
        [(name, note)] = model.schema.notes
        assert name == "price"
        assert re.fullmatch(r"has whole numbers such as \d{4} and others such as \d\.\d{3}: if .* remove it", note)
    notes = audit_source(open_source(pa.table({"size": prices / 100.0, "price": np.array(texts, float)}))).notes
    assert f"'price' {note}." in notes


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).uniform(1.0, 900.0, 500).round(3),
        np.append(np.random.default_rng(0).uniform(1.0, 900.0, 500).round(2), np.arange(1000, 1300)),  # prices
        np.append(np.random.default_rng(0).uniform(1.0, 2500.0, 500).round(3), np.arange(1000, 1300)),
        np.append(np.random.default_rng(0).uniform(0.0, 900.0, 500).round(3), np.arange(1000, 1300)),
        np.append(np.random.default_rng(0).uniform(1.0, 900.0, 500).round(3), [9999.0] * 50),
    ],
)
def test_decimals_are_not_taken_for_thousands(values):
    assert explain_thousands(values) is None
