"""Records that wait for their label: predicted now, learned from once their target is known."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from redescend.errors import DataError, quote

Waiting = tuple[float, Callable[[int], bytes], int]
"""When a record came, and what makes it from its number in its request."""


class LateLabels:
    """A bounded store of records by id: the oldest go first, and none stays longer than `seconds`.

    It is in memory, and empty when the server starts.

    >>> store = LateLabels(most=2, seconds=60.0)
    >>> ids = store.put(3, [b'{"x": 1}', b'{"x": 2}', b'{"x": 3}'].__getitem__)
    >>> _, make, number = store.take(ids[2])
    >>> make(number), len(store)
    (b'{"x": 3}', 1)
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self._waiting: OrderedDict[str, Waiting] = OrderedDict()
        self._prefix, self._count, self._lock = secrets.token_hex(6), 0, Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, count: int, make: Callable[[int], bytes]) -> list[str]:
        """Store the records of a request, without a target; returns their ids. A record is made when it is needed."""
        now = time.monotonic()
        with self._lock:
            ids = [f"{self._prefix}-{self._count + place}" for place in range(count)]
            self._count += count
            for place, each in enumerate(ids):
                self._waiting[each] = now, make, place
            while len(self._waiting) > self.most:
                self._waiting.popitem(last=False)
            while self._waiting and next(iter(self._waiting.values()))[0] < now - self.seconds:
                self._waiting.popitem(last=False)
        return ids

    def take(self, id: str) -> Waiting:
        """Remove the record with an id."""
        with self._lock:
            waiting = self._waiting.pop(id, None)
        if waiting is None or waiting[0] < time.monotonic() - self.seconds:
            raise DataError(f"no record waits for its label under the id {quote(id)}: it is unknown, used or expired")
        return waiting

    def put_back(self, taken: Sequence[tuple[str, Waiting]]) -> None:
        """Return records that were taken but not learned from."""
        with self._lock:
            for each, waiting in taken:
                self._waiting[each] = waiting
                self._waiting.move_to_end(each, last=False)
