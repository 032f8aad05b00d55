"""The shards of a store on this machine, one after the other or on threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from redescend.engines.fleet import Fleet
from redescend.errors import MissingExtraError
from redescend.numeric import Array


class Task(NamedTuple):
    """Records for the models of a shard; see `Fleet.learn`.

    Attributes
    ----------
    shard : its number.
    size : how many models it has, with those that are new.
    """

    shard: int
    size: int
    X: Array
    Y: Array
    starts: Array
    places: Array


class Said(NamedTuple):
    """What was predicted of the records of a task, and how far they were believed."""

    said: Array
    believed: Array


class Shards(Protocol):
    """Where the models are."""

    def learn(self, tasks: Sequence[Task]) -> list[Said]:
        """Learn from the records of each task, at most one a shard."""

    def fleets(self) -> list[Fleet]:
        """The models of all shards, as they are now."""

    def close(self) -> None:
        """Let go of what is used to learn."""


def learn(fleet: Fleet, task: Task) -> Said:
    """What is done with a shard, wherever it is."""
    fleet.grow(task.size)
    return Said(*fleet.learn(task.X, task.Y, task.starts, task.places))


class Here:
    """Shards in this process.

    Parameters
    ----------
    fleets : list of Fleet
    jobs : int
        Threads that learn.
    """

    def __init__(self, fleets: list[Fleet], jobs: int = 1) -> None:
        self._fleets, self._jobs = fleets, jobs
        self._parallel: Any = None
        if jobs > 1:
            self._parallel = _joblib().Parallel(n_jobs=jobs, backend="threading", batch_size=1)

    def learn(self, tasks: Sequence[Task]) -> list[Said]:
        if self._parallel is None:
            return self._learn(tasks)
        # A few large pieces of work: handing one over takes as long as a thousand records.
        hands = [tasks[first :: self._jobs] for first in range(min(self._jobs, len(tasks)))]
        found = list(self._parallel(_joblib().delayed(self._learn)(hand) for hand in hands))
        return [found[place % self._jobs][place // self._jobs] for place in range(len(tasks))]

    def _learn(self, tasks: Sequence[Task]) -> list[Said]:
        return [learn(self._fleets[task.shard], task) for task in tasks]

    def fleets(self) -> list[Fleet]:
        return self._fleets

    def close(self) -> None:
        self._parallel, self._jobs = None, 1


def _joblib() -> Any:
    try:
        import joblib
    except ImportError:
        raise MissingExtraError("More than one job needs joblib; try: pip install 'redescend[experiments]'") from None
    return joblib
