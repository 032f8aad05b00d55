"""The files that a command writes: where they go, and that none of them goes over another."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from redescend.errors import ParameterError
from redescend.files import check_replaceable

QUARANTINE = "quarantine.jsonl"
"""How the name of the file for bad records ends."""


def beside(file: Path, ending: str) -> Path:
    """A file beside another that shares its name.

    Examples
    --------
    >>> beside(Path("models", "houses.safetensors"), "report.html").as_posix()
    'models/houses.report.html'
    """
    return file.with_name(f"{file.stem}.{ending}")


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


@dataclass(frozen=True)
class Outputs:
    """What learning writes; None is not written.

    Parameters
    ----------
    model, rounds, report, quarantine
        The files.
    tidy
        Whether a quarantine without a record is not written: nobody asked for it by name.
    """

    model: Path | None
    rounds: Path | None
    report: Path | None
    quarantine: Path | None
    tidy: bool

    @staticmethod
    def chosen(
        sources: Sequence[str],
        checkpoint: Path | None,
        model: Path | None,
        rounds: Path | None,
        report: Path | None,
        no_report: bool,
        quarantine: Path | None,
        on_bad: str,
    ) -> Outputs:
        """What was asked for, and what goes with it."""
        from redescend.streaming.io.collisions import check_apart, check_outside

        if no_report and report is not None:
            raise ParameterError("Leave out one of --report and --no-report.")
        if quarantine is not None and on_bad != "quarantine":
            raise ParameterError(f"No record is set aside with --on-bad {on_bad}; leave --quarantine out.")
        check_writable(path for path in (model, rounds, report, quarantine) if path is not None)
        if report is None and model is not None and not no_report:
            report = beside(model, "report.html")
        aside = quarantine
        if aside is None and on_bad == "quarantine":
            named = model or rounds
            aside = aside_of(sources) if named is None else beside(named, QUARANTINE)
        outputs = Outputs(model, rounds, report, aside, tidy=quarantine is None)
        check_apart(outputs.written(), checkpoint=checkpoint)
        check_outside(outputs.written(), sources)
        return outputs

    def written(self) -> dict[str, Path]:
        """The files by what is in them."""
        files = {
            "the model": self.model,
            "the report": self.report,
            "the rounds": self.rounds,
            "the quarantine": self.quarantine,
        }
        return {what: path for what, path in files.items() if path is not None}


def check_writable(paths: Iterable[Path]) -> None:
    """Hours of work should not end with a file that cannot be written."""
    for path in paths:
        folder = path.absolute().parent
        if path.is_dir():
            raise ParameterError(f"'{path}' cannot be written, because it is a folder; name a file in it.")
        check_replaceable(path)
        if not folder.is_dir():
            raise ParameterError(f"'{path}' cannot be written, because there is no folder '{folder}'; make it first.")
        if not os.access(folder, os.W_OK):
            raise ParameterError(f"'{path}' cannot be written, because nobody may write to the folder '{folder}'.")
