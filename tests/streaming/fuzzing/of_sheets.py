"""What is wrong with names, records and values of a text."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from tests.streaming.fuzzing.sheets import DELIMITERS, TARGET, TEXTS, Sheet

DELIMITED = list(DELIMITERS)

Spoil = Callable[[Random, Sheet], None]
SPOILS: dict[str, tuple[list[str], Spoil]] = {}
"""The formats that a damage is done to, and how, by name."""


def of(*forms: str) -> Callable[[Spoil], Spoil]:
    def register(damage: Spoil) -> Spoil:
        SPOILS[damage.__name__] = list(forms), damage
        return damage

    return register


# --- values ---


def somewhere(random: Random, sheet: Sheet, spellings: list[bytes]) -> None:
    """Put some of these in the place of values: in a few, in a whole row, or in a column from some row on."""
    if not sheet.rows:
        return
    row, column = random.randrange(len(sheet.rows)), random.randrange(len(sheet.names))
    shape = random.randrange(4)
    if shape == 0:
        places = [(row, at) for at in range(len(sheet.rows[row]))]
    elif shape == 1:
        places = [(at, column) for at in range(row, len(sheet.rows))]
    else:
        places = [(random.randrange(len(sheet.rows)), column) for _ in range(random.randint(1, 3))]
    for at, where in places:
        if where < len(sheet.rows[at]):
            sheet.rows[at][where] = random.choice(spellings)


@of(*TEXTS)
def extremes(random, sheet):
    somewhere(random, sheet, b"NaN inf -inf Infinity 1e308 -1e308 1e-320 1e400 1e100 -1.1e100 -0.0 5e-324".split())


@of(*TEXTS)
def huge_integers(random, sheet):
    digits = [
        random.choice("123456789") + "0123456789" * (n // 10)
        for n in (10, 18, 20, 40, 110, 310, random.choice([500, 5000]))
    ]
    somewhere(random, sheet, [random.choice(["", "-"]).encode() + each.encode() for each in digits])


@of(*TEXTS)
def other_kinds(random, sheet):
    words = [
        "abc",
        "true",
        "2024-13-45",
        "2024-02-29T25:61",
        "99999-01-01",
        "1,5",
        "0x1F",
        "١٢",
        "1_000",
        "$3",
        "-",
        " ",
    ]
    somewhere(random, sheet, [json.dumps(word, ensure_ascii=False).encode() for word in words])


@of(*TEXTS)
def other_words(random, sheet):
    somewhere(random, sheet, [b"abc", b"TRUE", b"0001-01-01", b"1 2", b"--1", b"+", b".", b"e5", b"nul", b"1e", b"01"])


@of(*TEXTS)
def quotes(random, sheet):
    spellings = [b'"', b'""', b'"""', b'"a', b'a"', b'a"b', b'"a"b', b'"a\nb"', b"'", b'"1"', b'\\"', b'"a""b"']
    somewhere(random, sheet, spellings)


@of(*TEXTS)
def control_characters(random, sheet):
    somewhere(
        random,
        sheet,
        [b"\0", b"1\0", b"a\0b", b"\r", b"a\rb", b"\x1a", b"\x0b", b"1\t", b"\x1b[31m", b"\n", b'"\\u0000"'],
    )


@of(*TEXTS)
def invalid_utf8(random, sheet):
    spellings = [
        b"\xff",
        b"a\xc3",
        b"\xed\xa0\x80",
        b"\xc0\xaf",
        b'"\xfe"',
        b'"\\ud800"',
        b"\xf4\x90\x80\x80",
        b"\xe9t\xe9",
    ]
    somewhere(random, sheet, spellings)
    if random.random() < 0.1:
        sheet.names[random.randrange(len(sheet.names))] += random.choice(spellings)


@of(*TEXTS)
def long_values(random, sheet):
    letter = random.choice([b"a", b"9", "é".encode()])
    if random.random() < 0.02:
        random.choice(sheet.rows)[0] = letter * (2**20 + 9)
    else:
        somewhere(random, sheet, [letter * random.choice([50, 300, 300, 5000])])


@of(*TEXTS)
def missing_values(random, sheet):
    missing = [b"null", b'""', b'"NA"'] if sheet.form == "jsonl" else [b"", b"NA", b"?", b" null ", b"-", b'""']
    somewhere(random, sheet, missing)
    column = random.randrange(len(sheet.names))
    for row in sheet.rows[random.choice([0, 0, 4]) :]:
        row[column] = random.choice(missing)


# --- targets ---


@of(*TEXTS)
def constant_target(random, sheet):
    value = random.choice(sheet.rows)[sheet.column(TARGET)]
    for row in sheet.rows[random.choice([0, 0, 1, 5]) :]:
        row[sheet.column(TARGET)] = value


@of(*TEXTS)
def unseen_labels(random, sheet):
    labels = [b'"new"', b'"1e5"', b"7", b'"LOW"', b"null", b'"true"', b'"high "']
    for row in random.sample(sheet.rows, random.randint(1, 3)):
        row[sheet.column(TARGET)] = random.choice(labels)


@of(*TEXTS)
def changing_type(random, sheet):
    column, half = random.randrange(len(sheet.names)), len(sheet.rows) // random.choice([2, 3])
    spelling = random.choice([b"%d.5", b'"w%d"', b"true", b'"2024-01-02"', b"[%d]", b'"%d"', b'"2024-01-02T03:04:05Z"'])
    for number, row in enumerate(sheet.rows[half:]):
        row[column] = spelling % number if b"%" in spelling else spelling


# --- records and names ---


@of(*TEXTS)
def ragged(random, sheet):
    for row in random.sample(sheet.rows, random.choice([1, 2, len(sheet.rows)])):
        row[random.randrange(len(row)) :] = random.choice([[], [b"1"] * random.randint(0, 9), [b""] * 3])


@of(*TEXTS)
def names(random, sheet):
    at, other = random.randrange(len(sheet.names)), random.choice(sheet.names)
    odd = [
        other,
        b"",
        b" ",
        b"y ",
        b'"a,b"',
        b'"a\nb"',
        b"\xef\xbb\xbf",
        b'"',
        b"Y",
        b"\0",
        b"x" * 3000,
        b"1",
        b"\xc3\xa9",
        b"a'b",
    ]
    for _ in range(random.randint(1, 2)):
        sheet.names[at] = random.choice([*odd, sheet.names[at] + random.choice(odd)])
        at = random.randrange(len(sheet.names))


@of(*DELIMITED)
def number_of_names(random, sheet):
    at = random.randrange(len(sheet.names) + 1)
    sheet.names.insert(at, random.choice([b"more", b"more", b"", sheet.names[0]]))
    for row in random.sample(sheet.rows, random.choice([0, 2, len(sheet.rows) - 2])):
        row.insert(at, random.choice([b"1", b"a"]))


@of(*TEXTS)
def few_records(random, sheet):
    del sheet.rows[random.choice([0, 0, 1, 2]) :]
    sheet.rows += [[] for _ in range(random.randrange(4))]
    if sheet.rows and random.random() < 0.5:
        somewhere(random, sheet, [b"0", b"-1", b'"a"', b"null"])


@of(*DELIMITED)
def headers_inside(random, sheet):
    for _ in range(random.randint(1, 3)):
        sheet.rows.insert(random.randrange(len(sheet.rows)), list(sheet.names))


@of("jsonl")
def nested(random, sheet):
    deep = b"[" * 3000 + b"]" * random.choice([0, 3000])
    somewhere(random, sheet, [b"{}", b"[]", b'{"a": {"b": [1, {"c": 2}]}}', b"[1, 2]", b'{"y": 1}', b'["y"]', deep])


@of("jsonl")
def names_twice(random, sheet):
    for row in random.sample(sheet.rows, random.choice([1, 2, len(sheet.rows)])):
        at = random.randrange(len(row))
        row[at] += b', "%s": %s' % (random.choice(sheet.names), random.choice([row[at], b"1", b'"a"', b"null"]))
