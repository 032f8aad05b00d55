"""Reasons of rejected records, each with a count and a few examples."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from redescend.sources import Bad
from redescend.streaming.summary.least_clean import MAX_TEXT, shorten

MAX_KINDS, MAX_EXAMPLES = 30, 3
OTHER = "other reasons"

# The name of a column is part of a reason; a value or number in it is not.
_PARTS = re.compile(r"((?:column|target) '[^']*')|'[^']*'|[-+]?\b\d[\w.+]*")

_UNKNOWN_LABEL = re.compile(r"(the target .*: .* is none of the) \d+ (labels)", re.DOTALL)


class Example(NamedTuple):
    """A rejected record."""

    row: int
    file: str
    reason: str
    record: str


def classify_reason(reason: str) -> str:
    """Replace the values in a reason by …, so that reasons that differ only in a value are equal.

    >>> classify_reason("column 'x1': 'abc' is not a number"), classify_reason("3 values where the header has 20")
    ("column 'x1': … is not a number", '… values where the header has …')
    >>> classify_reason("the target 'y': 'maybe' is none of the 2 labels")  # a label is part of the reason
    "the target 'y': 'maybe' is none of the labels"
    """
    if found := _UNKNOWN_LABEL.fullmatch(reason):
        return shorten(f"{found[1]} {found[2]}")
    return shorten(_PARTS.sub(lambda found: found[1] or "…", reason))


class Rejections:
    """Counts of rejected records by kind of reason: the first `MAX_KINDS` kinds, and all others together."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.examples: dict[str, list[Example]] = {}

    def add(self, bad: Iterable[Bad]) -> None:
        """Count rejected records, in the order of their rows."""
        for record in bad:
            kind = classify_reason(record.reason)
            if kind not in self.counts and len(self.counts) >= MAX_KINDS:
                kind = OTHER
            self.counts[kind] = self.counts.get(kind, 0) + record.rows
            examples = self.examples.setdefault(kind, [])
            if len(examples) < MAX_EXAMPLES:
                text = shorten(record.raw[: 6 * MAX_TEXT].decode("utf-8", "replace"))
                examples.append(Example(record.row, record.file, shorten(record.reason), text))

    def most_frequent(self) -> list[str]:
        """The kinds of reasons, the most frequent first."""
        return sorted(self.counts, key=lambda kind: -self.counts[kind])

    def state(self) -> list[Any]:
        return [[kind, count, [list(one) for one in self.examples[kind]]] for kind, count in self.counts.items()]

    def restore(self, state: list[Any]) -> None:
        counts = {kind: int(count) for kind, count, _ in state}
        examples = {kind: [Example(*one) for one in listed] for kind, _, listed in state}
        self.counts, self.examples = counts, examples
