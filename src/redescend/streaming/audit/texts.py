"""Texts that are probably misspelt: rare values that are one edit away from a frequent one, or differ in case only.

An edit inserts, deletes or replaces a letter, or swaps two neighbors. Codes such as ``VS1`` and ``VS2`` are not
typos: an edit of a digit does not count, nor does one in a short text. Where frequent texts are themselves one edit
apart, closeness says nothing, and only case, blanks and punctuation are compared.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from redescend.numeric import Array
from redescend.sources import Batch

FREQUENT, RARE = 10, 0.05
"""The fewest records of a frequent text, and the largest ratio of the records of a typo to those of the text meant."""

SHORTEST, LONGEST = 4, 64  # the lengths of texts that are compared
MOST_TEXTS = 50_000  # a column with more distinct texts is not compared


class Typo(NamedTuple):
    """A text that is probably misspelt, what was probably meant, and the rows that have it."""

    column: str
    text: str
    meant: str
    rows: list[int]


class TextCheck:
    """Checks these columns of texts for typos, a batch at a time."""

    def __init__(self, columns: Iterable[str]) -> None:
        self._codes: dict[str, dict[str, int]] = {name: {} for name in columns}
        self._values: dict[str, list[Array]] = {name: [] for name in self._codes}
        self._rows: list[Array] = []

    def add(self, batch: Batch) -> None:
        """Add the records of a batch."""
        self._rows.append(batch.rows)
        for name, codes in self._codes.items():
            encoded = batch.table.column(name).dictionary_encode()
            if len(codes) > MOST_TEXTS:
                continue
            known = [codes.setdefault(text, len(codes)) for text in encoded.dictionary.to_pylist()]
            places = encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
            self._values[name].append(np.array([*known, -1], np.int32)[places])

    def typos(self) -> list[Typo]:
        """The typos of all columns, by their first rows."""
        found, rows = list[Typo](), np.concatenate([np.empty(0, np.int64), *self._rows])
        for name, codes in self._codes.items():
            if not codes or len(codes) > MOST_TEXTS:
                continue
            values = np.concatenate(self._values[name])
            counts = np.bincount(values[values >= 0], minlength=len(codes)).tolist()
            for text, meant in find_typos(dict(zip(codes, counts, strict=True))).items():
                found.append(Typo(name, text, meant, rows[values == codes[text]].tolist()))
        return sorted(found, key=lambda typo: typo.rows[0])


def find_typos(counts: Mapping[str, int]) -> dict[str, str]:
    """Find the texts of a column that are probably misspelt, and what was meant, by the numbers of their records.

    >>> find_typos({"Adelie": 150, "Gentoo": 120, "Adelei": 1, "gentoo ": 2, "Chinstrap": 68})
    {'Adelei': 'Adelie', 'gentoo ': 'Gentoo'}
    >>> find_typos({"grade 1": 500, "grade 2": 400, "grade 3": 2})
    {}
    """
    frequent = [text for text, count in counts.items() if count >= FREQUENT and len(text) <= LONGEST]
    forms, near = dict[str, list[str]](), dict[str, list[str]]()
    for text in frequent:
        forms.setdefault(_simplify(text), []).append(text)
        for variant in _shorten(text):
            near.setdefault(variant, []).append(text)
    apart = not any(_is_edit(one, other) for texts in near.values() for one in texts for other in texts)
    found, most = dict[str, str](), RARE * max(counts.values(), default=0)
    for text, count in counts.items():
        if len(text) > LONGEST or count > most:
            continue
        form = _simplify(text)
        meant = set() if form.isdigit() else set(forms.get(form, ()))
        if apart and not meant:
            meant = {other for variant in _shorten(text) for other in near.get(variant, ()) if _is_edit(text, other)}
        meant = {other for other in meant if count <= RARE * counts[other]}
        if len(meant) == 1:
            found[text] = meant.pop()
    return found


def _simplify(text: str) -> str:
    """The letters and digits of a text, in lower case."""
    return "".join(letter for letter in unicodedata.normalize("NFKC", text).casefold() if letter.isalnum())


def _shorten(text: str) -> Iterator[str]:
    """The text, and the text without each of its letters: texts that are one edit apart have one of these in common."""
    yield text
    yield from {text[:place] + text[place + 1 :] for place in range(len(text))}


def _is_edit(one: str, other: str) -> bool:
    """Whether two texts are one edit of letters apart."""
    if one == other or min(len(one), len(other)) < SHORTEST:
        return False
    start = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    start = min(len(one), len(other)) if start is None else start
    one, other = one[start:], other[start:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    is_edit = max(len(one), len(other)) == 1 or (len(one) == 2 and one == other[::-1])
    return is_edit and not any(letter.isdigit() for letter in one + other)
