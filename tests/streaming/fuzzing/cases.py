"""Wrong files, from seeds: each differs from all others of its damage, and from a right one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from tests.sources.written import COMPRESS
from tests.streaming.fuzzing.of_bytes import CHANGES, flipped, tokens
from tests.streaming.fuzzing.of_sheets import SPOILS
from tests.streaming.fuzzing.sheets import Sheet, some_file, some_records

DAMAGES = [*SPOILS, *CHANGES]


class Case(NamedTuple):
    """A wrong file: its format, with the compression if there is one, and its bytes."""

    form: str
    data: bytes


@functools.lru_cache(maxsize=512)
def right_file(form: str, number: int) -> bytes:
    return some_file(Random(f"{form} {number}"), form)


def case(damage: str, number: int) -> Case | None:
    """A wrong file; None where the damage has changed nothing."""
    random = Random(f"{damage} {number}")
    if damage in CHANGES:
        forms, change = CHANGES[damage]
        form = random.choice(forms)
        before = right_file(form, random.randrange(30))
        data = change(random, before, form)
    else:
        forms, spoil = SPOILS[damage]
        form = random.choice([forms[0], *forms])
        sheet = Sheet.of(some_records(random), form)
        before = sheet.written()
        spoil(random, sheet)
        data = sheet.written(random.choice([b"\n", b"\n", b"\n", b"\r\n"]))
        if data != before and random.random() < 0.2:
            data = flipped(random, data, form) if data and random.random() < 0.5 else tokens(random, data, form)
        if random.random() < 0.05:
            ending = random.choice(sorted(COMPRESS))
            form, data, before = f"{form}.{ending}", COMPRESS[ending](data), COMPRESS[ending](before)
    return None if data == before else Case(form, data)


def cases(damage: str, count: int) -> Iterator[Case]:
    """So many wrong files, no two of which are alike."""
    seen: set[Case] = set()
    for number in itertools.count():
        found = case(damage, number)
        if found is not None and found not in seen:
            seen.add(found)
            yield found
            if len(seen) == count:
                return
