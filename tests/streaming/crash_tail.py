"""A run that follows a growing, rotated file, killed again and again, and resumed each time.

``python -m tests.streaming.crash_tail 200`` kills it 200 times; every record must be learned once, in order. Between
two attempts the file grows, and from time to time it is rotated. See `tests.streaming.crash`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from redescend.streaming.fit import fit_stream
from tests.streaming.crash import attempt

HEADER = "x,y\n"


def follow(folder: Path, looks: int) -> None:
    """Follow the file until it was looked at so often, and write the rounds so far."""
    left = iter(range(looks))
    _, rounds = fit_stream(
        folder / "log.csv",
        "y",
        task="regression",
        rounds=folder / "rounds.parquet",
        checkpoint=folder / "run",
        every=50,
        resume=True,
        follow=lambda: next(left, None) is not None,
    )
    with rounds:
        rounds.run()


def main(kills: int, seed: int = 0) -> None:
    random, count = np.random.default_rng(seed), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "log.csv"

        def write(how: str, header: str = "") -> None:
            nonlocal count
            with open(path, how) as file:
                file.write(header + "".join(f"{row % 11},{row}\n" for row in range(count, count + 40)))
            count += 40

        write("w", HEADER)
        write("a")
        attempt(lambda: follow(folder, 1))
        rotated = 0
        for kill in range(kills):
            write("a")
            if kill % 10 == 9:
                # What was not read is still in the old file.
                os.rename(path, f"{path}.{rotated % 2}")
                rotated += 1
                write("w", HEADER if kill % 20 == 9 else "")
                attempt(lambda: follow(folder, 2))
            attempt(lambda: follow(folder, 10**9), delay=random.uniform(0.0, 0.2))
        attempt(lambda: follow(folder, 2))
        targets = pq.read_table(folder / "rounds.parquet")["target"].to_pylist()
        if targets != [float(row) for row in range(count)]:
            raise RuntimeError(f"{len(targets)} of {count} records were learned, or not in order.")
    print(f"{kills} kills, {rotated} rotations, {count} records learned once")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
