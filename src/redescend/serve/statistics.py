"""What a server measures: losses and newest rounds of models, requests and durations, for Prometheus as text.

It takes little memory, because there may be thousands of models.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from redescend import __version__, transforms
from redescend.numeric import Array
from redescend.sources import Bad
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary import SuspectRule
from redescend.streaming.summary.records import Rejections

if TYPE_CHECKING:
    from redescend.serve.folder import ModelFolder
    from redescend.serve.writer import Writer

SHIFT = 48  # bits of a loss that are dropped: 16 cells are left between a number and its double
MOST, MOST_COMMITS = 4096, 64  # records and commits whose losses wait at most until they are counted


class Statistics:
    """Counts of losses and of reasons, and which records are suspects."""

    def __init__(self, schema: Schema, transform: transforms.Transform | None = None) -> None:
        self._rule = SuspectRule.make(schema, transform)
        self.rejections = Rejections()
        self._losses: Counter[int] = Counter()  # losses by their first bits
        self._newest: list[Array] = []  # losses that are not among them yet: to count many at once takes less time
        self._waiting = 0  # their number
        self.learned = 0  # how many rounds were counted
        self._lock = Lock()  # held while losses are counted: a snapshot is taken while others read

    def are_suspects(self, rounds: Rounds) -> Array:
        """Which of these records are suspects, by the limits of `redescend fit`."""
        return self._rule.are_suspects(rounds)

    def add(self, rounds: Rounds, rejected: Sequence[Bad]) -> None:
        """Count rounds, and rejected records in the order of their rows."""
        with self._lock:
            self.learned += len(rounds)
            if len(rounds):
                self._newest.append(rounds.losses)
                self._waiting += len(rounds)
            if self._waiting > MOST or len(self._newest) > MOST_COMMITS:
                self._count_newest()
            self.rejections.add(rejected)

    def count_losses(self) -> list[tuple[int, int]]:
        """The first bits of losses, each with the number of records."""
        with self._lock:
            self._count_newest()
            return list(self._losses.items())

    def _count_newest(self) -> None:
        if self._newest:
            cells = np.concatenate(self._newest).astype(np.float64, copy=False).view(np.int64) >> SHIFT
            first = cells.min()
            counts = np.bincount(cells - first)
            used = np.flatnonzero(counts)
            self._losses.update(dict(zip((used + first).tolist(), counts[used].tolist(), strict=True)))
        self._newest, self._waiting = [], 0

    @property
    def median_loss(self) -> float | None:
        """The median loss, within 4 %; None before the first record."""
        below, half = 0, self.learned / 2
        for cell, count in sorted(self.count_losses()):
            below += count
            if below >= half:
                ends = np.array([cell << SHIFT, (cell + 1) << SHIFT], dtype=np.int64).view(np.float64)
                return float(ends.mean()) if np.isfinite(ends).all() else float(ends[0])
        return None

    def state(self) -> dict[str, Any]:
        """Everything, as an array and plain values."""
        return {"losses": np.array(self.count_losses(), np.int64).reshape(-1, 2), "rejections": self.rejections.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        self._losses = Counter({int(cell): int(count) for cell, count in state["losses"]})
        self._newest, self._waiting, self.learned = [], 0, self._losses.total()
        self.rejections.restore(state["rejections"])


SIZE = 400  # rounds that are kept


class RecentRounds(NamedTuple):
    """Consecutive rounds, the oldest first, as arrays of one length; targets and predictions are numbers."""

    rows: Array
    targets: Array
    predictions: Array
    probabilities: Array
    low: Array
    high: Array
    losses: Array
    suspects: Array


class RecentRing:
    """The newest rounds.

    >>> ring = RecentRing(2)
    >>> one = np.ones(3)
    >>> ring.add(Rounds(np.array([1, 2, 3]), one, one, one, one, one), np.array([False, True, False]))
    >>> ring.read().rows
    array([2., 3.])
    """

    def __init__(self, size: int = SIZE) -> None:
        self._ring = np.empty((len(RecentRounds._fields), size))
        self._count = 0

    def add(self, rounds: Rounds, suspects: Array) -> None:
        """Add rounds and whether they are suspects."""
        size = self._ring.shape[1]
        numbers = (rounds.rows, rounds.targets, rounds.predictions, rounds.probabilities)
        columns = (*numbers, rounds.low, rounds.high, rounds.losses, suspects)
        self._count += len(rounds)
        places = np.arange(self._count - min(len(rounds), size), self._count) % size
        for ring, column in zip(self._ring, columns, strict=True):
            ring[places] = column[len(column) - len(places) :]

    def read(self) -> RecentRounds:
        """A copy of the rounds."""
        size = self._ring.shape[1]
        return RecentRounds(*self._ring[:, np.arange(max(0, self._count - size), self._count) % size])

    def restore(self, rounds: Array) -> None:
        """Restore rounds that were read, a row for each of their arrays."""
        self._count = rounds.shape[1]
        self._ring[:, : self._count] = rounds


class Histogram:
    """Counts of seconds, by upper bounds.

    >>> histogram = Histogram()
    >>> histogram.observe(0.001)
    >>> histogram.observe(100.0)
    >>> histogram.counts[0], histogram.counts[-1], histogram.sum
    (1, 1, 100.001)
    """

    BOUNDS: ClassVar[tuple[float, ...]] = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

    def __init__(self) -> None:
        self.counts, self.sum = [0] * (len(self.BOUNDS) + 1), 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(self.BOUNDS, seconds)] += 1
        self.sum += seconds


# --- requests, and all metrics as text ---

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = dict[str, str]
Sample = tuple[str, Labels, float]  # a suffix of the name, labels, and a value


class RequestMetrics:
    """Counts and times of the requests to each model, by operation and status."""

    def __init__(self) -> None:
        self.started, self.open = time.time(), 0
        self.counts: dict[tuple[str, str, int], int] = {}
        self.times: dict[tuple[str, str], Histogram] = {}
        self.predicted: dict[str, int] = {}  # records that were predicted, by model
        self._lock = Lock()

    def add_predicted(self, model: str, count: int) -> None:
        """Count records that were predicted, from any thread."""
        with self._lock:
            self.predicted[model] = self.predicted.get(model, 0) + count

    def observe(self, model: str, operation: str, status: int, seconds: float) -> None:
        """Count a request; `model` is empty if it was to none."""
        key = model, operation, status
        self.counts[key] = self.counts.get(key, 0) + 1
        histogram = self.times.get((model, operation))
        if histogram is None:
            histogram = self.times[model, operation] = Histogram()
        histogram.observe(seconds)

    def forget(self, model: str) -> None:
        """Forget a model that was deleted."""
        self.counts = {key: count for key, count in self.counts.items() if key[0] != model}
        self.times = {key: times for key, times in self.times.items() if key[0] != model}
        self.predicted.pop(model, None)


def render_metrics(metrics: RequestMetrics, folder: ModelFolder) -> str:
    """All metrics as a text."""
    return "".join(line for family in _families(metrics, folder) for line in _render(*family))


def _families(metrics: RequestMetrics, folder: ModelFolder) -> Iterator[tuple[str, str, str, Iterable[Sample]]]:
    """The name, the type, the help and the samples of each metric."""
    writers = list(folder.writers.items())

    def per_model(value: Callable[[Writer], float]) -> list[Sample]:
        return [("", {"model": name}, value(writer)) for name, writer in writers]

    yield "redescend_info", "gauge", "The version of the server.", [("", {"version": __version__}, 1.0)]
    yield "redescend_start_time_seconds", "gauge", "When the server started.", [("", {}, metrics.started)]
    yield "redescend_resident_memory_bytes", "gauge", "Memory of the server.", [("", {}, _resident_memory())]
    yield "redescend_open_requests", "gauge", "Requests that are not answered yet.", [("", {}, metrics.open)]
    states = (("served", len(writers)), ("broken", len(folder.broken)))
    yield "redescend_models", "gauge", "Models of the server.", [("", {"state": name}, n) for name, n in states]
    yield (
        "redescend_requests_total",
        "counter",
        "Requests, by model, operation and HTTP status.",
        [
            ("", {"model": model, "operation": operation, "status": str(status)}, count)
            for (model, operation, status), count in sorted(metrics.counts.items())
        ],
    )
    times = [({"model": model, "operation": what}, each) for (model, what), each in sorted(metrics.times.items())]
    yield "redescend_request_seconds", "histogram", "Time until a request is answered.", _buckets(times)
    commits = [({"model": name}, writer.commits) for name, writer in writers]
    yield (
        "redescend_commit_seconds",
        "histogram",
        "Time to write a group of records to the journal and to learn from it.",
        _buckets(commits),
    )
    predicted = [("", {"model": name}, count) for name, count in sorted(metrics.predicted.items())]
    yield "redescend_predicted_records_total", "counter", "Records that were predicted.", predicted
    for name, text, value in (
        ("learned_records", "Records that were learned from.", lambda writer: writer.model.counts.learned),
        ("suspect_records", "Learned records that are suspects.", lambda writer: writer.model.counts.suspects),
        ("quarantined_records", "Records that were rejected.", lambda writer: writer.model.counts.rejected),
    ):
        yield f"redescend_{name}_total", "counter", text, per_model(value)
    for name, text, value in (
        ("pending_records", "Records before the schema is decided.", lambda writer: len(writer.model.pending)),
        ("label_waiting_records", "Predicted records without a label.", lambda writer: len(writer.model.labels)),
        ("journal_lag_records", "Records that are not acknowledged yet.", lambda writer: writer.queued),
        ("journal_lag_seconds", "How long the first of them has waited.", lambda writer: writer.lag),
        ("journal_unsaved_records", "Records since the last snapshot.", lambda w: folder.count_unsaved(w.model)),
        ("journal_segment_bytes", "Size of the last segment.", lambda writer: writer.model.journal.end.offset),
    ):
        yield f"redescend_{name}", "gauge", text, per_model(value)
    decided = [(name, writer.model.median_loss()) for name, writer in writers if writer.model.schema is not None]
    losses: list[Sample] = [("", {"model": name}, loss) for name, loss in decided if loss is not None]
    yield "redescend_median_loss", "gauge", "The median loss of all records, within 4 %.", losses


def _buckets(histograms: Iterable[tuple[Labels, Histogram]]) -> Iterator[Sample]:
    for labels, histogram in histograms:
        below = 0
        for bound, count in zip((*Histogram.BOUNDS, float("inf")), histogram.counts, strict=True):
            below += count
            yield "_bucket", labels | {"le": "+Inf" if bound == float("inf") else f"{bound:g}"}, below
        yield "_sum", labels, histogram.sum
        yield "_count", labels, below


def _render(name: str, kind: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
    for suffix, labels, value in samples:
        shown = ",".join(f'{label}="{_escape(content)}"' for label, content in labels.items())
        yield f"{name}{suffix}{{{shown}}} {value!r}\n" if shown else f"{name}{suffix} {value!r}\n"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _resident_memory() -> int:
    """Bytes of memory of this process; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0
