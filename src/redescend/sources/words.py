"""How a value looks in a sentence."""

from __future__ import annotations

LONGEST_SHOWN = 40


def shown(value: object) -> str:
    """A value in quotes, cut short where it is long.

    Examples
    --------
    >>> shown("abc"), shown("a" * 100)
    ("'abc'", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'")
    """
    if isinstance(value, bytes | str) and len(value) > LONGEST_SHOWN:
        cut = repr(value[:LONGEST_SHOWN])
        return f"{cut[:-1]}…{cut[-1]}"
    return repr(value)
