"""Ten thousand wrong files, shared out among the damages."""

from __future__ import annotations

from collections import Counter
from itertools import cycle

from tests.streaming.fuzzing.cases import DAMAGES, cases
from tests.streaming.fuzzing.verdicts import SETTINGS, judged

FILES = 10_000
EACH = -(-FILES // len(DAMAGES))
DEEPLY = 25
"""One file in so many is looked at deeply."""


def check_many(damage: str) -> None:
    """Judge the share of a damage: no two of its files are alike."""
    found = Counter(
        judged(case, deeply=number % DEEPLY == 0, **chosen).word
        for number, (case, chosen) in enumerate(zip(cases(damage, EACH), cycle(SETTINGS), strict=False))
    )
    assert found.total() * len(DAMAGES) >= FILES
    # A damage that always ends in the same way would not be worth its many files.
    assert len(found) > 1
