"""The report of a run: one HTML file with the result first, then the suspects, then the pictures.

The file is self-contained: pictures and styles are inline, and there are no scripts. It depends on the model, the
summary and the counts alone, so that an interrupted and resumed run writes the same bytes.
"""

from __future__ import annotations

import os
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import redescend
from redescend.errors import join_first, needs_extra
from redescend.files import replace_file
from redescend.sources.kinds import Kind
from redescend.streaming.explanation import list_steps
from redescend.streaming.importance import rank_features
from redescend.streaming.report import formatting
from redescend.streaming.report.describe import describe, describe_schema

with needs_extra("The report needs Jinja2", "cli"):
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

from redescend.streaming.encoding.schema import Schema
from redescend.streaming.model import StreamModel
from redescend.streaming.report.dependence_plots import draw_dependences
from redescend.streaming.report.pictures import draw_all, typical_error
from redescend.streaming.run import Counts
from redescend.streaming.summary import Summary
from redescend.streaming.summary.records import Suspect

MAX_VALUES, MAX_LABELS, MAX_FEATURES = 5, 20, 15  # the most columns of a suspect, labels and important features to show

SHOWN_ELSEWHERE = ("Clean labels", "Noise scale", "Most important columns")
"""Facts about the model that the page shows in other sections."""

MAX_PARTS = 8  # the most contributions to the prediction of a suspect to show
MAX_ADDED, MAX_LABEL = 4, 40  # the most added labels to list, and the most characters of each
MANY_SUSPECTS = 0.15  # a larger share of suspects points to a poor model rather than to wrong records


class LabelCounts(NamedTuple):
    """Counts of the records with a label."""

    name: str
    records: int
    correct: float
    confused_with: str
    suspects: float


def read_part(name: str) -> str:
    """Read a file of the page: its template or its style."""
    return resources.files("redescend.streaming.report").joinpath(name).read_text(encoding="utf-8")


def write(
    path: str | os.PathLike[str], model: StreamModel | None, summary: Summary, counts: Counts, *, source: str = ""
) -> Path:
    """Write the report of a model, or of a run with one per key (None), completely or not at all; return its path."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        name: getattr(formatting, f"format_{name}") for name in ("weight", "count", "percent", "value")
    }
    environment.filters |= {
        "target": partial(formatting.format_target, summary.schema),
        "predicted": partial(formatting.format_predicted, summary.schema),
    }
    ranked = rank_features(model) if model is not None and summary.learned else []
    facts = describe_schema(summary.schema) if model is None else describe(model)
    page = environment.from_string(read_part("report.html.j2")).render(
        style=Markup(read_part("style.css")),
        result=[*describe_learned(summary, counts), *describe_rejected(counts)],
        counts=counts,
        importance=ranked[:MAX_FEATURES],
        further=max(0, len(ranked) - MAX_FEATURES),
        dependences=draw_dependences(model, [one.column for one in ranked]) if model is not None and ranked else [],
        facts={heading: content for heading, content in facts.items() if heading not in SHOWN_ELSEWHERE},
        files=len({record.file for record in summary.least}),
        strong=_count_strong(summary),
        labels=_count_labels(summary),
        pictures=draw_all(summary),
        schema=summary.schema,
        values=_choose_values(summary.schema, [one.column for one in ranked]),
        source=source,
        summary=summary,
        version=redescend.__version__,
        note=" ".join(note_many_suspects(summary)),
        errors=_relative_errors(summary),
        explained=_explain(summary),
        final=describe_final(summary),
        metrics=_tabulate_metrics(summary),
        median=float(np.median(summary.sample.rounds.weights)) if summary.learned else 0.0,
    )
    with replace_file(Path(path)) as file:
        file.write(f"{page.strip()}\n".encode("utf-8", "backslashreplace"))
    return Path(path)


def describe_learned(summary: Summary, counts: Counts) -> list[str]:
    """Describe what a run has learned from, and its suspects, a sentence each."""
    if not counts.records:
        return ["The stream has no records."]
    sentences = [f"Learned from {counts.learned:,} of {formatting.format_count(counts.records)}."]
    if counts.learned:
        share = formatting.format_percent(summary.suspect_count / summary.learned)
        sentences.append(f"{formatting.format_count(summary.suspect_count, 'suspect')} ({share}).")
    if summary.schema.added:
        sentences.append(f"Labels added after the first records, the rarest first: {_list_added(summary)}.")
    return sentences


def describe_rejected(counts: Counts) -> list[str]:
    """Describe how many records were rejected; nothing if there were none at all."""
    actions = {"quarantined": counts.quarantined, "skipped": counts.skipped}
    rejected = [f"{formatting.format_count(n)} rejected and {action}." for action, n in actions.items() if n]
    return rejected or (["No rejected records."] if counts.records else [])


def _count_strong(summary: Summary) -> int:
    """The number of suspects that are most probably wrong; all that are in a final list."""
    if summary.final is not None:
        return summary.final.listed
    return int(summary.histograms.weight_counts[: summary.histograms.limits.cells[0]].sum())


def _list_added(summary: Summary) -> str:
    """List the labels that were added, with their first rows and numbers of records; the rarest may be mistyped."""
    added = summary.schema.added
    counts, listed = summary.confusion.sum(axis=(1, 2)).tolist()[-len(added) :], []
    for place in np.argsort(counts, kind="stable").tolist():
        records = "1 record, perhaps mistyped" if counts[place] == 1 else formatting.format_count(counts[place])
        label = formatting.abbreviate(added[place].label, MAX_LABEL)
        listed.append(f"'{label}' (from row {added[place].row:,} on; {records})")
    return join_first(listed, MAX_ADDED)


def note_many_suspects(summary: Summary) -> list[str]:
    """Explain a large share of suspects in a sentence or two; nothing if it is small."""
    if not summary.learned or 1.0 - summary.clean_share < MANY_SUSPECTS:
        return []
    remedy = "more columns" if summary.schema.classifies else "the logarithm of the target, or another loss"
    share = formatting.format_percent(1.0 - summary.clean_share)
    return [
        f"{share} of the records do not fit the model. If that is more than can be wrong, most of them are correct: "
        "the model may be too simple for the target, or its noise may have heavy tails. Look at the pictures of the "
        f"report, and try {remedy}, or --trees if the model is linear."
    ]


def describe_final(summary: Summary) -> list[str]:
    """Describe the final list: false alarms, stuck sensors and extreme values, a sentence each."""
    if summary.final is None:
        return []
    listed, clean, stuck, far = summary.final
    if not listed:
        return ["No record is in the list of suspects."]
    about = f"about {clean:,.0f}" if clean >= 0.5 else "less than 1"
    sentences = [f"Expected false alarms: {about} of {formatting.format_count(listed, 'suspect')}."]
    for run in stuck:
        name = summary.schema.target if run.key is None else f"{summary.schema.target} of {run.key}"
        value = formatting.format_target(summary.schema, run.target)
        rows = f"from row {run.first:,} to row {run.last:,} ({formatting.format_count(run.records)})"
        sentences.append(f"{name} is stuck at {value} {rows}.")
    return sentences + [
        f"{one.column} has an extreme value in {_describe_place(one.records, one.row)}: "
        f"{formatting.format_value(one.value)}."
        for one in far
    ]


def _describe_place(records: int, first: int) -> str:
    return f"row {first:,}" if records == 1 else f"{formatting.format_count(records)}, first in row {first:,}"


def _choose_values(schema: Schema, important: list[str]) -> list[str]:
    """Choose the columns of a suspect to show: the key, the most important features, and others in order."""
    keys = [] if schema.by is None else [schema.by]
    features = (name for name in important if name in schema.inputs)
    return list(dict.fromkeys([*keys, *features, *schema.inputs]))[:MAX_VALUES]


def _relative_errors(summary: Summary) -> list[str]:
    """The errors of the top suspects, in typical errors; empty in classification."""
    scale = 0.0 if summary.schema.classifies else typical_error(summary)
    rounds = [(one.round.target, one.round.prediction) for one in summary.least]
    numbers = [(y, p) for y, p in rounds if isinstance(y, float) and isinstance(p, float)]
    return [formatting.format_number(abs(y - p) / scale) for y, p in numbers] if scale > 0.0 else []


class Bar(NamedTuple):
    """A contribution to a prediction, as a bar from `start` to `end` of the width, between 0 and 1."""

    name: str
    value: str
    start: float
    end: float
    lower: bool


class ExplainedSuspect(NamedTuple):
    """A suspect, a line to report it with, and the contributions to its prediction."""

    row: int
    line: str
    bars: list[Bar]


def describe_suspect(suspect: Suspect, schema: Schema) -> str:
    """Describe a suspect in a line to paste into a ticket: where it is, and what is wrong."""
    played, name, far = suspect.round, schema.target, suspect.far_out
    line = f"{suspect.file} row {played.row}: {name} is {formatting.format_target(schema, played.target)}, "
    if far is not None and far != name:
        value = formatting.format_value(suspect.values.get(far))
        line = f"{suspect.file} row {played.row}: {far} is {value}, an extreme value"
    elif schema.classifies:
        line += f"expected {formatting.format_value(played.prediction)}"
    elif played.low is None or played.high is None:
        line += f"expected about {formatting.format_predicted(schema, played.prediction, played.target)}"
    else:
        low, high = (
            formatting.format_predicted(schema, end, played.target, (played.low, played.high))
            for end in (played.low, played.high)
        )
        line += f"expected {low} to {high}"
    return f"{line} (clean with probability {formatting.format_weight(played.clean_probability)})"


class MetricRow(NamedTuple):
    """A row of the table of metrics: a predictor, and its errors on all records and on clean ones."""

    name: str
    every: list[str]
    clean: list[str]


def _tabulate_metrics(summary: Summary) -> list[MetricRow]:
    """Tabulate the errors of the model and of naive predictions; the first row has the headings."""
    scores = summary.metrics.scores() if summary.metrics.counts[0] else []
    rows: list[MetricRow] = []
    for score in scores:
        if not rows:
            headings = [[name for name, pair in score.values.items() if pair[side] == pair[side]] for side in (0, 1)]
            rows.append(MetricRow("", *headings))
        texts = ([_format_metric(name, score.values[name][side]) for name in rows[0][1 + side]] for side in (0, 1))
        rows.append(MetricRow(score.name, *texts))
    return rows


def _format_metric(name: str, value: float) -> str:
    if not np.isfinite(value):
        return "–"
    if name == "correct":
        return formatting.format_percent(value)
    return f"{value:.3f}" if name == "R²" and abs(value) < 100.0 else formatting.format_number(value)


def _explain(summary: Summary) -> list[ExplainedSuspect]:
    """The suspects with an explanation; other records of the list need none."""
    return [
        ExplainedSuspect(
            one.round.row,
            describe_suspect(one, summary.schema),
            [] if "outdated" in one.why else _draw_bars(summary.schema, one.why),
        )
        for one in summary.least[: summary.suspect_count]
        if one.why is not None
    ]


def _draw_bars(schema: Schema, why: dict[str, Any]) -> list[Bar]:
    """The steps from the prediction for a typical record to that for the suspect."""
    least = formatting.NEGLIGIBLE * abs(why["target"]) if isinstance(why["target"], float) else 0.0
    contributions = [(one["column"], one["value"], one["contribution"]) for one in why["contributions"]]
    steps = list_steps(contributions, schema, least, MAX_PARTS)
    ends = np.cumsum([why["typical"], *(part for _, part in steps)])
    low, high = float(ends.min()), float(ends.max())
    places = (ends - low) / (high - low) if high > low else np.full(len(ends), 0.5)
    shown_typical, shown_total = (
        formatting.format_predicted(schema, why[name], why["target"]) for name in ("typical", "total")
    )
    bars = [Bar("a typical record", shown_typical, places[0], places[0], False)]
    for place, (text, part) in enumerate(steps):
        start, end = sorted(places[place : place + 2].tolist())
        sign = "+" if part > 0.0 else ""
        bars.append(Bar(text, f"{sign}{formatting.format_rounded(part)}", start, end, part < 0.0))
    name = f"logit of {why['prediction']}" if schema.classifies else "prediction"
    if schema.kind is Kind.DATE:
        bars = [bars[0], *(bar._replace(value=f"{bar.value} days") for bar in bars[1:])]
    return [*bars, Bar(name, shown_total, places[-1], places[-1], False)]


def _count_labels(summary: Summary) -> list[LabelCounts]:
    """Count the records of each label, the most frequent first."""
    names, found = summary.schema.labels, []
    listed = None if summary.listed is None else summary.listed.targets
    for index, cells in enumerate(summary.confusion):
        records = int(cells.sum())
        if records:
            predicted = cells.sum(axis=1)
            correct, predicted[index] = int(predicted[index]), 0
            other = names[int(predicted.argmax())] if predicted.any() else ""
            suspects = int(cells[:, 1].sum() if listed is None else (listed == index).sum()) / records
            found.append(LabelCounts(names[index], records, correct / records, other, suspects))
    return sorted(found, key=lambda label: -label.records)[:MAX_LABELS]
