"""Why records could not be used: each reason with how often and a few examples."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from redescend.errors import DataError
from redescend.streaming.summary.suspects import shortened

if TYPE_CHECKING:
    from redescend.sources import Bad

KINDS, EXAMPLES = 30, 3
REST = "other reasons"

# A name is part of what is wrong, the value or the number found there is not.
_PARTS = re.compile(r"((?:column|target) '[^']*')|'[^']*'|[-+]?\b\d[\w.+]*")


class Example(NamedTuple):
    """A record that could not be used."""

    row: int
    file: str
    reason: str
    record: str


def kind_of(reason: str) -> str:
    """What reasons have in common that differ only in the value that was found.

    Examples
    --------
    >>> kind_of("column 'x1': 'abc' is not a number"), kind_of("3 values where the header has 20")
    ("column 'x1': … is not a number", '… values where the header has …')
    """
    return shortened(_PARTS.sub(lambda found: found[1] or "…", reason))


class Reasons:
    """Reasons in the order in which they came: so many kinds, and the rest as one."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.examples: dict[str, list[Example]] = {}

    def add(self, bad: Iterable[Bad]) -> None:
        """Count records that could not be used, in the order of their rows."""
        for record in bad:
            kind = kind_of(record.reason)
            if kind not in self.counts and len(self.counts) >= KINDS:
                kind = REST
            self.counts[kind] = self.counts.get(kind, 0) + 1
            examples = self.examples.setdefault(kind, [])
            if len(examples) < EXAMPLES:
                raw = shortened(record.raw[: 4 * EXAMPLES * 100].decode("utf-8", "replace"))
                examples.append(Example(record.row, record.file, shortened(record.reason), raw))

    def most_frequent(self) -> list[str]:
        """The kinds, the most frequent first; of equals the one that came first."""
        return sorted(self.counts, key=lambda kind: -self.counts[kind])

    def state(self) -> list[Any]:
        return [[kind, count, [list(one) for one in self.examples[kind]]] for kind, count in self.counts.items()]

    def restore(self, state: list[Any]) -> None:
        """Go back to a state that one gave."""
        try:
            counts = {kind: int(count) for kind, count, _ in state}
            examples = {kind: [Example(*one) for one in shown] for kind, _, shown in state}
        except (TypeError, ValueError):
            raise DataError("The state of the reasons is misshapen; it has been altered.") from None
        self.counts, self.examples = counts, examples
