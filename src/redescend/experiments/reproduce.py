"""`redescend reproduce`: compute what is missing, draw the pictures, and write the report."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from redescend.errors import needs_extra
from redescend.experiments import paper, pictures, report, runner
from redescend.experiments.pictures.suite_ratios import make_suite_section
from redescend.experiments.problems import ORACLE, PROBLEMS
from redescend.experiments.results import Options, Results, Task
from redescend.experiments.runner import Store
from redescend.experiments.suite import TASKS

with needs_extra("Reproducing the paper needs Rich", "cli"):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table

NOT_IN_PAPER = ("experts", "suite")  # experiments that are not part of 'all': each takes as long as all of the paper's


@dataclass(frozen=True)
class Request:
    """The arguments of the command."""

    part: str
    options: Options
    folder: Path
    jobs: int | None
    cluster: str | None
    command: list[str]

    @property
    def experiments(self) -> list[str]:
        """The experiments to run: 'all' are those of the paper, and 'losses' needs none."""
        names = {*paper.EXPERIMENTS} - {*NOT_IN_PAPER} if self.part == "all" else {self.part}
        return [name for name in paper.EXPERIMENTS if name in names]

    def list_tasks(self, experiments: Iterable[str]) -> list[Task]:
        return [task for name in experiments for task in paper.EXPERIMENTS[name].tasks(self.options)]


def reproduce(request: Request, console: Console | None = None) -> tuple[Path, bool]:
    """Run the command; return the path of the report, and whether it is complete."""
    console = console or Console(stderr=True)
    started = time.perf_counter()
    tasks = request.list_tasks(request.experiments)
    store = Store(request.folder)
    complete = _compute_missing(request, tasks, store, console)
    # Results of earlier commands with the same options stay in the report.
    every = request.list_tasks(paper.EXPERIMENTS)
    missing = set(store.missing(every))
    finished = [task for task in every if task not in missing]
    results = Results(store.read_rows(finished))
    store.export(finished)
    notes = list(store.quarantined)
    if not complete:
        left = len(missing.intersection(tasks))
        notes.append(f"{left} of {len(tasks)} tasks are not finished; run the same command to continue.")
    drawing = time.perf_counter()
    with console.status("Drawing pictures"):
        drawings = _draw_pictures(request, results)
    now = time.perf_counter()
    seconds = _sum_seconds(store, finished)
    seconds |= {"drawing, wall time": now - drawing, "this command so far, wall time": now - started}
    command = shlex.join([Path(request.command[0]).name, *request.command[1:]])
    facts: dict[str, Any] = {"options": _describe_options(request), "command": command, "seconds": seconds}
    page = report.write_report(results, drawings, request.folder, **facts, notes=notes)
    _print_tables(results, console)
    for note in notes:
        console.print(note, highlight=False)
    console.print(f"Finished in {time.perf_counter() - started:.0f} s. Report:", highlight=False)
    return page, complete


def _sum_seconds(store: Store, tasks: list[Task]) -> dict[str, float]:
    seconds = {f"{name}, total of all processes": 0.0 for name in paper.EXPERIMENTS}
    for task in tasks:
        seconds[f"{task.experiment}, total of all processes"] += store.seconds(task) or 0.0
    return seconds


def _describe_options(request: Request) -> dict[str, Any]:
    options = request.options
    return {
        "experiment": request.part,
        "runs": options.runs,
        "rounds": options.rounds or ("fewer than in the paper" if options.quick else "as in the paper"),
        "seed": options.seed,
        "sweep": "at most 10 runs; 20,000 rounds, except in the sweep over T",
        "experts": "at most 3 runs of ridge and 10 of the SVM",
        "suite": "one run of each setting",
    }


def _print_tables(results: Results, console: Console) -> None:
    for problem in PROBLEMS:
        if rows := report.summarize_regret(results, problem):
            console.print(_make_regret_table(problem, rows))
    suite = make_suite_section(results)
    if suite is not None:
        console.print(_make_suite_table(suite))


def _compute_missing(request: Request, tasks: list[Task], store: Store, console: Console) -> bool:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    missing = store.missing(tasks)
    try:
        if request.jobs != 1 and request.cluster is None:
            _compile_kernels(missing)
        with Progress(*columns, console=console, transient=True) as bar:
            bar_task = bar.add_task("Computing", total=len(tasks), completed=len(tasks) - len(missing))
            runner.run(
                missing,
                store,
                paper.compute,
                jobs=request.jobs,
                cluster=request.cluster,
                done=lambda task, seconds: bar.update(bar_task, advance=1, description=task.experiment),
            )
    except KeyboardInterrupt:
        return False
    return True


def _compile_kernels(tasks: list[Task]) -> None:
    """Compute a tiny task of each experiment here: workers would each compile the same kernels, unannounced."""
    for task in {task.experiment: task for task in reversed(tasks)}.values():
        settings = dict(task.settings)
        settings["rounds"] = min(int(settings["rounds"]), 100)
        paper.compute(replace(task, settings=tuple(settings.items())))


def _draw_pictures(request: Request, results: Results) -> list[pictures.Picture]:
    # Reuses the worker processes of the computation.
    draw = Parallel(n_jobs=request.jobs or -1)
    drawings = draw(delayed(picture)(results, request.folder / "figures") for picture in pictures.PICTURES.values())
    return [picture for picture in drawings if picture is not None]


def _make_table(title: str, columns: list[str], rows: dict[str, list[tuple[str, bool]]]) -> Table:
    """A table of learners with cells (text, is best); the oracle is dimmed."""
    table = Table(title=f"{title}; * lowest without an oracle", box=SIMPLE_HEAD, padding=0, title_justify="left")
    table.add_column("learner", no_wrap=True, min_width=max(map(len, rows)))
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for learner, cells in rows.items():
        texts = (f"[bold]{text} *[/]" if best else f"{text}  " for text, best in cells)
        table.add_row(learner, *texts, style="dim" if learner.startswith(ORACLE) else None)
    return table


def _make_regret_table(problem: str, rows: list[report.Row]) -> Table:
    counts = {row.count: row.k for row in rows}
    cells: dict[str, dict[str, tuple[str, bool]]] = {}
    for row in rows:
        text = row.text if row.mean < 1e5 else f"{row.mean:.1e}" if isfinite(row.mean) else "diverged"
        cells.setdefault(row.learner, {})[row.count] = text, row.best
    title = f"{problem}: clean dynamic regret, mean of {rows[0].runs} runs ± standard error"
    columns = [f"k = {count}  \n{k:,}  " for count, k in counts.items()]
    return _make_table(
        title, columns, {name: [row.get(count, ("", False)) for count in counts] for name, row in cells.items()}
    )


def _make_suite_table(suite: dict[str, Any]) -> Table:
    groups = [group for group in suite["columns"] if group not in TASKS]  # as many as fit in a terminal
    rows = {
        learner: [(suite["cells"][learner, group][0], (learner, group) in suite["best"]) for group in groups]
        for members in suite["kinds"].values()
        for learner in members
    }
    title = f"suite: regret as a multiple of the oracle's, mean of {suite['settings']} settings"
    return _make_table(title, [f"{group}  " for group in groups], rows)
