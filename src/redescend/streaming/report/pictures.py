"""The pictures of a report: weights and losses along the stream, and predictions against observations."""

from __future__ import annotations

import numpy as np

from redescend.numeric import Array
from redescend.streaming.report.charts import Chart, ReportFigure, Scale, fit_scale
from redescend.streaming.report.formatting import NEGLIGIBLE, format_number, format_percent
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary import Summary
from redescend.streaming.summary.histograms import FINE, StreamHistograms

BINS = 128  # most bins of a chart along the stream

DECILES = 10
MIN_PREDICTIONS = 10  # fewer predictions than this have no meaningful share of correct ones
NORMAL = 1.4826  # the standard deviation of normal noise, in median absolute deviations
LEVEL = 0.9  # the level of the intervals

STRETCHES, MIN_RECORDS = 32, 100
"""The most parts of the stream, and the fewest records of a part, about: a share of few records is noise."""


def draw_all(summary: Summary) -> list[ReportFigure]:
    """Draw every picture that there are enough rounds for, in the order of the page."""
    if not summary.learned:
        return []
    drawn: list[ReportFigure | None] = [draw_suspects(summary), draw_losses(summary.histograms)]
    if summary.schema.classifies:
        drawn.append(draw_calibration(summary))
    else:
        drawn += [draw_points(summary), draw_deciles(summary), draw_coverage(summary.histograms)]
    return [picture for picture in drawn if picture is not None]


# --- along the stream ---


def _start_along_stream(histograms: StreamHistograms, y: Scale, y_label: str, description: str) -> Chart:
    """An empty chart whose horizontal axis has the rows of the stream."""
    rows = Scale(1.0, float(histograms.rows + 1))
    return Chart(rows, y, x_label="row", y_label=y_label, description=description)


def draw_suspects(summary: Summary) -> ReportFigure:
    """Draw the share of suspects, those of the final list if there is one, and where records were rejected."""
    histograms, listed = summary.histograms, summary.listed
    weights, rejected = (histograms.merge(part, BINS) for part in (histograms.weights, histograms.rejected))
    edges, counts = histograms.edges(BINS), np.maximum(weights.sum(axis=1), 1)
    first, last = histograms.limits.cells
    strong, suspect = weights[:, :first].sum(axis=1) / counts, weights[:, first:last].sum(axis=1) / counts
    if listed is not None:
        strong, suspect = np.histogram(listed.rows, edges)[0] / counts, np.zeros(len(counts))
    caption = _describe_suspects(strong + suspect, edges)
    scale = Scale(0.0, min(1.0, max(1.15 * float((strong + suspect).max()), 0.01)), percent=True)
    chart = _start_along_stream(histograms, scale, "suspects", f"Share of suspects along the stream. {caption}")
    for index, (low, more) in enumerate(zip(strong.tolist(), suspect.tolist(), strict=True)):
        start, end = float(edges[index]), float(edges[index + 1])
        tip = f"rows {start:,.0f} to {end - 1.0:,.0f}: {format_percent(low + more)} suspects"
        if low:
            chart.bar(start, end, 0.0, low, "strong", tip)
        if more:
            chart.bar(start, end, low, low + more, "suspect", tip)
        if rejected[index]:
            chart.bar(start, end, 0.0, 0.025 * chart.y.high, "rejected", f"{tip}; {rejected[index]:,} rejected")
    legend = {"strong": "suspects in the list"}
    if listed is None:
        legend = {
            "strong": f"probability below {format_number(100.0 * histograms.limits.strong)} %",
            "suspect": f"probability below {format_number(100.0 * histograms.limits.suspect)} %",
        }
    if rejected.any():
        legend["rejected"] = "rejected records"
    return ReportFigure("weights", "Suspects along the stream", caption, chart.to_svg(), legend)


def _describe_suspects(shares: Array, edges: Array) -> str:
    most = int(shares.argmax())
    if shares[most] == 0.0:
        return "There are no suspects."
    rows, median = f"rows {edges[most]:,} to {edges[most + 1] - 1:,}", format_percent(float(np.median(shares)))
    return (
        f"The share of suspects is highest in {rows}, at {format_percent(float(shares[most]))}; the median is {median}."
    )


def draw_losses(histograms: StreamHistograms) -> ReportFigure:
    """Draw the median loss, and the range of eight in ten losses."""
    quantiles = np.array([histograms.loss_quantiles(share, BINS) for share in (0.1, 0.5, 0.9)])
    edges, present = histograms.edges(BINS), np.isfinite(quantiles[1])
    middles, rows = 0.5 * (edges[:-1] + edges[1:])[present], Scale(1.0, float(histograms.rows + 1))
    return draw_loss_band(
        "Loss along the stream", rows, middles, quantiles[:, present], _describe_trend(quantiles[1, present])
    )


def draw_loss_band(title: str, rows: Scale, xs: Array, quantiles: Array, caption: str) -> ReportFigure:
    """Draw the median of losses, and the range from the lower to the upper of the three `quantiles`."""
    positive = quantiles[quantiles > 0.0]
    # A loss of 0 has no place on a log axis, and one that is practically 0 must not flatten the rest.
    scale = fit_scale(np.maximum(positive, 1e-6 * np.median(positive)).tolist() if len(positive) else [], log=True)
    chart = Chart(rows, scale, x_label="row", y_label="loss", description=f"{title}. {caption}")
    low, median, high = np.maximum(quantiles, scale.low)
    chart.band(xs, low, high, "band")
    chart.line(xs, median, "middle-line")
    legend = {"middle-line": "median", "band": "10th to 90th percentile"}
    return ReportFigure("losses", title, caption, chart.to_svg(), legend)


def _describe_trend(median: Array) -> str:
    quarter = max(len(median) // 4, 1)
    first, last = float(np.median(median[:quarter])), float(np.median(median[-quarter:]))
    return (
        f"The median loss is {format_number(last)} in the last quarter of the stream, {compare_losses(last, first)} "
        f"in the first quarter ({format_number(first)})."
    )


def compare_losses(later: float, before: float) -> str:
    """Compare a loss with an earlier one, in words.

    >>> compare_losses(3.0, 1.0), compare_losses(1.1, 1.0)
    ('higher than', 'about the same as')
    """
    return "lower than" if later < 0.8 * before else "higher than" if later > 1.25 * before else "about the same as"


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
        f"About nine in ten clean records should lie within their interval, which was predicted in advance: {shares[0]}"
        f" do, weighted by the probability of being clean, and {shares[1]} of all records, including wrong ones. Points"
        " outside the band are more than chance."
    )
    scale = Scale(max(0.0, min(float(every.min()), float(weighted.min()), float(low.min())) - 0.03), 1.0, percent=True)
    chart = _start_along_stream(histograms, scale, "within the interval", caption)
    if len(middles) > 1:
        chart.band(middles, np.maximum(low, scale.low), high, "band")
    chart.line([1.0, float(histograms.rows + 1)], [LEVEL, LEVEL], "ideal")
    chart.line(middles, every, "other-line")
    rows = zip(edges[:-1][present].tolist(), edges[1:][present].tolist(), weighted.tolist(), strict=True)
    for middle, (start, end, share) in zip(middles.tolist(), rows, strict=True):
        chart.dot(middle, share, "group-dot", 3.5, f"rows {start:,} to {end - 1:,}: {format_percent(share)}")
    legend = {"group-dot": "clean records", "band": "where 95 % of these points should be", "other-line": "all records"}
    return ReportFigure("coverage", "How well do the intervals fit?", caption, chart.to_svg(), legend)


# --- predictions ---


def _start_diagonal(both: Scale, end: float, x_label: str, y_label: str, description: str) -> Chart:
    """A square chart with the line on which predictions are right."""
    chart = Chart(both, both, x_label=x_label, y_label=y_label, description=description, height=400.0)
    chart.line([both.low, end], [both.low, end], "ideal")
    return chart


def typical_error(summary: Summary) -> float:
    """The typical error of clean observations, as a standard deviation; 0 if most are predicted exactly."""
    clean = summary.clean_sample()
    if not len(clean):
        return np.nan
    scale = NORMAL * float(np.median(np.abs(clean.targets - clean.predictions)))
    return scale if scale > NEGLIGIBLE * float(np.abs(clean.targets).max()) else 0.0


def draw_points(summary: Summary) -> ReportFigure:
    """Draw sampled records as points, with doubtful ones marked."""
    clean, suspects = summary.clean_sample(), summary.suspect_sample.rounds
    both = _fit_clean(clean.targets, clean.predictions) if len(clean) else fit_scale(suspects.predictions.tolist())
    outside = int(((suspects.targets < both.low) | (suspects.targets > both.high)).sum())
    caption = "Points on the diagonal were predicted well. Doubtful records hardly moved the model"
    caption += f"; {outside:,} of them are outside the axes and drawn at the edge." if outside else "."
    chart = _start_diagonal(both, both.high, "observed", "predicted", f"Predicted against observed. {caption}")
    for target, prediction in zip(clean.targets.tolist(), clean.predictions.tolist(), strict=True):
        chart.dot(target, prediction, "clean-dot")
    for record in suspects.records(summary.schema):
        observed, predicted = float(record.target or 0.0), float(record.prediction or 0.0)
        values = f"observed {format_number(observed)}, predicted {format_number(predicted)}"
        tip = f"row {record.row:,}: {values}, clean with probability {format_percent(record.clean_probability)}"
        chart.dot(observed, predicted, "suspect-dot", 3.4, tip)
    legend = {"clean-dot": f"clean ({len(clean):,} sampled)"}
    if len(suspects):
        which = "all" if len(suspects) < summary.suspect_sample.size else "sampled"
        legend["suspect-dot"] = f"doubtful ({len(suspects):,}, {which})"
    if _draw_intervals(chart, clean):
        legend["edge"] = "90 % interval of clean observations"
    return ReportFigure("points", "Predicted against observed", caption, chart.to_svg(), legend)


def _draw_intervals(chart: Chart, clean: Rounds) -> bool:
    """Draw the median interval of records with about the same prediction, if there are intervals."""
    clean = clean[np.flatnonzero(np.isfinite(clean.low) & np.isfinite(clean.high))]
    if len(clean) < 5 * DECILES:
        return False
    groups = np.array_split(np.argsort(clean.predictions, kind="stable"), 2 * DECILES)
    middle = np.array([np.median(clean.predictions[group]) for group in groups])
    # Distances are averaged, not ends: predictions differ within a group, too.
    low = middle - [np.median((clean.predictions - clean.low)[group]) for group in groups]
    high = middle + [np.median((clean.high - clean.predictions)[group]) for group in groups]
    ends = np.clip([low, high], chart.x.low, chart.x.high)
    across = np.clip(middle, chart.y.low, chart.y.high)
    for end in ends:
        chart.line(end, across, "edge")
    return True


def _fit_clean(targets: Array, predictions: Array) -> Scale:
    """A scale for the clean records: outliers can be arbitrarily far off."""
    low, high = np.quantile(targets, [0.002, 0.998])
    margin = 0.25 * (high - low)
    inside = np.clip(np.concatenate([targets, predictions]), low - margin, high + margin)
    return fit_scale(inside.tolist())


def draw_deciles(summary: Summary) -> ReportFigure | None:
    """Draw the median and the quartiles of the observations in each decile of the predictions."""
    clean = summary.clean_sample()
    if len(clean) < 5 * DECILES:
        return None
    groups = np.array_split(np.argsort(clean.predictions, kind="stable"), DECILES)
    predicted = np.array([np.median(clean.predictions[group]) for group in groups])
    low, median, high = np.transpose([np.quantile(clean.targets[group], [0.25, 0.5, 0.75]) for group in groups])
    both = fit_scale([*predicted, *low, *high])
    scale = typical_error(summary)
    errors = np.abs(clean.targets - clean.predictions)
    within = [format_percent(float(np.mean(errors <= times * scale))) for times in (1.0, 2.0)]
    off = float(np.max(np.abs(median - predicted))) / scale if scale else 0.0
    caption = (
        f"Points on the diagonal are well calibrated; the largest deviation is {format_number(off)} typical errors. Of "
        f"the clean records, {within[0]} are within one typical error ({format_number(scale)}) of their prediction and "
        f"{within[1]} within two; with normal noise it would be 68.3 % and 95.4 %."
    )
    description = f"Observed values by decile of the prediction. {caption}"
    chart = _start_diagonal(both, both.high, "predicted", "observed", description)
    for x, bottom, y, top in zip(predicted.tolist(), low.tolist(), median.tolist(), high.tolist(), strict=True):
        chart.line([x, x], [bottom, top], "whisker")
        chart.dot(x, y, "group-dot", 5.0, f"predicted {format_number(x)}, observed {format_number(y)}")
    legend = {"group-dot": "median of a tenth of the records", "whisker": "interquartile range"}
    return ReportFigure("deciles", "Calibration of the predictions", caption, chart.to_svg(), legend)


def draw_calibration(summary: Summary) -> ReportFigure:
    """Draw the share of correct predictions against their probability."""
    wrong, right, sums = summary.calibration.T.astype(np.float64)
    counts = wrong + right
    total = counts.sum()
    enough = counts >= min(MIN_PREDICTIONS, counts.max())
    predicted, correct = sums[enough] / FINE / counts[enough], right[enough] / counts[enough]
    gap = float(np.sum(counts[enough] * np.abs(predicted - correct)) / counts[enough].sum())
    bias = float(np.sum(counts[enough] * (predicted - correct)))
    often = "about as often as" if gap < 0.03 else f"{'less' if bias > 0.0 else 'more'} often than"
    caption = (
        f"Points on the diagonal are well calibrated. Predictions are correct {often} their probabilities say: "
        f"{format_percent(float(right.sum() / total))} are correct, and the mean probability is "
        f"{format_percent(float(sums.sum() / FINE / total))}. Larger points stand for more records."
    )
    low = max(0.0, min(float(predicted.min()), float(correct.min())) - 0.04)
    both = Scale(low, 1.02, percent=True)
    chart = _start_diagonal(both, 1.0, "probability of the predicted label", "correct", caption)
    for x, y, count in zip(predicted.tolist(), correct.tolist(), counts[enough].tolist(), strict=True):
        tip = f"{count:,.0f} predictions with a probability of {format_percent(x)}: {format_percent(y)} correct"
        chart.dot(x, y, "group-dot", 3.5 + 9.0 * (count / total) ** 0.5, tip)
    return ReportFigure("calibration", "Calibration of the probabilities", caption, chart.to_svg(), {})
