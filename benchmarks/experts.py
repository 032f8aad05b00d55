"""Many experts at once: the paper's full grid, and robust weights, against as many single games."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import redescend as rd
from benchmarks.report import Goal, Row, compare
from benchmarks.subjects import DIM, L2, playing
from benchmarks.timing import Effort, Task, best_of

ROOT = Path(__file__).resolve().parents[1]
SECONDS, MEBIBYTES = 60.0, 1024.0


def expert_rows(effort: Effort) -> Iterator[Row]:
    """Ridge with a quarter of the rounds corrupted."""
    rows = effort.rows_of(DIM)
    stream = corrupted(rows)
    common: dict[str, Any] = {"loss": rd.losses.Squared(l2=L2), "a": 10.0, "b": 10.0}
    rd.play(rd.LearnWithExperts(DIM, rounds=9, **common), rd.Stream(stream.X[:9], stream.y[:9]))
    grid = rd.LearnWithExperts(DIM, rounds=rows, **common)
    began = perf_counter()
    rd.play(grid, stream)
    seconds = perf_counter() - began
    every = sum(expert.highest - expert.lowest + 1 for expert in grid.experts)
    tasks: dict[str, Task] = {
        "single": playing(stream),
        "robust": lambda: rd.play(rd.LearnWithExperts(DIM, meta="robust", **common), stream),
    }
    times = best_of(tasks, min(3, effort.repetitions))
    what = f"LEARN with experts as printed, T = {rows:,}: {every:,} experts, {grid.distinct} differ"
    yield compare(
        what, seconds, "as many single games as differ", grid.distinct * times["single"], Goal(SECONDS, "seconds")
    )
    count = len(rd.LearnWithExperts(DIM, meta="robust", **common).experts)
    per_row = {name: time / rows for name, time in times.items()}
    what = f"LEARN with {count} robust experts"
    yield compare(what, per_row["robust"], f"{count} single games", count * per_row["single"], per="row")
    peak, base = (float(run(f"memory({n})")) for n in (rows, 9))
    verdict = Goal(MEBIBYTES).verdict(peak)
    measured, against = f"{peak:,.0f} MiB", f"a game of 9 rounds, {base:,.0f} MiB"
    yield Row(
        "the same game's memory, its stream included",
        measured,
        against,
        peak / base,
        f"≤ {MEBIBYTES:,.0f} MiB",
        verdict,
    )


def corrupted(rows: int) -> rd.Stream:
    return rd.adversaries.UniformResponse(0, 1).corrupt(rd.streams.ridge(rows, seed=0, dim=DIM), k=rows // 4, seed=1)


def memory(rows: int) -> None:
    """Play the full grid in this process, and print its peak memory in MiB."""
    rd.play(rd.LearnWithExperts(DIM, loss=rd.losses.Squared(l2=L2), a=10.0, b=10.0, rounds=rows), corrupted(rows))
    status = Path("/proc/self/status")
    if status.exists():  # elsewhere the system may count what the parent process had
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        print(float(line.split()[1]) / 2**10)
    else:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10))


def run(call: str) -> str:
    command = [sys.executable, "-c", f"from benchmarks.experts import memory; {call}"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
