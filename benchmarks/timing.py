"""Times that can be compared: the tasks take turns, and the shortest time of each counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import get_clock_info, perf_counter, process_time

# Processor time does not include other programs; some systems only count it in ticks.
clock = process_time if get_clock_info("process_time").resolution < 1e-6 else perf_counter

Task = Callable[[], object]


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Parameters
    ----------
    repetitions : int
        Turns of each task.
    cells : int
        Numbers in a table of records: rows × features.
    rows : int
        The most rows in a table, however narrow.
    calls : int
        Records given one by one to a learner: few enough to stay in the cache, and 20 times as many.
    starts : int
        New processes for each thing that is timed from a cold start.
    """

    repetitions: int = 15
    cells: int = 10_000_000
    rows: int = 1_000_000
    calls: int = 1_000
    starts: int = 5

    def rows_of(self, dim: int) -> int:
        """Rows of a table with this many features."""
        return max(1, min(self.cells // dim, self.rows))


FULL = Effort()
QUICK = Effort(repetitions=3, cells=1_000_000, rows=100_000, starts=1)


def best_of(tasks: Mapping[str, Task], repetitions: int) -> dict[str, float]:
    """Shortest time of each task in seconds, after one turn that is not counted.

    Noise only adds time, so the shortest is the closest to the truth; taking turns, a slow period affects all tasks.

    Examples
    --------
    >>> times = best_of({"sum": lambda: sum(range(1000)), "pass": lambda: None}, repetitions=5)
    >>> times["sum"] > times["pass"] > 0.0
    True
    """
    for task in tasks.values():
        task()
    shortest = dict.fromkeys(tasks, float("inf"))
    for _ in range(repetitions):
        for name, task in tasks.items():
            began = clock()
            task()
            shortest[name] = min(shortest[name], clock() - began)
    return shortest
