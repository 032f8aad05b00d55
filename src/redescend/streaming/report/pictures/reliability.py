"""Predictions of labels: how sure they were, and how often they were right."""

from __future__ import annotations

import numpy as np

from redescend.kernels.histograms import FINE
from redescend.streaming.report.charts import Chart, Scale
from redescend.streaming.report.formatting import percent
from redescend.streaming.report.pictures.picture import Picture
from redescend.streaming.summary.summary import Summary

FEWEST = 10
"""Fewer predictions than this have no share that means anything."""


def draw_reliability(summary: Summary) -> Picture:
    """The share of right predictions against the probability with which they were made."""
    wrong, right, sums = summary.sure.T.astype(np.float64)
    counts = wrong + right
    total = counts.sum()
    shown = counts >= min(FEWEST, counts.max())
    said, true = sums[shown] / FINE / counts[shown], right[shown] / counts[shown]
    gap = float(np.sum(counts[shown] * np.abs(said - true)) / counts[shown].sum())
    lean = float(np.sum(counts[shown] * (said - true)))
    word = "about as often as it says" if gap < 0.03 else f"{'less' if lean > 0.0 else 'more'} often than it says"
    see = (
        f"Points on the line keep their word: it is right {word} ({percent(float(right.sum() / total))} right, "
        f"{percent(float(sums.sum() / FINE / total))} promised). A larger point stands for more records."
    )
    low = max(0.0, min(float(said.min()), float(true.min())) - 0.04)
    both = Scale(low, 1.02, percent=True)
    chart = Chart(both, both, across="probability of the predicted label", up="came true", height=400.0, describe=see)
    chart.line([low, 1.0], [low, 1.0], "ideal")
    for x, y, count in zip(said.tolist(), true.tolist(), counts[shown].tolist(), strict=True):
        tip = f"{count:,.0f} predictions made with {percent(x)}: {percent(y)} came true"
        chart.dot(x, y, "group-dot", 3.5 + 9.0 * (count / total) ** 0.5, tip)
    return Picture("reliability", "Can the probabilities be taken at their word?", see, chart.drawn(), {})
