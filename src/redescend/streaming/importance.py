"""Feature importance: how much each column changes the predictions of a model, and in which direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from redescend.engines import Engine, NonlinearEngine
from redescend.numeric import Array
from redescend.streaming.report.formatting import abbreviate

if TYPE_CHECKING:
    from redescend.streaming.encoding.features import Feature
    from redescend.streaming.encoding.schema import Schema
    from redescend.streaming.model import StreamModel

MAX_EFFECT = 1e150  # effects are clipped to this, so that they can be summed
RECENT = 512  # the most recent records whose contributions are computed
MAX_LABEL = 12  # characters of a label in a direction


class Importance(NamedTuple):
    """A column, its share of the total effect, and the direction of its effect, if it has one."""

    column: str
    share: float
    direction: str


def rank_features(model: StreamModel) -> list[Importance]:
    """Rank the columns by importance, the most important first."""
    schema, engine = model.schema, model.engine
    coefficients = compute_slopes(engine) if isinstance(engine, NonlinearEngine) else engine.coefficients()[0]
    directions = {
        feature.name: _describe_direction(schema, feature, coefficients[:, span])
        for feature, span in zip(schema.features, schema.spans, strict=True)
    }
    shares = model.explain().items()
    return [Importance(name, share, directions.get(name, "")) for name, share in shares if share > 0.0]


def compute_effects(schema: Schema, engine: Engine, frequencies: Array) -> dict[str, float]:
    """Compute the effect of every column: |coefficient| · scale for numbers, the standard deviation for texts.

    `frequencies` are the shares of records in which each of ``schema.indicators`` is 1.
    """
    if isinstance(engine, NonlinearEngine):
        return _compute_spreads(schema, engine)
    coefficients = np.clip(engine.coefficients()[0], -MAX_EFFECT, MAX_EFFECT)
    often = np.full(schema.dim, np.nan)
    often[schema.indicators] = frequencies
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.nan_to_num(np.abs(coefficients) * engine.scales(), posinf=MAX_EFFECT).sum(axis=0)

    effects = {}
    for feature, span in zip(schema.features, schema.spans, strict=True):
        columns = np.arange(span.start, span.stop)
        is_number = np.isnan(often[columns])
        rest = columns[~is_number]
        spread = _standard_deviation(coefficients[:, rest], often[rest])
        effects[feature.name] = float(scaled[columns[is_number]].sum()) + spread
    if schema.shares_indicator and (missing := _standard_deviation(coefficients[:, -1:], often[-1:])) > 0.0:
        effects[schema.encoded[-1]] = missing
    return {name: min(effect, MAX_EFFECT) for name, effect in effects.items()}


def _compute_spreads(schema: Schema, engine: NonlinearEngine) -> dict[str, float]:
    """Compute the standard deviation of the contributions of every column over recent records."""
    X, effects = engine.recent_records(RECENT), dict.fromkeys([feature.name for feature in schema.features], 0.0)
    if not len(X):
        return effects
    for parts in np.clip(engine.contributions(X), -MAX_EFFECT, MAX_EFFECT):
        for feature, span in zip(schema.features, schema.spans, strict=True):
            effects[feature.name] += float(parts[:, span].sum(axis=1).std())
        if schema.shares_indicator and (missing := float(parts[:, -2].std())) > 0.0:
            effects[schema.encoded[-1]] = effects.get(schema.encoded[-1], 0.0) + missing
    return {name: min(effect, MAX_EFFECT) for name, effect in effects.items()}


def compute_slopes(engine: NonlinearEngine) -> Array:
    """Regress contributions on their features: a row of slopes for each output, 0 where R² is below a half."""
    X = engine.recent_records(RECENT)
    slopes = np.zeros((engine.outputs, engine.dim))
    if not len(X):
        return slopes
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        centred = np.nan_to_num(X - np.nanmedian(X, axis=0))
        centred -= centred.mean(axis=0)
        for output, parts in enumerate(engine.contributions(X)[:, :, :-1]):
            parts -= parts.mean(axis=0)
            together, own = (centred * parts).sum(axis=0), np.square(centred).sum(axis=0)
            explained = np.square(together) >= 0.5 * own * np.square(parts).sum(axis=0)
            slopes[output] = np.where(explained & (own > 0.0), together / own, 0.0)
    return np.nan_to_num(slopes)


def _standard_deviation(values: Array, shares: Array) -> float:
    """The standard deviation of a variable that has each value in its share of the records, and is 0 in the others."""
    mean = values @ shares
    variance = np.square(values - mean[:, None]) @ shares + np.square(mean) * max(0.0, 1.0 - shares.sum())
    return float(np.sqrt(variance).sum())


def _describe_direction(schema: Schema, feature: Feature, coefficients: Array) -> str:
    """Describe the direction of a feature's effect; its coefficients have a row for each output."""
    if feature.how == "hashed":
        return ""
    if feature.how == "levels":
        own = coefficients[:, : len(feature.levels)]
        spread = own - own.mean(axis=1, keepdims=True)
        if not spread.any():
            return ""
        parts = []
        for extreme in (spread.argmax(), spread.argmin()):
            output, level = divmod(int(extreme), spread.shape[1])
            sign = _describe_sign(schema, output, float(spread[output, level]))
            parts.append(f"{abbreviate(feature.levels[level], MAX_LABEL)}: {sign}")
        return " · ".join(parts)
    output = int(np.abs(coefficients[:, 0]).argmax())
    if coefficients[output, 0] == 0.0:
        return ""
    more = {"boolean": "true", "date": "later"}.get(feature.how, "more")
    return f"{more}: {_describe_sign(schema, output, float(coefficients[output, 0]))}"


def _describe_sign(schema: Schema, output: int, effect: float) -> str:
    if not schema.classifies:
        return "higher" if effect > 0.0 else "lower"
    if len(schema.labels) == 1:
        effect = -effect  # the output speaks for the other label, which has not appeared yet
    elif schema.outputs == 1:
        return abbreviate(schema.labels[int(effect > 0.0)], MAX_LABEL)
    return f"{'' if effect > 0.0 else 'not '}{abbreviate(schema.labels[output], MAX_LABEL)}"
