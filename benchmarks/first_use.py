"""The time to compile at the first use of a command, and the functions that it is spent on.

python -m benchmarks.first_use              all commands in turn, starting with an empty cache
python -m benchmarks.first_use --functions  the functions that the first fit compiles
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numba.core import event

COMMANDS = {
    "fit": "fit numbers.csv --target y --model numbers.model",
    "score": "score numbers.model numbers.csv",
    "predict": "predict numbers.model numbers.csv",
    "fit --by": "fit numbers.csv --target y --by key --model keys.model",
    "fit --transform": "fit numbers.csv --target y --transform geman-mcclure(1) --model transform.model",
    "fit, labels": "fit labels.csv --target y --model labels.model",
    "fit --order 1": "fit numbers.csv --target y --order 1 --model diagonal.model",
    "fit --linear": "fit numbers.csv --target y --linear --model linear.model",
}
PROGRAM = """
import sys
from time import process_time
from redescend.cli import app
try:
    app(sys.argv[1:])
except SystemExit as stop:
    assert not stop.code
print(process_time(), file=sys.stderr)
"""


def write_tables(folder: Path, rows: int = 2000) -> None:
    """Write a table with a numeric target, five keys and 2 % outliers, and one with a label."""
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 4))
    y = X @ [1.0, 2.0, -1.0, 0.5] + 0.3 * random.normal(size=rows)
    y[::50] += 20.0
    columns = {"numbers": [f"{value:.4f}" for value in y], "labels": ["yes" if value > 0.0 else "no" for value in y]}
    for name, targets in columns.items():
        lines = [f"{','.join(f'{value:.4f}' for value in x)},k{i % 5}" for i, x in enumerate(X)]
        text = "".join(f"{line},{target}\n" for line, target in zip(lines, targets, strict=True))
        (folder / f"{name}.csv").write_text(f"a,b,c,d,key,y\n{text}")


def processor_seconds(command: str, folder: Path) -> float:
    """Processor time of a command in a process of its own."""
    environment = {**os.environ, "REDESCEND_CACHE_DIR": str(folder / "cache")}
    arguments = [sys.executable, "-c", PROGRAM, *command.split()]
    done = subprocess.run(arguments, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return float(done.stderr.split()[-1])


class Functions(event.Listener):  # type: ignore[misc]
    """Seconds in which each function was compiled, without those that it calls, and how often."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.counts: Counter[str] = Counter()
        self._inner = [0.0]
        self._began: list[float] = []

    def on_start(self, event: Any) -> None:
        self._began.append(process_time())
        self._inner.append(0.0)

    def on_end(self, event: Any) -> None:
        took, function = process_time() - self._began.pop(), event.data["dispatcher"].py_func
        name = f"{function.__module__}.{function.__qualname__}"
        self.seconds[name] += took - self._inner.pop()
        self.counts[name] += 1
        self._inner[-1] += took


def list_functions(folder: Path) -> None:
    """Print the functions that the first fit compiles, slowest first."""
    os.environ["REDESCEND_CACHE_DIR"] = str(folder / "cache")
    os.chdir(folder)
    from redescend.cli import app

    with event.install_listener("numba:compile", Functions()) as found, suppress(SystemExit):
        app(COMMANDS["fit"].split())
    print(f"{sum(found.seconds.values()):.2f} s, {found.counts.total()} functions")
    for name, seconds in sorted(found.seconds.items(), key=lambda item: -item[1]):
        print(f"{seconds:6.3f} s {found.counts[name]:3} × {name}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        if "--functions" in sys.argv:
            list_functions(folder)
            return
        print("seconds of the processor, all of the process: first and second use")
        for label, command in COMMANDS.items():
            print(f"{label:16}{processor_seconds(command, folder):6.2f}{processor_seconds(command, folder):6.2f}")


if __name__ == "__main__":
    main()
