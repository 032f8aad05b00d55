"""Numbers far outside of their columns: found whatever the prediction says, named, and none in ordinary columns."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from redescend.belief import Verdict
from redescend.sources import open_source
from redescend.streaming import StreamModel, fit_stream
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.far_out import NEVER, FarRecords, find_range, find_ranges
from redescend.streaming.summary.records import FinalCounts
from tests.cli.commands import run

ROWS = 900


def make_table(share: float, seed: int = 6) -> tuple[pa.Table, np.ndarray]:
    """A column that the target does not depend on is 9999 in a share of the rows."""
    random = np.random.default_rng(seed)
    x, noise = random.normal(size=ROWS), random.lognormal(size=ROWS)
    wrong = np.sort(random.choice(ROWS, round(share * ROWS), replace=False))
    noise[wrong] = 9999.0
    return pa.table({"x": x, "noise": noise, "y": 2.0 * x + 0.1 * random.normal(size=ROWS)}), wrong


@pytest.mark.parametrize("share", [0.0, 1 / ROWS, 0.01, 0.2])
def test_far_values_are_suspects_and_named(share):
    table, wrong = make_table(share)
    _, played = fit_stream(table, "y", final_look=True)
    played.run()
    final = played.final
    found = np.sort(final.rounds.rows[: final.listed]) - 1
    assert set(wrong) <= set(found)
    assert len(found) <= len(wrong) + 1  # one false alarm may be among them
    columns = final.far.count_columns()
    assert [one[:2] for one in columns] == ([("noise", len(wrong))] if len(wrong) else [])
    assert all((one.row, one.value) == (wrong[0] + 1, 9999.0) for one in columns)
    assert {one.far_out for one in played.summary.least[: len(wrong)]} == ({"noise"} if len(wrong) else set())
    counts = final.summarize()
    assert FinalCounts.restore(json.loads(json.dumps(counts.state()))) == counts


def test_far_records_are_those_that_one_by_one_are_as_good_as_never_clean():
    random = np.random.default_rng(1)
    columns = {name: 10.0 * random.standard_t(2, size=ROWS) for name in "ab"}
    for name, row in (("a", 5), ("b", 5), ("b", 700)):
        columns[name][row] = {"a": 1e9, "b": -1e5}[name]
    columns["a"][9] = np.nan
    table = pa.table(
        {name: pa.array(values, from_pandas=True) for name, values in columns.items()} | {"y": columns["a"] * 0}
    )
    source = open_source(table.set_column(2, "y", pa.array(random.normal(size=ROWS))))
    ranges = find_ranges(source, StreamModel(Schema.infer(source.sample, source.kinds, "y")).schema)
    far = FarRecords(ranges, ROWS)
    for batch in source.batches(["a", "b", "y"], most=100):
        far.add(batch, np.arange(len(batch.rows)))
    expected = {}
    for row in range(ROWS):
        for name in "ab":
            value = columns[name][row]
            known = find_range(columns[name])
            distance = abs(value - known.middle)
            share = 0.01 * (distance / known.tail.start) ** -known.tail.exponent if distance > known.tail.start else 1.0
            if value == value and share <= NEVER and ROWS * share <= 0.5 and share < expected.get(row, (1.0,))[0]:
                expected[row] = (share, name)
    assert sorted(expected) == [5, 700]
    rows = np.arange(1, ROWS + 1)
    names = far.name_columns(rows)
    assert {row: name for row, name in enumerate(names) if name} == {row: name for row, (_, name) in expected.items()}
    log_odds = far.apply(rows, Verdict(np.zeros(ROWS), np.zeros(ROWS))).clean_log_odds
    slow = [np.log(ROWS * expected[row][0]) if row in expected else 0.0 for row in range(ROWS)]
    np.testing.assert_allclose(log_odds, slow)


def test_the_command_says_which_column_is_far_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, wrong = make_table(0.01)
    pa.csv.write_csv(table, "t.csv")
    done = run("fit", "t.csv", "--target", "y", "--suspects", "s.jsonl", "--model", "m")
    assert f"noise has an extreme value in 9 records, first in row {wrong[0] + 1}: 9999." in done.stderr
    listed = list(map(json.loads, (tmp_path / "s.jsonl").read_text().splitlines()))
    assert [one["far_out"] for one in listed] == ["noise"] * 9
    assert "noise is 9999, an extreme value" in (tmp_path / "m.report.html").read_text()


def test_a_group_of_its_own_is_not_far_out():
    random = np.random.default_rng(2)
    values = random.normal(size=ROWS)
    values[:90] += 1000.0
    assert find_range(values).high > values.max()
    values[:5] = 1e6
    assert find_range(np.delete(values, slice(5, 90))).high < 1e6
