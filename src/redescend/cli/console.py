"""What a command tells a person, on standard error: what it makes of the columns, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from redescend.cli.printable import printable
from redescend.streaming.report.describe import describe_schema
from redescend.streaming.report.page import summarize

if TYPE_CHECKING:
    from redescend.streaming.encoding.schema import Schema
    from redescend.streaming.run import Run
    from redescend.streaming.summary.rejections import Rejections

LINES = 12
"""How many columns are told of."""

REASONS = 5
"""How many reasons are told."""


def say(text: str) -> None:
    """One line on standard error."""
    typer.echo(printable(text), err=True)


def say_of(facts: Mapping[str, str | list[str]], most: int = LINES) -> None:
    """Headings, and what there is to say under each."""
    for heading, content in facts.items():
        if isinstance(content, str):
            say(f"{heading}: {content}")
            continue
        say(f"{heading}:")
        for line in content[:most]:
            say(f"  {line}")
        if len(content) > most:
            say(f"  and {len(content) - most} more")


def say_columns(schema: Schema) -> None:
    """What is predicted from what, as was decided from the first records."""
    say_of(describe_schema(schema))


def say_reasons(reasons: Rejections) -> None:
    """Why records could not be used, the most frequent reasons first, each with the row of an example."""
    kinds = reasons.most_frequent()
    for kind in kinds[:REASONS]:
        example = reasons.examples[kind][0]
        say(f"  {reasons.counts[kind]:,} × {kind} (such as row {example.row} of {example.file})")
    if len(kinds) > REASONS:
        say(f"  and {len(kinds) - REASONS} more reasons")


def say_end(run: Run) -> None:
    """What became of the records, and where the files are."""
    for sentence in summarize(run.summary, run.counts):
        say(sentence)
    say_reasons(run.summary.rejections)
    outputs = run.config.outputs
    unwritten = None if outputs.keep_empty_quarantine or run.counts.quarantined else outputs.quarantine
    for what, path in outputs.by_content().items():
        # A file with the name of a quarantine that was not written may be another run's.
        if path.exists() and path != unwritten:
            say(f"{what.removeprefix('the ').capitalize()}: {path}")
