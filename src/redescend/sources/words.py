"""How a value looks in a sentence."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

LONGEST_SHOWN = 40
MOST_SHOWN = 10


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


def there_are(columns: Sequence[str], wanted: str) -> str:
    """What to say to one who wanted a column that is not there: the one that was meant, else the first of them.

    Examples
    --------
    >>> there_are(["Price", "area"], "prise"), there_are(["Price", "area"], "x")
    ("did you mean 'Price'?", "there are 'Price', 'area'.")
    """
    folded = {name.casefold(): name for name in columns}
    if near := difflib.get_close_matches(wanted.casefold(), folded, n=1):
        return f"did you mean {shown(folded[near[0]])}?"
    listed = ", ".join(map(shown, columns[:MOST_SHOWN]))
    return f"there are {listed}" + (f" and {len(columns) - MOST_SHOWN} more." if len(columns) > MOST_SHOWN else ".")
