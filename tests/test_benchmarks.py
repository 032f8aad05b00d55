"""The benchmarks run, and every row they give can be read; how fast anything is belongs to the person who runs them."""

import importlib.util
import io
import json
import math

import pytest
from benchmarks import streaming
from benchmarks.__main__ import SECTIONS, machine, save, table
from benchmarks.packages import PEERS, peer_rows
from benchmarks.report import Goal, Row, compare
from benchmarks.scaling import growth
from benchmarks.timing import Effort, best_of
from rich.console import Console

TINY = Effort(repetitions=1, cells=20_000, rows=10_000, calls=20, starts=0)
APART = ("startup_rows", "streaming_rows", "serving_rows")
"""Sections that measure processes of their own, some seconds each."""

ALONE = [
    pytest.param(section, marks=[pytest.mark.soak] * (section.__name__ in APART), id=section.__name__)
    for section in SECTIONS.values()
    if section is not peer_rows
]


@pytest.mark.parametrize("section", ALONE)
def test_every_row_has_a_ratio(section, monkeypatch):
    # Each pass over a file is a process of its own: one kind of file and one model stand for all.
    monkeypatch.setattr(streaming, "READERS", {"parquet": streaming.READERS["parquet"]})
    monkeypatch.setattr(streaming, "MODELS", {"self-tuning": streaming.MODELS["self-tuning"]})
    rows = list(section(TINY))
    assert rows
    for row in rows:
        assert row.ratio is not None, row
        assert math.isfinite(row.ratio), row
        # The slope of tiny times is noise, of either sign.
        assert row.ratio > 0.0 or "slope" in row.against, row
        assert bool(row.goal) == bool(row.verdict), row


def test_a_missing_peer_is_named_with_its_installation(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    rows = list(peer_rows(TINY))
    assert [row.ratio for row in rows] == [None] * len(PEERS)
    for row, peer in zip(rows, PEERS, strict=True):
        assert f"pip install {peer[1]}" in row.against


def test_tasks_take_turns_after_one_that_is_not_counted():
    order = []
    times = best_of({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, repetitions=2)
    assert "".join(order) == "ab" * 3
    assert times.keys() == {"a", "b"}


@pytest.mark.parametrize(
    ("goal", "ours", "theirs", "ratio", "verdict"),
    [
        (Goal(1.5), 3.0, 2.0, 1.5, "met"),
        (Goal(1.4), 3.0, 2.0, 1.5, "missed"),
        (Goal(4, "speedup"), 1.0, 5.0, 5.0, "met"),
        (Goal(4, "speedup"), 1.0, 3.0, 3.0, "missed"),
        (Goal(0.5, "seconds"), 0.4, 0.1, 4.0, "met"),
        (Goal(0.5, "seconds"), 0.6, 6.0, 0.1, "missed"),
        (None, 3.0, 2.0, 1.5, ""),
    ],
)
def test_a_goal_is_about_the_ratio_the_speed_up_or_the_seconds(goal, ours, theirs, ratio, verdict):
    row = compare("ours", ours, "theirs", theirs, goal)
    # quotients of short decimals: one rounding each
    assert row.ratio == pytest.approx(ratio, rel=1e-15)
    assert row.verdict == verdict


@pytest.mark.parametrize(("power", "verdict"), [(0.5, "met"), (1.0, "met"), (2.0, "missed")])
def test_growth_finds_the_power(power, verdict):
    row = growth("time", {size: 3.0 * size**power for size in (10, 100, 1000)})
    # a least-squares fit of three exact points
    assert row.ratio == pytest.approx(power, abs=1e-9)
    # the slope of an exactly linear cost may round to either side of 1, far from the goal
    assert row.verdict == verdict


def test_the_table_shows_every_row_and_the_file_keeps_it(tmp_path):
    rows = [compare("ours", 2.0, "theirs", 1.0, Goal(3.0)), Row("alone", "not measured", "pip install peer", None)]
    console = Console(width=150, file=io.StringIO())
    console.print(table(rows))
    shown = console.file.getvalue()
    for word in ("ours", "theirs", "met", "pip install peer", "–"):
        assert word in shown
    path = tmp_path / "speed.json"
    save(path, rows)
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert [row["ratio"] for row in kept["rows"]] == [2.0, None]
    assert "NumPy" in kept["machine"]
    assert list(tmp_path.iterdir()) == [path]


def test_the_machine_is_described():
    for word in ("cores", "Python", "NumPy", "Numba"):
        assert word in machine()
