"""Tables in an order of their own: samples from all over, all labels, and records in random order."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from redescend.errors import DataError
from redescend.numeric import number_copies
from redescend.sources import columnar, open_source, parquet, text
from redescend.sources.batch import Position
from redescend.sources.sampling import hash_contents, sample_by_content
from redescend.streaming import fit_stream
from redescend.streaming.config import FitConfig
from redescend.streaming.encoding import survey
from redescend.streaming.encoding.survey import _beats_chance, is_sorted
from redescend.streaming.fit import plan_run
from redescend.streaming.record_order import order_by_content

ROWS = 3000


def make_labels(rows: int = ROWS, labels: int = 6) -> pa.Table:
    random = np.random.default_rng(0)
    label = np.sort(random.integers(0, labels, rows))
    x = random.normal(size=(rows, 2)) + 3.0 * np.c_[label % 3, label // 3]
    return pa.table({"a": x[:, 0], "b": x[:, 1], "later": (label == labels - 1) * 1.0, "y": [f"l{i}" for i in label]})


@pytest.mark.parametrize("format", ["csv", "parquet", "memory"])
def test_no_record_of_a_sorted_table_is_lost(tmp_path, format):
    table = source = make_labels()
    if format == "csv":
        source = tmp_path / "t.csv"
        pa.csv.write_csv(table, source)
    elif format == "parquet":
        source = tmp_path / "t.parquet"
        pq.write_table(table, source, row_group_size=500)
    # The order is the same for every model, and linear ones are fast.
    model, run = fit_stream(source, "y", passes=None, shuffle=None, final_look=True, linear=True)
    run.run()
    assert run.counts == (ROWS, ROWS, 0, 0)
    assert model.schema.labels == [f"l{i}" for i in range(6)]
    assert "later" in model.schema.inputs  # it is constant in the first 1,000 records
    assert run.source.is_shuffled
    right = model.predict(table) == np.array(table["y"].to_pylist(), object)
    assert right.mean() > 0.8


def test_shuffled_records_are_the_same_in_an_order_that_only_the_seed_decides(tmp_path, monkeypatch):
    monkeypatch.setattr("redescend.sources.sampling.PART_BYTES", 4096)
    lines = [f"{row},{row % 7}" for row in range(ROWS)]
    lines[40] = lines[2000] = "broken"
    (tmp_path / "t.csv").write_text("x,y\n" + "\n".join(lines) + "\n")

    def read(seed, start=None, most=100):
        source = open_source(tmp_path / "t.csv")
        source.shuffle(seed)
        return list(source.batches(["x"], start=start, most=most))

    batches = read(0)
    rows = np.concatenate([batch.rows for batch in batches])
    values = np.concatenate([batch.table.column("x").to_numpy() for batch in batches])
    np.testing.assert_array_equal(values, rows - 1.0)
    assert sorted(rows) == [row + 1 for row in range(ROWS) if row not in (40, 2000)]
    assert sorted(bad.row for batch in batches for bad in batch.bad) == [41, 2001]
    assert abs(np.corrcoef(rows, np.arange(len(rows)))[0, 1]) < 0.1
    np.testing.assert_array_equal(rows, np.concatenate([batch.rows for batch in read(0, most=1000)]))
    assert (rows != np.concatenate([batch.rows for batch in read(1)])).any()
    assert batches[-1].end.row == ROWS
    middle = batches[len(batches) // 2].end
    rest = np.concatenate([batch.rows for batch in read(0, start=Position(*middle))])
    np.testing.assert_array_equal(rest, rows[-len(rest) :])
    with pytest.raises(DataError, match="can only be read once"):
        open_source(io.BytesIO(b"x\n1\n")).shuffle()


def test_a_shuffled_run_resumes(tmp_path):
    table, options = make_labels(), {"shuffle": True, "passes": 2, "final_look": True, "every": 300, "linear": True}
    _, whole = fit_stream(table, "y", **options)
    whole.run()
    with fit_stream(table, "y", **options, checkpoint=tmp_path)[1] as run:
        for _ in zip(range(4), run.batches(), strict=False):
            pass
    _, again = fit_stream(table, "y", **options, checkpoint=tmp_path, resume=True)
    assert again.resumed
    again.run()
    np.testing.assert_array_equal(again.final.clean_probability, whole.final.clean_probability)
    np.testing.assert_array_equal(again.final.rounds.rows, whole.final.rounds.rows)


def test_what_the_order_of_a_file_means():
    random = np.random.default_rng(0)
    x = random.normal(size=2000)
    times = pa.array([datetime(2024, 1, 1) + timedelta(hours=row) for row in range(2000)])
    plain = pa.table({"x": x, "y": x + random.normal(size=2000)})
    ordered = plain.append_column("time", times)
    by_target = plain.sort_by("y")
    for table, passes, shuffled in ((plain, 2, False), (ordered, 1, False), (by_target, 2, True)):
        config = FitConfig(target="y", passes=None, shuffle=None)
        _, source, found = plan_run(table, config)
        assert (found, source.is_shuffled) == (passes, shuffled)
    _, source, found = plan_run(by_target, FitConfig(target="y", passes=1, shuffle=False))
    assert (found, source.is_shuffled) == (1, False)


def test_a_sample_by_content_is_that_of_all_rows_at_once():
    random = np.random.default_rng(5)
    for _ in range(20):
        tables = [
            pa.record_batch({"x": random.integers(0, values, size).astype(float), "t": random.choice(["a", "b"], size)})
            for size, values in zip(random.integers(0, 300, 25), random.choice([3, 50, 10**6], 25), strict=True)
        ]
        most, whole = int(random.integers(1, 200)), pa.concat_batches(tables)
        numbers = number_copies(hash_contents(whole))
        expected = whole.take(pa.array(np.sort(np.argsort(numbers, kind="stable")[:most])))
        assert sample_by_content(tables, most).equals(expected)


@pytest.mark.parametrize("group", [700, 10_000, 70_000])
def test_a_large_parquet_file_is_sampled_from_all_groups_and_reads_about_one(tmp_path, monkeypatch, group):
    monkeypatch.setattr(parquet, "WHOLE", 10_000)
    monkeypatch.setattr(parquet, "SLICE", 100)
    pq.write_table(pa.table({"x": np.arange(70_000.0)}), tmp_path / "t.parquet", row_group_size=group)
    read, convert = list[int](), columnar.convert_rows

    def count(rows, kinds, first, raw):
        read.append(first)
        return convert(rows.slice(0, 100), kinds, first, raw)

    monkeypatch.setattr(columnar, "convert_rows", count)
    source = open_source(tmp_path / "t.parquet")
    read.clear()
    sample = source.spread["x"].to_numpy()
    assert (np.diff(sample) > 0).all()
    assert len(read) == pytest.approx(16, abs=5)
    groups = -(-70_000 // group)
    assert {first // group for first in read} == set(np.linspace(0, groups - 1, min(16, groups)).astype(int).tolist())
    assert max(first % group for first in read) <= group / groups


def test_a_large_text_is_sampled_in_windows(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "WINDOW", 512)
    monkeypatch.setattr(text, "WINDOWS", 8)
    monkeypatch.setattr(text, "WHOLE", 8192)
    (tmp_path / "t.csv").write_text("x,name\n" + "".join(f'{row},"a\n{row}"\n' for row in range(ROWS)))
    found = open_source(tmp_path / "t.csv").spread.to_pylist()
    assert 50 < len(found) < 1000
    assert found[-1]["x"] > 2900
    assert sum(one["name"] == f"a\n{one['x']:.0f}" for one in found) > 0.8 * len(found)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2])
def test_a_sorted_table_is_recognized_in_spite_of_errors(share):
    random = np.random.default_rng(3)
    label, number = np.repeat(np.arange(8), 200), np.sort(random.normal(size=1600))
    wrong = random.random(1600) < share
    label[wrong], number[wrong] = random.integers(0, 8, wrong.sum()), random.normal(size=wrong.sum())
    mixed = random.permutation(1600)
    # Numbers are only recognized if few are wrong.
    for values, classifies in ((label.astype(str), True), (number, False))[: 1 if share > 0.1 else 2]:
        sample = pa.record_batch({"y": values})
        assert is_sorted(sample, "y", classifies)
        assert not is_sorted(pa.record_batch({"y": values[mixed]}), "y", classifies)
    walk = np.cumsum(random.normal(size=1600))
    assert not is_sorted(pa.record_batch({"y": walk}), "y", False)


def draw(kind, random, rows):
    """Targets in random order: labels of which some are rare, or numbers of which most are equal."""
    if kind == "zeros":
        return np.where(random.random(rows) < random.uniform(0.05, 0.5), random.normal(size=rows), 0.0)
    shares = {"rare": [0.05], "rarer": [0.01], "quarter": [0.25], "three": [0.05, 0.1]}[kind]
    labels = random.choice(len(shares) + 1, rows, p=[1.0 - sum(shares), *shares])
    return np.array(["a", "b", "c"])[labels]


@pytest.mark.parametrize("kind", ["rare", "rarer", "quarter", "three", "zeros"])
def test_a_random_order_is_not_called_sorted_and_a_sorted_one_is(kind):
    random = np.random.default_rng(1)
    for rows in (60, 200, 1000):
        for _ in range(10):
            values = draw(kind, random, rows)
            assert not is_sorted(pa.record_batch({"y": values}), "y", kind != "zeros")
    values = np.sort(draw(kind, random, 1000))
    wrong = random.random(1000) < 0.03
    values[wrong] = random.permutation(values[wrong])
    assert is_sorted(pa.record_batch({"y": values}), "y", kind != "zeros")


def test_an_order_beats_chance_with_the_stated_probability(monkeypatch):
    # With 99 random orders, one random order in 100 beats them all, or fewer if some are equal.
    monkeypatch.setattr(survey, "SHUFFLES", 99)
    random = np.random.default_rng(2)
    beaten = [_beats_chance(random.permutation(40), labels=False) for _ in range(1500)]
    assert 3 <= sum(beaten) <= 32
    assert sum(_beats_chance(random.permutation(np.arange(40) % 4), labels=True) for _ in range(1500)) <= 32


def test_a_table_that_is_sorted_by_a_date_is_recognized():
    days = [datetime(2024, 1, 1) + timedelta(day) for day in range(400)]
    assert is_sorted(pa.record_batch({"day": days}), "day", False)
    assert not is_sorted(
        pa.record_batch({"day": np.random.default_rng(0).permutation(np.array(days, "M8[us]"))}), "day", False
    )
    assert not is_sorted(pa.record_batch({"day": pa.array([None] * 400, pa.timestamp("us"))}), "day", False)


def test_copies_of_a_record_are_spread_over_the_order_by_content():
    X, targets = np.repeat([[0.0], [1.0], [2.0]], 300, axis=0), np.tile([0.0, 1.0], 450)
    order = order_by_content(X, targets)
    same = (np.diff(X[order, 0]) == 0.0) & (np.diff(targets[order]) == 0.0)
    assert same.mean() < 0.25  # a sixth by chance
    shuffled = np.random.default_rng(0).permutation(900)
    again = shuffled[order_by_content(X[shuffled], targets[shuffled])]
    assert (X[again] == X[order]).all()
    assert (targets[again] == targets[order]).all()
