"""Measure, and print one table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.estimators import estimator_rows
from benchmarks.experts import expert_rows
from benchmarks.invex import invex_rows
from benchmarks.packages import peer_rows
from benchmarks.report import Row
from benchmarks.river import river_rows
from benchmarks.scaling import length_rows, width_rows
from benchmarks.selftuning import selftuning_rows
from benchmarks.serving import serving_rows
from benchmarks.sparse import sparse_rows
from benchmarks.speed import gate_rows, precision_rows, update_rows
from benchmarks.startup import startup_rows
from benchmarks.streaming import streaming_rows
from benchmarks.timing import FULL, QUICK, Effort, clock
from redescend.files import replace_file

SECTIONS: dict[str, Callable[[Effort], Iterator[Row]]] = {
    "a game and one read of its records": precision_rows,
    "other packages": peer_rows,
    "one record at a time": update_rows,
    "widths": width_rows,
    "lengths": length_rows,
    "gates that remember": gate_rows,
    "many experts": expert_rows,
    "nothing to tune": selftuning_rows,
    "manifolds": invex_rows,
    "scikit-learn's tables": estimator_rows,
    "River's records": river_rows,
    "sparse rows": sparse_rows,
    "new processes": startup_rows,
    "streams from files": streaming_rows,
    "over HTTP": serving_rows,
}


def main() -> None:
    arguments = parse()
    progress = Console(stderr=True)
    found: list[Row] = []
    for number, (title, section) in enumerate(SECTIONS.items(), 1):
        progress.print(f"{number} of {len(SECTIONS)}: {title}", style="dim")
        found.extend(section(QUICK if arguments.quick else FULL))
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(table(found))
    console.print(machine(), style="dim", highlight=False)
    if arguments.out:
        save(arguments.out, found)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed, as ratios within one run.")
    parser.add_argument("--quick", action="store_true", help="small tables and few repetitions: a rough idea")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="also write the rows to this file")
    return parser.parse_args()


def table(rows: list[Row]) -> Table:
    """Format the rows as a table: the ratio, the goal, and whether it is met."""
    out = Table(title="redescend: speed within one run", title_justify="left")
    for heading in ("what", "time", "against"):
        out.add_column(heading)
    out.add_column("ratio", justify="right")
    out.add_column("goal")
    out.add_column("")
    for row in rows:
        color = {"met": "green", "missed": "red", "": "dim"}[row.verdict]
        ratio = "–" if row.ratio is None else f"{row.ratio:.3g}"
        out.add_row(row.what, row.measured, row.against, ratio, row.goal, f"[{color}]{row.verdict}[/]")
    return out


def machine() -> str:
    """Describe the machine."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}"
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    return f"{processor()}, {os.cpu_count()} cores, {load}; {versions}; {clock.__name__}"


def processor() -> str:
    """The name of the processor, if the system reports it."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text().splitlines() if listing.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def save(path: Path, rows: list[Row]) -> None:
    """Write the file completely or not at all."""
    whole = json.dumps({"machine": machine(), "rows": [asdict(row) for row in rows]}, indent=2, ensure_ascii=False)
    with replace_file(path) as file:
        file.write(f"{whole}\n".encode())


if __name__ == "__main__":
    main()
