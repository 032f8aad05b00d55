"""Fitting a model to a file, against reading the same file with PyArrow alone.

Each run is a process of its own. The benchmark measures its wall time, without start-up and compilation, and its peak
memory. Processor time would mean little, because reading overlaps learning.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.report import Goal, Row, compare
from benchmarks.timing import Effort

ROOT = Path(__file__).resolve().parents[1]
LONG, FEW, COLUMNS, BLOCK = 5, 0.1, 20, 1_000_000
"""Rows of a long file and of a short one, in units of the effort's; columns; and rows of a row group, as
PyArrow chooses it."""

MEMORY = 500.0
"""Peak memory of a run in MiB, however long the file."""

BATCHES, SCAN = "in batches", "scanning"
READERS = {
    "parquet": {
        BATCHES: "pq.ParquetFile(path).iter_batches()",
        SCAN: 'ds.dataset(path, format="parquet").to_batches()',
    },
    "csv": {BATCHES: "csv.open_csv(path)", SCAN: 'ds.dataset(path, format="csv").to_batches()'},
}
"""How PyArrow reads a file: batch by batch, which the goals refer to, and on all cores at once."""

MODELS = {
    "a transform": ("transform=rd.transforms.Huber(1.0)", {"parquet": 2.5, "csv": 1.4}),
    "self-tuning": ("linear=True", {"parquet": 8.0, "csv": 2.5}),
    "self-tuning, order 2": ("linear=True, order=2", {}),
}
"""The model, and how many times longer than reading alone it may take."""

# The kernel's own high-water mark: that of `resource` starts with the memory of the parent process.
SAYING = (
    "import json; from time import perf_counter; began = perf_counter(); {run}; seconds = perf_counter() - began; "
    "marks = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')]; "
    "print(json.dumps([seconds, int(marks[0]) / 1024]))"
)
READING = "import pyarrow.csv as csv, pyarrow.dataset as ds, pyarrow.parquet as pq; path = {path!r}; " + SAYING.format(
    run="rows = sum(batch.num_rows for batch in {reader})"
)
# A short run first, so that compilation and imports are not measured.
LEARNING = "import redescend as rd; rd.fit_stream({few!r}, 'y', {settings})[1].run(); " + SAYING.format(
    run="rd.fit_stream({path!r}, 'y', {settings})[1].run()"
)


def streaming_rows(effort: Effort) -> Iterator[Row]:
    """Time against reading alone, and memory with a fiftieth of the rows and with all."""
    rows, few = LONG * effort.rows, int(FEW * effort.rows)
    with tempfile.TemporaryDirectory() as folder:
        for kind, readers in READERS.items():
            long, short = (str(_written(Path(folder), kind, count)) for count in (rows, few))
            programs = {name: READING.format(path=long, reader=reader) for name, reader in readers.items()}
            for name, (settings, _) in MODELS.items():
                programs[name] = LEARNING.format(few=short, path=long, settings=settings)
            programs["short"] = LEARNING.format(few=short, path=short, settings="linear=True")
            found = _least(programs, max(1, effort.starts // 2))
            reading, what = found[BATCHES][0], f"{rows:,} rows of {kind}"
            yield compare(f"{what}, PyArrow {SCAN}", found[SCAN][0], f"PyArrow {BATCHES}", reading)
            for name, (_, goals) in MODELS.items():
                goal = Goal(goals[kind]) if kind in goals else None
                yield compare(f"{what}, {name}", found[name][0], f"PyArrow {BATCHES}", reading, goal)
            yield _memory(f"{what}, memory", found["self-tuning"][1], f"{few:,} rows", found["short"][1])
            Path(long).unlink()


def _memory(what: str, long: float, fewer: str, short: float) -> Row:
    goal = Goal(MEMORY)
    against = f"{fewer}, {short:.0f} MiB"
    return Row(what, f"{long:.0f} MiB", against, long / short, f"≤ {MEMORY:.0f} MiB", goal.verdict(long))


def _written(folder: Path, kind: str, rows: int) -> Path:
    """A file of doubles, 19 features and their sum with noise, a block at a time."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    path, random = folder / f"{rows}.{kind}", np.random.default_rng(0)
    names = [f"x{j}" for j in range(COLUMNS - 1)]
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    theta = random.normal(size=COLUMNS - 1)
    with (parquet.ParquetWriter if kind == "parquet" else csv.CSVWriter)(path, schema) as writer:
        for first in range(0, rows, BLOCK):
            X = random.normal(size=(min(BLOCK, rows - first), COLUMNS - 1))
            y = X @ theta + 0.1 * random.normal(size=len(X))
            writer.write_table(pa.table([*X.T, y], schema=schema))
    return path


def _least(programs: dict[str, str], turns: int) -> dict[str, tuple[float, float]]:
    """The least time, and the most memory, of each program; they take turns."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(turns):
        for name, program in programs.items():
            command = [sys.executable, "-c", program]
            done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
            found[name].append(tuple(json.loads(done.stdout)))
    return {name: (min(time for time, _ in runs), max(size for _, size in runs)) for name, runs in found.items()}


if __name__ == "__main__":
    from benchmarks.timing import FULL

    for row in streaming_rows(FULL):
        ratio = f"{row.ratio:.2f}" if row.ratio else ""
        print(f"{row.what}: {row.measured} against {row.against}: {ratio} {row.goal} {row.verdict}", flush=True)
