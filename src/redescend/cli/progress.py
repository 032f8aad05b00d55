"""The progress line on standard error."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from redescend.streaming.report.formatting import format_number, format_percent

if TYPE_CHECKING:
    from redescend.sources import Source
    from redescend.streaming.rounds import Rounds
    from redescend.streaming.run import Run

SECONDS = 10.0  # seconds between plain lines, where standard error is not a terminal

BARS = "▁▂▃▄▅▆▇█"
SPARKLINE, PER_BATCH = 16, 4  # bars of the sparkline, and the most that a batch adds
RECENT = 20  # batches over which the speed is averaged


def sparkline(values: Iterable[float]) -> str:
    """Draw numbers between 0 and 1 as bars.

    >>> sparkline([0.0, 0.5, 1.0])
    '▁▅█'
    """
    return "".join(BARS[min(len(BARS) - 1, int(len(BARS) * max(0.0, value)))] for value in values)


def format_duration(seconds: float) -> str:
    """Format a time.

    >>> format_duration(4.2), format_duration(95), format_duration(7300)
    ('4 s', '1 min 35 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class _StartColumn(ProgressColumn):
    """A spinner and the time since the start, until the first batch is done: kernels may be compiled first."""

    def __init__(self) -> None:
        super().__init__()
        self._spinner = SpinnerColumn()

    def render(self, task: Task) -> Text:
        if task.fields["started"]:
            return Text()
        spinner = cast(Text, self._spinner.render(task))
        return Text.assemble(spinner, f" starting ({format_duration(task.elapsed or 0.0)})")


class ProgressLine:
    """The progress of a run: a line that changes on a terminal, elsewhere a plain line every ten seconds.

    `before` is the number of records that an earlier run has read.
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
        self._weights: deque[float] = deque(maxlen=SPARKLINE)
        self._progress: Progress | None = None
        self._printed = clock()
        self._recent: deque[tuple[float, int]] = deque([(self._printed, before)], maxlen=RECENT)

    def __enter__(self) -> ProgressLine:
        if not self._quiet and self._console.is_terminal and not self._console.is_dumb_terminal:
            text = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis"))
            # Colours that every terminal has: finer ones may look the same where there are sixteen.
            bar = BarColumn(20, style="bright_black", complete_style="cyan", finished_style="green")
            columns = [*([] if self._source.size is None else [bar]), _StartColumn(), text]
            self._progress = Progress(*columns, console=self._console, transient=True, refresh_per_second=4)
            self._progress.add_task("", total=self._source.size, started=False)
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def update(self, run: Run, rounds: Rounds) -> None:
        """Show a run after these rounds."""
        summary = run.summary
        if len(rounds):
            parts = np.array_split(rounds.clean_probability / summary.max_weight, min(PER_BATCH, len(rounds)))
            self._weights.extend(float(part.mean()) for part in parts)
        facts = []
        if summary.learned:
            facts = [
                f"{format_percent(summary.clean_share)} clean",
                f"median loss {format_number(summary.median_loss)}",
            ]
        self.report(run.counts.records, *facts, last=sparkline(self._weights))

    def report(self, records: int, *facts: str, last: str = "") -> None:
        """Show the number of records read so far, and facts about them."""
        now = self._clock()
        if records < self._recent[-1][1]:
            # Another pass over the source has begun.
            self._recent = deque([(self._recent[-1][0], 0)], maxlen=RECENT)
        self._recent.append((now, records))
        if self._quiet or (self._progress is None and now - self._printed < SECONDS):
            return
        self._printed = now
        began, before = self._recent[0]
        rate = (records - before) / max(now - began, 1e-9)
        parts = [f"{records:,} rows", f"{format_number(float(f'{rate:.3g}'))} rows/s", *facts]
        size, done = self._source.size, self._source.progress()
        if size and done and rate > 0.0:
            left = records * (size / min(done, size) - 1.0) / rate
            parts.append(f"{100.0 * min(done, size) / size:.0f} %, {format_duration(left)} left")
        if self._progress is None:
            self._console.print("; ".join(parts), highlight=False, soft_wrap=True)
        else:
            description = "  ".join(filter(None, [*parts, last]))
            self._progress.update(self._progress.task_ids[0], completed=done, description=description, started=True)
