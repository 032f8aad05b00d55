"""Numbers, shares and counts formatted for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from redescend.sources.kinds import Kind

if TYPE_CHECKING:
    from redescend.streaming.encoding.schema import Schema


def format_number(value: float) -> str:
    """Format a number with three significant digits.

    >>> [format_number(value) for value in (12345.6, 0.01234, 2.5e9, 18.0, -0.0)]
    ['12,346', '0.0123', '2.5e+09', '18', '0']
    """
    if value == 0.0:
        return "0"
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e7 else f"{value:.3g}"


def format_percent(share: float) -> str:
    """Format a share; 0 % and 100 % only if it is exactly that.

    >>> [format_percent(share) for share in (0.0, 0.0004, 0.0123, 0.987, 0.9996, 1.0)]
    ['0 %', '< 0.1 %', '1.2 %', '98.7 %', '> 99.9 %', '100 %']
    """
    if share in (0.0, 1.0):
        return f"{100.0 * share:.0f} %"
    if share < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if share > 0.999 else f"{100.0 * share:.1f} %"


def format_weight(weight: float) -> str:
    """Format a weight or a probability.

    >>> format_weight(0.0), format_weight(1e-9), format_weight(0.01234), format_weight(1.0)
    ('0', '< 0.001', '0.012', '1.000')
    """
    if weight == 0.0:
        return "0"
    return "< 0.001" if weight < 0.001 else f"{weight:.3f}"


def format_value(content: Any) -> str:
    """Format a value of a record.

    >>> format_value(None), format_value(True), format_value(1234567.0), format_value(0.1 + 0.2), format_value("Rome")
    ('missing', 'true', '1234567', '0.3', 'Rome')
    """
    if content is None:
        return "missing"
    if isinstance(content, bool):
        return "true" if content else "false"
    if isinstance(content, float):
        return f"{content:.0f}" if content.is_integer() and abs(content) < 1e15 else f"{content:.6g}"
    return str(content)


NEGLIGIBLE = 1e-9  # numbers that are smaller than this, relative to those beside them, are rounding errors


def format_rounded(content: Any, beside: Any = None, within: tuple[float | None, float | None] = (None, None)) -> str:
    """Format a prediction with four significant digits, and 0 if it is negligible `beside` a number.

    There are more digits if an interval that it is `within` is too narrow for four. Labels stay as they are.

    >>> format_rounded(31416.9), format_rounded(0.123456), format_rounded("Rome"), format_rounded(-4e-53, 2.5)
    ('31420', '0.1235', 'Rome', '0')
    >>> format_rounded(31416.9, within=(31412.0, 31418.0)), format_rounded(-122.41941, within=(-122.43, -122.41))
    ('31416.9', '-122.419')
    """
    if not isinstance(content, float):
        return format_value(content)
    negligible = isinstance(beside, float) and abs(content) < NEGLIGIBLE * abs(beside)
    width = abs((within[1] or 0.0) - (within[0] or 0.0))
    digits = 4
    if width > 0.0 and content != 0.0 and math.isfinite(content / width):
        digits = min(max(digits, 2 + math.floor(math.log10(abs(content))) - math.floor(math.log10(width))), 15)
    shown = float(f"{content:.{digits}g}")
    return "0" if negligible else format_value(shown) if digits <= 6 or shown.is_integer() else f"{shown:.{digits}g}"


MAX_DAYS = 2_932_896  # the first day of the year 10,000
NARROW = 10.0  # days; dates in a narrower interval are shown with their time of day


def format_date(days: float) -> str:
    """Format days since 1970-01-01 as a date; a number that is too large for one stays a number.

    >>> format_date(0.9), format_date(1e12)
    ('1970-01-01', '1e+12')
    """
    return str(np.datetime64(math.floor(days), "D")) if abs(days) < MAX_DAYS else format_number(days)


def format_target(schema: Schema, content: Any) -> str:
    """Format a value of the target: dates, which are days since 1970-01-01 for a model, as dates again."""
    if schema.kind is not Kind.DATE or not isinstance(content, float) or not abs(content) < MAX_DAYS:
        return format_value(content)
    return format_date(content) if content.is_integer() else _format_minute(content)


def format_predicted(
    schema: Schema, content: Any, beside: Any = None, within: tuple[float | None, float | None] = (None, None)
) -> str:
    """Format a prediction as `format_rounded` does; of a date as a date, with minutes in a narrow interval."""
    if schema.kind is not Kind.DATE or not isinstance(content, float) or not abs(content) < MAX_DAYS:
        return format_rounded(content, beside, within)
    width = abs((within[1] or 0.0) - (within[0] or 0.0))
    return _format_minute(content) if 0.0 < width < NARROW else format_date(round(content))


def _format_minute(days: float) -> str:
    """Format days since 1970-01-01 as a date with a time of day.

    >>> _format_minute(19_800.5)
    '2024-03-18T12:00'
    """
    return str(np.datetime64(round(days * 24 * 60), "m"))


def format_first(count: int) -> str:
    """Format the number of records that a stream begins with.

    >>> format_first(1), format_first(1000)
    ('the first record', 'the first 1,000 records')
    """
    return "the first record" if count == 1 else f"the first {format_count(count)}"


def format_count(count: int, what: str = "record") -> str:
    """Format a count with its noun.

    >>> format_count(1), format_count(12_000)
    ('1 record', '12,000 records')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def abbreviate(text: str, most: int) -> str:
    """Cut a text to at most this number of characters.

    >>> abbreviate("Rome", 4), abbreviate("Florence", 4)
    ('Rome', 'Flo…')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"
