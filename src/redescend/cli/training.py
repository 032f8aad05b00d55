"""Shared code of `fit` and `tail`: the configuration of a run, and the default names of its output files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redescend.cli.exit_codes import Code
from redescend.cli.options import CheckpointOptions, InputOptions, ModelOptions, OutputOptions
from redescend.errors import OnBad, ParameterError

if TYPE_CHECKING:
    from redescend.streaming.config import FitConfig, Outputs
    from redescend.streaming.run import Run

QUARANTINE = "quarantine.jsonl"


def make_config(
    learning: ModelOptions,
    reading: InputOptions,
    checkpoints: CheckpointOptions,
    outputs: Outputs,
    **settings: Any,
) -> FitConfig:
    """Make the configuration of a run from options."""
    from redescend.streaming.config import FitConfig

    return FitConfig(
        **learning.parse(),
        on_bad=reading.on_bad.value,
        format=reading.format,
        header=not reading.no_header,
        decimal=reading.decimal,
        encoding=reading.encoding,
        checkpoint=checkpoints.checkpoint,
        resume=checkpoints.resume,
        outputs=outputs,
        **settings,
    )


def choose_outputs(
    sources: Sequence[str], on_bad: OnBad, model: Path | None, options: OutputOptions, suspects: Path | None = None
) -> Outputs:
    """Choose the output files: those that are named, the report beside the model, and the quarantine."""
    from redescend.streaming.config import Outputs

    report = options.report
    if options.no_report and report is not None:
        raise ParameterError("Leave out one of --report and --no-report.")
    if report is None and model is not None and not options.no_report:
        report = _name_beside(model, "report.html")
    quarantine = choose_quarantine(sources, on_bad, options.quarantine, model or options.rounds or suspects)
    return Outputs(
        model, options.rounds, report, quarantine, suspects, keep_empty_quarantine=options.quarantine is not None
    )


def choose_quarantine(sources: Sequence[str], on_bad: OnBad, named: Path | None, output: Path | None) -> Path | None:
    """Choose the file for rejected records: beside the output or, without one, here with the name of the source.

    >>> choose_quarantine(["q1.csv"], OnBad.QUARANTINE, None, Path("models", "houses.safetensors")).as_posix()
    'models/houses.quarantine.jsonl'
    >>> sources = ("q1.csv", "-", "parts/*.csv", "data/parts/")
    >>> [str(choose_quarantine([source], OnBad.QUARANTINE, None, None)) for source in sources]
    ['q1.quarantine.jsonl', 'stdin.quarantine.jsonl', 'parts.quarantine.jsonl', 'parts.quarantine.jsonl']
    """
    if on_bad is not OnBad.QUARANTINE:
        if named is not None:
            raise ParameterError(f"--on-bad {on_bad} does not quarantine records; leave --quarantine out.")
        return None
    if named is not None:
        return named
    if output is not None:
        return _name_beside(output, QUARANTINE)
    if sources[0] == "-":
        return Path(f"stdin.{QUARANTINE}")
    parts = Path(os.path.abspath(sources[0])).parts[1:]
    # A pattern is named after its folder.
    stems = ("".join(letter for letter in Path(part).stem if letter not in "*?[]") for part in reversed(parts))
    return Path(f"{next(filter(None, stems), 'records')}.{QUARANTINE}")


def _name_beside(file: Path, ending: str) -> Path:
    return file.parent / f"{file.stem}.{ending}"


def exit_code(run: Run) -> Code:
    """The exit code of a run that read all records."""
    return Code.REJECTED if run.counts.quarantined or run.counts.skipped or run.source.unread else Code.DONE
