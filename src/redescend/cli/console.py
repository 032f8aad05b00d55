"""What a command tells a person, on standard error: what it makes of the columns, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from redescend.cli.printable import printable
from redescend.streaming.report.describe import describe_schema
from redescend.streaming.report.page import answer

if TYPE_CHECKING:
    from redescend.cli.outputs import Outputs
    from redescend.streaming.encoding.schema import Schema
    from redescend.streaming.run import Pass
    from redescend.streaming.summary.rejections import Reasons

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


def say_reasons(reasons: Reasons) -> None:
    """Why records could not be used, the most frequent reasons first, each with the row of an example."""
    kinds = reasons.most_frequent()
    for kind in kinds[:REASONS]:
        example = reasons.examples[kind][0]
        say(f"  {reasons.counts[kind]:,} × {kind} (such as row {example.row} of {example.file})")
    if len(kinds) > REASONS:
        say(f"  and {len(kinds) - REASONS} more reasons")


def say_end(passing: Pass, outputs: Outputs) -> None:
    """What became of the records, and where the files are."""
    for sentence in answer(passing.summary, passing.counts):
        say(sentence)
    say_reasons(passing.summary.reasons)
    for what, path in outputs.written().items():
        # Without a record set aside, the file of that name may be another run's.
        of_another = path == outputs.quarantine and outputs.tidy and not passing.counts.quarantined
        if path.exists() and not of_another:
            say(f"{what.removeprefix('the ').capitalize()}: {path}")
