"""What comes from data, as a terminal may show it: a record must not move the cursor or change its colours."""

from __future__ import annotations

import json
from typing import Any


def printable(text: str) -> str:
    r"""One line without anything that a terminal obeys.

    Examples
    --------
    >>> printable("red: \x1b[31mRome\n") == "red: \N{REPLACEMENT CHARACTER}[31mRome "
    True
    """
    return "".join(map(_shown, text))


def json_text(content: Any, indent: int | None = None) -> str:
    r"""JSON that says the same, with escapes for all that cannot be printed.

    Examples
    --------
    >>> print(json_text({"town": "Zürich\x9b\udcff"}))
    {"town": "Zürich\u009b\udcff"}
    """
    text = json.dumps(content, indent=indent, ensure_ascii=False)
    return "".join(letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)


def _shown(letter: str) -> str:
    if letter.isprintable():
        return letter
    return " " if letter.isspace() else "\N{REPLACEMENT CHARACTER}"
