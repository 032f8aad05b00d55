"""`redescend reproduce`: run the paper's experiments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from redescend.cli.console import announce_compilation
from redescend.cli.exit_codes import Code, exit_on_error
from redescend.cli.startup import allow_pandas
from redescend.errors import needs_extra

PARTS = ("ridge", "svm", "losses", "boundaries", "sweep", "all", "experts", "suite")
PART_HELP = f"Experiment to run: {', '.join(PARTS)}. 'all' runs those of the paper, which experts and suite are not."


def reproduce(
    part: Annotated[str, typer.Argument(help=PART_HELP)] = "all",
    runs: Annotated[
        int,
        typer.Option(help="Independent runs to average: 30 in the paper, at most 3 and 10 for experts, 1 for suite."),
    ] = 30,
    rounds: Annotated[
        int | None, typer.Option(show_default=False, help="Rounds of a run. Default: as in the paper.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(show_default=False, help="Processes on this machine. Default: one per core.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the report, the figures and the data.")] = Path("results"),
    seed: Annotated[int, typer.Option(help="Seed of the first run.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and shorter runs: a preview in 15 seconds.")] = False,
    cluster: Annotated[
        str | None, typer.Option(show_default=False, help="Dask scheduler to run on, such as tcp://host:8786.")
    ] = None,
) -> None:
    """Run the paper's experiments, and write a report with every figure and claim.

    Finished parts are stored in the folder: if it is interrupted, the same command continues where it stopped.
    """
    with exit_on_error(True, " before the report was written; run the same command to continue"):
        allow_pandas()
        with needs_extra("The experiments need further packages", "experiments,cli"):
            from redescend.experiments.reproduce import Request, reproduce
            from redescend.experiments.results import Options
        from redescend.parameters import AT_LEAST_ONE, COUNT, Interval, check, check_choice

        check_choice("reproduce", "part", part, PARTS)
        check("reproduce", "runs", runs, AT_LEAST_ONE)
        check("reproduce", "seed", seed, COUNT)
        for name, value, rule in (("jobs", jobs, AT_LEAST_ONE), ("rounds", rounds, Interval(100, 10**9, whole=True))):
            if value is not None:
                check("reproduce", name, value, rule)
        options = Options(runs=min(runs, 3) if quick else runs, rounds=rounds, seed=seed, quick=quick)
        with announce_compilation(quiet=False):
            report, complete = reproduce(Request(part, options, out, jobs, cluster, ["redescend", *sys.argv[1:]]))
        typer.echo(report)
        if not complete:
            raise typer.Exit(int(Code.INTERRUPTED))
