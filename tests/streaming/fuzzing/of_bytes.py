"""What is wrong with the bytes of a file, of whatever format."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pyarrow as pa

from tests.sources.written import COMPRESS
from tests.streaming.fuzzing.oddities import odd_column
from tests.streaming.fuzzing.sheets import COLUMNAR, TARGET, TEXTS, some_file

FORMS = [*["csv"] * 5, *["jsonl"] * 3, "tsv", *COLUMNAR, *(f"csv.{ending}" for ending in COMPRESS), "jsonl.gz"]

Change = Callable[[Random, bytes, str], bytes]
CHANGES: dict[str, tuple[list[str], Change]] = {}
"""The formats that a damage is done to, and how, by name."""


def of(*forms: str) -> Callable[[Change], Change]:
    def register(damage: Change) -> Change:
        CHANGES[damage.__name__] = list(forms), damage
        return damage

    return register


def place(random: Random, data: bytes) -> int:
    return random.randrange(len(data) + 1)


@of(*FORMS)
def flipped(random, data, form):
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


@of(*FORMS)
def inserted(random, data, form):
    for _ in range(random.randint(1, 3)):
        at = place(random, data)
        data = data[:at] + random.randbytes(random.choice([1, 1, 2, 8, 100])) + data[at:]
    return data


@of(*FORMS)
def deleted(random, data, form):
    for _ in range(random.randint(1, 3)):
        at = place(random, data)
        data = data[:at] + data[at + random.choice([1, 2, 8, 100]) :]
    return data


@of(*FORMS)
def repeated(random, data, form):
    low, high = sorted((place(random, data), place(random, data)))
    at = place(random, data)
    return data[:at] + data[low:high] * random.randint(1, 3) + data[at:]


@of(*FORMS)
def cut(random, data, form):
    return data[: place(random, data)] if random.random() < 0.8 else data[place(random, data) :]


@of(*FORMS)
def overwritten(random, data, form):
    at, patch = place(random, data), random.choice([b"\0", b"\xff", b"\n", b'"', b","]) * random.choice([1, 4, 30, 300])
    return data[:at] + patch + data[at + len(patch) :]


@of(*FORMS)
def spliced(random, data, form):
    other = some_file(random, random.choice([form, form, random.choice(FORMS)]))
    return data[: place(random, data)] + other[place(random, other) :]


@of(*FORMS)
def joined(random, data, form):
    other = some_file(random, random.choice([form, form, random.choice(FORMS)]))
    return data + random.choice([b"", b"", b"\n", b"\0" * 20]) + other


@of(*TEXTS)
def swapped_lines(random, data, form):
    lines = data.splitlines(keepends=True)
    for _ in range(random.randint(1, 4)):
        one, other = random.randrange(len(lines)), random.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


@of(*TEXTS)
def line_ends(random, data, form):
    ends = [b"\r", b"\r\n", b"\n\r", b"\n\n\n", b"\r\r\n", b"", b"\n \n", b"\x0b", b"\0\n"]
    few = random.sample(ends, 2)
    return b"".join(line + random.choice([b"\n", *few]) for line in data.split(b"\n"))


@of(*TEXTS)
def marks(random, data, form):
    if random.random() < 0.2:
        return data.decode().encode(random.choice(["utf-16", "utf-16-be", "utf-32", "utf-8-sig"]))
    at = random.choice([0, 0, place(random, data), data.index(b"\n") + 1])
    return data[:at] + b"\xef\xbb\xbf" * random.randint(1, 2) + data[at:]


@of(*TEXTS)
def tokens(random, data, form):
    """Texts that mean something to a parser, thrown in anywhere."""
    pieces = [
        b'"',
        b",",
        b"\n",
        b"\r",
        b"\t",
        b"{",
        b"}",
        b"[",
        b":",
        b"null",
        b"\\",
        b"\\u12",
        b"\0",
        b"\xff",
        b"1e999",
        b";",
    ]
    for _ in range(random.randint(1, 6)):
        at = place(random, data)
        data = data[:at] + random.choice(pieces) * random.choice([1, 1, 2]) + data[at:]
    return data


@of(*COLUMNAR)
def odd_columns(random, data, form):
    """A file of columns that is whole, and holds what no text can."""
    count = random.choice([0, 1, 7, 30])
    names = ["a", random.choice(["b", "b", "b", "", "a\nb", "a"]), "c", TARGET]
    columns = [odd_column(random, count) for _ in names[:-1]]
    last = odd_column(random, count) if random.random() < 0.3 else pa.array([random.gauss(0.0, 1.0)] * count)
    return COLUMNAR[form](pa.table([*columns, last], names=names))
