"""How far beliefs can be trusted: ``python -m benchmarks.belief`` prints one table, in a few minutes.

Synthetic streams have an oracle that knows all densities. Errors are injected into real tables, whose own oddities
count as clean. Constants were chosen on the split "tune"; the split "held" has other seeds, constants and tables.
The first 100 rounds do not count. For wrong labels in real tables, cleanlab is compared as well, if it is installed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import redescend as rd
from benchmarks.belief_classes import class_rows
from benchmarks.belief_labels import binary_rows
from benchmarks.belief_scores import Scores, mean, reliability, score
from benchmarks.belief_short import short_rows
from benchmarks.belief_streams import Case, Recipe, synthetic
from benchmarks.belief_tables import real
from redescend.belief import ResidualBelief
from redescend.numeric import Array

ORACLE_ROUNDS = 200_000


def predict(X: Array, y: Array) -> tuple[Array, Array]:
    """Predictions before learning, and the weights of the gate."""
    learner = rd.SelfTuning(X.shape[1], loss=rd.losses.Squared(), order=2)
    trace = rd.play(learner, rd.Stream(X, y))
    return trace.predictions, trace.weights


def residual_scale(X: Array, y: Array) -> float:
    return float(np.median(np.abs(y - predict(X, y)[0])[200:]) / 0.6745)


def ask_oracle(recipe: Recipe, case: Case) -> tuple[Array, float]:
    """P(clean) and the width of the 90 % interval in scales, from the densities of a much longer stream."""
    sample = recipe.make(sample=7, rounds=ORACLE_ROUNDS)
    sizes = 2.0 ** np.arange(-4, 14, 0.125)
    edges = np.concatenate([[-np.inf], -sizes[::-1], [0.0], sizes, [np.inf]])
    assert sample.true_residuals is not None
    assert case.true_residuals is not None
    good, bad = (np.histogram(sample.true_residuals[part], edges)[0] for part in (sample.clean, ~sample.clean))
    cells = np.clip(np.searchsorted(edges, case.true_residuals, side="right") - 1, 0, len(good) - 1)
    low, high = np.quantile(sample.true_residuals[sample.clean], [0.05, 0.95])
    return ((good + 1e-3) / (good + bad + 2e-3))[cells], float(high - low)


def judge(case: Case, recipe: Recipe | None = None) -> Scores:
    """Play a stream, judge it, and compare with the truth."""
    predictions, weights = predict(case.X, case.y)
    belief = ResidualBelief(case.X.shape[1])
    judgements = belief.update(predictions, case.y, case.X)
    verdict = belief.judge_log(predictions, case.y, judgements)
    said = (verdict.clean_probability, judgements.clean_probability, judgements.suspect)
    out = score(case.name, case.clean, *said, numbers=True)
    out.add_ranks(case.clean, verdict.clean_log_odds, weights)
    out.add_intervals(case, judgements.low, judgements.high)
    if recipe is not None:
        probability, width = ask_oracle(recipe, case)
        out.add_oracle(case, probability, width, judgements.high - judgements.low)
    return out


def synthetic_scores(split: str) -> Iterator[Scores]:
    for recipe in synthetic(split):
        yield judge(recipe.make(), recipe)


def real_scores(split: str) -> Iterator[Scores]:
    for case in real(split, residual_scale):
        yield judge(case)


def report(title: str, found: Iterable[Scores]) -> None:
    """Print the means of one group of streams."""
    rows = list(found)
    wrong, right = [row for row in rows if row.errors], [row for row in rows if not row.errors]
    print(f"\n{title}: {len(rows)} streams, {len(right)} without errors")
    lines = {
        "calibration error of P(clean), online / final": (mean(rows, "ece"), mean(rows, "final_ece")),
        "false alarms at nominal 10 %, final / online": (mean(wrong, "fdp"), mean(wrong, "online_fdp")),
        "recall there, final / online": (mean(wrong, "recall"), mean(wrong, "online_recall")),
        "AUC of log-odds / of the weight": (mean(wrong, "auc"), mean(wrong, "weight_auc")),
        "90 % interval: coverage / mean error": (mean(rows, "coverage"), mean(rows, "coverage_error")),
    }
    if right:
        suspects = [row.false / row.rounds for row in right]
        lines["suspects in streams without errors, mean / most"] = float(np.mean(suspects)), max(suspects)
    if any(row.width is not None for row in rows):
        share = mean(wrong, "recall") / mean(wrong, "oracle_recall")
        lines["oracle's recall / share of it that is reached"] = mean(wrong, "oracle_recall"), share
        lines["90 % interval: width over the oracle's / lower tenth"] = mean(rows, "width"), low_width(rows)
    for what, (one, other) in lines.items():
        print(f"  {what:54}{one:8.4f} {other:8.4f}")


def low_width(rows: list[Scores]) -> float:
    return float(np.quantile([row.width for row in rows if row.width is not None], 0.1))


def report_tables(rows: list[Scores]) -> None:
    print("\n  table: false alarms with errors, recall, suspects without errors, coverage")
    for name in dict.fromkeys(row.name for row in rows):
        wrong = [row for row in rows if row.name == name and row.errors]
        right = next(row for row in rows if row.name == name and not row.errors)
        cover = mean([*wrong, right], "coverage")
        numbers = (
            f"{mean(wrong, 'fdp'):6.1%} {mean(wrong, 'recall'):6.2f} {right.false / right.rounds:7.2%} {cover:7.1%}"
        )
        print(f"    {name:34}{numbers}")


def report_cost() -> None:
    """Time per record of the judge and of the learner, and the size of the state."""
    recipe = Recipe("t3", "wide", 0.05, 50_000, 1)
    case = recipe.make()
    started = time.perf_counter()
    predictions, _ = predict(case.X, case.y)
    learning = time.perf_counter() - started
    times = []
    for _ in range(5):
        belief = ResidualBelief(case.X.shape[1])
        started = time.perf_counter()
        belief.update(predictions, case.y, case.X)
        times.append(time.perf_counter() - started)
    size = sum(array.nbytes for array in belief.state().values())
    judging, alone = (seconds * 1e6 / len(case.y) for seconds in (min(times), learning))
    print(f"\ncost: {judging:.2f} µs a record, the learner alone {alone:.2f}; state {size / 1000:.1f} kB")


def report_reliability(rows: list[Scores]) -> None:
    said, true, count = reliability(rows)
    pairs = [f"{a:.2f} → {b:.2f} ({n})" for a, b, n in zip(said, true, count, strict=True) if n]
    print(f"  said → share clean: {', '.join(pairs)}")


def draw_reliability(path: Path, groups: dict[str, list[Scores]]) -> None:
    """Draw a reliability diagram; the size of a point is its number of records."""
    pyplot: Any = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(5, 4.2), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    for title, rows in groups.items():
        said, true, count = reliability(rows)
        line = axes.plot(said, true, linewidth=1, label=title)[0]
        axes.scatter(said, true, s=6 * np.log2(np.maximum(count, 1)), color=line.get_color())
    axes.set(xlabel="stated probability of being clean", ylabel="observed share of clean records")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.belief", description=__doc__)
    parser.add_argument("--split", choices=("tune", "held", "both"), default="both")
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help="also draw the reliability of the last split")
    arguments = parser.parse_args()
    splits = ("tune", "held") if arguments.split == "both" else (arguments.split,)
    for split in splits:
        report(f"{split}, synthetic", made := list(synthetic_scores(split)))
        report_reliability(made)
        report(f"{split}, real tables", rows := list(real_scores(split)))
        if arguments.picture is not None:
            draw_reliability(arguments.picture, {"synthetic streams": made, "real tables": rows})
        report_reliability(rows)
        report_tables(rows)
        for line in (*short_rows(split), *binary_rows(split), *class_rows(split)):
            print(line)
    report_cost()


if __name__ == "__main__":
    main()
