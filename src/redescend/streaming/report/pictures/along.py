"""Weights and losses along the stream."""

from __future__ import annotations

import numpy as np

from redescend.numeric import Array
from redescend.streaming.report.charts import Chart, Scale, around
from redescend.streaming.report.formatting import number, percent
from redescend.streaming.report.pictures.picture import PLACES, Picture
from redescend.streaming.summary.histograms import Curve


def draw_weights(curve: Curve) -> Picture:
    """How many records were not believed, and where some could not be used."""
    cells, bad, edges = (*(curve.gathered(part, PLACES) for part in (curve.believed, curve.bad)), curve.starts(PLACES))
    counts = np.maximum(cells.sum(axis=1), 1)
    first, last = curve.doubt.cells
    hardly, doubted = cells[:, :first].sum(axis=1) / counts, cells[:, first:last].sum(axis=1) / counts
    see = _where(hardly + doubted, edges)
    chart = Chart(
        Scale(1.0, float(curve.rows + 1)),
        Scale(0.0, min(1.0, max(1.15 * float((hardly + doubted).max()), 0.01)), percent=True),
        across="row of the stream",
        up="not believed",
        describe=f"Share of records that were not believed, along the stream. {see}",
    )
    for place, (low, more) in enumerate(zip(hardly.tolist(), doubted.tolist(), strict=True)):
        start, end = float(edges[place]), float(edges[place + 1])
        tip = f"rows {start:,.0f} to {end - 1.0:,.0f}: {percent(low + more)} not believed"
        if low:
            chart.bar(start, end, 0.0, low, "hardly", tip)
        if more:
            chart.bar(start, end, low, low + more, "doubted", tip)
        if bad[place]:
            chart.bar(start, end, 0.0, 0.025 * chart.y.high, "bad", f"{tip}; {bad[place]:,} could not be used")
    legend = {
        "hardly": f"believed less than {number(100.0 * curve.doubt.hardly)} %",
        "doubted": f"less than {number(100.0 * curve.doubt.limit)} %",
    }
    if bad.any():
        legend["bad"] = "here are records that could not be used"
    return Picture("weights", "Where it did not believe the stream", see, chart.drawn(), legend)


def _where(shares: Array, edges: Array) -> str:
    at = int(shares.argmax())
    if shares[at] == 0.0:
        return "Nothing stands out: every record was believed."
    rows, usual = f"rows {edges[at]:,} to {edges[at + 1] - 1:,}", float(np.median(shares))
    return (
        f"Doubt is greatest in {rows}, where {percent(float(shares[at]))} of the records were not believed; "
        f"over half of the stream {f'it is {percent(usual)} or less' if usual else 'there is none'}."
    )


def draw_losses(curve: Curve) -> Picture:
    """The loss of half of the records, and of eight in ten."""
    low, middle, high = (curve.quantiles(share, PLACES) for share in (0.1, 0.5, 0.9))
    edges, there = curve.starts(PLACES), np.isfinite(middle)
    xs = 0.5 * (edges[:-1] + edges[1:])[there]
    low, middle, high = low[there], middle[there], high[there]
    positive = np.concatenate([low, middle, high])
    positive = positive[positive > 0.0]
    # A loss of 0 has no place on a log axis, and one that is as good as 0 must not flatten the rest.
    scale = around(np.maximum(positive, 1e-6 * np.median(positive)).tolist() if len(positive) else [], log=True)
    see = _trend(middle)
    chart = Chart(
        Scale(1.0, float(curve.rows + 1)),
        scale,
        across="row of the stream",
        up="loss",
        describe=f"Loss along the stream. {see}",
    )
    chart.band(xs, np.maximum(low, scale.low), np.maximum(high, scale.low), "band")
    chart.line(xs, np.maximum(middle, scale.low), "middle-line")
    legend = {"middle-line": "half of the records cost less", "band": "eight in ten records lie in here"}
    return Picture("losses", "How well it predicted, along the stream", see, chart.drawn(), legend)


def _trend(middle: Array) -> str:
    part = max(len(middle) // 4, 1)
    first, last = float(np.median(middle[:part])), float(np.median(middle[-part:]))
    said = f"The median loss is {number(first)} in the first quarter of the stream and {number(last)} in the last"
    if last < 0.8 * first:
        return f"{said}: it went on learning."
    return f"{said}: the stream became harder to predict." if last > 1.25 * first else f"{said}: it is steady."
