"""One HTML file that a person reads: the answer, the tables, the pictures, the paper's claims, and how it was made.

The file needs nothing beside it and asks for nothing: pictures and style are inside, there is no script.
"""

from __future__ import annotations

import base64
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata, resources
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import redescend
from redescend.errors import MissingExtraError
from redescend.experiments.claims import Judgement, judge
from redescend.experiments.experts.section import section as experts_section
from redescend.experiments.problems import PAPER, YARDSTICK, ridge, svm
from redescend.experiments.results import Results
from redescend.experiments.statistics import CLEAR, COUNTS, Finals, mean_and_error, number, p_value
from redescend.experiments.suite.section import section as suite_section
from redescend.files import replacing
from redescend.numeric import Array

if TYPE_CHECKING:
    from redescend.experiments.pictures import Picture

_PROBLEMS = {"ridge": ("Online ridge regression", ridge), "svm": ("Online support vector machine", svm)}
_PAPERS = ("ridge", "svm", "boundaries", "sweep")
_EXPERIMENTS = (*_PAPERS, "experts", "suite")
_PACKAGES = ("numpy", "numba", "scipy", "pyarrow", "joblib", "matplotlib")
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Row:
    """The final regret of a learner at an outlier count.

    The best are the lowest of those that are not told which rounds are clean, and all that equal it in every run; they
    alone carry the runner-up and the p-value of the paired test against it.
    """

    learner: str
    count: str
    k: int
    runs: int
    mean: float
    error: float
    best: bool
    runner_up: str
    p: float

    @property
    def told(self) -> bool:
        return self.learner == YARDSTICK

    @property
    def text(self) -> str:
        if isnan(self.error) or self.mean >= 1e7:
            return number(self.mean)
        decimals = 1 if self.error < 10.0 else 0
        return f"{self.mean:,.{decimals}f} ± {self.error:,.{decimals}f}"

    @property
    def lead(self) -> str:
        """How sure the lead over the runner-up is, in words."""
        if not self.runner_up:
            return "nothing to compare with"
        if isnan(self.p):
            return f"one run: the lead over {self.runner_up} is not tested"
        chance = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.2g}"
        return f"{'clearly below' if self.p < CLEAR else 'not distinguishable from'} {self.runner_up} ({chance})"


def summary(results: Results, problem: str) -> list[Row]:
    """The table of final regret: a row for each learner and outlier count, in the order of the results.

    Examples
    --------
    >>> import numpy as np
    >>> from redescend.experiments.tasks import table
    >>> def block(learner, value):
    ...     here = dict(experiment="svm", problem="svm", run=np.arange(4), rounds=9, count="0", k=0, round=9)
    ...     return {**here, "learner": learner, "measure": "regret", "value": value + np.array([0.0, 1.0, 2.0, 4.0])}
    >>> rows = summary(Results(table([block("LEARN", 7.0), block("OGD", 5.0)])), "svm")
    >>> [(row.learner, row.text, row.best) for row in rows]
    [('LEARN', '8.8 ± 0.9', False), ('OGD', '6.8 ± 0.9', True)]
    >>> rows[1].lead
    'clearly below LEARN (p < 0.001)'
    """
    finals = Finals(results, problem)
    counts = [count for count in COUNTS if count in finals.k]
    rows = []
    for count in counts:
        cells = {name: runs for (where, name), runs in finals.cells.items() if where == count}
        best, runner_up, p = _winner({name: runs for name, runs in cells.items() if name != YARDSTICK})
        for name, runs in cells.items():
            mean, error = mean_and_error(_array(runs, runs))
            own = (True, runner_up, p) if name in best else (False, "", nan)
            rows.append(Row(name, count, finals.k[count], len(runs), mean, error, *own))
    return rows


def _array(runs: dict[int, float], kept: Iterable[int]) -> Array:
    return np.array([runs[run] for run in sorted(kept)])


def _winner(cells: dict[str, dict[int, float]]) -> tuple[set[str], str, float]:
    """The lowest and its equals, the lowest of the others, and the p-value between them in the runs that both have."""
    ranked = sorted(cells, key=lambda name: mean_and_error(_array(cells[name], cells[name]))[0])
    if not ranked:
        return set(), "", nan
    first = cells[ranked[0]]
    best = {name for name in ranked if cells[name] == first}
    for name in ranked:
        if name not in best:
            shared = first.keys() & cells[name].keys()
            return best, name, p_value(_array(first, shared), _array(cells[name], shared))
    return best, "", nan


@dataclass(frozen=True)
class _Shown:
    """A picture as the page holds it."""

    name: str
    title: str
    see: str
    file: str
    data: str
    width: int
    height: int

    @property
    def wide(self) -> bool:
        return self.width > 1.2 * self.height


def _embedded(picture: Picture) -> _Shown | None:
    """The picture with its PNG as text, or nothing if there is no such PNG."""
    try:
        content = Path(picture.png).read_bytes()
    except OSError:
        return None
    if not content.startswith(_PNG):
        return None
    width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
    data = base64.b64encode(content).decode("ascii")
    return _Shown(picture.name, picture.title, picture.see, Path(picture.svg).name, data, width, height)


def _section(name: str) -> str:
    """The part of the page that a picture belongs to."""
    for own in ("suite", "experts"):
        if name.startswith(own):
            return own
    if "ridge" in name:
        return "ridge"
    return "svm" if "svm" in name or name == "boundaries" else "more"


def _problem(results: Results, name: str) -> dict[str, Any]:
    title, make = _PROBLEMS[name]
    rows = summary(results, name)
    learners = list(dict.fromkeys(row.learner for row in rows))
    cells = {(row.learner, row.count): row for row in rows}
    groups = {
        "the paper's four": [learner for learner in learners if learner in PAPER],
        "what the paper leaves out": [learner for learner in learners if learner not in (*PAPER, YARDSTICK)],
        "told which rounds are clean": [learner for learner in learners if learner == YARDSTICK],
    }
    rounds = Finals(results, name).rounds
    leads = {row.count: row for row in reversed(rows) if row.best}
    return {
        "name": name,
        "title": title,
        "rounds": rounds,
        "runs": max((row.runs for row in rows), default=0),
        "columns": {row.count: row.k for row in rows},
        "groups": {group: members for group, members in groups.items() if members},
        "cells": cells,
        "leads": leads,
        "equals": {
            count: [row.learner for row in rows if row.best and row.count == count and row is not leads[count]]
            for count in leads
        },
        "problem": make(rounds) if rounds else None,
    }


def _answer(problems: list[dict[str, Any]], judged: list[Judgement]) -> list[str]:
    """The whole page in a few sentences."""
    verdicts = [judgement.verdict for judgement in judged if judgement.claim.papers]
    tested = len(verdicts) - verdicts.count("not run")
    if not tested:
        return ["No claim of the paper could be tested with these results."]
    said = [
        f"Of the {tested} claims of the paper that these runs can test, {verdicts.count('supported')} are supported, "
        f"{verdicts.count('partly')} in part, and {verdicts.count('contradicted')} contradicted."
    ]
    for problem in problems:
        cells = problem["cells"]
        many, none = cells.get(("LEARN", "T^⅔")), cells.get(("LEARN", "0"))
        if many and none and "T^⅔" in problem["leads"]:
            best, yardstick = problem["leads"]["T^⅔"], cells.get((YARDSTICK, "T^⅔"))
            perfect = f"; {number(yardstick.mean)} is what knowing the clean rounds gives" if yardstick else ""
            lowest = "the lowest" if best.learner == "LEARN" else f"the lowest is {number(best.mean)}, {best.learner}"
            said.append(
                f"{problem['title']}: LEARN's regret is {number(none.mean)} without outliers and {number(many.mean)} "
                f"with T^⅔ of them ({lowest}{perfect})."
            )
    smaller = [judgement for judgement in judged if judgement.claim.name.startswith("smaller-step")]
    same = [judgement for judgement in smaller if judgement.verdict in ("supported", "partly")]
    if same:
        often = "everywhere" if all(judgement.verdict == "supported" for judgement in smaller) else "in most settings"
        said.append(
            f"What the paper leaves out: {often if len(same) == len(smaller) else 'in part'}, plain gradient descent "
            "at a step 11 times smaller does as well as LEARN or better, so most of LEARN's robustness at the paper's "
            "settings is that of a small step."
        )
    return said


def _asked(options: dict[str, Any]) -> tuple[str, ...]:
    chosen = options.get("experiment", "all")
    names = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    return _PAPERS if "all" in names else tuple(name for name in names if name in _EXPERIMENTS)


def _missing(results: Results, options: dict[str, Any], lost: list[str]) -> list[str]:
    """What was asked for and is not here, a sentence each."""
    said = []
    for name in _asked(options):
        runs = len(results.select(experiment=name).unique("run"))
        wanted = options.get("runs") if name in _PROBLEMS else None
        if not runs:
            said.append(f"{name}: nothing has been computed yet.")
        elif wanted and runs < wanted:
            said.append(f"{name}: {runs} of {wanted} runs; every number below is of these.")
    return said + [f"The picture {name} could not be read." for name in lost]


def _other_lengths(problems: list[dict[str, Any]]) -> list[str]:
    """A claim is made at the paper's T; a reader must know if these runs have another."""
    said = []
    for problem in problems:
        ours, papers = problem["rounds"], _PROBLEMS[problem["name"]][1]().rounds
        if ours not in (0, papers):
            said.append(
                f"{problem['title']} has T = {ours:,} here and {papers:,} in the paper: verdicts are of this length, "
                "and the step 1/√T may be too large for it."
            )
    return said


def _versions() -> dict[str, str]:
    found = {"redescend": redescend.__version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return {**found, "platform": platform.platform(), "cores": str(os.cpu_count())}


def write(
    results: Results,
    pictures: list[Picture],
    folder: Path,
    *,
    options: dict[str, Any],
    command: str,
    seconds: dict[str, float],
    notes: list[str],
) -> Path:
    """Write report.html into the folder, in full or not at all.

    Parameters
    ----------
    results : Results
        All rows; if some are missing, the report says which.
    pictures : list of Picture
        In the order in which they are shown.
    folder : Path
        Where the report is written and where the tidy data are.
    options : dict
        The settings of the command, shown as they are; ``experiment`` and ``runs`` say what a complete result has.
    command : str
        The command that made it.
    seconds : dict
        Time by part.
    notes : list of str
        What a reader must know first, such as an interruption.

    Returns
    -------
    Path
        The report.
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise MissingExtraError(
            "The report needs Jinja2; install it with: pip install 'redescend[experiments]'"
        ) from None
    shown = {picture.name: _embedded(picture) for picture in pictures}
    lost = [name for name, found in shown.items() if found is None]
    sections: dict[str, list[_Shown]] = {"ridge": [], "svm": [], "more": [], "experts": [], "suite": []}
    for found in shown.values():
        if found is not None:
            sections[_section(found.name)].append(found)
    problems = [_problem(results, name) for name in _PROBLEMS]
    judged = judge(results)
    suite = suite_section(results)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    source = resources.files("redescend.experiments").joinpath("template.html.j2").read_text(encoding="utf-8")
    page = environment.from_string(source).render(
        answer=[*_answer(problems, judged), *([suite["answer"]] if suite else [])],
        problems=problems,
        suite=suite,
        experts=experts_section(results),
        pictures=sections,
        judged=judged,
        titles={found.name: found.title for found in shown.values() if found is not None},
        missing=_missing(results, options, lost),
        notes=notes + _other_lengths(problems),
        options=options,
        command=command,
        seconds=seconds,
        versions=_versions(),
        clear=CLEAR,
        folder=str(folder),
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.html"
    with replacing(path) as file:
        file.write(f"{page.strip()}\n".encode())
    return path
