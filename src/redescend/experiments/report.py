"""The report as one self-contained HTML file: the answer, tables, pictures, claims, and how it was made."""

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
from redescend.errors import needs_extra
from redescend.experiments import paper
from redescend.experiments.claims import Judgement, judge
from redescend.experiments.pictures.suite_ratios import make_suite_section
from redescend.experiments.problems import ORACLE, PAPER, PROBLEMS, TITLES
from redescend.experiments.results import (
    CLEAR,
    COUNTS,
    Finals,
    Results,
    format_mean,
    format_number,
    mean_and_error,
    p_value,
)
from redescend.files import replace_file
from redescend.numeric import Array

if TYPE_CHECKING:
    from redescend.experiments.pictures import Picture

_EXPERIMENTS_OF_PAPER = ("ridge", "svm", "boundaries", "sweep")
_PACKAGES = ("numpy", "numba", "scipy", "pyarrow", "joblib", "matplotlib")
_SECTIONS = {"suite": "suite", "experts": "experts", "ridge": "ridge", "svm": "svm", "boundaries": "svm"}
"""The section of a picture, by the first of these words in its name; any other is in 'more'."""

_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Row:
    """The final regret of a learner at an outlier count.

    The best are the lowest of the learners that do not know the clean rounds, and all that equal it in every run. Only
    they have a runner-up, and the p-value of the paired test against it.
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
    def text(self) -> str:
        return format_mean(self.mean, self.error)

    @property
    def lead(self) -> str:
        """The lead over the runner-up in words."""
        if not self.runner_up:
            return "no other learner to compare with"
        if isnan(self.p):
            return f"one run, so the lead over {self.runner_up} is not tested"
        chance = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.2g}"
        return f"{'clearly below' if self.p < CLEAR else 'not clearly below'} {self.runner_up} ({chance})"


def summarize_regret(results: Results, problem: str) -> list[Row]:
    """The table of final regret: a row for each learner and outlier count, in the order of the results."""
    finals = Finals(results, problem)
    rows = []
    for count in (count for count in COUNTS if count in finals.k):
        cells = {name: runs for (where, name), runs in finals.cells.items() if where == count}
        best, runner_up, p = _find_winner({name: runs for name, runs in cells.items() if name != ORACLE})
        for name, runs in cells.items():
            mean, error = mean_and_error(_sort_by_run(runs, runs))
            rank = (True, runner_up, p) if name in best else (False, "", nan)
            rows.append(Row(name, count, finals.k[count], len(runs), mean, error, *rank))
    return rows


def _sort_by_run(regrets: dict[int, float], runs: Iterable[int]) -> Array:
    return np.array([regrets[run] for run in sorted(runs)])


def _find_winner(cells: dict[str, dict[int, float]]) -> tuple[set[str], str, float]:
    """The lowest and its equals, the lowest of the others, and the p-value between them in their common runs."""
    ranked = sorted(cells, key=lambda name: mean_and_error(_sort_by_run(cells[name], cells[name]))[0])
    if not ranked:
        return set(), "", nan
    first = cells[ranked[0]]
    best = {name for name in ranked if cells[name] == first}
    for name in ranked:
        if name not in best:
            shared = first.keys() & cells[name].keys()
            return best, name, p_value(_sort_by_run(first, shared), _sort_by_run(cells[name], shared))
    return best, "", nan


def _embed_picture(picture: Picture) -> dict[str, Any] | None:
    """The picture with its PNG as text, or None if the file is not a PNG."""
    content = picture.png.read_bytes() if picture.png.is_file() else b""
    if not content.startswith(_PNG):
        return None
    width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
    return {
        **picture._asdict(),
        "file": picture.svg.name,
        "data": base64.b64encode(content).decode("ascii"),
        "width": width,
        "height": height,
        "wide": width > 1.2 * height,
    }


def _describe_problem(results: Results, name: str) -> dict[str, Any]:
    rows = summarize_regret(results, name)
    learners = list(dict.fromkeys(row.learner for row in rows))
    groups = {
        "in the paper": [learner for learner in learners if learner in PAPER],
        "not in the paper": [learner for learner in learners if learner not in (*PAPER, ORACLE)],
        "knows which rounds are clean": [learner for learner in learners if learner == ORACLE],
    }
    rounds = Finals(results, name).rounds
    leads = {row.count: row for row in reversed(rows) if row.best}
    return {
        "name": name,
        "title": TITLES[name],
        "rounds": rounds,
        "runs": max((row.runs for row in rows), default=0),
        "columns": {row.count: row.k for row in rows},
        "groups": {group: members for group, members in groups.items() if members},
        "cells": {(row.learner, row.count): row for row in rows},
        "leads": leads,
        "equals": {
            count: [row.learner for row in rows if row.best and row.count == count and row is not leads[count]]
            for count in leads
        },
        "problem": PROBLEMS[name](rounds) if rounds else None,
    }


def _summarize_findings(problems: list[dict[str, Any]], judged: list[Judgement]) -> list[str]:
    """The report in a few sentences."""
    verdicts = [judgement.verdict for judgement in judged if judgement.claim.in_paper]
    tested = len(verdicts) - verdicts.count("not run")
    if not tested:
        return ["These results cannot test any claim of the paper."]
    sentences = [
        f"Of the {tested} claims of the paper that these runs can test, {verdicts.count('supported')} are supported, "
        f"{verdicts.count('partly')} partly supported and {verdicts.count('contradicted')} contradicted."
    ]
    for problem in problems:
        cells = problem["cells"]
        many, none = cells.get(("LEARN", "T^⅔")), cells.get(("LEARN", "0"))
        if many and none and "T^⅔" in problem["leads"]:
            best, oracle = problem["leads"]["T^⅔"], cells.get((ORACLE, "T^⅔"))
            others = f"the lowest, {format_number(best.mean)}, is that of {best.learner}"
            lowest = "the lowest" if best.learner == "LEARN" else others
            perfect = f"; the oracle's is {format_number(oracle.mean)}" if oracle else ""
            sentences.append(
                f"{problem['title']}: LEARN's regret is {format_number(none.mean)} without outliers and "
                f"{format_number(many.mean)} with T^⅔ outliers ({lowest}{perfect})."
            )
    smaller = [judgement.verdict for judgement in judged if judgement.claim.name.startswith("smaller-step")]
    same = [verdict for verdict in smaller if verdict in ("supported", "partly")]
    if same:
        most = "in most settings" if "partly" in smaller else "everywhere"
        where = most if len(same) == len(smaller) else "in some settings"
        sentences.append(
            "What the paper leaves out: plain gradient descent at a step 11 times smaller does at least as well as "
            f"LEARN {where}, so most of LEARN's robustness at the paper's settings comes from its small step."
        )
    return sentences


def _list_missing(results: Results, options: dict[str, Any], unreadable: list[str]) -> list[str]:
    """A sentence for each requested part that is not there."""
    chosen = options.get("experiment", "all")
    names = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    sentences = []
    for name in _EXPERIMENTS_OF_PAPER if "all" in names else names:
        if name not in (*_EXPERIMENTS_OF_PAPER, "experts", "suite"):
            continue
        runs = len(results.select(experiment=name).unique("run"))
        requested = options.get("runs") if name in PROBLEMS else None
        if not runs:
            sentences.append(f"{name}: no results yet.")
        elif requested and runs < requested:
            sentences.append(f"{name}: {runs} of {requested} runs are finished; all numbers are from these.")
    return sentences + [f"The picture {name} could not be read." for name in unreadable]


def _note_lengths(problems: list[dict[str, Any]]) -> list[str]:
    """A note for each problem whose runs are not as long as the paper's."""
    return [
        f"{problem['title']} has T = {problem['rounds']:,} here and {PROBLEMS[problem['name']]().rounds:,} in the "
        "paper: verdicts apply to this length, and the step 1/√T may be too large for it."
        for problem in problems
        if problem["rounds"] not in (0, PROBLEMS[problem["name"]]().rounds)
    ]


def _list_versions() -> dict[str, str]:
    versions = {"redescend": redescend.__version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {**versions, "platform": platform.platform(), "cores": str(os.cpu_count())}


def write_report(
    results: Results,
    pictures: list[Picture],
    folder: Path,
    *,
    options: dict[str, Any],
    command: str,
    seconds: dict[str, float],
    notes: list[str],
) -> Path:
    """Write report.html into the folder and return its path; `notes` are shown first.

    The `options` are shown as they are; ``experiment`` and ``runs`` define a complete result.
    """
    with needs_extra("The report needs Jinja2", "experiments"):
        from jinja2 import Environment, StrictUndefined
    embedded = {drawn.name: _embed_picture(drawn) for drawn in pictures}
    sections: dict[str, list[dict[str, Any]]] = {name: [] for name in ("ridge", "svm", "more", "experts", "suite")}
    for name, picture in embedded.items():
        if picture is not None:
            sections[next((section for word, section in _SECTIONS.items() if word in name), "more")].append(picture)
    problems = [_describe_problem(results, name) for name in PROBLEMS]
    judged = judge(results)
    suite = make_suite_section(results)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    source = resources.files("redescend.experiments").joinpath("template.html.j2").read_text(encoding="utf-8")
    page = environment.from_string(source).render(
        answer=[*_summarize_findings(problems, judged), *([suite["answer"]] if suite else [])],
        problems=problems,
        suite=suite,
        experts=paper.make_tables(results),
        pictures=sections,
        judged=judged,
        titles={name: picture["title"] for name, picture in embedded.items() if picture is not None},
        missing=_list_missing(results, options, [name for name, picture in embedded.items() if picture is None]),
        notes=notes + _note_lengths(problems),
        options=options,
        command=command,
        seconds=seconds,
        versions=_list_versions(),
        clear=CLEAR,
        folder=str(folder),
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.html"
    with replace_file(path) as file:
        file.write(f"{page.strip()}\n".encode())
    return path
