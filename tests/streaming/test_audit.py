"""An audit finds wrong cells without being told the column."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from redescend.errors import DataError
from redescend.sources import open_source
from redescend.streaming.audit import audit_source
from redescend.streaming.far_out import LIGHTEST, NEVER, find_limits, fit_tail
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
    assert re.search(r"\bAbout 0 of these \d+ cells may be right", done.stderr)
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


def test_a_column_with_too_many_suspects_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(pa.table(make_gross(3)), "t.csv")
    assert audit_source(open_source("t.csv")).unpredictable == ["heavy"]
    done = run("audit", "t.csv")
    assert "Not predicted well enough: 'heavy': more than 5% of its cells would be suspects" in done.stderr
    assert "0 suspect cells in 5,000 records, 4 columns audited." in done.stderr


def test_the_tail_is_a_power_law_through_two_quantiles():
    random = np.random.default_rng(0)
    tail = fit_tail(random.pareto(2.0, 200_000) + 1.0)
    assert tail.exponent == pytest.approx(2.0, rel=0.05)
    np.testing.assert_allclose(tail.share_beyond(np.array([20.0, 200.0])), [20.0**-2, 200.0**-2], rtol=0.3)
    assert tail.share_beyond(np.array([tail.limit])) == pytest.approx(NEVER)
    deviations = np.array([50.0, 1.0, 50.0, 20.0])
    slow = [min(1.0, 4 * tail.share_beyond(d) / sum(deviations >= d)) for d in deviations]
    np.testing.assert_allclose(tail.count_expected(deviations), slow)
    assert fit_tail(np.zeros(1000)) is None
    assert fit_tail(np.ones(50)) is None
    assert fit_tail(np.ones(1000)).exponent == LIGHTEST
    assert find_limits(np.full(1000, np.nan)) == (-np.inf, np.inf)
