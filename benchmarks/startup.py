"""Start-up time: importing the package, and the first game with compiled code on disk."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.report import Goal, Row, compare, duration
from benchmarks.timing import Effort

ROOT = Path(__file__).resolve().parents[1]

# Each program prints seconds of its own process: all of them since its start, or those of one statement.
WHOLE = "{}; from time import process_time; print(process_time())"
PART = "from time import process_time; began = process_time(); {}; print(process_time() - began)"
PROGRAMS = {
    "start": WHOLE.format("pass"),
    "numba": WHOLE.format("import numba"),
    "redescend": WHOLE.format("import redescend; redescend.play; redescend.SelfTuning; redescend.bounds"),
    "call": "from benchmarks.limits import read_once; import numpy; X = numpy.ones((9, 9)); "
    + PART.format("read_once(X)"),
    "play": "from benchmarks.subjects import *; game = playing(stream_of(9, 9)); " + PART.format("game()"),
}


def startup_rows(effort: Effort) -> Iterator[Row]:
    """Import against importing Numba alone, and the first game against the first call of any cached function."""
    seconds = shortest(PROGRAMS, effort.starts)
    start = seconds["start"]
    what = f"import redescend (python's start, {duration(start)}, taken off)"
    ours, limit = seconds["redescend"] - start, seconds["numba"] - start
    yield compare(what, ours, "importing Numba alone", limit, Goal(1.0, "seconds"))
    what = "first play in a process, compiled before"
    yield compare(what, seconds["play"], "first cached call of any", seconds["call"], Goal(0.5, "seconds"))


def shortest(programs: Mapping[str, str], turns: int) -> dict[str, float]:
    """The smallest number that each program printed; one more turn than asked, since the first may compile."""
    found = [{name: float(run(program)) for name, program in programs.items()} for _ in range(1 + turns)]
    return {name: min(turn[name] for turn in found) for name in programs}


def run(program: str) -> str:
    """The output of a program in a Python process of its own."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
