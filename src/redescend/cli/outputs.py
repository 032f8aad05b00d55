"""Default names of the files that a command writes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from redescend.errors import ParameterError

if TYPE_CHECKING:
    from redescend.streaming.config import Outputs

QUARANTINE = "quarantine.jsonl"
"""How the name of the file for bad records ends."""


def beside(file: Path, ending: str) -> Path:
    """A file beside another that shares its name.

    Examples
    --------
    >>> beside(Path("models", "houses.safetensors"), "report.html").as_posix()
    'models/houses.report.html'
    """
    return file.parent / f"{file.stem}.{ending}"


def aside_of(sources: Sequence[str]) -> Path:
    """The file for bad records, in this folder, where no other file gives it a name: called after the first source.

    Examples
    --------
    >>> [str(aside_of([source])) for source in ("q1.csv", "-", "parts/*.csv", "data/parts/")]
    ['q1.quarantine.jsonl', 'stdin.quarantine.jsonl', 'parts.quarantine.jsonl', 'parts.quarantine.jsonl']
    """
    if sources[0] == "-":
        return Path(f"stdin.{QUARANTINE}")
    parts = Path(os.path.abspath(sources[0])).parts[1:]
    # Of a pattern, the folder that it is in has a name.
    stems = ("".join(letter for letter in Path(part).stem if letter not in "*?[]") for part in reversed(parts))
    return Path(f"{next(filter(None, stems), 'records')}.{QUARANTINE}")


def choose_outputs(
    sources: Sequence[str],
    on_bad: str,
    model: Path | None,
    rounds: Path | None,
    report: Path | None,
    no_report: bool,
    quarantine: Path | None,
) -> Outputs:
    """The files to write: those that were named, the report beside the model, and a quarantine if it is needed."""
    from redescend.streaming.config import Outputs

    if no_report and report is not None:
        raise ParameterError("Leave out one of --report and --no-report.")
    if quarantine is not None and on_bad != "quarantine":
        raise ParameterError(f"--on-bad {on_bad} quarantines no record; leave --quarantine out.")
    if report is None and model is not None and not no_report:
        report = beside(model, "report.html")
    rejected = quarantine
    if rejected is None and on_bad == "quarantine":
        named = model or rounds
        rejected = aside_of(sources) if named is None else beside(named, QUARANTINE)
    return Outputs(model, rounds, report, rejected, keep_empty_quarantine=quarantine is not None)
