"""Explanations: contributions add up, ordinary values are ordinary, and similar records are similar."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pytest

import redescend as rd
from redescend.errors import DataError
from redescend.sources import open_source
from redescend.streaming import fit_stream
from redescend.streaming.explanation import CLIPPED, LEFT_OUT, explain_record, find_nearest, find_record
from tests.cli.commands import prices, refused, run

ROWS = 1500


def make_table() -> pa.Table:
    random = np.random.default_rng(1)
    x, town = random.normal(size=ROWS), random.choice(["Rome", "Oslo", "Bonn"], ROWS)
    y = 10.0 + 3.0 * x + 4.0 * (town == "Rome") + 0.3 * random.normal(size=ROWS)
    y[100] += 50.0
    size = np.where(random.random(ROWS) < 0.1, np.nan, x)
    return pa.table(
        {"size": pa.array(size, from_pandas=True), "town": town, "y": y, "high": np.where(y > 11, "yes", "no")}
    )


@pytest.mark.parametrize("target", ["y", "high", "town"])
@pytest.mark.parametrize("linear", [True, False])
def test_contributions_add_up_to_the_prediction(target, linear):
    table = make_table().drop_columns(["high"] if target == "y" else ["y"] if target == "high" else [])
    model, rounds = fit_stream(table, target, final_look=True, linear=linear)
    rounds.run()
    source = open_source(table)
    for row in (1, 101, 900):
        batch, index, _ = find_record(source, model, row)
        found = explain_record(model, batch, index)
        record = table.slice(row - 1, 1)
        assert found.row == row
        total = found.typical + sum(one.contribution for one in found.contributions)
        assert total == pytest.approx(found.total, rel=1e-6, abs=1e-6)
        assert found.clean_probability == model.clean_probability(record)[0]
        if linear:
            assert found.prediction == model.predict(record)[0]
        if target == "y":
            assert found.total == pytest.approx(found.prediction)
            assert found.low < found.prediction < found.high
            if linear:
                assert [found.low, found.high] == [ends[0] for ends in model.predict_interval(record)]
        else:
            assert found.prediction in found.ordinary
        json.dumps(found.to_dict())


@pytest.mark.parametrize("linear", [True, False])
def test_limiting_a_prediction_is_a_step_of_its_own(linear):
    table = make_table().drop_columns(["high"])
    model, rounds = fit_stream(table, "y", final_look=True, linear=linear)
    rounds.run()
    far = table.slice(5, 1).set_column(0, "size", pa.array([-1e6]))
    found, near = (
        explain_record(model, *find_record(open_source(one, kinds=model.schema.kinds), model, 1)[:2])
        for one in (far, table.slice(5, 1))
    )
    steps = {one.column: one.contribution for one in found.contributions}
    assert found.typical == near.typical == pytest.approx(np.median(table["y"]), abs=3.0)
    assert steps["size"] < -1e5
    assert steps[CLIPPED] > 1e5
    assert found.typical + sum(steps.values()) == pytest.approx(found.prediction, abs=1e-6)
    assert found.low <= found.prediction < found.high  # at 0, beyond which no target is
    assert CLIPPED not in {one.column for one in near.contributions}


def test_a_learned_record_is_explained_by_trees_without_it():
    random = np.random.default_rng(4)
    x = random.random((600, 3))
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": np.sin(6.0 * x[:, 0]) + random.normal(size=600)})
    model, rounds = fit_stream(table, "y", final_look=True, linear=False, passes=3)
    final = rounds.run().final
    for row, prediction in zip(final.rounds.rows[:5].tolist(), final.rounds.predictions.tolist(), strict=False):
        found = explain_record(model, *find_record(open_source(table), model, row)[:2])
        steps = {one.column: one.contribution for one in found.contributions}
        assert found.prediction == prediction
        assert steps[LEFT_OUT] == pytest.approx(prediction - model.predict(table.slice(row - 1, 1))[0])


def test_with_an_ordinary_value_the_record_is_ordinary():
    table = make_table().drop_columns(["high"])
    model, rounds = fit_stream(table, "y", final_look=True)
    rounds.run()
    batch, index, _ = find_record(open_source(table), model, 101)
    found = explain_record(model, batch, index)
    assert found.clean_probability < 0.5
    low, high = found.ordinary
    assert low < found.low < found.prediction < found.high < high < found.target
    record = table.slice(100, 1)
    for value, ordinary in ((low, True), (high, True), (found.prediction, True), (2 * high - low, False)):
        changed = record.set_column(2, "y", pa.array([value]))
        assert (model.clean_probability(changed)[0] > 0.5) == ordinary
    near = find_nearest(model, open_source(table), batch, index)
    assert [one["distance"] for one in near] == sorted(one["distance"] for one in near)
    sizes, towns = table["size"].to_numpy(), np.array(table["town"].to_pylist())
    same = np.flatnonzero((towns == towns[100]) & (np.arange(ROWS) != 100))
    gaps = np.abs(sizes[same] - sizes[100])
    clean = model.clean_probability(table)[same] > 0.5
    best = same[clean][np.argsort(gaps[clean])[:3]] + 1
    assert [one["row"] for one in near] == best.tolist()


def test_similar_records_of_one_model_per_key_are_those_of_the_same_key():
    random = np.random.default_rng(2)
    x, shop = random.normal(size=ROWS), random.choice(["Rome", "Oslo"], ROWS)
    y = 3.0 * x + (shop == "Rome") + 0.3 * random.normal(size=ROWS)
    known = random.random(ROWS) < 0.8
    table = pa.table({"shop": pa.array(shop, mask=~known), "x": x, "y": pa.array(y, mask=random.random(ROWS) < 0.1)})
    store, rounds = fit_stream(table, "y", by="shop")
    rounds.run()
    row = 1 + int(np.flatnonzero(known & table["y"].is_valid().to_numpy())[700])
    source = open_source(table)
    near = find_nearest(store, source, *find_record(source, store, row)[:2])
    same = known & (shop == shop[row - 1]) & (np.arange(ROWS) != row - 1)
    usable = np.flatnonzero(same & table["y"].is_valid().to_numpy())
    clean = usable[store.clean_probability(table.take(usable)) > 0.5]
    best = clean[np.argsort(np.abs(x[clean] - x[row - 1]))[:3]]
    assert [one["row"] for one in near] == (best + 1).tolist()
    assert [one["x"] for one in near] == x[best].tolist()


def test_rows_that_cannot_be_explained(tmp_path):
    table = make_table().drop_columns(["high"])
    model, rounds = fit_stream(table, "y")
    rounds.run()
    with pytest.raises(DataError, match="has no row 1501; its rows are 1 to 1500"):
        find_record(open_source(table), model, 1501)
    empty = table.slice(0, 1).set_column(2, "y", pa.array([None], pa.float64()))
    with pytest.raises(DataError, match="Row 1 cannot be explained: the target 'y' is missing"):
        explain_record(model, *find_record(open_source(empty), model, 1))


def test_the_command_tells_of_extreme_values_and_of_repeated_targets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(3)
    age, height = random.normal(40.0, 5.0, 800), random.normal(size=800)
    weight = 70.0 + height + random.normal(size=800)
    age[99], weight[400:412] = 400.0, 71.5
    pa.csv.write_csv(pa.table({"age": age, "height": height, "weight": weight}), "people.csv")
    run("fit", "people.csv", "--target", "weight", "--model", "m", "--quiet")
    said = run("explain", "m", "people.csv", "--row", 100).stdout
    assert re.search(r"age = 400 is extreme: 99 % of the values differ from (39|40)\.\d+ by at most 1\d\.\d+\.", said)
    assert re.search(r"Probability that the record is clean: [\d.]+, apart from age\.", said)
    [one] = json.loads(run("explain", "m", "people.csv", "--row", 100, "--json").stdout)["extreme"]
    assert (one["column"], one["value"]) == ("age", 400.0)
    said = run("explain", "m", "people.csv", "--row", 405).stdout
    assert "All rows from 401 to 412 have the same weight; fit judges whether it is stuck." in said
    assert "extreme" not in said
    assert "same weight" not in run("explain", "m", "people.csv", "--row", 100).stdout


def test_tiny_numbers_are_shown_as_zero(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(4)
    x, counts = random.normal(size=2000), np.where(random.random(2000) < 0.85, 0.0, random.poisson(3.0, 2000))
    pa.csv.write_csv(pa.table({"x": x, "counts": counts}), "counts.csv")
    run("fit", "counts.csv", "--target", "counts", "--model", "m", "--quiet")
    said = run("explain", "m", "counts.csv", "--row", 7).stdout
    assert not re.search(r"e-\d\d", said)


def test_the_command_and_the_report_explain(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prices(tmp_path / "prices.csv")
    run("fit", "prices.csv", "--target", "price", "--model", "m", "--quiet")
    said = run("explain", "m", "prices.csv", "--row", 20).stdout
    for words in (
        "Row 20: price is 525.619",
        "Nine in ten clean values are between ",
        "; a value below",
        "town = Rome",
        "a typical record",
    ):
        assert words in said
    found = json.loads(run("explain", "m", "prices.csv", "--row", 20, "--json").stdout)
    assert found["row"] == 20
    assert found["prediction"] == pytest.approx(
        found["typical"] + sum(one["contribution"] for one in found["contributions"])
    )
    assert len(found["nearest"]) == 3
    assert "has no row 3000" in refused("explain", "m", "prices.csv", "--row", 3000)
    page = (tmp_path / "m.report.html").read_text()
    assert "Why they are suspects" in page
    assert re.search(r"prices\.csv row \d+: price is 5\d\d\.\d+, expected [12]\d", page)
    run("fit", "prices.csv", "--target", "price", "--by", "town", "--model", "towns", "--quiet")
    assert isinstance(rd.load("towns"), rd.streaming.ModelStore)
    assert "a typical record" in run("explain", "towns", "prices.csv", "--row", 20).stdout


def test_dates_are_explained_and_listed_as_dates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    x = random.normal(size=1500).round(3)
    days = np.datetime64("2024-03-01") + (40 + 10 * x + random.normal(size=1500)).round().astype("timedelta64[D]")
    days[600] += np.timedelta64(3650, "D")
    pa.csv.write_csv(pa.table({"x": x, "due": days.astype(str)}), "due.csv")
    run("fit", "due.csv", "--target", "due", "--model", "m", "--quiet")
    said = run("explain", "m", "due.csv", "--row", 601).stdout
    assert re.search(rf"^Row 601: due is {days[600]}, predicted 2024-\d\d-\d\dT\d\d:\d\d\.\n", said)
    assert re.search(r"clean values are between 2024-\S+ and 2024-\S+; a value below 2024-\S+ or above 2024-", said)
    assert "Contributions to the prediction (in days):" in said
    assert re.search(r"a typical record +2024-", said)
    assert re.search(r"x = \S+ +[+-]?\d+\.?\d*\n", said)
    assert re.search(r"sum +2024-", said)
    page = (tmp_path / "m.report.html").read_text()
    assert re.search(rf"due\.csv row 601: due is {days[600]}, expected 2024-\S+ to 2024-", page)
    assert f"<td>{days[600]}</td><td>2024-" in page
