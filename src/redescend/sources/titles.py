"""Lines above the header of a delimited file, such as a title."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from redescend.sources.kinds import AGREEMENT, MISSING_SPELLINGS, PATTERNS, Kind, count_matches
from redescend.sources.notations import DATE_PATTERNS, NUMBER_FORMS

ENOUGH = 100  # records below a header that are looked at
_NUMBERS = (PATTERNS[Kind.NUMBER], *(form.pattern for form in NUMBER_FORMS))
_YEAR = r"(?:19|20)\d\d"  # a number that is common in headers


class Header(NamedTuple):
    """A header below other lines: its number of values, how many records of how many have as many, and whether it is
    certain, as columns below names have numbers.
    """

    values: int
    records: int
    total: int
    certain: bool


def find_header(counts: Sequence[int], read: Callable[[int], list[str]]) -> Header | None:
    """Find a header by the numbers of values of the first records; `read` splits the record of this number.

    It is the first one that has as many values as most records, if all above it have fewer, most below it as many, and
    its values may be names.

    >>> lines = [["Sales"], ["shop", "price"], ["a", "1.5"], ["b", "2.5"]]
    >>> find_header([len(line) for line in lines], lines.__getitem__)
    Header(values=2, records=3, total=4, certain=True)
    >>> find_header([1, 2, 2], [["price"], ["1", "25"], ["3", "5"]].__getitem__)  # decimal commas
    """
    [(values, records)] = Counter(counts).most_common(1) or [(1, 0)]
    first = counts.index(values) if records else 0
    below = counts[first:]
    if values == 1 or 2 * records <= len(counts) or max(counts[:first], default=0) > values:
        return None
    if below.count(values) < AGREEMENT * len(below):
        return None
    places = [place for place in range(first, len(counts)) if counts[place] == values]
    names, *others = ([value.strip() for value in read(place)] for place in places[: ENOUGH + 1])
    if not _are_names(names):
        return None
    columns = zip(names, zip(*(one for one in others if len(one) == len(names)), strict=True), strict=False)
    return Header(values, records, len(counts), any(_is_name_of_numbers(*column) for column in columns))


def _are_names(values: Sequence[str]) -> bool:
    """Whether these may be the names of columns, some of which may be empty: no numbers but years.

    >>> _are_names(["", "2019", "2020", "shop"]), _are_names(["shop", "12"]), _are_names(["2019", "2020"])
    (True, False, False)
    """
    names = [value for value in values if value and not _is_year(value)]
    return bool(names) and not any(name in MISSING_SPELLINGS or _is_number(name) for name in names)


def _is_name_of_numbers(name: str, values: Sequence[str]) -> bool:
    """Whether values are numbers or dates, unlike what is above them.

    >>> _is_name_of_numbers("price", ["1.5", "2"]), _is_name_of_numbers("2019", ["1.5", "2"])
    (True, True)
    >>> _is_name_of_numbers("shop", ["a", "b"]), _is_name_of_numbers("2019", ["2018", "2015"])
    (False, False)
    """
    present = [value for value in values if value not in MISSING_SPELLINGS]
    if not present or (_is_number(name) and (not _is_year(name) or any(map(_is_year, present)))):
        return False
    texts = pa.array(present, pa.string())
    most = max(count_matches(texts, pattern) for pattern in (*_NUMBERS, *DATE_PATTERNS))
    return most >= AGREEMENT * len(present)


def _is_number(text: str) -> bool:
    return any(re.match(pattern, text) for pattern in _NUMBERS)


def _is_year(text: str) -> bool:
    return re.fullmatch(_YEAR, text) is not None
