"""What a server measures of itself, in the text format of Prometheus."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Lock

from redescend import __version__
from redescend.serve.folder import ModelFolder
from redescend.serve.statistics import Histogram
from redescend.serve.writer import Writer

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
