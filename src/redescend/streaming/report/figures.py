"""What all pictures of a report have in common."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from redescend.streaming.report.charts import Chart, Scale
from redescend.streaming.summary.histograms import StreamHistograms


class ReportFigure(NamedTuple):
    """A picture with its caption, which says what to see, and a legend of classes of marks."""

    name: str
    title: str
    caption: str
    svg: Markup
    legend: dict[str, str]


def start_along_stream(histograms: StreamHistograms, y: Scale, y_label: str, description: str) -> Chart:
    """An empty chart whose horizontal axis has the rows of the stream."""
    rows = Scale(1.0, float(histograms.rows + 1))
    return Chart(rows, y, x_label="row", y_label=y_label, description=description)
