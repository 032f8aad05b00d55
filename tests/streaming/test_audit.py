"""An audit finds wrong cells without being told the column."""

from __future__ import annotations

import csv
import io
import re
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from redescend.errors import DataError
from redescend.sources import open_source
from redescend.sources.sampling import hash_contents
from redescend.streaming.audit import audit_source
from redescend.streaming.far_out import LIGHTEST, NEVER, find_range, fit_tail
from redescend.streaming.report.charts import draw_heat_map
from tests.cli.commands import run

ROWS = 1500
WRONG = {100: ("wind", 1048.0), 700: ("heat", -999.0), 1200: ("gust", 400.0)}


def make_table() -> pa.Table:
    random = np.random.default_rng(0)
    wind, heat = random.gamma(4.0, 2.5, ROWS), random.normal(15.0, 8.0, ROWS)
    columns = {
        "n": np.arange(ROWS),
        "wind": wind,
        "gust": 1.4 * wind + random.normal(size=ROWS),
        "heat": heat,
        "dew": 0.8 * heat - 3.0 + random.normal(size=ROWS),
    }
    for row, (name, value) in WRONG.items():
        columns[name][row - 1] = value
    return pa.table(columns)


def test_wrong_cells_come_first_with_their_columns():
    found = audit_source(open_source(make_table()))
    assert found.audited == ["wind", "gust", "heat", "dew"]
    assert found.skipped == {"n": "counts the records"}
    assert found.records == ROWS
    assert {(cell.row, cell.column): cell.value for cell in found.cells[:3]} == {
        (row, name): value for row, (name, value) in WRONG.items()
    }
    assert len(found.cells) <= 0.01 * ROWS
    assert len({cell.row for cell in found.cells}) == len(found.cells)
    surprises = [cell.surprise for cell in found.cells]
    assert surprises == sorted(surprises, reverse=True)
    for cell in found.cells:
        assert cell.q_value <= 0.1
        assert cell.low <= cell.expected <= cell.high


def test_the_command_lists_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(make_table(), "t.csv")
    done = run("audit", "t.csv", "--top", 3)
    shown = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {int(one["row"]): (one["column"], float(one["value"])) for one in shown} == WRONG
    assert "Not audited: 'n': counts the records" in done.stderr
    assert re.search(r"\bExpected false alarms: about 0\.", done.stderr)
    run("audit", "t.csv", "--out", "cells.jsonl", "--quiet")
    with pytest.raises(DataError, match="an audit reads it twice"):
        audit_source(open_source(io.BytesIO((tmp_path / "t.csv").read_bytes())))


def make_gross(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    a, b, heavy = random.normal(size=5000), random.gamma(2.0, 3.0, 5000), random.lognormal(size=5000)
    return {"a": a, "b": b, "c": 2.0 * a - b + random.normal(size=5000), "heavy": heavy}


@pytest.mark.parametrize("column", ["a", "c", "heavy"])
def test_one_gross_error_is_listed_and_nothing_else(column):
    columns = make_gross(1)
    columns[column][2345] = 9999.0
    found = audit_source(open_source(pa.table(columns)))
    assert [(cell.row, cell.column) for cell in found.cells] == [(2346, column)]
    assert found.false_alarms == found.cells[0].clean_probability < 0.01


def test_a_gross_error_is_listed_in_a_column_that_is_mostly_predicted_exactly():
    columns = make_gross(4)
    columns["sum"] = columns["a"] + columns["b"]
    columns["sum"][::25] += 3.0 * np.random.default_rng(5).normal(size=200)
    columns["sum"][2345] = 9999.0
    first = audit_source(open_source(pa.table(columns))).cells[0]
    assert (first.row, first.column) == (2346, "sum")


def test_two_gross_errors_in_a_row_do_not_confirm_each_other():
    columns = make_gross(2)
    columns["a"][777], columns["c"][777] = 2000.0, 4000.0
    found = audit_source(open_source(pa.table(columns)))
    assert {(cell.row, cell.column) for cell in found.cells} == {(778, "a"), (778, "c")}
    assert all(abs(cell.expected) < 50.0 for cell in found.cells)


def test_labels_that_are_not_predicted_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(3).choice(["heads", "tails"], 5000)
    pa.csv.write_csv(pa.table(make_gross(3) | {"coin": chance}), "t.csv")
    assert audit_source(open_source("t.csv")).unpredictable == ["coin"]
    done = run("audit", "t.csv")
    assert "Not predicted well enough by the others to list wrong values: 'coin'" in done.stderr
    assert "0 suspect cells in 5,000 records, 5 columns audited." in done.stderr


@pytest.mark.parametrize("share", [0.004, 0.03])
def test_rare_and_frequent_errors_are_found_in_a_column_with_heavy_tails(share):
    """The belief alone would doubt many clean values, and the tail of 1 % alone would overlook frequent errors."""
    random = np.random.default_rng(21)
    x = random.normal(size=3000)
    columns = {"x": x, "y": 5.0 * x + random.standard_t(2.5, 3000), "zeros": random.poisson(0.2, 3000) * 7.0}
    wrong = random.choice(3000, int(3000 * share), replace=False)
    columns["y"][wrong] += 80.0
    found = {cell.row - 1 for cell in audit_source(open_source(pa.table(columns))).cells}
    assert len(found & set(wrong.tolist())) >= 0.9 * len(wrong)
    assert len(found - set(wrong.tolist())) <= 3


def test_a_group_that_is_predicted_badly_is_no_error():
    random = np.random.default_rng(22)
    region = random.integers(0, 30, 2000)
    names = np.array([f"r{number}" for number in region], object)
    region[:24], names[:24] = np.repeat(np.arange(30, 38), 3), "other"
    region[1000] = 29 - region[1000]
    cells = audit_source(open_source(pa.table({"region": region.astype(float), "name": names}))).cells
    assert [cell.row for cell in cells] == [1001]


def test_the_tail_is_a_power_law_through_two_quantiles():
    random = np.random.default_rng(0)
    tail = fit_tail(random.pareto(2.0, 200_000) + 1.0)
    assert tail.exponent == pytest.approx(2.0, rel=0.05)
    np.testing.assert_allclose(tail.share_beyond(np.array([20.0, 200.0])), [20.0**-2, 200.0**-2], rtol=0.3)
    assert tail.share_beyond(np.array([tail.limit])) == pytest.approx(NEVER)
    deviations = np.array([50.0, 1.0, 33.0, 20.0, 32.0, 31.0, 32.5])
    alone = {d: min(1.0, 7 * tail.share_beyond(d) / sum(deviations >= d)) for d in deviations}
    slow = [min(expected for other, expected in alone.items() if other <= d) for d in deviations]
    assert slow[2] < alone[33.0]
    np.testing.assert_allclose(tail.count_expected(deviations), slow)
    assert fit_tail(np.zeros(1000)) is None
    assert fit_tail(np.ones(50)) is None
    assert fit_tail(np.ones(1000)).exponent == LIGHTEST
    assert find_range(np.full(1000, np.nan)) is None
    wild = np.where(random.random(2000) < 0.9, 1.0, 10.0 ** random.uniform(0.0, 99.0, 2000))
    assert np.isfinite(fit_tail(wild).limit)


def make_spoilt() -> pa.Table:
    """A table with one error of each kind that has a name."""
    random = np.random.default_rng(7)
    heat, size = random.normal(15.0, 8.0, ROWS), random.normal(1000.0, 5.0, ROWS)
    days = np.datetime64("2020-01-01") + np.arange(ROWS)
    columns = {
        "day": days.astype("datetime64[us]"),
        "heat": heat,
        "dew": 0.8 * heat - 3.0 + random.normal(size=ROWS),
        "size": size,
        "width": 0.3 * size + random.normal(size=ROWS),
        "wind_dir": (10.0 * random.normal(size=ROWS)) % 360.0,
    }
    columns["dew"][[200, 400]] = -999.0
    columns["width"][600] *= 10.0
    columns["heat"][800], columns["size"][800] = columns["size"][800], columns["heat"][800]
    columns["dew"][1000:1100] = columns["dew"][1000]
    columns["day"][1200] += np.timedelta64(300, "D")
    table = pa.table(columns)
    return pa.concat_tables([table.slice(0, 1300), table.slice(20, 30), table.slice(1300)]).combine_chunks()


def test_errors_that_have_a_name_are_named():
    found = audit_source(open_source(make_spoilt()))
    kinds = {(cell.row, cell.column): cell.kind for cell in found.cells if cell.kind}
    assert kinds[201, "dew"] == kinds[401, "dew"] == "sentinel value"
    assert kinds[601, "width"] == "10 times the expected value"
    assert kinds[801, "heat"] == "swapped with size"
    assert kinds[801, "size"] == "swapped with heat"
    assert "wind_dir" in found.skipped
    assert any(line.startswith("'dew' is stuck at") and "to row 1,100." in line for line in found.notes)
    assert "Copies of earlier rows: 30, such as rows 1,301 to 1,330 of those from row 21 on." in found.notes
    [dates] = (line for line in found.notes if line.startswith("Dates out of order in 'day'"))
    assert "row 1,201 (2024-02-09)" in dates
    assert not any(line.count("is stuck") and not line.startswith("'dew'") for line in found.notes)


@pytest.mark.parametrize(("unit", "text"), [((1.8, 32.0), "in Fahrenheit, not C"), ((1000.0, 0.0), "1,000 times")])
def test_a_stretch_in_another_unit_is_named(unit, text):
    random = np.random.default_rng(11)
    heat = random.normal(15.0, 8.0, ROWS)
    dew, other = 0.8 * heat - 3.0 + random.normal(size=ROWS), random.normal(size=ROWS)
    heat[600:800] = unit[0] * heat[600:800] + unit[1]
    found = audit_source(open_source(pa.table({"heat": heat, "dew": dew, "other": other})))
    [told] = (line for line in found.notes if "unit" in line)
    assert told.startswith("'heat' seems to be in another unit from row 601 to row 800: its values are ")
    assert text in told
    cells = [cell for cell in found.cells if cell.column == "heat" and 601 <= cell.row <= 800]
    assert all(cell.kind == "in another unit from row 601 to row 800" for cell in cells)


def test_drift_and_groups_are_no_other_unit():
    random = np.random.default_rng(12)
    shop = np.repeat(np.arange(15), 100)
    price = np.exp(random.normal(size=15))[shop] * 10.0 * (1.0 + np.arange(ROWS) / 500.0) + random.normal(size=ROWS)
    size = random.normal(size=ROWS)
    columns = {"shop": [f"shop {number}" for number in shop], "price": price, "size": size, "double": 2.0 * size}
    assert not any("unit" in line for line in audit_source(open_source(pa.table(columns))).notes)


def test_records_of_one_user_number_are_in_no_other_unit():
    """A column that only grows, such as a day, is no user."""
    random = np.random.default_rng(12)
    hours, other = random.uniform(0.5, 4.0, ROWS), random.normal(size=ROWS)
    energy = 4.0 * hours + 0.2 * random.normal(size=ROWS)
    energy[600:640] *= 2.205
    for numbers, told in ((random.permutation(60), 0), (np.arange(60), 1)):
        user = np.sort(random.integers(0, 59, ROWS))
        user[600:640], user[640:] = 15 if told else 59, np.maximum(user[640:], 16)
        user[:600] = np.minimum(user[:600], 14)
        table = pa.table({"user": 1000 + numbers[user], "hours": hours, "energy": energy, "other": other})
        assert len([line for line in audit_source(open_source(table)).notes if "unit" in line]) == told


def test_numbers_of_groups_are_neither_stuck_nor_in_another_unit():
    random = np.random.default_rng(23)
    litter = np.repeat(random.permutation(40), 36)[:ROWS]
    size = np.exp(random.normal(size=40))[litter] + 0.1 * random.normal(size=len(litter))
    slow = np.round(np.cumsum(random.normal(0.0, 0.05, len(litter))), 1)
    columns = {
        "litter": litter.astype(float),
        "size": size,
        "slow": slow,
        "like": slow + 0.02 * random.normal(size=len(slow)),
    }
    assert not [line for line in audit_source(open_source(pa.table(columns))).notes if "litter" in line]
    slow[500:700] = slow[499]
    assert any(line.startswith("'slow' is stuck") for line in audit_source(open_source(pa.table(columns))).notes)


def test_rows_that_differ_in_a_column_that_is_not_audited_are_no_copies():
    random = np.random.default_rng(13)
    x = random.normal(size=ROWS)
    table = pa.table({"n": np.arange(ROWS), "x": x, "y": 2.0 * x + random.normal(size=ROWS)})
    copied = table.take(pa.array([*range(1000), *range(200, 240), *range(1000, ROWS)]))
    copied = copied.set_column(0, "n", pa.array(np.arange(copied.num_rows)))
    [told] = audit_source(open_source(copied)).notes
    assert told == "Copies of earlier rows but for 'n': 40, such as rows 1,001 to 1,040 of those from row 201 on."
    # A text that is different in every record is not audited, and tells records apart.
    named = copied.append_column("name", pa.array([f"record {row}" for row in range(copied.num_rows)]))
    found = audit_source(open_source(named))
    assert "name" in found.skipped
    assert found.notes == []


def test_a_clean_table_has_nothing_to_tell():
    random = np.random.default_rng(8)
    few = {name: random.integers(0, 3, ROWS).astype(float) for name in "ab"}
    assert audit_source(open_source(pa.table(few))).notes == []


def test_copies_are_those_found_by_comparing_all_rows():
    random = np.random.default_rng(9)
    table = pa.table(
        {
            "x": pa.array(random.integers(0, 30, 400).astype(float), mask=random.random(400) < 0.1),
            "t": random.choice(["a", "b", ""], 400),
            "z": random.integers(0, 30, 400).astype(float),
        }
    )
    [batch] = table.to_batches()
    hashes, records = hash_contents(batch), table.to_pylist()
    for one in range(400):
        for two in range(one):
            assert (hashes[one] == hashes[two]) == (records[one] == records[two])


def test_the_heat_map_shows_where_suspects_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(make_spoilt(), "t.csv")
    run("audit", "t.csv", "--heat-map", "map.svg", "--out", "cells.csv", "--quiet")
    picture = ElementTree.parse(tmp_path / "map.svg")
    titles = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.startswith("width, rows 598 to 612: ") for title in titles)
    names = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"heat", "dew", "size", "width", "row"} <= set(names)


def test_the_heat_map_names_columns_that_only_rules_judge():
    picture = draw_heat_map(["a", "b"], np.zeros((2, 10)), 100, ["b"])
    assert ">a</text>" in picture
    assert ">b (rules only)</text>" in picture


@pytest.mark.parametrize("by", ["shop", "b", "c"])
def test_an_audit_finds_the_same_cells_whatever_the_order_of_rows_is(by):
    columns = make_gross(6)
    del columns["heavy"]
    shop = np.random.default_rng(7).integers(0, 9, 5000)
    columns["shop"] = np.array([f"shop {number}" for number in shop])
    columns["c"] = columns["c"] + 5.0 * shop
    for row in range(100, 5000, 500):
        columns["c"][row] += 40.0
    order = np.argsort(columns[by], kind="stable")
    lists = []
    for rows in (np.arange(5000), order):
        found = audit_source(open_source(pa.table({name: values[rows] for name, values in columns.items()})))
        lists.append({(int(rows[cell.row - 1]), cell.column) for cell in found.cells})
    assert lists[0] == lists[1]
    assert set(range(100, 5000, 500)) <= {row for row, _ in lists[0]}
