"""Models with trees against River's models and refitted boosted trees, on real tables with errors.

``python -m benchmarks.nonlinear_peers``: 12 tables, every second one shuffled, the others in their order, with 0, 5 and
20 % gross errors, and the first 1,500 rows of each, because River's forests learn a few hundred records a second.
Every record is predicted before it is learned from; the figure is the mean absolute error on clean rows from row 50 on,
relative to that of the linear model. Boosted trees are refitted on all rows so far, at 50, 100, 200, 500 and 1,000
rows, and every 1,000 from then on; as an oracle only on the clean ones.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.belief_tables import TABLES
from benchmarks.nonlinear import SHARES, START, errors, first_rows, play
from benchmarks.nonlinear_streams import Stream, real
from redescend.numeric import Array

COUNT = 12
REFITS = (50, 100, 200, 500)


def refit_boosted(stream: Stream, oracle: bool) -> Array:
    """Boosted trees that are refitted on all rows so far; an oracle only on clean ones."""
    boosting: Any = import_module("sklearn.ensemble").HistGradientBoostingRegressor
    X, y, count = stream.X, stream.truth if oracle else stream.y, len(stream.y)
    out = np.full(count, np.median(y[:START]))
    cuts = [cut for cut in (*REFITS, *range(1000, count, 1000)) if cut < count]
    for cut, end in zip(cuts, [*cuts[1:], count], strict=True):
        rows = np.flatnonzero(stream.clean[:cut]) if oracle else np.arange(cut)
        model = boosting(min_samples_leaf=max(1, min(20, len(rows) // 5))).fit(X[rows], y[rows])
        out[cut:end] = model.predict(X[cut:end])
    return out


def river_models() -> dict[str, Any]:
    """River's models with their defaults."""
    forest, tree, neighbors, linear, scaling = (
        import_module(f"river.{name}") for name in ("forest", "tree", "neighbors", "linear_model", "preprocessing")
    )
    return {
        "ARF": forest.ARFRegressor(seed=1),
        "AMF": forest.AMFRegressor(seed=1),
        "HAT": tree.HoeffdingAdaptiveTreeRegressor(seed=1),
        "KNN": scaling.StandardScaler() | neighbors.KNNRegressor(),
        "linear": scaling.StandardScaler() | linear.LinearRegression(),
    }


def play_river(model: Any, stream: Stream) -> Array:
    out = np.zeros(len(stream.y))
    for t, (x, y) in enumerate(zip(stream.X.tolist(), stream.y.tolist(), strict=True)):
        record = dict(enumerate(x))
        out[t] = model.predict_one(record) or 0.0
        model.learn_one(record, y)
    return np.nan_to_num(out)


def compare(stream: Stream) -> dict[str, float]:
    """The mean absolute errors of all models on clean rows, relative to that of the linear model."""
    unit = play("linear", stream).mean
    found = {"ours": play("auto", stream).mean}
    for name, model in river_models().items():
        found[name] = errors(play_river(model, stream), stream)[0]
    for name, oracle in (("boosted", False), ("oracle", True)):
        found[name] = errors(refit_boosted(stream, oracle), stream)[0]
    return {name: error / unit for name, error in found.items()}


def summarize(share: float, rows: list[dict[str, float]]) -> None:
    """Geometric means, and on how many tables ours is ahead of each model."""
    for name in rows[0]:
        mean = np.exp(np.mean([np.log(row[name]) for row in rows]))
        ahead = sum(row["ours"] < row[name] for row in rows)
        told = f", ours is ahead on {ahead} of {len(rows)}" if name != "ours" else ""
        print(f"{share:4.0%} {name:8s} geometric mean {mean:.3f}{told}")
    best = [min(row[name] for name in river_models()) for row in rows]
    ahead = sum(row["ours"] < least for row, least in zip(rows, best, strict=True))
    near = sum(row["ours"] <= 1.3 * row["oracle"] for row in rows)
    print(f"{share:4.0%} ahead of all of River's models on {ahead}, at most 1.3 times the oracle on {near}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--split", choices=list(TABLES), default="tune")
    parser.add_argument("--rows", type=int, default=1500, help="rows of a table that are used")
    arguments = parser.parse_args()
    found: dict[float, list[dict[str, float]]] = {share: [] for share in SHARES}
    for place in range(min(COUNT, len(TABLES[arguments.split]))):
        for share in SHARES:
            stream = first_rows(real(arguments.split, place, place % 2 == 1, share), arguments.rows)
            row = compare(stream)
            found[share].append(row)
            where = f"{stream.name:32s} {'shuffled' if stream.shuffled else 'in order'} {share:4.0%}"
            print(where, *(f"{name} {ratio:.3f}" for name, ratio in row.items()), flush=True)
    for share, rows in found.items():
        summarize(share, rows)


if __name__ == "__main__":
    main()
