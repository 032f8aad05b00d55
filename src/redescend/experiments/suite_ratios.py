"""The results of the suite: every learner's regret in every setting, relative to the oracle with the best step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from redescend.experiments.problems import ORACLE
from redescend.experiments.results import Results, format_number
from redescend.experiments.suite import ADAPTIVE, BEST, PEERS, SYNTHETIC, UNTUNED, SuiteSetting
from redescend.numeric import Array

TUNED_ORACLE = f"{ORACLE}{BEST}"
CAP = 1_000.0  # in a geometric mean a larger ratio and divergence count as this, and a smaller ratio as its inverse

GROUPS: dict[str, Callable[[SuiteSetting], bool]] = {
    "all": lambda setting: True,
    "regression": lambda setting: setting.task == "regression",
    "classification": lambda setting: setting.task == "classification",
    "k ≤ T/10": lambda setting: setting.count != "T/4",
    "k = T/4": lambda setting: setting.count == "T/4",
    "adaptive": lambda setting: setting.when == ADAPTIVE,
    "real": lambda setting: setting.source != SYNTHETIC,
}
"""The columns of the table."""


class GroupSummary(NamedTuple):
    """A learner's ratios in a group of settings: geometric mean, shares within 1.2 and 1.5, and the worst."""

    settings: int
    mean: float
    within_12: float
    within_15: float
    worst: float


@dataclass(frozen=True, eq=False)
class Ratios:
    """Ratios to the oracle with the best step, settings × learners; infinite where a learner diverged."""

    settings: list[SuiteSetting]
    learners: list[str]
    values: Array

    def ratios_of(self, learner: str) -> Array:
        return self.values[:, self.learners.index(learner)]

    def summarize_group(self, learner: str, group: Callable[[SuiteSetting], bool]) -> GroupSummary | None:
        """A learner in a group, or None if the group has no setting."""
        ratios = self.ratios_of(learner)[[bool(group(setting)) for setting in self.settings]]
        if not len(ratios):
            return None
        within = [float(np.mean(ratios <= bound)) for bound in (1.2, 1.5)]
        mean = np.exp(np.log(np.clip(ratios, 1.0 / CAP, CAP)).mean())
        return GroupSummary(len(ratios), float(mean), within[0], within[1], float(ratios.max()))

    def share_within(self, learner: str) -> float:
        return float(np.mean(self.ratios_of(learner) <= 1.5))

    def blind_learners(self) -> list[str]:
        """The learners that do not know which rounds are clean."""
        return [learner for learner in self.learners if not learner.startswith(ORACLE)]

    def group_by_step(self) -> dict[str, list[str]]:
        """The learners by how they got their step, without the oracle of the ratios."""
        listed = [learner for learner in self.learners if learner != TUNED_ORACLE]
        tuned = [learner for learner in listed if learner.endswith(BEST)]
        free = [learner for learner in listed if learner in UNTUNED]
        usual = [learner for learner in listed if learner not in (*tuned, *free)]
        return {"no step": free, "step 1/√T": usual, "best step in hindsight": tuned}

    def main_learner(self) -> str:
        """The learner that the report is about: the first without a step, or LEARN."""
        return next((name for name in UNTUNED if name in self.learners), "LEARN")

    def describe_worst_settings(self, learner: str, number: int = 10) -> list[str]:
        """The settings with a learner's largest ratios, the worst first, and who is best there."""
        blind, values = self.blind_learners(), self.ratios_of(learner)
        sentences = []
        for row in np.argsort(-values, kind="stable")[:number]:
            ratios = {name: float(self.ratios_of(name)[row]) for name in blind}
            best = min(ratios, key=lambda name: ratios[name])
            ratio = f"{format_number(values[row])} times the oracle" if values[row] < np.inf else "diverged"
            lowest = f"lowest there: {best}, {format_number(ratios[best])}"
            sentences.append(f"{self.settings[row].description}: {ratio} ({lowest})")
        return sentences


def compute_profile(ratios: Array, within: Array) -> Array:
    """The share of settings whose ratio is at most each of these."""
    return np.searchsorted(np.sort(ratios), within, side="right") / len(ratios)


def read_ratios(results: Results) -> Ratios:
    """The ratios in every setting that all learners have finished, in the order of the results."""
    rows = results.select(experiment="suite")
    regrets: dict[SuiteSetting, dict[str, float]] = {}
    for measure in ("final regret", "diverged"):
        for row in rows.select(measure=measure).table.to_pylist():
            setting = SuiteSetting.parse(row["problem"], row["count"])
            regrets.setdefault(setting, {})[row["learner"]] = row["value"] if measure == "final regret" else np.inf
    learners = _sort_learners({name for by_learner in regrets.values() for name in by_learner})
    complete = [(setting, row) for setting, row in regrets.items() if len(row) == len(learners)]
    usable = {setting: row for setting, row in complete if row[TUNED_ORACLE] < np.inf}
    values = [[row[name] / row[TUNED_ORACLE] for name in learners] for row in usable.values()]
    return Ratios(list(usable), learners, np.array(values).reshape(len(values), len(learners)))


def _sort_learners(learners: set[str]) -> list[str]:
    """Learners without a step, then peers at 1/√T, then with the best step, in the order of the registries."""
    ordered = [*UNTUNED, *PEERS, *(f"{name}{BEST}" for name in PEERS)]
    return [*(name for name in ordered if name in learners), *sorted(learners - {*ordered})]


def make_suite_section(results: Results) -> dict[str, Any] | None:
    """The report's table of ratios and worst settings, or None without results."""
    ratios = read_ratios(results)
    if not ratios.settings:
        return None
    kinds = {kind: members for kind, members in ratios.group_by_step().items() if members}
    listed = [learner for members in kinds.values() for learner in members]
    cells = {
        (learner, group): ratios.summarize_group(learner, members)
        for learner in listed
        for group, members in GROUPS.items()
    }
    full = {place: cell for place, cell in cells.items() if cell is not None}
    columns = {group: cell.settings for (learner, group), cell in full.items() if learner == listed[0]}
    blind = ratios.blind_learners()
    subject = ratios.main_learner()
    return {
        "answer": _summarize_suite(ratios),
        "settings": len(ratios.settings),
        "rounds": int(results.select(experiment="suite").column("rounds").max()),
        "columns": columns,
        "kinds": kinds,
        "cells": {place: format_cell(cell) for place, cell in full.items()},
        "best": {(min(blind, key=lambda learner: full[learner, group].mean), group) for group in columns},
        "subject": subject,
        "losses": ratios.describe_worst_settings(subject),
    }


def _summarize_suite(ratios: Ratios) -> str:
    """The suite in one sentence: the subject, and the best of the others."""
    subject = ratios.main_learner()
    within = {learner: ratios.share_within(learner) for learner in ratios.blind_learners()}
    family = subject.partition(",")[0]
    best = max((learner for learner in within if not learner.startswith(family)), key=lambda learner: within[learner])
    return (
        f"In {len(ratios.settings)} settings of the suite, {subject} is within 1.5 times the regret of an oracle with "
        f"the best step in {within[subject]:.0%} of them; the best of the others, {best}, in {within[best]:.0%}."
    )


def format_cell(cell: GroupSummary) -> tuple[str, str]:
    """The mean of a cell, and the line below it.

    >>> format_cell(GroupSummary(settings=8, mean=1.234, within_12=0.5, within_15=0.75, worst=float("inf")))
    ('1.23', '50 / 75 %, diverged')
    """
    shares = f"{100.0 * cell.within_12:.0f} / {100.0 * cell.within_15:.0f} %"
    return format_number(cell.mean), f"{shares}, {format_number(cell.worst)}"
