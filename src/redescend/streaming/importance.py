"""What drives the predictions of a model: how much each column moves them, and which way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from redescend.numeric import Array

if TYPE_CHECKING:
    from redescend.streaming.encoding.features import Feature
    from redescend.streaming.encoding.schema import Schema
    from redescend.streaming.model import StreamModel

_KNOWN = 12
"""Characters of a level that are shown."""


class Drive(NamedTuple):
    """A column and its part in the predictions.

    Attributes
    ----------
    column : its name.
    share : its part of all that moves the predictions, at most 1.
    way : which way it moves them, in words; nothing where that cannot be said.
    """

    column: str
    share: float
    way: str


def drives(model: StreamModel) -> list[Drive]:
    """The columns that move the predictions, the strongest first."""
    schema = model.schema
    coefficients, _ = model.coefficients()
    ways = {
        feature.name: _way(schema, feature, coefficients[:, span])
        for feature, span in zip(schema.features, schema.spans, strict=True)
    }
    return [Drive(name, share, ways.get(name, "")) for name, share in model.explain().items() if share > 0.0]


def _way(schema: Schema, feature: Feature, coefficients: Array) -> str:
    """Coefficients are those of the columns of one feature, a row for each output."""
    if feature.how == "hashed":
        return ""
    if feature.how == "levels":
        own = coefficients[:, : len(feature.levels)]
        spread = own - own.mean(axis=1, keepdims=True)
        best = np.unravel_index(int(spread.argmax()), spread.shape)
        worst = np.unravel_index(int(spread.argmin()), spread.shape)
        return " · ".join(
            f"{_short(feature.levels[at[1]])}: {_toward(schema, int(at[0]), float(spread[at]))}" for at in (best, worst)
        )
    output = int(np.abs(coefficients[:, 0]).argmax())
    more = {"boolean": "true", "date": "later"}.get(feature.how, "more")
    return f"{more}: {_toward(schema, output, float(coefficients[output, 0]))}"


def _toward(schema: Schema, output: int, effect: float) -> str:
    if not schema.classifies:
        return "higher" if effect > 0.0 else "lower"
    if schema.outputs == 1:
        return _short(schema.labels[int(effect > 0.0)])
    return f"{'' if effect > 0.0 else 'not '}{_short(schema.labels[output])}"


def _short(text: str) -> str:
    return text if len(text) <= _KNOWN else f"{text[: _KNOWN - 1]}…"
