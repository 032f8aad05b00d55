"""Nine UCI tables by the protocol of 'Outlier-robust Kalman filtering through generalised Bayes' (ICML 2024).

``python -m benchmarks.uci FOLDER`` with the tables in a folder, each a file of numbers with the target last. The first
tenth of the rows is dropped and the rest shuffled, columns are scaled by minimum and range of the next tenth, and one
target in ten becomes +50 or −50. Every row is predicted before it is learned from; the figure is the root of the median
squared error over all rows. Nothing is tuned; the features are the columns and an intercept.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import redescend as rd
from redescend.numeric import Array

PUBLISHED = {
    "bostonHousing": 0.0643,
    "concrete": 0.0888,
    "energy": 0.0429,
    "kin8nm": 0.0885,
    "naval-propulsion-plant": 0.103,
    "power-plant": 0.0485,
    "protein-tertiary-structure": 0.1908,
    "wine-quality-red": 0.1060,
    "yacht": 0.0429,
}
"""The best published figure for each table: networks, each tuned on the first run."""


def read(folder: Path, name: str) -> Array:
    """A table without its empty columns."""
    data = np.loadtxt(folder / f"{name}.txt.gz")
    return np.asarray(data[:, ~np.isnan(data).all(axis=0)])


def draw(data: Array, run: int) -> rd.Stream:
    """The stream of a run; the generator and its order of calls are those of the protocol."""
    random = np.random.RandomState(314 + run)
    data = data[len(data) // 10 :]
    data = data[random.permutation(len(data))]
    warm = data[: len(data) // 10]
    low, spread = warm.min(axis=0), np.ptp(warm, axis=0)
    spread = np.where(spread == 0, np.where(low == 0, 1.0, low), spread)
    scaled = (data - low) / spread
    X, y = np.column_stack([scaled[:, :-1], np.ones(len(data))]), scaled[:, -1].copy()
    hit = random.rand(len(y)) < 0.1
    y[hit] = np.where(random.rand(hit.sum()) < 0.5, 50.0, -50.0)
    return rd.Stream(X, y, clean=~hit)


def figure(stream: rd.Stream, order: Literal[1, 2]) -> float:
    learner = rd.SelfTuning(stream.X.shape[1], loss=rd.losses.Squared(), order=order)
    errors = rd.play(learner, stream).predictions - stream.y
    return float(np.sqrt(np.median(errors**2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=30)
    arguments = parser.parse_args()
    table = Table(
        "table", "order 1", "order 2", "best published", title=f"Root median squared error, {arguments.runs} runs"
    )
    for name, published in track(PUBLISHED.items(), console=Console(stderr=True)):
        data = read(arguments.folder, name)
        runs = [draw(data, run) for run in range(arguments.runs)]
        first, second = (np.mean([figure(stream, order) for stream in runs]) for order in (1, 2))
        table.add_row(name, f"{first:.4f}", f"{second:.4f}", f"{published:.4f}")
    Console().print(table)


if __name__ == "__main__":
    main()
