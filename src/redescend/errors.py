"""Errors: one base class, each also a builtin error; what to do with a bad record; and how messages quote values."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum

QUOTED_LENGTH = 40
LISTED_NAMES = 10


class RedescendError(Exception):
    """Base of every error that `redescend` raises on purpose."""


class ParameterError(RedescendError, ValueError):
    """A parameter is invalid; raised when the object is made."""


class DataError(RedescendError, ValueError):
    """A record or a stream cannot be used; the learner is unchanged."""


class BadRecordError(DataError):
    """A record cannot be used, and the run stops at such records."""


class OnBad(StrEnum):
    """What to do with a record that cannot be used: the values of `on_bad`.

    Examples
    --------
    >>> [choice.value for choice in OnBad]
    ['quarantine', 'skip', 'fail']
    """

    QUARANTINE = "quarantine"
    SKIP = "skip"
    FAIL = "fail"


class MissingLabelError(DataError):
    """An oracle has no label for this round."""


class DivergenceError(RedescendError, ArithmeticError):
    """The update overflowed; the learner is unchanged."""


class ConcurrentUseError(RedescendError, RuntimeError):
    """A learner is used by another thread at this moment; it is unchanged by this call."""


class MissingExtraError(RedescendError, ImportError):
    """An optional dependency is not installed; the message names the command that installs it."""


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Import optional dependencies within a with statement; the error names the extra that installs a missing one.

    >>> with needs_extra("Gardens need roses", "flowers"):
    ...     import roses
    Traceback (most recent call last):
    redescend.errors.MissingExtraError: Gardens need roses; install it with: pip install 'redescend[flowers]'
    """
    try:
        yield
    except MissingExtraError:
        raise
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "redescend":
            raise
        raise MissingExtraError(f"{what}; install it with: pip install 'redescend[{extra}]'") from None


def quote(value: object) -> str:
    """Format a value for a message: its repr, shortened if it is long."""
    if isinstance(value, bytes | str) and len(value) > QUOTED_LENGTH:
        cut = repr(value[:QUOTED_LENGTH])
        return f"{cut[:-1]}…{cut[-1]}"
    return repr(value)


def suggest(names: Sequence[str], wanted: str) -> str:
    """Suggest the closest of these names, or list the first of them."""
    folded = {name.casefold(): name for name in names}
    if near := difflib.get_close_matches(wanted.casefold(), folded, n=1):
        return f"did you mean {quote(folded[near[0]])}?"
    if len(names) == 1:
        return f"the only column is {quote(names[0])}."
    return f"there are {join_first(list(map(quote, names)), LISTED_NAMES)}."


def join_first(texts: Sequence[str], most: int) -> str:
    """Join the first texts, and say how many more there are.

    >>> join_first(["a", "b", "c"], 2), join_first(["a", "b"], 2)
    ('a, b and 1 more', 'a, b')
    """
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")
