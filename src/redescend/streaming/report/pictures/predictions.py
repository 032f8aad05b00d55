"""Predictions of numbers against what was observed: point by point, and in groups."""

from __future__ import annotations

import numpy as np

from redescend.numeric import Array
from redescend.streaming.report.charts import Chart, Scale, around
from redescend.streaming.report.formatting import number, percent
from redescend.streaming.report.pictures.picture import Picture
from redescend.streaming.summary.summary import Summary

GROUPS = 10
NORMAL = 1.4826
"""The standard deviation of normal noise, in median distances from its middle."""


def typical_error(summary: Summary) -> float:
    """How far an observation that looks clean typically is from its prediction, as a standard deviation."""
    clean = summary.clean_sample()
    return NORMAL * float(np.median(np.abs(clean.targets - clean.predictions))) if len(clean) else np.nan


def draw_points(summary: Summary) -> Picture:
    """Every drawn record as a point; those that were not believed are marked."""
    clean, doubted = summary.clean_sample(), summary.doubted.rounds
    both = _reach(clean.targets, clean.predictions) if len(clean) else around(doubted.predictions.tolist())
    beyond = int(((doubted.targets < both.low) | (doubted.targets > both.high)).sum())
    see = (
        "Points near the line were predicted well; those that are marked were not believed and hardly moved the model."
    )
    if beyond:
        see = f"{see[:-1]} ({beyond:,} of them lie beyond the picture and are drawn at its edge)."
    chart = Chart(
        both, both, across="observed", up="predicted", height=400.0, describe=f"Predicted against observed. {see}"
    )
    chart.line([both.low, both.high], [both.low, both.high], "ideal")
    for target, prediction in zip(clean.targets.tolist(), clean.predictions.tolist(), strict=True):
        chart.dot(target, prediction, "clean-dot")
    for row, target, prediction, _, _, weight in zip(*(array.tolist() for array in doubted.arrays()), strict=True):
        said = f"row {row:,}: observed {number(target)}, predicted {number(prediction)}, {percent(weight)} clean"
        chart.dot(target, prediction, "doubted-dot", 3.4, said)
    legend = {"clean-dot": f"believed: {len(clean):,} drawn at random"}
    if len(doubted):
        which = "all" if len(doubted) < summary.doubted.size else "drawn at random"
        legend["doubted-dot"] = f"not believed: {len(doubted):,}, {which}"
    return Picture("points", "Predicted against observed", see, chart.drawn(), legend)


def _reach(targets: Array, predictions: Array) -> Scale:
    """Where the believed records are: outliers are as far off as numbers go."""
    low, high = np.quantile(targets, [0.002, 0.998])
    room = 0.25 * (high - low)
    inside = np.clip(np.concatenate([targets, predictions]), low - room, high + room)
    return around(inside.tolist())


def draw_groups(summary: Summary) -> Picture | None:
    """In ten groups by the prediction: the median observed, and where the middle half of the observations is."""
    clean = summary.clean_sample()
    if len(clean) < 5 * GROUPS:
        return None
    order = np.argsort(clean.predictions, kind="stable")
    groups = np.array_split(order, GROUPS)
    said = np.array([np.median(clean.predictions[group]) for group in groups])
    low, middle, high = np.transpose([np.quantile(clean.targets[group], [0.25, 0.5, 0.75]) for group in groups])
    both = around([*said, *low, *high])
    scale = typical_error(summary)
    errors = np.abs(clean.targets - clean.predictions)
    within = [percent(float(np.mean(errors <= times * scale))) for times in (1.0, 2.0)]
    off = float(np.max(np.abs(middle - said))) / scale if scale else 0.0
    see = (
        f"The groups {'lie on the line' if off < 0.5 else 'leave the line'}: the median observed is at most "
        f"{number(off)} typical errors from the prediction. Of the records that look clean, {within[0]} are within one "
        f"typical error ({number(scale)}) of it and {within[1]} within two; normal noise has 68.3 % and 95.4 %."
    )
    chart = Chart(both, both, across="predicted", up="observed", height=400.0, describe=f"Observed in groups. {see}")
    chart.line([both.low, both.high], [both.low, both.high], "ideal")
    for x, bottom, y, top in zip(said.tolist(), low.tolist(), middle.tolist(), high.tolist(), strict=True):
        chart.line([x, x], [bottom, top], "whisker")
        chart.dot(x, y, "group-dot", 5.0, f"predicted {number(x)}, observed {number(y)}")
    legend = {"group-dot": "median of a tenth of the records", "whisker": "the middle half of them"}
    return Picture("groups", "Can the predictions be taken at their word?", see, chart.drawn(), legend)
