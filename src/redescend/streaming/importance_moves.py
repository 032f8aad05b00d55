"""How much each column moves the predictions of a model."""

from __future__ import annotations

import numpy as np

from redescend.engines import Engine
from redescend.numeric import Array
from redescend.streaming.encoding.schema import Schema

FARTHEST = 1e150
"""Moves are no larger than this, so that they can be added up."""


def moves_of(schema: Schema, engine: Engine, shares: Array) -> dict[str, float]:
    """By column: |coefficient|·scale of numbers, and the standard deviation of what texts and missing values add.

    Parameters
    ----------
    schema : Schema
    engine : Engine
    shares : array
        Of the records, in how many each of ``schema.indicators`` is 1.
    """
    coefficients = np.clip(engine.coefficients()[0], -FARTHEST, FARTHEST)
    often = np.full(schema.dim, np.nan)
    often[schema.indicators] = shares
    with np.errstate(invalid="ignore", over="ignore"):
        straight = np.nan_to_num(np.abs(coefficients) * engine.scales(), posinf=FARTHEST).sum(axis=0)

    moves = {}
    for feature, span in zip(schema.features, schema.spans, strict=True):
        places = np.arange(span.start, span.stop)
        counted = np.isnan(often[places])
        rest = places[~counted]
        moves[feature.name] = float(straight[places[counted]].sum()) + _spread(coefficients[:, rest], often[rest])
    if schema.shares_indicator and (elsewhere := _spread(coefficients[:, -1:], often[-1:])) > 0.0:
        moves[schema.encoded[-1]] = elsewhere
    return {name: min(move, FARTHEST) for name, move in moves.items()}


def _spread(values: Array, shares: Array) -> float:
    """The standard deviation of a variable that has each value in its share of the records, and is 0 in the others."""
    mean = values @ shares
    variance = np.square(values - mean[:, None]) @ shares + np.square(mean) * max(0.0, 1.0 - shares.sum())
    return float(np.sqrt(variance).sum())
