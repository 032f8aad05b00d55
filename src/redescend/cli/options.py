"""Arguments and options of the commands, each declared once, and their defaults in a file `redescend.toml`.

A group of options that several commands share is a dataclass. A command takes it as one parameter, and `flatten` shows
its fields to Typer.
"""

from __future__ import annotations

import csv
import functools
import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from redescend.errors import DataError, OnBad, ParameterError, quote, suggest

if TYPE_CHECKING:
    from redescend.registry import Registry
    from redescend.sources import Source


COLUMNS, MODEL, OUTPUT, INPUT = "Columns", "Model", "Output", "Input"
CHECKPOINTING, RUNNING = "Checkpointing", "Running"


def option(panel: str, help: str, *names: str, **settings: Any) -> Any:
    """An option in a panel of the help."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


def optional(panel: str, metavar: str, help: str, **settings: Any) -> Any:
    """An option whose default is None."""
    return option(panel, help, metavar=metavar, show_default=False, **settings)


class TargetTask(StrEnum):
    """The task."""

    AUTO = "auto"
    REGRESSION = "regression"
    CLASSIFICATION = "classification"


class ModelOrder(StrEnum):
    """The order of the self-tuning learner."""

    AUTO = "auto"
    ONE = "1"
    TWO = "2"


ORDER_HELP = (
    "1 or 2; 2 also learns correlations of columns: slower, but needs fewer records. auto: 2 with trees, or for up to "
    "150 features."
)
SOURCES_HELP = (
    "CSV, TSV, JSON lines, Parquet, Arrow, Excel, SQLite or DuckDB files, also compressed; folders, patterns, or - for "
    "standard input."
)
LOSS_HELP = (
    "Loss of a prediction: squared (default), absolute, pinball:0.9 or epsilon_insensitive:0.1 for numbers; logistic "
    "(default) or hinge for labels."
)
TRANSFORM_HELP = (
    "Weight records by a fixed transform: huber:1.0, cauchy:1.0, tukey:4.7, welsch:3, geman_mcclure:1, learn:0.1,0.01, "
    "barron:-2,1 or identity. Faster, but not self-tuning."
)
LAGS_HELP = "For time series: also predict from the target this many records earlier (with --by, of the same key)."
FROM_START_HELP = "With lags: start without earlier records. Default: continue from the last records of the fit."
LINEAR_HELP = (
    "Fit a linear model, or add trees: slower, but more accurate on nonlinear data. Default: trees, if possible."
)
QUARANTINE_HELP = "Write rejected records here, with row and reason. Default: NAME.quarantine.jsonl, if there are any."
ON_BAD_HELP = (
    "Treatment of records that cannot be used: quarantine them, skip them (only count them), or fail (stop there)."
)
DECIMAL_HELP = "Decimal mark of numbers in CSV files, . or , (default: inferred where it is unambiguous)."
ENCODING_HELP = "Encoding of text files, such as windows-1252. Default: UTF-8, or UTF-16 if they begin with its mark."
NO_HEADER_HELP = "Read the first line of a CSV or TSV file as a record; columns are named column1, column2, ..."
OUT_HELP = "Write a .csv, .jsonl or .parquet file. Default: CSV on standard output."
KEEP_HELP = "Columns of the records to output as well, such as an identifier."
SUSPECTS_HELP = "Write all suspects with their values and q-values: a .csv, .jsonl or .parquet file."
FDR_HELP = "Largest expected share of false alarms in the list of suspects."
PASSES_HELP = "Passes over the records. Default: 2, or 1 for pipes and for records in time order."
SHUFFLE_HELP = "Read records in a random but reproducible order. Default: only if a file is sorted by its target."
RESUME_HELP = "Resume from the last checkpoint, if any. Output is identical to an uninterrupted run."

Names = list[str] | None
File = Path | None

Sources = Annotated[list[str], typer.Argument(metavar="SOURCE", show_default=False, help=SOURCES_HELP)]
ModelToRead = Annotated[Path, typer.Argument(metavar="MODEL", show_default=False, help="Model file, written by fit.")]
Every = Annotated[int, option(CHECKPOINTING, "Records between checkpoints.", min=1, metavar="N")]
Quarantine = Annotated[File, optional(OUTPUT, "FILE.jsonl", QUARANTINE_HELP)]
Debug = Annotated[bool, option(RUNNING, "Show the traceback of an unexpected error.", "--debug")]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options of the model: `fit` and `tail`."""

    target: Annotated[str, option(COLUMNS, "Column to predict.", show_default=False)]
    features: Annotated[
        Names, optional(COLUMNS, "A,B,C", "Columns to predict from. Default: all except identifiers and constants.")
    ] = None
    ignore: Annotated[Names, optional(COLUMNS, "A,B,C", "Columns to leave out.")] = None
    task: Annotated[
        TargetTask,
        option(COLUMNS, "regression or classification; auto infers it from the first 1,000 records.", metavar="KIND"),
    ] = TargetTask.AUTO
    labels: Annotated[
        Names, optional(COLUMNS, "A,B,C", "All labels of the target; others are rejected. Default: all that appear.")
    ] = None
    lags: Annotated[str | None, optional(COLUMNS, "1,24", LAGS_HELP)] = None
    lag_columns: Annotated[Names, optional(COLUMNS, "A,B", "With --lags: columns to look back at as well.")] = None
    order: Annotated[ModelOrder, option(MODEL, ORDER_HELP, metavar="ORDER")] = ModelOrder.AUTO
    loss: Annotated[str | None, optional(MODEL, "NAME", LOSS_HELP)] = None
    transform: Annotated[str | None, optional(MODEL, "NAME", TRANSFORM_HELP)] = None
    linear: Annotated[bool | None, option(MODEL, LINEAR_HELP, "--linear/--trees", show_default=False)] = None

    def parse(self) -> dict[str, Any]:
        """The settings of `redescend.streaming.config.FitConfig` with the same names."""
        from redescend.registry import LOSSES, TRANSFORMS

        given = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.linear is None:
            del given["linear"]
        return given | {
            "features": parse_names(self.features),
            "ignore": parse_names(self.ignore) or [],
            "task": self.task.value,
            "labels": parse_names(self.labels),
            "lags": _parse_lags(self.lags),
            "lag_columns": parse_names(self.lag_columns) or [],
            "order": "auto" if self.order == ModelOrder.AUTO else int(self.order.value),
            "loss": _parse_component("--loss", LOSSES, self.loss),
            "transform": _parse_component("--transform", TRANSFORMS, self.transform),
        }


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """Options of the format of the input: all commands that read records."""

    format: Annotated[
        str | None,
        optional(
            INPUT, "NAME", "File format, such as csv or parquet. Default: inferred from the name and the content."
        ),
    ] = None
    decimal: Annotated[str | None, optional(INPUT, "MARK", DECIMAL_HELP)] = None
    encoding: Annotated[str | None, optional(INPUT, "NAME", ENCODING_HELP)] = None
    no_header: Annotated[bool, option(INPUT, NO_HEADER_HELP, "--no-header")] = False

    def open(self, sources: Sequence[str], **settings: Any) -> Source:
        """Open the sources of a command with these options."""
        from redescend.sources import open_source

        single = sources[0] if len(sources) == 1 else list(sources)
        given: dict[str, Any] = {"format": self.format, "decimal": self.decimal, "encoding": self.encoding}
        return open_source(single, header=not self.no_header, **given, **settings)


@dataclass(frozen=True, kw_only=True)
class InputOptions(FormatOptions):
    """Options of the input: all commands that use every record."""

    on_bad: Annotated[OnBad, option(INPUT, ON_BAD_HELP, metavar="WHAT")] = OnBad.QUARANTINE


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Output files besides the model: `fit` and `tail`."""

    rounds: Annotated[
        File,
        optional(
            OUTPUT,
            "FILE",
            "Write prediction, interval, loss and probabilities of every record: .csv, .jsonl or .parquet.",
        ),
    ] = None
    report: Annotated[
        File, optional(OUTPUT, "FILE.html", "Write the report here. Default: NAME.report.html beside the model.")
    ] = None
    no_report: Annotated[bool, option(OUTPUT, "Do not write a report.", "--no-report")] = False
    quarantine: Quarantine = None


@dataclass(frozen=True, kw_only=True)
class SuspectOptions:
    """Options of the list of suspects: `fit`."""

    top: Annotated[int, option(OUTPUT, "Show this many suspects.", metavar="N", min=0)] = 10
    suspects: Annotated[File, optional(OUTPUT, "FILE", SUSPECTS_HELP)] = None
    fdr: Annotated[float, option(OUTPUT, FDR_HELP, metavar="SHARE", min=0.0, max=1.0)] = 0.1
    id: Annotated[Names, optional(OUTPUT, "A,B", "Columns that identify a record, shown with every suspect.")] = None
    passes: Annotated[int | None, optional(MODEL, "N", PASSES_HELP, min=1)] = None
    shuffle: Annotated[bool | None, option(MODEL, SHUFFLE_HELP, "--shuffle/--no-shuffle", show_default=False)] = None

    def parse(self) -> dict[str, Any]:
        """The settings of `redescend.streaming.config.FitConfig` with the same names."""
        names = parse_names(self.id) or []
        return {"top": self.top, "fdr": self.fdr, "id": names, "passes": self.passes, "shuffle": self.shuffle}


@dataclass(frozen=True, kw_only=True)
class CheckpointOptions:
    """Options of checkpoints: `fit` and `tail`."""

    checkpoint: Annotated[File, optional(CHECKPOINTING, "FOLDER", "Write checkpoints to this folder.")] = None
    resume: Annotated[bool, option(CHECKPOINTING, RESUME_HELP, "--resume")] = False


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """Results for new records: `predict` and `score`."""

    from_start: Annotated[bool, option(INPUT, FROM_START_HELP, "--from-start")] = False
    out: Annotated[File, optional(OUTPUT, "FILE", OUT_HELP)] = None
    keep: Annotated[Names, optional(OUTPUT, "A,B", KEEP_HELP)] = None
    quarantine: Quarantine = None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of messages: all commands that read records."""

    quiet: Annotated[bool, option(RUNNING, "Show errors only.", "--quiet", "-q")] = False
    debug: Debug = False


def flatten(command: Callable[..., None]) -> Callable[..., None]:
    """Replace every parameter of a command that is a dataclass by the fields of the dataclass.

    >>> def show(name: str, reading: InputOptions) -> None: ...
    >>> list(inspect.signature(flatten(show)).parameters)
    ['name', 'format', 'decimal', 'encoding', 'no_header', 'on_bad']
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        group: Any = parameter.annotation
        if not is_dataclass(group):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[name] = group
        hints = get_type_hints(group, include_extras=True)
        for field in fields(group):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            shown = {"default": default, "annotation": hints[field.name]}
            parameters.append(inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, **shown))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def parse_names(texts: Iterable[str] | None) -> list[str] | None:
    """Split names at commas; a name that contains a comma is quoted.

    >>> parse_names(["a,b", '"x, y",z']), parse_names(None)
    (['a', 'b', 'x, y', 'z'], None)
    """
    if not texts:
        return None
    try:
        return [name.strip() for text in texts for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error:
        raise ParameterError(
            f"{quote(', '.join(texts))} is not a list of columns; put a name with a new line in double quotes."
        ) from None


def _parse_lags(text: str | None) -> list[int]:
    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError:
        raise ParameterError(f"--lags takes whole numbers, such as 1,24. Got {quote(text or '')}.") from None


def _parse_component(name: str, registry: Registry[Any], text: str | None) -> Any:
    """Parse a loss or a transform, such as ``pinball:0.9``."""
    if text is None:
        return None
    kind = re.split("[:(]", text, maxsplit=1)[0].strip()
    if kind not in registry:
        raise ParameterError(f"{name} must be one of {', '.join(registry)}. Got {quote(text)}.")
    try:
        return registry.parse(text)
    except ParameterError as error:
        problem = re.sub(r"^The ('\w+') parameter of \w+ ", r"\1 ", str(error))
        example = re.search(rf"\b{kind}:[-.,\d]*\d", f"{LOSS_HELP} {TRANSFORM_HELP}")
        if example and re.match("Cannot read|'.*' has the wrong", problem, re.DOTALL):
            problem = f"its parameters cannot be read; write it as {example[0]}, for example."
        raise ParameterError(f"{name} {text}: {problem}") from None


DEFAULTS = Path("redescend.toml")  # in the current folder; for all commands, or for one of them


def read_defaults(commands: dict[str, Any], path: Path = DEFAULTS) -> dict[str, dict[str, Any]]:
    """Read the defaults of the options of each command from the file, if there is one.

    `commands` are the Click commands by name. Options at the top of the file are for all commands that have them; those
    in a table are for the command of that name, and take precedence.
    """
    if not path.is_file():
        return {}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"'{path}' is not TOML: {error}.") from None
    options = {name: {option.name for option in command.params} for name, command in commands.items()}
    shared = {_to_name(key): value for key, value in content.items() if not isinstance(value, dict)}
    known = set().union(*options.values())
    _check_names(path, "any command", shared, known)
    defaults = {name: {key: shared[key] for key in shared.keys() & options[name]} for name in commands}
    for command, table in content.items():
        if isinstance(table, dict):
            _check_names(path, "a table", {command: None}, set(commands))
            own = {_to_name(key): value for key, value in table.items()}
            _check_names(path, f"redescend {command}", own, options[command])
            defaults[command] |= own
    for name, command in commands.items():
        several = {option.name for option in command.params if option.multiple}
        defaults[name] |= {
            key: [each] for key, each in defaults[name].items() if key in several and isinstance(each, str)
        }
    return defaults


def _to_name(key: str) -> str:
    return key.removeprefix("--").replace("-", "_")


def _check_names(path: Path, owner: str, settings: dict[str, Any], known: set[str]) -> None:
    for name in settings:
        if name not in known:
            what = "is not a command" if owner == "a table" else f"is not an option of {owner}"
            raise DataError(f"'{name}' in '{path}' {what}; {suggest(sorted(known), name)}")
