"""One HTML file on what a pass over a stream found: the answer first, then the records, then the pictures.

The file needs nothing beside it and asks for nothing: pictures and style are inside, there is no script. It depends on
the model, the summary and the counts alone, so that a run that was interrupted and resumed writes the same bytes.
"""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import redescend
from redescend.errors import MissingExtraError
from redescend.files import replacing
from redescend.streaming.importance import drives
from redescend.streaming.report import formatting
from redescend.streaming.report.describe import describe, describe_schema
from redescend.streaming.report.formatting import counted, number, percent

try:
    from jinja2 import Environment, StrictUndefined
except ImportError:
    raise MissingExtraError("The report needs Jinja2; install it with: pip install 'redescend[cli]'") from None

from redescend.streaming.report.pictures import draw_all
from redescend.streaming.report.pictures.predictions import typical_error

if TYPE_CHECKING:
    from redescend.streaming.encoding.schema import Schema
    from redescend.streaming.model import StreamModel
    from redescend.streaming.run import Counts
    from redescend.streaming.summary.summary import Summary

VALUES, LABELS, DRIVES = 12, 20, 15
"""How many columns of a doubted record, labels and columns that drive the prediction the page shows."""


ELSEWHERE = ("Clean-looking share", "Noise scale", "Strongest columns")
"""What is said of a model that the page measures on the stream itself."""

MUCH = 0.15
"""A share of doubt that says more about the model than about the records."""


class Label(NamedTuple):
    """What became of the records with a label."""

    name: str
    records: int
    right: float
    taken_for: str
    doubted: float


def write(
    path: str | os.PathLike[str], model: StreamModel | None, summary: Summary, counts: Counts, *, source: str = ""
) -> Path:
    """Write the report, in full or not at all.

    Parameters
    ----------
    path : path-like
        The HTML file.
    model : StreamModel or None
        What was learned; None where there is a model for each of many keys.
    summary : Summary
        What was found.
    counts : Counts
        What became of the records.
    source : str
        What the stream is called.

    Returns
    -------
    Path
        The report.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        name: getattr(formatting, name) for name in ("belief", "counted", "percent", "rounded", "value")
    }
    template = resources.files("redescend.streaming.report").joinpath("report.html.j2").read_text(encoding="utf-8")
    driving = drives(model) if model is not None and summary.learned else []
    facts = describe_schema(summary.schema) if model is None else describe(model)
    page = environment.from_string(template).render(
        answer=answer(summary, counts),
        counts=counts,
        drives=driving[:DRIVES],
        further=max(0, len(driving) - DRIVES),
        facts={heading: content for heading, content in facts.items() if heading not in ELSEWHERE},
        files=len({record.file for record in summary.least}),
        hardly=int(summary.curve.levels[: summary.curve.doubt.cells[0]].sum()),
        labels=_labels(summary),
        pictures=draw_all(summary),
        schema=summary.schema,
        shown=_shown(summary.schema, [drive.column for drive in driving]),
        source=source,
        summary=summary,
        version=redescend.__version__,
        note=_note(summary),
        offs=_offs(summary),
        usual=float(np.median(summary.sample.rounds.weights)) if summary.learned else 0.0,
    )
    path = Path(path)
    with replacing(path) as file:
        file.write(f"{page.strip()}\n".encode("utf-8", "backslashreplace"))
    return path


def answer(summary: Summary, counts: Counts) -> list[str]:
    """The whole page in a few sentences."""
    if not counts.records:
        return ["The stream has no records."]
    said = [f"Of {counted(counts.records)}, {counts.learned:,} {_were(counts.learned)} learned from."]
    if counts.learned:
        doubted = summary.learned - summary.believed
        said.append(
            f"{summary.believed:,} of them look clean ({percent(summary.clean_share)}); "
            f"{doubted:,} {'does' if doubted == 1 else 'do'} not. "
            "The less a record is believed, the less it moves the model."
        )
    for count, what in ((counts.quarantined, "set aside in the quarantine"), (counts.skipped, "skipped")):
        if count:
            said.append(f"{counted(count)} could not be used and {_were(count)} {what}.")
    if not counts.quarantined + counts.skipped:
        said.append("None had to be set aside.")
    return said


def _note(summary: Summary) -> str:
    """What to think of much doubt: it is rarely that so many records are wrong."""
    if not summary.learned or 1.0 - summary.clean_share < MUCH:
        return ""
    cure = "a column that is missing" if summary.schema.classifies else "the logarithm of the target, or another loss"
    return (
        f"So much doubt, {percent(1.0 - summary.clean_share)}, seldom means that so many records are wrong. It can "
        "also mean that a weighted sum of the columns does not predict the target well, or that its noise has long "
        f"tails: look at the pictures, and try {cure}. The least believed records are worth a look all the same."
    )


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _shown(schema: Schema, strongest: list[str]) -> list[str]:
    """The columns whose values the page shows: the key, the strongest, and the others in their order."""
    first = [*([] if schema.by is None else [schema.by]), *(name for name in strongest if name in schema.inputs)]
    return [*first, *(name for name in schema.inputs if name not in first)][:VALUES]


def _offs(summary: Summary) -> list[str]:
    """How many typical errors each of the least believed is off its prediction; nothing for labels."""
    scale = 0.0 if summary.schema.classifies else typical_error(summary)
    rounds = [(one.round.target, one.round.prediction) for one in summary.least]
    numbers = [(y, p) for y, p in rounds if isinstance(y, float) and isinstance(p, float)]
    return [number(abs(y - p) / scale) for y, p in numbers] if scale > 0.0 else []


def _labels(summary: Summary) -> list[Label]:
    """The most frequent labels first."""
    names, found = summary.schema.labels, []
    for place, cells in enumerate(summary.labels):
        records = int(cells.sum())
        if records:
            taken = cells.sum(axis=1)
            right, taken[place] = int(taken[place]), 0
            other = names[int(taken.argmax())] if taken.any() else ""
            found.append(Label(names[place], records, right / records, other, int(cells[:, 1].sum()) / records))
    return sorted(found, key=lambda label: -label.records)[:LABELS]
