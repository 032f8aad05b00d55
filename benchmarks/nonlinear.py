"""Models with trees against linear ones; `nonlinear_peers` has boosted trees that are refitted, and River's models.

``python -m benchmarks.nonlinear tables --split held``, ``… synthetic``, ``… uci --folder FOLDER``, ``… river``,
``… cost``. Every record is predicted before it is learned from. For real tables, the figure is the mean absolute
error on clean rows from row 50 on, relative to that of the linear model.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import uci
from benchmarks.belief_tables import TABLES
from benchmarks.nonlinear_streams import RIVER, Stream, real, river_table, synthetic
from redescend.belief import ResidualBelief
from redescend.engines import Engine, ModelConfig
from redescend.engines.labels import count_outputs, encode_labels
from redescend.numeric import Array

START = 50
SHARES = (0.0, 0.05, 0.2)
BEST = {
    "bostonHousing": 0.0643,
    "concrete": 0.0840,
    "energy": 0.0429,
    "kin8nm": 0.0885,
    "naval-propulsion-plant": 0.0296,
    "power-plant": 0.0432,
    "protein-tertiary-structure": 0.1701,
    "wine-quality-red": 0.1060,
    "yacht": 0.0309,
}
"""The best of tuned network filters, fixed random features and linear models on the UCI tables."""


class Scores(NamedTuple):
    """The scores of one model on one stream: mean and median error, errors found, and clean suspects."""

    mean: float
    median: float
    auc: float
    suspects: float
    microseconds: float


def make(features: str, dim: int, outputs: int = 1, task: Any = "regression") -> Engine:
    return ModelConfig.from_parameters("benchmark", task, features=features).make_engine(dim, outputs, missing=True)


def play(features: str, stream: Stream) -> Scores:
    """Play a stream and judge its records by the belief that models have."""
    engine, began = make(features, stream.X.shape[1]), time.process_time()
    predictions = engine.learn_rounds(stream.X, stream.y[None]).predictions[0]
    seconds = time.process_time() - began
    told = ResidualBelief(stream.X.shape[1]).update(predictions, stream.y, stream.X)
    mean, median = errors(predictions, stream)
    auc = rank_errors(-np.asarray(told.clean_log_odds), ~stream.clean)
    return Scores(mean, median, auc, float(np.mean(told.suspect[stream.clean])), 1e6 * seconds / len(stream.y))


def errors(predictions: Array, stream: Stream) -> tuple[float, float]:
    """The mean and the median of absolute errors on clean rows."""
    counted = stream.clean & (np.arange(len(stream.y)) >= START)
    wrong = np.abs(predictions - stream.truth)[counted]
    return float(wrong.mean()), float(np.median(wrong))


def rank_errors(scores: Array, bad: Array) -> float:
    """The area under the curve: how often an error has a higher score than a clean record."""
    ranks = np.argsort(np.argsort(scores))
    ones, zeros = int(bad.sum()), int((~bad).sum())
    return float((ranks[bad].sum() - ones * (ones - 1) / 2) / (ones * zeros)) if ones and zeros else np.nan


def compare_tables(arguments: argparse.Namespace) -> None:
    """Real tables, shuffled and in order, with 0, 5 and 20 % errors."""
    rows = []
    for place in range(len(TABLES[arguments.split]))[arguments.first :: arguments.step]:
        for shuffled in (True, False):
            for share in SHARES:
                stream = real(arguments.split, place, shuffled, share)
                if arguments.rows:
                    stream = first_rows(stream, arguments.rows)
                linear, ours = play("linear", stream), play("auto", stream)
                row = {"ours": ours.mean / linear.mean, "median": ours.median / max(linear.median, 1e-300)}
                rows.append((stream, row, ours, linear))
                told = f"AUC {ours.auc:.3f} {linear.auc:.3f}  clean suspects {ours.suspects:.4f} {linear.suspects:.4f}"
                where = f"{stream.name:28s} d={stream.X.shape[1]:3d} n={len(stream.y):5d} "
                where += f"{'shuffled' if shuffled else 'in order'} {share:4.0%}"
                print(where, *(f"{name} {value:.3f}" for name, value in row.items()), told, flush=True)
    summarize(rows)


def first_rows(stream: Stream, count: int) -> Stream:
    parts = (stream.X[:count].copy(), stream.y[:count], stream.clean[:count], stream.truth[:count])
    return Stream(stream.name, *parts, stream.shuffled, stream.share)


def summarize(rows: list[tuple[Stream, dict[str, float], Scores, Scores]]) -> None:
    for name in ("all", "shuffled", "in order", *(f"{share:.0%}" for share in SHARES)):
        chosen = [row for stream, row, _, _ in rows if name in stream.groups()]
        if not chosen:
            continue
        keys = sorted({key for row in chosen for key in row})
        means = {key: np.exp(np.mean(np.log([row[key] for row in chosen if key in row]))) for key in keys}
        worst, costs = max(row["ours"] for row in chosen), np.mean([row["ours"] <= 1.03 for row in chosen])
        print(f"{name:9s} {len(chosen)} cases, geometric means:", *(f"{key} {mean:.3f}" for key, mean in means.items()))
        print(f"{'':9s} worst {worst:.3f}, at most 1.03: {costs:.0%}")
    spoilt = [(ours, linear) for stream, _, ours, linear in rows if stream.share > 0.0]
    lost = sum(ours.auc < linear.auc - 0.01 for ours, linear in spoilt)
    won = sum(ours.auc > linear.auc + 0.01 for ours, linear in spoilt)
    print(f"AUC lower by .01 in {lost}, higher by .01 in {won} of {len(spoilt)}")
    print("clean suspects", np.mean([(ours.suspects, linear.suspects) for _, _, ours, linear in rows], axis=0).round(4))


def compare_synthetic(arguments: argparse.Namespace) -> None:
    for share in (0.0, 0.2):
        for stream in synthetic(share):
            ours, linear = play("auto", stream), play("linear", stream)
            print(f"{stream.name:20s} {share:4.0%}  ours / linear {ours.mean / linear.mean:.3f}", flush=True)


def compare_uci(arguments: argparse.Namespace) -> None:
    for name, best in BEST.items():
        data, found = uci.read(arguments.folder, name), []
        for run in range(arguments.runs):
            X, y = (stream := uci.draw(data, run)).X[:, :-1].copy(), stream.y
            told = [
                make(features, X.shape[1]).learn_rounds(X, y[None]).predictions[0] for features in ("auto", "linear")
            ]
            found.append([np.sqrt(np.median((predictions - y) ** 2)) for predictions in told])
        ours, linear = np.mean(found, axis=0)
        print(
            f"{name:28s} ours {ours:.4f} linear {linear:.4f} best {best:.4f} {'met' if ours <= best else ''}",
            flush=True,
        )


def compare_river(arguments: argparse.Namespace) -> None:
    """River's own benchmark: the mean absolute error, or the share of right labels."""
    for name, best in RIVER.items():
        X, y = river_table(name)
        labels = best > 0.5 and name not in ("ChickWeights", "TrumpApproval")
        for share in (0.0, 0.1) if labels else (0.0,):
            told = {features: play_table(features, X, y, labels, share) for features in ("auto", "linear")}
            print(
                f"{name:14s} {share:4.0%} ours {told['auto']:.3f} linear {told['linear']:.3f} River {best}", flush=True
            )


def play_table(features: str, X: Array, y: Array, labels: bool, share: float) -> float:
    if not labels:
        targets = y.astype(float)
        predictions = make(features, X.shape[1]).learn_rounds(X, targets[None]).predictions[0]
        return float(np.mean(np.abs(predictions - targets)))
    classes, places = np.unique(y.astype(str), return_inverse=True)
    random = np.random.default_rng(3)
    told = np.where(random.random(len(y)) < share, random.integers(0, len(classes), len(y)), places)
    engine = make(features, X.shape[1], count_outputs(len(classes)), "classification")
    scores = engine.learn_rounds(X, encode_labels(told, len(classes))).predictions
    found = (scores[0] > 0).astype(int) if len(scores) == 1 else scores.argmax(axis=0)
    return float(np.mean((found == places)[told == places]))


def measure_cost(arguments: argparse.Namespace) -> None:
    random, count = np.random.default_rng(0), 20_000
    for dim in (5, 20, 100):
        X = random.standard_normal((count, dim))
        y = (X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + 0.1 * random.standard_normal(count))[None]
        times: dict[str, float] = {}
        for features in ("auto", "linear"):
            for _ in range(3):
                engine, began = make(features, dim), time.process_time()
                engine.learn_rounds(X, y)
                spent = 1e6 * (time.process_time() - began) / count
                times[features] = min(times.get(features, np.inf), spent)
        size = count_bytes(make("auto", dim).state())
        print(
            f"d = {dim:3d}: {times['auto']:.1f} µs a record, linear {times['linear']:.2f}; {size / 1e6:.2f} MB",
            flush=True,
        )


def count_bytes(state: Any) -> int:
    parts: Iterable[Any] = state.values() if isinstance(state, dict) else state if isinstance(state, list) else ()
    return state.nbytes if isinstance(state, np.ndarray) else sum(map(count_bytes, parts))


SUBJECTS = {
    "tables": compare_tables,
    "synthetic": compare_synthetic,
    "uci": compare_uci,
    "river": compare_river,
    "cost": measure_cost,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("subject", choices=list(SUBJECTS))
    parser.add_argument("--split", choices=list(TABLES), default="tune")
    parser.add_argument("--first", type=int, default=0, help="place of the first table")
    parser.add_argument("--step", type=int, default=1, help="of places of tables")
    parser.add_argument("--rows", type=int, default=0, help="rows of a table that are used; 0: all")
    parser.add_argument("--folder", type=Path, help="of the UCI tables")
    parser.add_argument("--runs", type=int, default=30, help="of every UCI table")
    arguments = parser.parse_args()
    SUBJECTS[arguments.subject](arguments)


if __name__ == "__main__":
    main()
