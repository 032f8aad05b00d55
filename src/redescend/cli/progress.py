"""The line that says, on standard error, how far a command has come."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.table import Column

from redescend.streaming.report.formatting import format_number, format_percent

if TYPE_CHECKING:
    from redescend.sources import Source
    from redescend.streaming.rounds import Rounds
    from redescend.streaming.run import Run

SECONDS = 10.0
"""Where nobody watches, a plain line comes no more often than this."""

BARS = "▁▂▃▄▅▆▇█"
SHOWN, PIECES = 16, 4
"""How many bars the sparkline has, and how many of them a batch brings at most."""


STARTING = "starting; the first time ever, this takes a minute ..."

RECENT = 20
"""How many batches the speed is that of."""


def sparkline(values: Iterable[float]) -> str:
    """Numbers between 0 and 1 as bars.

    Examples
    --------
    >>> sparkline([0.0, 0.5, 1.0])
    '▁▅█'
    """
    return "".join(BARS[min(len(BARS) - 1, int(len(BARS) * max(0.0, value)))] for value in values)


def duration(seconds: float) -> str:
    """A time as a person says it.

    Examples
    --------
    >>> duration(4.2), duration(95), duration(7300)
    ('4 s', '1 min 35 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Live:
    """How far a pass over a source has come: on a terminal a line that changes, elsewhere a plain one now and then.

    Parameters
    ----------
    source
        What is read.
    before
        How many of its records an earlier run has read.
    quiet
        Whether nothing is to be said.
    console
        Where to say it; standard error if None.
    clock
        The time in seconds.
    """

    def __init__(
        self,
        source: Source,
        before: int = 0,
        quiet: bool = False,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._quiet, self._clock = source, quiet, clock
        self._console = Console(stderr=True) if console is None else console
        self._weights: deque[float] = deque(maxlen=SHOWN)
        self._progress: Progress | None = None
        self._task = TaskID(0)
        self._told = clock()
        self._recent: deque[tuple[float, int]] = deque([(self._told, before)], maxlen=RECENT)

    def __enter__(self) -> Live:
        if not self._quiet and self._console.is_terminal and not self._console.is_dumb_terminal:
            text = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis"))
            known = self._source.size is not None
            # Colours that every terminal has: finer ones may look the same where there are sixteen.
            bar = BarColumn(20, style="bright_black", complete_style="cyan", finished_style="green")
            first = bar if known else SpinnerColumn()
            self._progress = Progress(first, text, console=self._console, transient=True, refresh_per_second=4)
            self._task = self._progress.add_task(STARTING, total=self._source.size)
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def learned(self, run: Run, rounds: Rounds) -> None:
        """Say what was learned from up to now, the last of it being these rounds."""
        summary = run.summary
        if len(rounds):
            parts = np.array_split(rounds.weights / summary.max_weight, min(PIECES, len(rounds)))
            self._weights.extend(float(part.mean()) for part in parts)
        facts = []
        if summary.learned:
            facts = [
                f"{format_percent(summary.clean_share)} clean",
                f"median loss {format_number(summary.median_loss)}",
            ]
        self.tell(run.counts.records, *facts, last=sparkline(self._weights))

    def tell(self, records: int, *facts: str, last: str = "") -> None:
        """Say how many records have been read, and something about them."""
        now = self._clock()
        self._recent.append((now, records))
        if self._quiet or (self._progress is None and now - self._told < SECONDS):
            return
        self._told = now
        began, before = self._recent[0]
        rate = (records - before) / max(now - began, 1e-9)
        said = [f"{records:,} rows", f"{format_number(float(f'{rate:.3g}'))} rows/s", *facts]
        size, done = self._source.size, self._source.progress()
        if size and done and rate > 0.0:
            left = records * (size / min(done, size) - 1.0) / rate
            said.append(f"{100.0 * min(done, size) / size:.0f} %, {duration(left)} left")
        if self._progress is None:
            self._console.print("; ".join(said), highlight=False, soft_wrap=True)
        else:
            said.append(last)
            self._progress.update(self._task, completed=done, description="  ".join(filter(None, said)))
