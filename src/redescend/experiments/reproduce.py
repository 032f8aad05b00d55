"""The whole paper: compute what is missing, draw, judge, report."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from redescend.errors import MissingExtraError
from redescend.experiments import paper, pictures, report, runner
from redescend.experiments.experts.compute import EXPERTS
from redescend.experiments.problems import YARDSTICK
from redescend.experiments.results import Results
from redescend.experiments.store import Store
from redescend.experiments.suite.compute import SUITE
from redescend.experiments.suite.design import TASKS
from redescend.experiments.suite.section import section
from redescend.experiments.tasks import Options, Task

try:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table
except ImportError:
    raise MissingExtraError("Reproducing the paper needs Rich; try: pip install 'redescend[cli]'") from None

ALL = "all"
BESIDE = (EXPERTS.name, SUITE.name)
"""Experiments that the paper does not have, and that take as long as all of its own."""


@dataclass(frozen=True)
class Request:
    """What a person asked for."""

    part: str
    options: Options
    folder: Path
    jobs: int | None
    cluster: str | None
    command: list[str]

    @property
    def experiments(self) -> list[str]:
        """The experiments to be played; the comparison of losses needs none, and `all` are those of the paper."""
        return [name for name in paper.EXPERIMENTS if self.part == name or (self.part == ALL and name not in BESIDE)]

    def tasks(self, experiments: Iterable[str]) -> list[Task]:
        return [task for name in experiments for task in paper.EXPERIMENTS[name].tasks(self.options)]


def reproduce(request: Request, console: Console | None = None) -> tuple[Path, bool]:
    """Where the report is, and whether it is whole or was interrupted."""
    console = console or Console(stderr=True)
    started = time.perf_counter()
    tasks = request.tasks(request.experiments)
    store = Store(request.folder)
    whole = _play(request, tasks, store, console)
    missing = store.missing(tasks)
    # What earlier commands with the same options left in the folder stays in the report.
    kept = request.tasks(paper.EXPERIMENTS)
    absent = set(store.missing(kept))
    finished = [task for task in kept if task not in absent]
    results = Results(store.tidy(finished))
    store.export(finished)
    notes = list(store.set_aside)
    if not whole:
        notes.append(f"{len(missing)} of {len(tasks)} pieces are missing; the same command goes on.")
    drawing = time.perf_counter()
    with console.status("drawing"):
        drawn = _draw(request, results)
    seconds = {
        f"{name}, summed over processes": sum(
            store.seconds(task) or 0.0 for task in finished if task.experiment == name
        )
        for name in paper.EXPERIMENTS
    }
    seconds["drawing, by the clock"] = time.perf_counter() - drawing
    seconds["this command until here, by the clock"] = time.perf_counter() - started
    options = {
        "experiment": request.part,
        "runs": request.options.runs,
        "rounds": request.options.rounds or ("fewer than in the paper" if request.options.quick else "as in the paper"),
        "seed": request.options.seed,
        "sweep": "at most 10 runs, and 20,000 rounds but where T grows",
        "experts": "at most 3 runs of ridge and 10 of the SVM",
        "suite": "one run of each setting",
    }
    command = shlex.join([Path(request.command[0]).name, *request.command[1:]])
    page = report.write(results, drawn, request.folder, options=options, command=command, seconds=seconds, notes=notes)
    for problem in ("ridge", "svm"):
        rows = report.summary(results, problem)
        if rows:
            console.print(_table(problem, rows))
    suite = section(results)
    if suite is not None:
        console.print(_suite_table(suite))
    for note in notes:
        console.print(note, highlight=False)
    console.print(f"{time.perf_counter() - started:.0f} s. The report, with every figure and claim:", highlight=False)
    return page, whole


def _play(request: Request, tasks: list[Task], store: Store, console: Console) -> bool:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        missing = store.missing(tasks)
        shown = bar.add_task("playing", total=len(tasks), completed=len(tasks) - len(missing))
        try:
            runner.run(
                missing,
                store,
                paper.compute,
                jobs=request.jobs,
                cluster=request.cluster,
                done=lambda task, seconds: bar.update(shown, advance=1, description=task.experiment),
            )
        except KeyboardInterrupt:
            return False
    return True


def _draw(request: Request, results: Results) -> list[pictures.Picture]:
    # The processes that played are still there, and draw.
    draw = Parallel(n_jobs=request.jobs or -1)
    drawn = draw(delayed(picture)(results, request.folder / "figures") for picture in pictures.PICTURES.values())
    return [picture for picture in drawn if picture is not None]


def _cell(row: report.Row) -> str:
    text = row.text if row.mean < 1e5 else f"{row.mean:.1e}" if isfinite(row.mean) else "diverged"
    return f"[bold]{text} *[/]" if row.best else f"{text}  "


def _table(problem: str, rows: list[report.Row]) -> Table:
    counts = {row.count: row.k for row in rows}
    title = f"{problem}: clean dynamic regret, mean of {rows[0].runs} runs ± standard error; * lowest without an oracle"
    table = Table(title=title, box=SIMPLE_HEAD, padding=0, title_justify="left")
    table.add_column("learner", no_wrap=True, min_width=max(len(row.learner) for row in rows))
    for count, k in counts.items():
        table.add_column(f"k = {count}  \n{k:,}  ", justify="right", no_wrap=True)
    for name in dict.fromkeys(row.learner for row in rows):
        cells = {row.count: _cell(row) for row in rows if row.learner == name}
        style = "dim" if name == YARDSTICK else None
        table.add_row(name, *(cells.get(count, "") for count in counts), style=style)
    return table


def _suite_table(suite: dict[str, Any]) -> Table:
    title = (
        f"suite: regret as a multiple of the oracle's, mean of {suite['settings']} settings; * lowest without an oracle"
    )
    table = Table(title=title, box=SIMPLE_HEAD, padding=0, title_justify="left")
    learners = [learner for members in suite["kinds"].values() for learner in members]
    table.add_column("learner", no_wrap=True, min_width=max(map(len, learners)))
    groups = [group for group in suite["columns"] if group not in TASKS]  # as many as fit a terminal
    for group in groups:
        table.add_column(f"{group}  ", justify="right", no_wrap=True)
    for learner in learners:
        cells = [(suite["cells"][learner, group][0], (learner, group) in suite["best"]) for group in groups]
        row = (f"[bold]{text} *[/]" if best else f"{text}  " for text, best in cells)
        table.add_row(learner, *row, style="dim" if learner.startswith(YARDSTICK) else None)
    return table
