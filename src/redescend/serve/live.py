"""The live page of a server: what a model does right now, with the pictures and the words of the report.

Once a second, a server-sent event says what has changed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator
from importlib import resources
from typing import Any

import numpy as np
import orjson

from redescend.serve.folder import ModelFolder
from redescend.serve.model import ServedModel
from redescend.serve.outcomes import Outcome
from redescend.serve.replies import TooManyRequests
from redescend.serve.statistics import RecentRounds
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.report.charts import Chart, ReportFigure, Scale, fit_scale
from redescend.streaming.report.formatting import (
    format_count,
    format_number,
    format_percent,
    format_predicted,
    format_target,
    format_value,
    format_weight,
)
from redescend.streaming.report.page import read_part
from redescend.streaming.report.pictures import compare_losses, draw_loss_band

POINTS, BINS, SUSPECTS, COLUMNS = 60, 20, 12, 8
"""Records in the picture of predictions, bins of the others, and suspects and columns in their table."""

LABEL = 24  # characters of a label beside an axis: more are higher than a picture on a phone

Rates = deque[tuple[float, float]]  # seconds since the page was opened, and records per second


def list_model(model: ServedModel, rate: float) -> dict[str, Any]:
    """The line of a model in the list of all."""
    counts, loss = model.counts, None if model.schema is None else model.median_loss()
    return {
        "name": model.name,
        "records": f"{counts.records + len(model.pending):,}",
        "rate": format_number(rate),
        "suspects": format_percent(counts.suspects / counts.learned) if counts.learned else "–",
        "loss": "–" if loss is None else format_number(loss),
    }


def describe_live(model: ServedModel, rates: Rates) -> dict[str, Any]:
    """What the page shows of a model; texts, and pictures as SVG."""
    counts, schema = model.counts, model.schema
    rate = format_number(rates[-1][1] if rates else 0.0)
    tiles = [
        ("records", f"{counts.records + len(model.pending):,}", "records", ""),
        ("rate", rate, "records per second", ""),
    ]
    if schema is None:
        waiting = f"{len(model.pending):,} of the {model.settings.first:,} records that its schema is decided from."
        return _page(model.name, f"The model has {waiting}", tiles, [], [], [])
    learned, suspects, loss = counts.learned, counts.suspects, model.median_loss()
    if learned:
        clean = learned - suspects
        tiles += [
            ("clean", f"{clean:,}", f"clean · {format_percent(clean / learned)}", "of-clean"),
            ("suspects", f"{suspects:,}", f"suspects · {format_percent(suspects / learned)}", "of-strong"),
        ]
    tiles.append(("rejected", f"{counts.rejected:,}", "rejected", "of-rejected"))
    if loss is not None:
        tiles.append(("loss", format_number(loss), "median loss", ""))
    recent = model.read_recent()
    figures = [] if not len(recent.rows) else draw_live(recent, schema, loss or 0.0, suspects / max(learned, 1))
    if len(rates) > 1:
        figures.append(draw_rates(rates))
    names = ([] if schema.by is None else [schema.by]) + schema.inputs
    rows = [_list_suspect(schema, each, names[:COLUMNS]) for each in model.list_suspects()[:SUSPECTS]]
    return _page(model.name, _describe_counts(model, schema.target), tiles, figures, names[:COLUMNS], rows)


def _describe_counts(model: ServedModel, target: str) -> str:
    """Say how many records the model has learned from, here and in the model file that it was made from."""
    records = model.counts.records
    summary = f"Learned from {model.counts.learned:,} of {format_count(records)}" if records else "No records yet"
    before = f", after the {format_count(model.earlier)} of its model file" if model.earlier > 0 else ""
    return f"{summary}{before}; the target is '{target}'."


def _page(
    name: str, result: str, tiles: list[Any], figures: list[ReportFigure], columns: list[str], rows: list[list[str]]
) -> dict[str, Any]:
    return {
        "name": name,
        "result": result,
        "tiles": [dict(zip(("id", "value", "label", "kind"), tile, strict=True)) for tile in tiles],
        "figures": [figure._asdict() for figure in figures],
        "columns": columns,
        "suspects": rows,
    }


def _list_suspect(schema: Schema, outcome: Outcome, columns: list[str]) -> list[str]:
    values = outcome["values"]
    judged = (format_weight(outcome["clean_probability"]), format_target(schema, outcome["target"]))
    shown = (format_value(values.get(name))[:200] for name in columns)
    return [f"{outcome['row']:,}", *judged, format_predicted(schema, outcome["prediction"]), *shown]


# --- pictures ---


def _format_newest(recent: RecentRounds) -> str:
    count = len(recent.rows)
    return "the newest record" if count == 1 else f"the newest {format_count(count)}"


def draw_live(recent: RecentRounds, schema: Schema, loss: float, suspects: float) -> list[ReportFigure]:
    """Predictions of the newest records, and losses and suspects along them against those of all records."""
    newest = RecentRounds(*(column[-POINTS:] for column in recent))
    first = draw_labels(newest) if schema.classifies else draw_predictions(newest, schema.target)
    return [first, draw_losses(recent, loss), draw_suspects(recent, suspects)]


def draw_predictions(recent: RecentRounds, target: str) -> ReportFigure:
    """Draw the targets of records, their predictions, and the intervals of clean targets."""
    suspect = recent.suspects > 0.0
    ends = [each[np.isfinite(each)] for each in (recent.low, recent.high)]
    shown = np.concatenate([recent.predictions, recent.targets[~suspect], *ends])
    label = target if len(target) <= LABEL else f"{target[: LABEL - 1]}…"
    scale = fit_scale(shown.tolist())
    chart = Chart(_rows(recent), scale, x_label="row", y_label=label, description="Predicted and observed")
    has_band = bool(np.isfinite(recent.low).any())
    if has_band:
        known = np.isfinite(recent.low) & np.isfinite(recent.high)
        chart.band(recent.rows[known], recent.low[known], recent.high[known], "band")
    chart.line(recent.rows, recent.predictions, "middle-line")
    _draw_dots(chart, recent, recent.targets)
    caption = (
        f"{_format_newest(recent).capitalize()}: each prediction was made before the model learned from its record."
    )
    outside = int(((recent.targets < chart.y.low) | (recent.targets > chart.y.high)).sum())
    caption += f" {format_count(outside, 'suspect')} outside the axes, drawn at the edge." if outside else ""
    legend = {"middle-line": "predicted"} | ({"band": "nine in ten clean targets"} if has_band else {})
    legend |= {"clean-dot": "observed"} | ({"suspect-dot": "suspects"} if suspect.any() else {})
    return ReportFigure("predictions", "Predicted and observed", caption, chart.to_svg(), legend)


def draw_labels(recent: RecentRounds) -> ReportFigure:
    """Draw the probabilities of predicted labels."""
    correct = float(np.mean(recent.targets == recent.predictions))
    caption = f"Predicted correctly: {format_percent(correct)} of {_format_newest(recent)}."
    caption += " The height is the probability of the predicted label."
    scale = Scale(0.0, 1.04, percent=True)
    chart = Chart(_rows(recent), scale, x_label="row", y_label="probability", description=caption)
    _draw_dots(chart, recent, recent.probabilities)
    legend = {"clean-dot": "clean"} | ({"suspect-dot": "suspects"} if recent.suspects.any() else {})
    return ReportFigure("predictions", "Predictions", caption, chart.to_svg(), legend)


def _draw_dots(chart: Chart, recent: RecentRounds, heights: Any) -> None:
    for row, height, suspect in zip(recent.rows.tolist(), heights.tolist(), recent.suspects.tolist(), strict=True):
        if math.isfinite(height):
            tip = f"row {row:,.0f}: {format_number(height)}"
            chart.dot(row, height, "suspect-dot" if suspect else "clean-dot", 3.4 if suspect else 2.4, tip)


def draw_losses(recent: RecentRounds, loss: float) -> ReportFigure:
    """Draw the median loss of the newest records, and the range of eight in ten losses."""
    groups = np.array_split(recent.losses, min(BINS, len(recent.losses)))
    xs = np.array([np.median(rows) for rows in np.array_split(recent.rows, len(groups))])
    quantiles = np.array([np.quantile(group, [0.1, 0.5, 0.9]) for group in groups]).T
    newest = float(np.median(recent.losses))
    caption = (
        f"The median loss is {format_number(newest)} in {_format_newest(recent)}, "
        f"{compare_losses(newest, loss)} in all records ({format_number(loss)})."
    )
    return draw_loss_band("Drift: loss along the stream", _rows(recent), xs, quantiles, caption)


def draw_suspects(recent: RecentRounds, share: float) -> ReportFigure:
    """Draw the share of suspects among the newest records."""
    count = min(BINS, len(recent.rows))
    shares = [float(group.mean()) for group in np.array_split(recent.suspects, count)]
    rows = np.array_split(recent.rows, count)
    newest = format_percent(float(recent.suspects.mean()))
    caption = f"Suspects: {newest} of {_format_newest(recent)}, and {format_percent(share)} of all."
    scale = Scale(0.0, min(1.0, max(1.15 * max(shares), 0.01)), percent=True)
    chart = Chart(_rows(recent), scale, x_label="row", y_label="suspects", description=caption)
    for each, height in zip(rows, shares, strict=True):
        if height:
            tip = f"rows {each[0]:,.0f} to {each[-1]:,.0f}: {format_percent(height)} suspects"
            chart.bar(float(each[0]), float(each[-1]) + 1.0, 0.0, height, "strong", tip)
    return ReportFigure("suspects", "Drift: suspects along the stream", caption, chart.to_svg(), {"strong": "suspects"})


def draw_rates(rates: Rates) -> ReportFigure:
    """Draw records per second since the page was opened."""
    seconds, heights = np.array(rates).T
    highest = max(1.15 * float(heights.max()), 1.0)
    scale = Scale(float(seconds[0]), float(seconds[-1]))
    label = "records per second"
    chart = Chart(scale, Scale(0.0, highest), x_label="seconds", y_label=label, description=label)
    chart.line(seconds, heights, "middle-line")
    return ReportFigure("rates", "Records per second", "Since this page was opened.", chart.to_svg(), {})


def _rows(recent: RecentRounds) -> Scale:
    return Scale(float(recent.rows[0]), float(recent.rows[-1]) + 1.0)


# --- its events ---

SECONDS = 1.0  # between two events
HISTORY = 120  # rates that a page shows

MAX_PAGES = 50


class Events:
    """The open pages of a server."""

    def __init__(self, folder: ModelFolder) -> None:
        self._folder, self._stopping, self._pages = folder, asyncio.Event(), 0

    def stop(self) -> None:
        """End all streams, so that the server can stop."""
        self._stopping.set()

    def watch(self, chosen: str | None) -> AsyncIterator[bytes]:
        """The events of a page that shows one model, the first by name unless one is chosen."""
        if self._pages >= MAX_PAGES:
            raise TooManyRequests(f"{MAX_PAGES} live pages are open already; close one.")
        return self._watch(chosen)

    async def _watch(self, chosen: str | None) -> AsyncIterator[bytes]:
        page = Page(self._folder, chosen)
        self._pages += 1
        try:
            while not self._stopping.is_set():
                event = orjson.dumps(await asyncio.to_thread(page.update))
                yield b"data: " + event + b"\n\n"
                try:
                    await asyncio.wait_for(self._stopping.wait(), SECONDS)
                except TimeoutError:
                    continue
        finally:
            self._pages -= 1


class Page:
    """What one page shows already, so that only changes are sent."""

    def __init__(self, folder: ModelFolder, chosen: str | None) -> None:
        self._folder, self._chosen = folder, chosen
        self._began = self._last = time.monotonic()
        self._records: dict[str, int] = {}
        self._sent: dict[str, dict[str, Any]] = {}
        self._rates: Rates = deque(maxlen=HISTORY)

    def update(self) -> dict[str, Any]:
        """The next event: the models whose line has changed, those that are gone, and the chosen model."""
        now = time.monotonic()
        passed, self._last = now - self._last, now
        models = {name: writer.model for name, writer in list(self._folder.writers.items())}
        shown = self._chosen if self._chosen is not None else min(models, default=None)
        changed = []
        for name, model in models.items():
            count = model.counts.records + len(model.pending)
            rate = max(0, count - self._records.get(name, count)) / passed if passed > 0.0 else 0.0
            before = self._records.get(name)
            self._records[name] = count
            if name == shown:
                self._rates.append((now - self._began, rate))
            if count == before and self._sent[name]["rate"] == "0":
                continue
            line = list_model(model, rate)
            if line != self._sent.get(name):
                self._sent[name] = line
                changed.append(line)
        gone = [name for name in self._sent if name not in models]
        for name in gone:
            del self._sent[name], self._records[name]
        event: dict[str, Any] = {"models": changed, "gone": gone, "broken": self._folder.broken}
        if shown in models:
            event["model"] = describe_live(models[shown], self._rates)
        return event


# --- its files ---

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def _read_file(name: str) -> str:
    return resources.files("redescend.serve").joinpath("page", name).read_text(encoding="utf-8")


PAGE = {
    "index.html": _read_file("index.html"),
    "live.css": read_part("style.css") + _read_file("live.css"),
    "live.js": _read_file("live.js"),
}
"""The files of the page by name. Nothing in them comes from a model, so they need no token."""
