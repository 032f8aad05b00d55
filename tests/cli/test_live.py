"""The live line: what it says, where nobody watches, and in no color where none is wanted."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from redescend.cli.progress import ProgressLine
from redescend.streaming import fit_stream


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Reading:
    """A source of which a quarter has been read."""

    size: int | None = 4000

    def progress(self) -> int:
        return 1000


def lines_of(terminal: bool, monkeypatch: pytest.MonkeyPatch, **environment: str) -> tuple:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    text, clock = io.StringIO(), Clock()
    console = Console(file=text, force_terminal=terminal, width=140)
    return ProgressLine(Reading(), console=console, clock=clock), clock, text  # type: ignore[arg-type]


def test_where_nobody_watches_a_plain_line_comes_every_ten_seconds(monkeypatch):
    live, clock, text = lines_of(False, monkeypatch)
    with live:
        for second in range(1, 26):
            clock.now += 1.0
            live.report(50 * second, "fine")
    assert text.getvalue() == "".join(
        f"{rows:,} rows; 50 rows/s; fine; 25 %, {left} left\n" for rows, left in ((500, "30 s"), (1000, "1 min 0 s"))
    )


def test_the_speed_of_a_second_look_is_that_of_its_own_records(monkeypatch):
    live, clock, text = lines_of(False, monkeypatch)
    with live:
        for records in (*range(100, 1100, 100), *range(50, 550, 50)):
            clock.now += 1.0
            live.report(records)
    speeds = [line.split("; ")[1] for line in text.getvalue().splitlines()]
    assert speeds == ["100 rows/s", "50 rows/s"]


def test_on_a_terminal_the_line_has_rows_speed_belief_loss_weights_and_a_bar(monkeypatch):
    live, clock, text = lines_of(True, monkeypatch)
    random = np.random.default_rng(0)
    table = {"x": random.normal(size=400), "y": np.where(np.arange(400) < 300, 1.0, 1000.0) + random.normal(size=400)}
    _, rounds = fit_stream(pa.table(table), "y")
    with live:
        # Kernels may have to be compiled before the first batch.
        live._progress.refresh()
        assert "starting (0 s)" in text.getvalue()
        for played in rounds.batches():
            clock.now += 2.0
            live.update(rounds, played)
            live._progress.refresh()
        said = text.getvalue()
    assert "starting" not in said.rpartition("400 rows")[2]
    for words in ("400 rows", "200 rows/s", "% clean", "median loss", "25 %, 6 s left", "━", "\x1b[3"):
        assert words in said
    means = [float(np.mean(played.clean_probability[100 * place : 100 * place + 100])) for place in range(4)]
    assert said.rpartition("left  ")[2][:4] == "".join("▁▂▃▄▅▆▇█"[int(8 * mean)] for mean in means)


def test_no_color_where_none_is_wanted_and_no_line_where_none_can_change(monkeypatch):
    live, clock, text = lines_of(True, monkeypatch, NO_COLOR="1")
    with live:
        live.report(5)
    assert "5 rows" in text.getvalue()
    assert "\x1b[3" not in text.getvalue()
    live, clock, text = lines_of(True, monkeypatch, TERM="dumb")
    with live:
        clock.now += 11.0
        live.report(5)
    assert text.getvalue().startswith("5 rows; ")
    assert "\x1b" not in text.getvalue()
