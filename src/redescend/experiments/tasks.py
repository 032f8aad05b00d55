"""Seeded tasks of a few seconds each, which compute rows of one tidy table.

An experiment is a generator of tasks and a function that computes one. A task is plain settings: it has a name and a
key, can be sent to another process, and gives the same bits wherever it is computed.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from redescend.kernels.compiler import source_digest

_TEXT, _WHOLE, _NUMBER = pa.string(), pa.int64(), pa.float64()
_COLUMNS = {"experiment": _TEXT, "problem": _TEXT, "run": _WHOLE, "rounds": _WHOLE, "count": _TEXT, "k": _WHOLE}
_COLUMNS |= {"learner": _TEXT, "a": _NUMBER, "b": _NUMBER, "round": _WHOLE, "measure": _TEXT, "value": _NUMBER}

SCHEMA = pa.schema([pa.field(name, kind, nullable=name in ("a", "b")) for name, kind in _COLUMNS.items()])
"""The tidy table, explained in docs/results.md: one value of a measure of a learner in one round of a run."""

Block = dict[str, Any]  # rows of the tidy table: arrays are columns, and anything else is repeated in all rows


@functools.cache
def code_digest() -> str:
    """A hash of the code that computes tasks, so that rows of older code are not reused."""
    folder = Path(__file__).parent
    names = ("paper.py", "problems.py", "expert_runs.py", "suite.py")
    rooms = ("learners", "streams", "adversaries", "regret", "bounds")
    modules = [file for name in rooms for file in (folder.parent / name).glob("*.py")]
    files = [*(folder / name for name in names), folder.parent / "game.py", *sorted(modules)]
    return hashlib.sha256(b"".join([source_digest().encode(), *(file.read_bytes() for file in files)])).hexdigest()


@dataclass(frozen=True)
class Task:
    """One piece of work: the name of an experiment and the settings of this piece."""

    experiment: str
    settings: tuple[tuple[str, int | float | str], ...]

    def __str__(self) -> str:
        return f"{self.experiment} ({', '.join(f'{name} {value}' for name, value in self.settings)})"

    @property
    def key(self) -> str:
        """A hash of the experiment, the settings and the code; equal in every process."""
        text = json.dumps([code_digest(), self.experiment, sorted(self.settings)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Options:
    """Options of the command."""

    runs: int = 30
    rounds: int | None = None
    seed: int = 0
    quick: bool = False


@dataclass(frozen=True)
class Experiment:
    """The tasks of an experiment, and the function that computes one as blocks of rows."""

    tasks: Callable[[Options], Iterable[Task]]
    compute: Callable[..., Iterator[Block]]


def make_point(round_: int, measure: str, value: float) -> Block:
    """A block of one row; an infinite value is stored as the largest float."""
    return {"round": np.array([round_]), "measure": measure, "value": np.array([min(value, np.finfo(float).max)])}


def join_blocks(blocks: Iterable[Block]) -> pa.Table:
    """Join blocks of rows; each column is one chunk, because filters of many small ones are slow."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for block in blocks:
        rows = max(len(value) for value in block.values() if isinstance(value, np.ndarray))
        for name, column in columns.items():
            value = block.get(name)
            column += value.tolist() if isinstance(value, np.ndarray) else [value] * rows
    return pa.table(columns, schema=SCHEMA)
