"""Run the contest, and print two tables for each task: clean loss, and rows per second."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from benchmarks.__main__ import machine
from benchmarks.peers.contest import (
    SHARES,
    Result,
    classification_streams,
    compete,
    mistaken,
    regression_streams,
    squared,
)
from benchmarks.peers.contestants import STEPS, classifiers, regressors


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short streams and few steps: a rough idea")
    quick = parser.parse_args().quick
    rounds, dim, steps = (2_000, 20, STEPS[2:7:2]) if quick else (20_000, 100, STEPS)
    console, progress = Console(width=120), Console(stderr=True)
    contests = {
        "regression: mean squared error of clean records": (regressors, regression_streams, squared),
        "classification: mistakes on clean records": (classifiers, classification_streams, mistaken),
    }
    for title, (entries, streams, loss) in contests.items():
        found = []
        for result in compete(entries(dim, steps), streams(rounds, dim), loss):
            progress.print(f"{result.name}, {result.share:.0%}: {result.loss:.4g}", style="dim")
            found.append(result)
        console.print(table(f"{title}, T = {rounds:,}, d = {dim}", found))
    console.print(machine(), style="dim", highlight=False)


def table(title: str, results: list[Result]) -> Table:
    """A row for each contestant: loss by share of outliers, with the step that was best, and speed without outliers."""
    out = Table(title=title, title_justify="left")
    out.add_column("")
    for share in SHARES:
        out.add_column(f"{share:.0%} wrong", justify="right")
    out.add_column("rows a second", justify="right")
    cells = {(result.name, result.share): result for result in results}
    best = {share: min(result.loss for result in results if result.share == share) for share in SHARES}
    for name in dict.fromkeys(result.name for result in results):
        own = [cells[name, share] for share in SHARES]
        texts = [f"[bold]{one.loss:.4g}[/]" if one.loss == best[one.share] else f"{one.loss:.4g}" for one in own]
        out.add_row(name, *texts, f"{own[0].rate:,.0f}")
    return out


if __name__ == "__main__":
    main()
