"""Numbers, shares and values as a person reads them."""

from __future__ import annotations

from typing import Any


def number(value: float) -> str:
    """Three digits that count, and no more.

    Examples
    --------
    >>> number(12345.6), number(0.01234), number(2.5e9), number(18.0), number(-0.0)
    ('12,346', '0.0123', '2.5e+09', '18', '0')
    """
    if value == 0.0:
        return "0"
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e7 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share; never 0 % or 100 % for what is not quite.

    Examples
    --------
    >>> percent(0.0), percent(0.0004), percent(0.0123), percent(0.987), percent(0.9996), percent(1.0)
    ('0 %', '< 0.1 %', '1.2 %', '98.7 %', '> 99.9 %', '100 %')
    """
    if share in (0.0, 1.0):
        return f"{100.0 * share:.0f} %"
    if share < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if share > 0.999 else f"{100.0 * share:.1f} %"


def belief(weight: float) -> str:
    """A weight or a probability.

    Examples
    --------
    >>> belief(0.0), belief(1e-9), belief(0.01234), belief(1.0)
    ('0', '< 0.001', '0.012', '1.000')
    """
    if weight == 0.0:
        return "0"
    return "< 0.001" if weight < 0.001 else f"{weight:.3f}"


def value(content: Any) -> str:
    """A value of a record.

    Examples
    --------
    >>> value(None), value(True), value(1234567.0), value(0.1 + 0.2), value("Rome")
    ('missing', 'true', '1234567', '0.3', 'Rome')
    """
    if content is None:
        return "missing"
    if isinstance(content, bool):
        return "true" if content else "false"
    if isinstance(content, float):
        return f"{content:.0f}" if content.is_integer() and abs(content) < 1e15 else f"{content:.6g}"
    return str(content)


def rounded(content: Any) -> str:
    """What is not known to more than four digits: a prediction; labels stay as they are.

    Examples
    --------
    >>> rounded(31416.9), rounded(0.123456), rounded("Rome")
    ('31420', '0.1235', 'Rome')
    """
    return value(float(f"{content:.4g}") if isinstance(content, float) else content)


def first(count: int) -> str:
    """The records that a stream begins with.

    Examples
    --------
    >>> first(1), first(1000)
    ('the first record', 'the first 1,000 records')
    """
    return "the first record" if count == 1 else f"the first {counted(count)}"


def counted(count: int, what: str = "record") -> str:
    """A count of things.

    Examples
    --------
    >>> counted(1), counted(12_000)
    ('1 record', '12,000 records')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"
