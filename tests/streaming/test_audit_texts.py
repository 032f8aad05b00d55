"""Typos, dates out of order and records that cannot be read are in the list of an audit."""

from __future__ import annotations

import csv
import io
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import redescend
from redescend.cli import app
from redescend.sources import open_source
from redescend.streaming.audit import audit_source
from redescend.streaming.audit.rules import find_late_dates, find_typos
from tests.cli.commands import run


@pytest.mark.parametrize(
    ("text", "meant"),
    [("Adelei", "Adelie"), ("Adlie", "Adelie"), ("Adeliee", "Adelie"), ("Adilie", "Adelie"), ("ADELIE", "Adelie")],
)
def test_one_edit_or_another_case_is_a_typo(text, meant):
    counts = {"Adelie": 150, "Gentoo": 120, "Chinstrap": 68}
    assert find_typos(counts | {text: 1}) == {text: meant}
    assert find_typos(counts | {text: 40}) == {}  # a value of its own


@pytest.mark.parametrize(
    "counts",
    [
        {"": 5, "a": 3},
        {"grade 1": 500, "grade 2": 2},  # another digit is another code
        {"cat": 500, "bat": 1},  # short
        {"6.7": 1, "67": 500},  # numbers
        {"north": 500, "east": 400, "south": 1},  # two edits
        {"carat": 500, "caret": 400, "carot": 1},  # frequent texts are one edit apart themselves
        {"anna": 500, "hanna": 1, "hannah": 400},  # between two others
        {},
    ],
)
def test_texts_of_their_own_are_no_typos(counts):
    assert find_typos(counts) == {}


@pytest.mark.parametrize(
    ("wrong", "shift", "found"),
    [
        (range(300, 310), 3650.0, range(300, 310)),  # a wrong year
        (range(300, 310), -3650.0, range(300, 310)),
        (range(590, 600), -3650.0, range(590, 600)),
        (range(300, 600), -3650.0, range(300, 301)),  # either half may be wrong
        (range(400, 401), 50.0, range(400, 401)),  # the first of a group
    ],
)
def test_blocks_of_dates_out_of_order_are_found_whole(wrong, shift, found):
    days, groups = np.arange(600.0), np.zeros(600)
    if len(wrong) == 1:
        days[400:] -= 400.0
        groups[400:] = 1.0
    days[list(wrong)] += shift
    late = find_late_dates("day", days, np.arange(600), [groups])
    assert [one.row for one in late] == list(found)


def test_dates_that_are_too_high_and_too_low_hide_no_others():
    random = np.random.default_rng(5)
    days = np.sort(random.uniform(0.0, 2000.0, 20_000))
    wrong = np.sort(random.choice(20_000, 180, replace=False))
    days[wrong] += np.where(random.random(180) < 0.5, 365.0, -365.0)
    late = {one.row for one in find_late_dates("day", days, np.arange(20_000))}
    # A date that is too high near the end, or too low near the beginning, may still be in order.
    assert len(late & set(wrong.tolist())) >= 150
    assert len(late - set(wrong.tolist())) <= 2


@pytest.mark.parametrize("shift", [-365.0, 365.0])
@pytest.mark.parametrize(("rows", "first", "size"), [(60, 30, 3), (600, 200, 40), (1000, 950, 50)])
def test_blocks_of_any_size_up_to_a_tenth_are_listed_whole(rows, first, size, shift):
    days = np.arange(float(rows)) / 10.0
    days[first : first + size] += shift
    late = [one.row for one in find_late_dates("day", days, np.arange(rows))]
    # Dates that are too high at the end are in order.
    assert late == (list(range(first, first + size)) if first + size < rows or shift < 0 else [])


@pytest.mark.parametrize(
    ("starts", "length"),
    [
        ([0.0, 0.0], 300),  # two halves
        ([0.0, 940.0], 1000),  # an overlap
        ([0.0, -5000.0], 300),
        ([0.0] * 20, 100),  # groups that no column numbers
    ],
)
def test_where_dates_begin_again_only_the_first_is_listed(starts, length):
    days = np.concatenate([start + np.arange(float(length)) for start in starts])
    late = [one.row for one in find_late_dates("day", days, np.arange(len(days)))]
    assert late == [length * part for part in range(1, len(starts))]


def make_table() -> pa.Table:
    random = np.random.default_rng(0)
    day = (np.datetime64("2020-01-01") + np.arange(600)).astype("datetime64[us]")
    day[400] += np.timedelta64(90, "D")
    kind = random.choice(["Adelie", "Gentoo"], 600).astype(object)
    kind[100], kind[200] = "Adelei", "gentoo"
    length = random.normal(40.0, 2.0, 600)
    return pa.table({"day": day, "kind": kind, "length": length, "depth": 0.5 * length + random.normal(size=600)})


def test_findings_follow_the_cells_with_their_rows():
    found = audit_source(open_source(make_table())).cells
    assert [(cell.row, cell.column, cell.value, cell.expected, cell.kind) for cell in found[-3:]] == [
        (101, "kind", "Adelei", "Adelie", "possible typo"),
        (201, "kind", "gentoo", "Gentoo", "possible typo"),
        (401, "day", "2021-05-05", None, "date out of order"),
    ]
    assert all(cell.surprise is not None for cell in found[:-3])


def test_records_that_cannot_be_read_are_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(make_table(), "t.csv")
    with open("t.csv", "a") as file:
        file.write("2022-01-01,Adelie,long,20\n")
    done = run("audit", "t.csv", code=3)
    last = list(csv.DictReader(io.StringIO(done.stdout)))[-1]
    assert (last["row"], last["column"], last["kind"]) == ("601", "", "column 'length': 'long' is not a number")
    assert "Not audited: 1 record that cannot be read, see the end of the list" in done.stderr
    assert "3 suspect cells in 601 records, 3 columns audited." in done.stderr


@pytest.mark.parametrize("command", ["audit", "explain", "schema"])
def test_commands_that_learn_from_no_record_have_no_treatment_of_bad_ones(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert f"redescend {command} has no option --on-bad;" in run(command, "t.csv", "--on-bad", "skip", code=2).stderr


def test_a_terminal_shows_a_table_of_the_first_cells(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    pa.csv.write_csv(make_table(), "t.csv")
    app(["audit", "t.csv", "--top", "1"], standalone_mode=False)
    shown = capsys.readouterr()
    assert "\u2502 101 \u2502 kind   \u2502 Adelei \u2502   Adelie \u2502" in shown.out
    assert "clean_probability" not in shown.out


def test_the_package_is_a_command(tmp_path):
    done = subprocess.run([sys.executable, "-m", "redescend", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{redescend.__version__}\n"


def test_a_table_that_is_sorted_by_its_labels_has_no_wrong_cells_where_they_change():
    counts = {("crew", "man", "no"): 670, ("crew", "man", "yes"): 190, ("crew", "woman", "no"): 20}
    counts |= {("third", "man", "no"): 420, ("third", "man", "yes"): 90, ("third", "woman", "no"): 90}
    counts |= {("third", "woman", "yes"): 80, ("first", "man", "no"): 120, ("first", "woman", "yes"): 140}
    records = [record for record, count in counts.items() for _ in range(count)]
    columns = dict(zip(("class", "sex", "saved"), map(list, zip(*records, strict=True)), strict=True))
    assert audit_source(open_source(pa.table(columns))).cells == []


@pytest.mark.parametrize("numbered", [False, True])
def test_dates_that_begin_again_with_every_group_are_in_order(numbered):
    days = np.datetime64("2020-01-01") + np.arange(200)
    shops = np.repeat([3, 1, 2], 200) if numbered else np.repeat(["Rome", "Oslo", "Bonn"], 200)
    sales = np.random.default_rng(0).normal(size=600)
    columns = {"day": np.tile(days, 3).astype("datetime64[us]"), "shop": shops, "sales": sales, "cost": 2.0 * sales}
    found = audit_source(open_source(pa.table(columns)))
    assert (found.cells, found.notes) == ([], [])
    columns["day"][300] += np.timedelta64(300, "D")
    found = audit_source(open_source(pa.table(columns)))
    assert [(cell.row, cell.column) for cell in found.cells] == [(301, "day")]
