"""What is to be computed: seeded tasks, each a few seconds, each giving rows of one tidy table.

An experiment is a generator of tasks and a function that computes one. A task is plain settings, so that it has a name
and a key, can be sent to another process, and gives the same bits wherever it is computed.
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
"""The tidy table: one value of one measure, of one learner, in one round of one run. docs/results.md explains it."""


@functools.cache
def code_digest() -> str:
    """A hash of the code that decides what a task gives: rows of other code are not taken for today's."""
    here = Path(__file__).parent
    own = (
        "paper.py",
        "problems.py",
        "certificates.py",
        "experts/compute.py",
        "suite/design.py",
        "suite/games.py",
        "suite/players.py",
        "suite/compute.py",
    )
    played = [
        file
        for name in ("learners", "streams", "adversaries", "regret", "bounds")
        for file in (here.parent / name).glob("*.py")
    ]
    files = [*(here / name for name in own), here.parent / "game.py", *sorted(played)]
    return hashlib.sha256(b"".join([source_digest().encode(), *(file.read_bytes() for file in files)])).hexdigest()


@dataclass(frozen=True)
class Task:
    """One piece of work: an experiment's name and the settings of this piece."""

    experiment: str
    settings: tuple[tuple[str, int | float | str], ...]

    def __str__(self) -> str:
        return f"{self.experiment} ({', '.join(f'{name} {value}' for name, value in self.settings)})"

    @property
    def key(self) -> str:
        """The same for the same experiment, settings and code, in any process."""
        text = json.dumps([code_digest(), self.experiment, sorted(self.settings)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


Compute = Callable[..., Iterator[dict[str, Any]]]


@dataclass(frozen=True)
class Options:
    """What a person may choose."""

    runs: int = 30
    rounds: int | None = None
    seed: int = 0
    quick: bool = False


@dataclass(frozen=True)
class Experiment:
    """A name, the tasks it consists of, and how one is computed, as blocks of rows."""

    name: str
    tasks: Callable[[Options], Iterable[Task]]
    compute: Compute


def table(blocks: Iterable[dict[str, Any]]) -> pa.Table:
    """Blocks of rows as one table: in a block, arrays are columns and anything else is the same in all its rows."""
    parts = []
    for block in blocks:
        rows = max(len(value) for value in block.values() if isinstance(value, np.ndarray))
        columns = [_column(block.get(field.name), field.type, rows) for field in SCHEMA]
        parts.append(pa.Table.from_arrays(columns, schema=SCHEMA))
    return pa.concat_tables(parts) if parts else SCHEMA.empty_table()


def _column(value: Array | Any, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.array(value, kind) if isinstance(value, np.ndarray) else pa.array([value] * rows, kind)
