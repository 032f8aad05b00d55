"""The shards of a store on a Dask cluster: models stay where they are, and records come to them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

from redescend.cluster import connected
from redescend.engines.fleet import Fleet
from redescend.errors import DataError
from redescend.streaming.keyed.shards import Said, Task, learn

LINKS = 256
"""After so many tasks a shard is fetched and sent again: the scheduler remembers every task that a result rests on."""

SECONDS = 10
"""How long a cluster may be without any worker."""

Pair = tuple[Fleet, Said | None]


class There:
    """Shards on a cluster.

    If a worker that has models is lost, so are they: the run has to be resumed from its last checkpoint.

    Parameters
    ----------
    fleets : list of Fleet
        Where to go on from.
    address : str
        Of the scheduler, such as ``tcp://host:8786``.
    """

    def __init__(self, fleets: list[Fleet], address: str) -> None:
        self._address, self._client = address, connected(address)
        self._records = [int(fleet.row_counts().sum()) for fleet in fleets]
        self._links = 0
        try:
            self._states = self._send(fleets)
        except BaseException:
            self._client.close()
            raise

    def learn(self, tasks: Sequence[Task]) -> list[Said]:
        try:
            # Not as arguments, which the scheduler would keep for as long as it remembers the tasks.
            sent = self._client.scatter(list(tasks), hash=False, timeout=SECONDS)
            answers = []
            for task, records in zip(tasks, sent, strict=True):
                before, self._records[task.shard] = self._records[task.shard], self._records[task.shard] + len(task.X)
                state = self._client.submit(_learn, self._states[task.shard], records, before, pure=False)
                answers.append(self._client.submit(itemgetter(1), state, pure=False))
                self._states[task.shard] = state
            said: list[Said] = self._client.gather(answers)
            self._links += 1
            if self._links % LINKS == 0:
                self._states = self._send(self._fetched())
        except Exception as error:
            raise self._lost(error) from None
        return said

    def fleets(self) -> list[Fleet]:
        try:
            return self._fetched()
        except Exception as error:
            raise self._lost(error) from None

    def close(self) -> None:
        with suppress(OSError):
            self._client.close()

    def _send(self, fleets: list[Fleet]) -> list[Any]:
        pairs: list[Pair] = [(fleet, None) for fleet in fleets]
        return list(self._client.scatter(pairs, hash=False, timeout=SECONDS))

    def _fetched(self) -> list[Fleet]:
        return [fleet for fleet, _ in self._client.gather(self._states)]

    def _lost(self, error: Exception) -> DataError:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return DataError(
            f"The Dask cluster at '{self._address}' has lost models ({what}); resume from the last checkpoint, or "
            "begin again."
        )


def _learn(state: Pair, task: Task, before: int) -> Pair:
    """What a worker does. The models are changed in place, so they must not have been yet."""
    fleet = state[0]
    if fleet.row_counts().sum() != before:
        raise RuntimeError(f"shard {task.shard} was changed by a task that did not end")
    return fleet, learn(fleet, task)
