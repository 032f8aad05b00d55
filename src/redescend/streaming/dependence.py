"""Partial dependence: how the mean prediction of a model with trees changes with one column."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from redescend.engines import NonlinearEngine
from redescend.engines.labels import label_probabilities
from redescend.numeric import Array

if TYPE_CHECKING:
    from redescend.streaming.encoding.features import Feature
    from redescend.streaming.model import StreamModel

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
