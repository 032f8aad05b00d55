"""Partial dependence: how the mean prediction of a model with trees changes with one column."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from redescend.engines import NonlinearEngine
from redescend.engines.one_vs_rest import label_probabilities
from redescend.numeric import Array

if TYPE_CHECKING:
    from redescend.streaming.encoding.features import Feature
    from redescend.streaming.model import StreamModel

RECENT, POINTS = 128, 24
"""Recent records that are predicted, and values of the column, at quantiles, that each is predicted with."""

ENDS = 0.02
"""The share of values on each side that is left out."""


class Dependence(NamedTuple):
    """A column, values of it, and the quartiles and the mean of predictions of recent records that have these values.

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
    """The partial dependence of the predictions of a model with trees on a column of numbers or dates, or None.

    With three or more labels it is that of the label whose mean probability changes most.
    """
    engine, schema = model.engine, model.schema
    place = next((i for i, feature in enumerate(schema.features) if feature.name == column), None)
    if place is None or not isinstance(engine, NonlinearEngine):
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
    told = label_probabilities(scores) if schema.classifies else scores
    told = told.reshape(len(told), len(values), len(X))
    output = 1 if schema.outputs == 1 and schema.classifies else int(np.ptp(told.mean(axis=2), axis=1).argmax())
    low, high = np.quantile(told[output], [0.25, 0.75], axis=1)
    label = schema.labels[output] if schema.classifies else ""
    return Dependence(column, values, told[output].mean(axis=1), low, high, label, feature.how == "date")


def _choose_values(column: Array) -> Array:
    """Different quantiles of a column, without its ends."""
    known = column[np.isfinite(column)]
    if not len(known):
        return known
    return np.unique(np.quantile(known, np.linspace(ENDS, 1.0 - ENDS, POINTS), method="nearest"))


def _write_values(feature: Feature, columns: Array, values: Array) -> None:
    """Write values of a column as it is encoded; its missing-value indicator is 0."""
    columns[:, 0] = values
    if feature.how == "date":
        for place, wave in enumerate(feature.waves(values), start=1):
            columns[:, place] = wave
    if feature.missing:
        columns[:, -1] = 0.0
