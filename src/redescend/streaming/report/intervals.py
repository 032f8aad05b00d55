"""The picture of the intervals: how many records along the stream are within theirs."""

from __future__ import annotations

import numpy as np

from redescend.kernels.histograms import FINE
from redescend.streaming.report.charts import Scale
from redescend.streaming.report.figures import ReportFigure, start_along_stream
from redescend.streaming.report.formatting import format_percent
from redescend.streaming.summary.histograms import StreamHistograms

LEVEL = 0.9
"""The level of the intervals of rounds."""

STRETCHES, MIN_RECORDS = 32, 100
"""The most parts of the stream, and about how many records each has at least: the share of few means nothing."""


def draw_coverage(histograms: StreamHistograms) -> ReportFigure | None:
    """Draw the share of records within their interval; None if there are no intervals, or too few."""
    bins = min(STRETCHES, int(histograms.coverage[:, :2].sum()) // MIN_RECORDS)
    if not bins:
        return None
    counts = histograms.merge(histograms.coverage, bins)
    edges, present = histograms.edges(bins), counts[:, 3] + counts[:, 2] > FINE
    records, clean = counts[present, :2], counts[present, 2:] / FINE
    if not len(records):
        return None
    middles = 0.5 * (edges[:-1] + edges[1:])[present]
    every, weighted = records[:, 1] / records.sum(axis=1), clean[:, 1] / clean.sum(axis=1)
    spread = 2.0 * np.sqrt(LEVEL * (1.0 - LEVEL) / clean.sum(axis=1))
    low, high = LEVEL - spread, np.minimum(LEVEL + spread, 1.0)
    shares = [format_percent(float(part[:, 1].sum() / part.sum())) for part in (clean, records)]
    caption = (
        f"About nine in ten clean records should be within their interval, which was predicted before they came: "
        f"{shares[0]} are, if every record counts with its probability of being clean, and {shares[1]} of all records, "
        "wrong ones included. Points outside the band are more than chance."
    )
    scale = Scale(max(0.0, min(float(every.min()), float(weighted.min()), float(low.min())) - 0.03), 1.0, percent=True)
    chart = start_along_stream(histograms, scale, "within the interval", caption)
    if len(middles) > 1:
        chart.band(middles, np.maximum(low, scale.low), high, "band")
    chart.line([1.0, float(histograms.rows + 1)], [LEVEL, LEVEL], "ideal")
    chart.line(middles, every, "other-line")
    rows = zip(edges[:-1][present].tolist(), edges[1:][present].tolist(), weighted.tolist(), strict=True)
    for middle, (start, end, share) in zip(middles.tolist(), rows, strict=True):
        chart.dot(middle, share, "group-dot", 3.5, f"rows {start:,} to {end - 1:,}: {format_percent(share)}")
    legend = {
        "group-dot": "clean records",
        "band": "where 95 % of these points should be",
        "other-line": "all records",
    }
    return ReportFigure("coverage", "How well do the intervals fit?", caption, chart.to_svg(), legend)
