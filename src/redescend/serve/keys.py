"""Idempotency keys: a request that is sent again is not learned from again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from redescend.serve.journal import Request
from redescend.serve.refusals import Conflict


class Remembered(NamedTuple):
    """A request that was committed: the digest of its body, its first row and its number of records."""

    digest: int
    row: int
    records: int


class Keys(OrderedDict[str, Remembered]):
    """The requests of the newest keys, at most `most`.

    >>> keys = Keys(most=10)
    >>> keys.add([(3, None, 0), (5, "a", 17)], before=100)
    [Remembered(digest=0, row=101, records=3), Remembered(digest=17, row=104, records=5)]
    >>> keys.find("a", 17)
    Remembered(digest=17, row=104, records=5)
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def find(self, key: str | None, digest: int) -> Remembered | None:
        """The request that was committed with a key, if any; raises if its body had another digest."""
        known = None if key is None else self.get(key)
        if known is not None and known.digest != digest:
            raise Conflict("The idempotency key was used before, for another body; use a new one.")
        return known

    def add(self, requests: Sequence[Request], before: int) -> list[Remembered]:
        """Remember requests whose records come after the row `before`; returns all, also those without a key."""
        added = []
        for count, key, digest in requests:
            added.append(Remembered(digest, before + 1, count))
            before += count
            if key is not None:
                self[key] = added[-1]
        while len(self) > self._most:
            self.popitem(last=False)
        return added
