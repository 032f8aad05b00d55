"""Errors that rules find: copies of rows and of blocks of rows, dates out of order, and texts that are misspelt.

A text is probably misspelt if it is rare and one edit away from a frequent one, or differs from it in case only. An
edit inserts, deletes or replaces a letter, or swaps two neighbors. Codes such as ``VS1`` and ``VS2`` are not typos:
an edit of a digit does not count, nor does one in a short text. Where frequent texts are themselves one edit apart,
closeness says nothing, and only case, blanks and punctuation are compared.
"""

from __future__ import annotations

import bisect
import itertools
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from redescend.numeric import Array
from redescend.sources import Batch
from redescend.sources.sampling import hash_column, hash_contents
from redescend.streaming.encoding.features import MICROSECONDS_PER_DAY, to_floats

# --- copies, and dates out of order ---

BLOCK = 5  # the fewest consecutive copies that are a block
RUN = 10  # the fewest equal values in succession that are a run of a column of groups
GROUPED = 0.7  # rows are a group if this share of them has texts that occur mostly, by this share, among them
NATURAL = 0.05  # if a larger share of rows are copies, few values are possible, and copies are natural
STRETCHES = 100  # parts of a table in which suspects are counted
EXAMPLES = 5  # copies, or dates out of order, that are described
MOST_GROUPS = 2  # groups of rows for each time that dates begin again, at most
LARGEST = 0.1  # the largest share of dates that are out of order; if there are more, dates begin again
IN_ORDER = 0.98  # the share of dates that must not be before the last one, for a column to be in order


class Copy(NamedTuple):
    """Rows from `first` to `last` that repeat those from `source` on."""

    first: int
    last: int
    source: int

    def __str__(self) -> str:
        if self.first == self.last:
            return f"row {self.first:,} of row {self.source:,}"
        return f"rows {self.first:,} to {self.last:,} of those from row {self.source:,} on"


class Copies(NamedTuple):
    """The number of rows that are copies of earlier ones, and the longest blocks of copies."""

    rows: int
    blocks: list[Copy]


class RowCheck:
    """Checks the rows of a table for copies and for dates out of order, a batch at a time.

    `apart` are columns that number the records: copies may differ in them, and batches do not have them.
    """

    def __init__(self, apart: Sequence[str] = ()) -> None:
        self._apart = list(apart)
        self._rows: list[Array] = []
        self._hashes: list[Array] = []
        self._dates: dict[str, list[Array]] = {}
        self._texts: dict[str, list[Array]] = {}
        self._numbers: dict[str, list[Array]] = {}
        self._changes: dict[str, list[Array]] = {}
        self._last: dict[str, Any] = {}

    def add(self, batch: Batch) -> None:
        """Add the records of a batch."""
        self._rows.append(batch.rows)
        self._hashes.append(hash_contents(batch.table))
        for name, column in zip(batch.table.schema.names, batch.table.columns, strict=True):
            if pa.types.is_timestamp(column.type):
                self._dates.setdefault(name, []).append(to_floats(column))
                continue
            is_text = pa.types.is_string(column.type)
            values = hash_column(column) if is_text else to_floats(column)
            (self._texts if is_text else self._numbers).setdefault(name, []).append(values)
            if len(values):
                before = np.append(self._last.get(name, values[:1]), values[:-1])
                self._changes.setdefault(name, []).append(values != before)
                self._last[name] = values[-1:]

    def late_dates(self) -> list[LateDate]:
        """The dates that are out of order, a column after the other."""
        rows = np.concatenate([np.empty(0, np.int64), *self._rows])
        groups = [np.cumsum(np.concatenate(parts)) for parts in self._changes.values()] if self._dates else []
        late = (find_late_dates(name, np.concatenate(parts), rows, groups) for name, parts in self._dates.items())
        return list(itertools.chain.from_iterable(late))

    def describe(self) -> list[str]:
        """Describe copies and late dates, a sentence each."""
        if not self._rows:
            return []
        sentences = []
        copies = find_copies(np.concatenate(self._hashes), np.concatenate(self._rows))
        if copies is not None:
            blocks = ", ".join(map(str, copies.blocks))
            but = f" but for {' and '.join(map(repr, self._apart))}" if self._apart else ""
            sentences.append(f"Copies of earlier rows{but}: {copies.rows:,}, such as {blocks}.")
        for name, late in itertools.groupby(self.late_dates(), key=lambda one: one.column):
            dates = list(late)
            shown = ", ".join(f"row {one.row:,} ({one})" for one in dates[:EXAMPLES])
            sentences.append(f"Dates out of order in {name!r}: {len(dates):,}, such as {shown}.")
        return sentences

    def is_group(self, first: int, last: int) -> bool:
        """Whether rows from `first` to `last` are mostly those with certain texts, such as all records of a shop."""
        inside = self._are_between(first, last)
        for parts in self._texts.values():
            _, codes = np.unique(np.concatenate(parts), return_inverse=True)
            counts, own = np.bincount(codes), np.bincount(codes[inside], minlength=codes.max() + 1)
            belongs = (own >= GROUPED * counts) & (counts >= BLOCK)
            if belongs[codes[inside]].mean() >= GROUPED:
                return True
        return False

    def has_number(self, column: str, first: int, last: int) -> bool:
        """Whether these rows are mostly those with one number of another column, such as all records of a user.

        A number that only grows is a time.
        """
        inside = self._are_between(first, last)
        for values in (np.concatenate(parts) for name, parts in self._numbers.items() if name != column):
            own = values == np.median(values[inside])
            alone = own.any() and np.mean(own[inside]) >= GROUPED and np.mean(inside[own]) >= GROUPED
            if alone and (np.diff(values) < 0.0).any():
                return True
        return False

    def _are_between(self, first: int, last: int) -> Array:
        """Whether each row is between these two."""
        rows = np.concatenate(self._rows)
        between: Array = (rows >= first) & (rows <= last)
        return between


def comes_in_runs(values: Array) -> bool:
    """Whether most values of a column are in runs of `RUN` equal ones, as the numbers of groups of rows are.

    The most frequent value does not count: it may be a 0 that is nearly always there.

    >>> comes_in_runs(np.repeat([4.0, 2.0, 7.0, 1.0], 12)), comes_in_runs(np.append(np.arange(30.0), np.zeros(50)))
    (True, False)
    """
    if len(values) == 0:
        return False
    starts = np.flatnonzero(np.diff(values, prepend=np.nan) != 0.0)
    lengths, (found, codes) = np.diff(starts, append=len(values)), np.unique(values[starts], return_inverse=True)
    others = codes != np.bincount(codes, lengths).argmax()
    return len(found) > 2 and bool(2 * lengths[others & (lengths >= RUN)].sum() > lengths[others].sum())


def count_along(rows: Array, records: int) -> Array:
    """Compute the share of these rows, numbered from 1, in each of `STRETCHES` parts of a table."""
    edges = np.linspace(0, records, min(STRETCHES, max(records, 1)) + 1)
    return np.histogram(rows - 0.5, edges)[0] / np.maximum(np.diff(edges), 1.0)


class LateDate(NamedTuple):
    """A date that is earlier than that of the row before, or later than that of the row after, out of order."""

    row: int
    column: str
    value: float  # in days since 1970-01-01

    def __str__(self) -> str:
        date = np.datetime64(round(self.value * MICROSECONDS_PER_DAY), "us").astype("datetime64[s]")
        return str(date).removesuffix("T00:00:00")


def find_copies(hashes: Array, rows: Array) -> Copies | None:
    """Find copies among rows with these hashes; None if there are none, or too many to be errors.

    >>> find_copies(np.array([7, 8, 9, 10, 7, 8, 11] + list(range(100, 200))), np.arange(1, 108))
    Copies(rows=2, blocks=[Copy(first=5, last=6, source=1)])
    """
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    sources = first[inverse]
    copies = np.flatnonzero(sources < np.arange(len(hashes)))
    if not len(copies) or (len(copies) > NATURAL * len(hashes) and not _has_block(copies, sources)):
        return None
    breaks = np.flatnonzero((np.diff(copies) != 1) | (np.diff(sources[copies]) != 1)) + 1
    blocks = [
        Copy(int(rows[part[0]]), int(rows[part[-1]]), int(rows[sources[part[0]]])) for part in np.split(copies, breaks)
    ]
    return Copies(len(copies), sorted(blocks, key=lambda one: (one.first - one.last, one.first))[:EXAMPLES])


def _has_block(copies: Array, sources: Array) -> bool:
    """Whether most copies are in blocks."""
    together = (np.diff(copies) == 1) & (np.diff(sources[copies]) == 1)
    return bool(np.mean(together) > 1.0 - 1.0 / BLOCK) if len(together) else False


def find_late_dates(name: str, values: Array, rows: Array, groups: Iterable[Array] = ()) -> list[LateDate]:
    """Find the dates that are out of order in a column that is otherwise sorted; NaN is ignored.

    Dates may begin again with every group of rows, such as a shop. `groups` are the numbers of such groups for every
    column that may have them; they count only if they change about as seldom as dates begin again.

    >>> days = np.array([1.0, 2.0, 9.0, 3.0, 4.0] + [5.0] * 99 + [1.0] * 99)
    >>> find_late_dates("day", days, np.arange(1, 204), [np.arange(203) // 104])
    [LateDate(row=3, column='day', value=9.0)]
    """
    known = np.isfinite(values)
    groups = [numbers[known] for numbers in groups]
    values, rows = values[known], rows[known]
    steps = np.diff(values)
    if len(steps) < 2 or not (steps > 0).any():
        return []
    if np.mean(steps >= 0) < IN_ORDER:
        return []
    back = steps < 0
    for numbers in groups:
        begins = np.diff(numbers) > 0
        if np.count_nonzero(begins) <= MOST_GROUPS * np.count_nonzero(steps < 0):
            back &= ~begins
    # Where dates begin again with a group, those of the last one do not count.
    parts = np.split(np.arange(len(values)), np.flatnonzero((steps < 0) & ~back) + 1)
    most = max(round((1.0 - IN_ORDER) * len(values)), 1)
    late = [int(part[0]) + wrong for part in parts for wrong in _find_wrong(values[part], most)]
    return [LateDate(int(rows[place]), name, float(values[place])) for place in late]


def _find_wrong(values: Array, most: int) -> list[int]:
    """Find the fewest rows whose removal leaves the others in order.

    Either side of a step back may be wrong if it is followed by about as many rows as it follows, and if these are at
    least `most`, or if too many rows would be removed. Then only the first row after the step is returned.

    >>> days = np.arange(1000.0)
    >>> days[500:504] += 3650.0
    >>> days[700] -= 3650.0
    >>> _find_wrong(days, 20)
    [500, 501, 502, 503, 700]
    """
    steps = np.flatnonzero(np.diff(values) < 0) + 1
    removed = np.flatnonzero(~_find_ordered(values))
    if len(removed) > max(LARGEST * len(values), BLOCK):
        return [int(step) for step in steps]
    wrong = list[int]()
    for block in np.split(removed, np.flatnonzero(np.diff(removed) != 1) + 1):
        near = steps[(steps >= block[0]) & (steps <= block[-1] + 1)] if len(block) >= most > 1 else steps[:0]
        unclear = any(_is_unclear(values, step) for step in near.tolist())
        wrong += (near if unclear else block).tolist()
    return wrong


def _find_ordered(values: Array) -> Array:
    """A mask of the most rows that are in order: a longest subsequence that does not decrease."""
    # Rows that are in order with all others are always part of it.
    ordered = (values >= np.maximum.accumulate(values)) & (values <= np.minimum.accumulate(values[::-1])[::-1])
    places = np.flatnonzero(~ordered)
    ends, last, before = list[float](), list[int](), list[int]()
    for number, value in enumerate(values[places].tolist()):
        length = bisect.bisect_right(ends, value)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1], last[length : length + 1] = [value], [number]
    number = last[-1] if last else -1
    while number >= 0:
        ordered[places[number]] = True
        number = before[number]
    return ordered


def _is_unclear(values: Array, place: int) -> bool:
    """Whether about as many rows before a step back to this place as after it may be wrong."""
    before = _count_leading(values[:place][::-1] > values[place])
    after = _count_leading(values[place:] < values[place - 1])
    return max(before, after) < 2 * min(before, after)


def _count_leading(mask: Array) -> int:
    """The number of entries before the first that is False."""
    return len(mask) if mask.all() else int(mask.argmin())


# --- misspelt texts ---

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
