"""`python -m redescend.experiments`: the paper's SVM experiment at a glance, as a table and a figure."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from redescend.errors import MissingExtraError, RedescendError
from redescend.experiments import figures
from redescend.experiments.problems import YARDSTICK, Problem, svm
from redescend.experiments.runner import Curves, Key, run
from redescend.parameters import AT_LEAST_ONE, COUNT, check

try:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table
except ImportError:
    raise MissingExtraError("The demo needs rich; install it with: pip install 'redescend[cli]'") from None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m redescend.experiments", description=__doc__)
    parser.add_argument("--runs", type=int, default=30, help="runs to average (default 30, as in the paper)")
    parser.add_argument("--rounds", type=int, default=10_000, help="length of a run (default 10000, as in the paper)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first run (default 0)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the figure (default results)")
    options = parser.parse_args()
    console = Console()
    try:
        runs = check("the demo", "runs", options.runs, AT_LEAST_ONE)
        seed = check("the demo", "seed", options.seed, COUNT)
        problem = svm(check("the demo", "rounds", options.rounds, AT_LEAST_ONE))
        if options.out.exists() and not options.out.is_dir():
            raise NotADirectoryError(f"'{options.out}' is a file; give a folder with --out.")
        started = time.perf_counter()
        seeds = track(range(seed, seed + runs), description=f"Playing {runs} runs", console=console, transient=True)
        results = run(problem, seeds)
        console.print(table(problem, results, runs))
        console.print(legend(problem))
        title = f"Online SVM, {problem.rounds} rounds, k corrupted labels: mean of {runs} runs ± standard error"
        saved = figures.regret_panels(results, title, options.out / "svm-regret")
        console.print(f"Drawn in {' and '.join(map(str, saved))}; {time.perf_counter() - started:.1f} s in all.")
    except KeyboardInterrupt:
        console.print("Interrupted; nothing was written.")
        return 130
    except (RedescendError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def table(problem: Problem, results: dict[Key, Curves], runs: int) -> Table:
    counts = problem.outlier_counts()
    names = list(dict.fromkeys(name for _, name in results))
    title = f"Clean dynamic regret after {problem.rounds} rounds, mean of {runs} runs ± standard error"
    out = Table(title=title, box=SIMPLE_HEAD, padding=0, title_justify="left")
    out.add_column("learner", no_wrap=True)
    best = {}
    for count, k in counts.items():
        out.add_column(f"k = {count}  \n{k:,}  ", justify="right", no_wrap=True)
        best[count] = min((name for name in names if name != YARDSTICK), key=lambda name: results[count, name].final)
    for name in names:
        cells = []
        for count in counts:
            curves = results[count, name]
            cell = f"{curves.final:,.0f} ± {curves.final_error:.1f}"
            cells.append(f"[bold]{cell} *[/]" if best[count] == name else f"{cell}  ")
        out.add_row(name, *cells, end_section=name == names[-2], style="dim" if name == YARDSTICK else None)
    return out


def legend(problem: Problem) -> str:
    cap = 1.0 + problem.b
    return (
        "* lowest of those that are not told which rounds are clean. LEARN at the paper's "
        f"a = {problem.a:g}, b = {problem.b:g} believes at most 1/{cap:g} of a round; the row 'OGD, step/{cap:g}' "
        "takes that smaller step and has no gate."
    )


if __name__ == "__main__":
    sys.exit(main())
