"""Remarks on columns: why one is of no use as a feature, and what to do about values that may not be what they seem."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from redescend.numeric import Array
from redescend.sources import Kind
from redescend.sources.kinds import AGREEMENT, PATTERNS, count_matches
from redescend.sources.notations import DATE_PATTERNS, find_units, may_be_numbers
from redescend.streaming.encoding.features import (
    MIN_IDENTIFIERS,
    drop_missing,
    format_exactly,
    quote_value,
    to_floats,
)

MAX_FEW = 5  # a number with at most this many different whole values may be a label

FEWEST_THOUSANDS, THIRD_DIGITS = 20, 0.7
"""The fewest different numbers that may have a point between thousands, and that have none; and the least share of the
former whose third digit behind the point is not 0."""


def find_exclusion(kind: Kind, column: pa.Array, where: str) -> str | None:
    """Explain why a column is useless as a feature, or None; `where` describes the records of the sample."""
    values = drop_missing(column)
    distinct = pc.unique(values)
    if len(values) == 0:
        return f"has no value in {where}"
    if is_constant(column):
        return f"is always {quote_value(distinct[0].as_py())} in {where}"
    if kind is Kind.TEXT and len(values) >= MIN_IDENTIFIERS and 2 * len(distinct) > len(values):
        if reason := explain_text(kind, column):
            return reason
        texts = f"{len(distinct):,} distinct texts in {len(values):,} values"
        return f"has {texts}, such as {quote_value(values[0].as_py())}, so it looks like an identifier"
    return None


def explain_text(kind: Kind, column: pa.Array) -> str | None:
    """Say that most texts of a column are dates, or numbers with units, such as 12.5 kg, or among others; else None.

    >>> explain_text(Kind.TEXT, pa.array([f"{number} km/h" for number in range(20)]))
    "has numbers with the unit 'km/h', which are read as text; remove the unit to use them as numbers"
    >>> explain_text(Kind.TEXT, pa.array([f"{number} {'kg' if number % 3 else 'g'}" for number in range(20)]))
    "has numbers with different units, such as 'kg' and 'g', which are read as text; convert them to one unit"
    >>> explain_text(Kind.TEXT, pa.array([f"2020-01-{day}" for day in range(10, 30)]))
    "has dates that are read as text, such as '2020-01-10'; store them as dates to use them"
    >>> explain_text(Kind.TEXT, pa.array([*map(str, range(20)), "unknown"]))
    "is read as text: of 21 values looked at, 20 are numbers, but not 'unknown'; leave such values empty"
    """
    values = drop_missing(column)
    if kind is not Kind.TEXT or not may_be_numbers(values):
        return None
    if any(count_matches(values, pattern) >= AGREEMENT * len(values) for pattern in DATE_PATTERNS):
        example = quote_value(values[0].as_py())
        return f"has dates that are read as text, such as {example}; store them as dates to use them"
    if len(units := find_units(values)) == 1:
        unit = quote_value(units[0])
        return f"has numbers with the unit {unit}, which are read as text; remove the unit to use them as numbers"
    if units:
        several = " and ".join(map(quote_value, units[:2]))
        return f"has numbers with different units, such as {several}, which are read as text; convert them to one unit"
    numeric = pc.match_substring_regex(values, PATTERNS[Kind.NUMBER])
    numbers, others = values.filter(numeric), values.filter(pc.invert(numeric))
    if 2 * len(numbers) < len(values) or not len(others) or not may_be_numbers(numbers):
        return None
    return (
        f"is read as text: of {len(values):,} values looked at, {len(numbers):,} are numbers, but not "
        f"{quote_value(others[0].as_py())}; leave such values empty"
    )


def is_constant(column: pa.Array) -> bool:
    """Whether a column has the same value in all records of the sample."""
    values = drop_missing(column)
    return len(values) == len(column) and len(pc.unique(values)) == 1


def list_few_values(kind: Kind, column: pa.Array) -> str:
    """List the values of a column with many records and few different whole numbers; empty if it is none.

    >>> list_few_values(Kind.NUMBER, pa.array([1.0, 3.0, 2.0] * 50)), list_few_values(Kind.NUMBER, pa.array([0.5, 1.0]))
    ('1, 2 and 3', '')
    """
    values = drop_missing(column)
    distinct = sorted(pc.unique(values).to_pylist()) if kind is Kind.NUMBER and len(values) >= MIN_IDENTIFIERS else []
    if not 2 < len(distinct) <= MAX_FEW or not all(float(value).is_integer() for value in distinct):
        return ""
    *first, last = map(format_exactly, distinct)
    return f"{', '.join(first)} and {last}"


def explain_values(kind: Kind, column: pa.Array) -> str | None:
    """Say what to do about a column whose values may not be what they seem; else None."""
    return explain_thousands(to_floats(column)) if kind is Kind.NUMBER else explain_text(kind, column)


def explain_thousands(values: Array) -> str | None:
    """Say that some numbers may have a point between thousands, such as 12.512 where others are 9876; else None.

    All numbers with decimals are then from 1 to 999.999 and have three of them, and others are whole numbers from 1000
    on.

    >>> prices = np.arange(3000.0, 20000.0, 17.0)
    >>> explain_thousands(np.append(prices, prices / 1000.0))
    'has whole numbers such as 3000 and others such as 3.017: if the point is between thousands, remove it'
    >>> print(explain_thousands(prices / 1000.0), explain_thousands(np.append(prices, prices / 100.0)))
    None None
    """
    known = np.unique(values[np.isfinite(values)])
    sizes = np.abs(known)
    split = np.mod(sizes, 1.0) != 0.0
    large, thousands = known[~split & (sizes >= 1000.0)], 1000.0 * sizes[split]
    if min(len(large), len(thousands)) < FEWEST_THOUSANDS:
        return None
    exact = np.round(thousands)
    alike = (exact >= 1000.0) & (exact < 1e6) & np.isclose(thousands, exact, rtol=1e-12)
    if not alike.all() or np.mean(np.mod(exact, 10.0) != 0.0) < THIRD_DIGITS:
        return None
    return (
        f"has whole numbers such as {format_exactly(float(large[0]))} and others such as {float(known[split][0]):.3f}: "
        "if the point is between thousands, remove it"
    )
