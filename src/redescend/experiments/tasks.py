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
from redescend.numeric import Array

SCHEMA = pa.schema(
    [
        pa.field("experiment", pa.string(), nullable=False),
        pa.field("problem", pa.string(), nullable=False),
        pa.field("run", pa.int64(), nullable=False),
        pa.field("rounds", pa.int64(), nullable=False),
        pa.field("count", pa.string(), nullable=False),
        pa.field("k", pa.int64(), nullable=False),
        pa.field("learner", pa.string(), nullable=False),
        pa.field("a", pa.float64()),
        pa.field("b", pa.float64()),
        pa.field("round", pa.int64(), nullable=False),
        pa.field("measure", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)
"""The tidy table, explained in docs/results.md: one value of a measure of a learner in one round of a run."""


@functools.cache
def code_digest() -> str:
    """A hash of the code that computes tasks, so that rows of older code are not reused."""
    here = Path(__file__).parent
    own = ("paper.py", "problems.py", "experts.py", "suite/settings.py", "suite/games.py", "suite/players.py")
    rooms = ("learners", "streams", "adversaries", "regret", "bounds")
    played = [file for name in rooms for file in (here.parent / name).glob("*.py")]
    files = [*(here / name for name in own), here.parent / "game.py", *sorted(played)]
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


Compute = Callable[..., Iterator[dict[str, Any]]]


@dataclass(frozen=True)
class Options:
    """Options of the command."""

    runs: int = 30
    rounds: int | None = None
    seed: int = 0
    quick: bool = False


@dataclass(frozen=True)
class Experiment:
    """A name, its tasks, and the function that computes one as blocks of rows."""

    name: str
    tasks: Callable[[Options], Iterable[Task]]
    compute: Compute


def make_point(round_: int, measure: str, value: float) -> dict[str, Any]:
    """A block of one row."""
    return {"round": np.array([round_]), "measure": measure, "value": np.array([value])}


def table(blocks: Iterable[dict[str, Any]]) -> pa.Table:
    """Join blocks of rows. In a block, arrays are columns and anything else is repeated in all rows."""
    parts = []
    for block in blocks:
        rows = max(len(value) for value in block.values() if isinstance(value, np.ndarray))
        columns = [_column(block.get(field.name), field.type, rows) for field in SCHEMA]
        parts.append(pa.Table.from_arrays(columns, schema=SCHEMA))
    return pa.concat_tables(parts) if parts else SCHEMA.empty_table()


def _column(value: Array | Any, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.array(value, kind) if isinstance(value, np.ndarray) else pa.array([value] * rows, kind)
