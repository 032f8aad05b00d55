"""Partial dependence: how the mean prediction of a model with trees changes with one column, and plots of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from redescend.engines import NonlinearEngine
from redescend.engines.labels import label_probabilities
from redescend.numeric import Array
from redescend.streaming.model import StreamModel
from redescend.streaming.report.charts import Chart, ReportFigure, Scale, fit_scale
from redescend.streaming.report.formatting import format_date, format_number, format_percent

if TYPE_CHECKING:
    from redescend.streaming.encoding.features import Feature

RECENT, POINTS = 128, 24  # the number of recent records, and of quantiles of the column that replace its value in each
ENDS = 0.02  # the share of values on each side that is left out


class Dependence(NamedTuple):
    """The mean and the quartiles of the predictions for recent records, by value of one column.

    `label` is the label whose probability is predicted, or empty.
    """

    column: str
    values: Array
    mean: Array
    low: Array
    high: Array
    label: str
    is_date: bool


def compute_dependence(model: StreamModel, column: str) -> Dependence | None:
    """Compute the partial dependence of a model with trees on a column of numbers or dates; None for other columns.

    With three or more labels it is that of the label whose mean probability changes most.
    """
    engine, schema = model.engine, model.schema
    place = next((i for i, feature in enumerate(schema.features) if feature.name == column), None)
    if place is None or not isinstance(engine, NonlinearEngine) or len(schema.labels) == 1:
        return None
    feature, span = schema.features[place], schema.spans[place]
    X = engine.recent_records(RECENT)
    values = _choose_values(X[:, span.start]) if feature.how in ("number", "date") else np.empty(0)
    if len(values) < 2:
        return None
    # All in one table, the records of a value one after the other.
    table = np.tile(X, (len(values), 1))
    _write_values(feature, table[:, span], np.repeat(values, len(X)))
    scores = engine.predict(table)
    curves = label_probabilities(scores) if schema.classifies else scores
    curves = curves.reshape(len(curves), len(values), len(X))
    output = 1 if schema.outputs == 1 and schema.classifies else int(np.ptp(curves.mean(axis=2), axis=1).argmax())
    low, high = np.quantile(curves[output], [0.25, 0.75], axis=1)
    label = schema.labels[output] if schema.classifies else ""
    return Dependence(column, values, curves[output].mean(axis=1), low, high, label, feature.how == "date")


def _choose_values(column: Array) -> Array:
    """Distinct quantiles of a column, without its ends."""
    known = column[np.isfinite(column)]
    if not len(known):
        return known
    return np.unique(np.quantile(known, np.linspace(ENDS, 1.0 - ENDS, POINTS), method="nearest"))


def _write_values(feature: Feature, columns: Array, values: Array) -> None:
    """Write encoded values of a column; its missing-value indicator is 0."""
    columns[:, 0] = values
    if feature.how == "date":
        for place, wave in enumerate(feature.waves(values), start=1):
            columns[:, place] = wave
    if feature.missing:
        columns[:, -1] = 0.0


MOST, HEIGHT = 4, 210.0  # the most pictures, and their height


class DateScale(Scale):
    """A scale of dates, given as days since 1970-01-01."""

    def label(self, value: float) -> str:
        """The date of a tick.

        >>> DateScale(19_800.0, 20_000.0).label(19_900.0)
        '2024-06-26'
        """
        return format_date(value)


def draw_dependences(model: StreamModel, columns: list[str]) -> list[ReportFigure]:
    """Draw the partial dependence on the first numeric or date columns; none for linear models.

    All pictures have the same vertical axis.
    """
    found: list[Dependence] = []
    for column in columns:
        one = compute_dependence(model, column) if len(found) < MOST else None
        found += [] if one is None else [one]
    both = [fit_scale(np.concatenate([one.low, one.mean, one.high]).tolist()) for one in found]
    percent = model.schema.classifies
    low, high = min((one.low for one in both), default=0.0), max((one.high for one in both), default=1.0)
    scale = Scale(max(low, 0.0), min(high, 1.0), percent=True) if percent else Scale(low, high)
    return [_draw(one, scale, place, model) for place, one in enumerate(found, start=1)]


def _draw(one: Dependence, scale: Scale, place: int, model: StreamModel) -> ReportFigure:
    what = f"probability of {one.label}" if one.label else f"predicted {model.schema.target}"
    caption = _describe(one, what)
    x = (DateScale if one.is_date else Scale)(float(one.values[0]), float(one.values[-1]))
    labels = {"x_label": one.column, "y_label": "probability" if one.label else "prediction"}
    chart = Chart(x, scale, **labels, description=caption, height=HEIGHT)
    chart.band(one.values, one.low, one.high, "band")
    chart.line(one.values, one.mean, "middle-line")
    legend = {"middle-line": "mean of recent records", "band": "interquartile range"}
    return ReportFigure(f"dependence-{place}", one.column, caption, chart.to_svg(), legend)


def _describe(one: Dependence, what: str) -> str:
    lowest, highest = int(one.mean.argmin()), int(one.mean.argmax())
    format_y, format_x = format_percent if one.label else format_number, format_date if one.is_date else format_number
    ends = [f"{format_y(float(one.mean[at]))} at {format_x(float(one.values[at]))}" for at in (lowest, highest)]
    return f"The mean {what} is lowest, {ends[0]}, and highest, {ends[1]}."
