"""Models and runs as small tables in HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from redescend.streaming.report.describe import MAX_LISTED, describe
from redescend.streaming.report.formatting import (
    format_count,
    format_percent,
    format_rounded,
    format_value,
    format_weight,
)

if TYPE_CHECKING:
    from redescend.streaming.run import Run

SHOWN = 5  # columns of suspects that are shown besides their targets


def render_model(model: Any) -> str:
    """Render a stream model, or a store of them, as a table of facts."""
    facts = {}
    for heading, text in describe(model).items():
        if isinstance(text, str):
            facts[heading] = text
        else:
            more = [f"and {len(text) - MAX_LISTED} more"] if len(text) > MAX_LISTED else []
            facts[heading] = "\n".join([*text[:MAX_LISTED], *more])
    return _tabulate_facts(type(model).__name__, facts)


def render_run(run: Run) -> str:
    """Render a run as a table of counts and one of its top suspects."""
    counts, summary, schema = run.counts, run.summary, run.model.schema
    facts = {"Source": run.source.name, "Target": schema.target, "Records": f"{counts.records:,}"}
    facts["Learned from"] = f"{counts.learned:,}"
    if rejected := counts.quarantined + counts.skipped:
        facts["Rejected"] = f"{rejected:,}"
    if counts.learned:
        share = format_percent(summary.suspect_count / counts.learned)
        facts["Suspects"] = f"{format_count(summary.suspect_count)}, {share}"
    if not run.finished:
        facts["State"] = "not finished: run() plays the rounds that are left"
    least = summary.least
    if not least:
        return _tabulate_facts("Run", facts)
    shown = schema.inputs[:SHOWN]
    heads = ["row", schema.target, "predicted", "clean with probability", *shown]
    rows = []
    for one in least:
        pair = (format_value(one.round.target), format_rounded(one.round.prediction))
        values = (format_value(one.values.get(name)) for name in shown)
        rows.append([str(one.round.row), *pair, format_weight(one.round.clean_probability), *values])
    title = "Top suspects" if summary.suspect_count >= len(rows) else "The records that are least likely clean"
    return _tabulate_facts("Run", facts) + _tabulate(title, heads, rows)


def _tabulate_facts(title: str, facts: Mapping[str, str]) -> str:
    return _tabulate(title, [], facts.items())


def _tabulate(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def cells(tag: str, texts: Sequence[str]) -> str:
        content = (escape(text).replace("\n", "<br>") for text in texts)
        return "<tr>" + "".join(f'<{tag} style="text-align: left">{text}</{tag}>' for text in content) + "</tr>"

    head = f"<thead>{cells('th', heads)}</thead>" if heads else ""
    body = "".join(cells("td", row) for row in rows)
    return f"<table><caption>{escape(title)}</caption>{head}<tbody>{body}</tbody></table>"
