"""An audit finds wrong cells without being told the column."""

from __future__ import annotations

import csv
import io

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from redescend.errors import DataError
from redescend.sources import open_source
from redescend.streaming.audit import audit_source
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
    run("audit", "t.csv", "--out", "cells.jsonl", "--quiet")
    with pytest.raises(DataError, match="an audit reads it twice"):
        audit_source(open_source(io.BytesIO((tmp_path / "t.csv").read_bytes())))
