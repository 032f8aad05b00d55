"""How much memory a part of a columnar file may take once it is read: a few bytes may expand to gigabytes.

Pages of Parquet and batches of Arrow are read as a whole, so their sizes are looked up first (`parquet_pages`,
`arrow_messages`).
"""

from __future__ import annotations

from redescend.errors import DataError
from redescend.machine import usable_memory

MOST_MEMORY = usable_memory() // 2
"""Bytes that a page of each column, or a batch, may take."""

EXPANDED, TIMES = 500 << 20, 100
"""A part that takes more bytes than the first may take at most this many times its stored size."""


def check_expansion(name: str, what: str, stored: int, needed: int) -> None:
    """Raise if a part of a file, `what`, takes too much memory.

    Examples
    --------
    >>> check_expansion("a.arrow", "the batch of row 1", stored=2_000, needed=6_000_000_000)
    Traceback (most recent call last):
    redescend.errors.DataError: a.arrow: the batch of row 1 takes 5.6 GiB of memory, though 2,000 bytes are stored.
    Write the file again in smaller parts.
    """
    if needed > MOST_MEMORY or (needed > EXPANDED and needed > TIMES * stored):
        raise DataError(
            f"{name}: {what} takes {needed / 2**30:.1f} GiB of memory, though {stored:,} bytes are stored. Write the "
            "file again in smaller parts."
        )
