"""Arguments and options that commands share, with what the help says of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

COLUMNS, LEARNING, FILES, INPUT, RESUMING, RUNNING = (
    "Which columns",
    "How to learn",
    "What to write",
    "How to read",
    "Being killed and going on",
    "How to run",
)


class Task(StrEnum):
    """What is predicted."""

    AUTO = "auto"
    REGRESSION = "regression"
    CLASSIFICATION = "classification"


class OnBad(StrEnum):
    """What becomes of a record that cannot be used."""

    QUARANTINE = "quarantine"
    SKIP = "skip"
    FAIL = "fail"


Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE",
        show_default=False,
        help="CSV, TSV, JSON lines, Parquet or Arrow files, compressed or not; folders or patterns of them; or - for "
        "standard input.",
    ),
]
ModelToRead = Annotated[Path, typer.Argument(metavar="MODEL", show_default=False, help="A model file, made by fit.")]

Target = Annotated[str, typer.Option(help="The column to predict.", show_default=False, rich_help_panel=COLUMNS)]
Features = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A,B,C",
        show_default=False,
        help="The columns to predict it from, with commas between or one option each. All that are of use, if not "
        "given.",
        rich_help_panel=COLUMNS,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B,C", show_default=False, help="Columns to leave out.", rich_help_panel=COLUMNS),
]
TheTask = Annotated[
    Task,
    typer.Option(
        "--task",
        metavar="KIND",
        help="regression if the target is a number, classification if it is a label; auto decides from the first 1,000 "
        "records.",
        rich_help_panel=COLUMNS,
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A,B,C",
        show_default=False,
        help="All labels that the target can have. Those of the first 1,000 records, if not given.",
        rich_help_panel=COLUMNS,
    ),
]

Order = Annotated[
    int,
    typer.Option(
        min=1,
        max=2,
        help="2 also learns how columns go together: slower, from fewer records.",
        rich_help_panel=LEARNING,
    ),
]
Loss = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="What an error costs: squared, absolute, pinball:0.9 or epsilon_insensitive:0.1 for numbers (squared if "
        "not given); logistic or hinge for labels (logistic).",
        rich_help_panel=LEARNING,
    ),
]
Transform = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="A fixed rule for how much of a record to believe: huber:1.0, cauchy:1.0, tukey:4.7, welsch:3, "
        "geman_mcclure:1, learn:0.1,0.01, barron:-2,1 or identity. Faster, and to be chosen by hand; the model tunes "
        "itself, if not given.",
        rich_help_panel=LEARNING,
    ),
]

Rounds = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.parquet",
        show_default=False,
        help="What was predicted and believed of every record, before it was learned from.",
        rich_help_panel=FILES,
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.html",
        show_default=False,
        help="A page with pictures: beside the model as NAME.report.html, if not given.",
        rich_help_panel=FILES,
    ),
]
NoReport = Annotated[bool, typer.Option("--no-report", help="Write no report.", rich_help_panel=FILES)]
Quarantine = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.jsonl",
        show_default=False,
        help="Where records that cannot be used go, as they came, each with its row and the reason. Beside the other "
        "output as NAME.quarantine.jsonl, if not given, and only if there are any.",
        rich_help_panel=FILES,
    ),
]

HowBad = Annotated[
    OnBad,
    typer.Option(
        "--on-bad",
        metavar="WHAT",
        help="What to do with a record that cannot be used: quarantine sets it aside, skip only counts it, fail stops "
        "there.",
        rich_help_panel=INPUT,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="csv, tsv, jsonl, parquet or arrow, where name and content do not say.",
        rich_help_panel=INPUT,
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="The first line of a CSV or TSV file is a record; columns are called column1, column2, ...",
        rich_help_panel=INPUT,
    ),
]

Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        show_default=False,
        help="Write checkpoints here, to go on from after a crash.",
        rich_help_panel=RESUMING,
    ),
]
Every = Annotated[
    int, typer.Option(min=1, metavar="N", help="A checkpoint after so many records.", rich_help_panel=RESUMING)
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on from the checkpoint, if there is one. The files will be those of a run that was never interrupted.",
        rich_help_panel=RESUMING,
    ),
]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.", rich_help_panel=RUNNING)]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show where an unexpected failure happened.", rich_help_panel=RUNNING)
]
