"""The suite: every learner's regret relative to the oracle with the best step, as a table and in pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from redescend.experiments import suite
from redescend.experiments.pictures import canvas
from redescend.experiments.pictures.canvas import BLUE, GREY, PALE, VERMILION, WIDTH, Picture, line_style, open_sheet
from redescend.experiments.problems import ORACLE
from redescend.experiments.results import Results, format_number
from redescend.experiments.suite import BEST, SuiteSetting
from redescend.numeric import Array
from redescend.streams import DRIFTS, NOISES

TUNED_ORACLE = f"{ORACLE}{BEST}"
CAP = 1_000.0  # in a geometric mean a larger ratio and divergence count as this, and a smaller ratio as its inverse

GROUPS: dict[str, Callable[[SuiteSetting], bool]] = {
    "all": lambda setting: True,
    "regression": lambda setting: setting.task == "regression",
    "classification": lambda setting: setting.task == "classification",
    "k ≤ T/10": lambda setting: setting.count != "T/4",
    "k = T/4": lambda setting: setting.count == "T/4",
    "adaptive": lambda setting: setting.when == suite.ADAPTIVE,
    "real": lambda setting: setting.source != suite.SYNTHETIC,
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
        free = [learner for learner in listed if learner in suite.UNTUNED]
        usual = [learner for learner in listed if learner not in (*tuned, *free)]
        return {"no step": free, "step 1/√T": usual, "best step in hindsight": tuned}

    def main_learner(self) -> str:
        """The learner that the report is about: the first without a step, or LEARN."""
        return next((name for name in suite.UNTUNED if name in self.learners), "LEARN")

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
    ordered = [*suite.UNTUNED, *suite.PEERS, *(f"{name}{BEST}" for name in suite.PEERS)]
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


NEAR, FAR = 0.3, 30.0  # ends of the axis of ratios

Members = Callable[[SuiteSetting], bool]


def draw_profile(results: Results, folder: Path) -> Picture | None:
    """The share of settings within ρ of the oracle, for every learner: at the step 1/√T, and with the best step."""
    ratios = read_ratios(results)
    if not ratios.settings:
        return None
    title = f"Share of {len(ratios.settings)} settings within ρ of the oracle with the best step in hindsight"
    groups = ratios.group_by_step()
    free = groups.pop("no step")
    with open_sheet(folder, "suite-profile", title, 5.2) as sheet:
        within = np.geomspace(NEAR, FAR, 600)
        panels = sheet.add_panels(list(groups), right=2.2, bottom=0.65, gap=2.5, head=0.65)
        for axes, learners in zip(panels, groups.values(), strict=True):
            axes.axvline(1.0, color=GREY, linewidth=1.0)
            axes.axvline(1.5, color=GREY, linewidth=1.0, linestyle=(0, (2.0, 2.0)))
            for learner in (*free, *learners):
                share = 100.0 * compute_profile(ratios.ratios_of(learner), within)
                axes.plot(within, share, **line_style(learner.removesuffix(BEST)).options)
            axes.set(xscale="log", xlim=(NEAR, FAR), ylim=(0.0, 101.0), xlabel="ρ (log scale)")
            axes.set_xticks([0.3, 1.0, 1.5, 3.0, 10.0, 30.0], ["0.3", "1", "1.5", "3", "10", "30"])
            axes.set_xticks([], minor=True)
            _draw_ranking(axes, ratios, [*free, *learners])
        panels[0].set_ylabel("share of settings, %")
        shares = {learner: ratios.share_within(learner) for learner in ratios.blind_learners()}
        first = sorted(shares, key=lambda name: -shares[name])[:4]
        listed = ", ".join(f"{name} {shares[name]:.0%}" for name in dict.fromkeys([*first, ratios.main_learner()]))
        sheet.caption = (
            "Higher and further left is better: a learner that is never worse than the oracle is at 100 % from ρ = 1 "
            f"on. Within 1.5 (the dashed line): {listed}."
        )
    return sheet.picture


def _draw_ranking(axes: canvas.Axes, ratios: Ratios, learners: list[str]) -> None:
    """List the learners beside the panel by their share within 1.5."""
    shares = {learner: 100.0 * ratios.share_within(learner) for learner in learners}
    place: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
    axes.text(1.03, 1.0, "within 1.5", va="center", fontsize=9.0, color=GREY, **place)
    for row, learner in enumerate(sorted(shares, key=lambda learner: -shares[learner])):
        height = 0.93 - 0.07 * row
        axes.plot([1.03, 1.14], [height, height], **place, **line_style(learner.removesuffix(BEST)).options)
        axes.text(1.31, height, f"{shares[learner]:.0f} %", ha="right", va="center", fontsize=9.0, **place)
        axes.text(1.34, height, learner.removesuffix(BEST), va="center", fontsize=9.0, **place)


def _group_by_level() -> dict[str, dict[str, Members]]:
    """The rows of the heat map: every level of every factor, by factor.

    Feature sizes other than 1 have rows of their own, because a step that ignores them hides all other effects.
    """

    def level(field: str, values: Iterable[str], size: str | None = "1") -> dict[str, Members]:
        def members(value: str) -> Members:
            return lambda setting: getattr(setting, field) == value and size in (None, setting.scales)

        return {value: members(value) for value in values}

    return {
        "": {"all settings": lambda setting: True, **level("task", suite.TASKS, size=None)},
        "feature size": level("scales", suite.SCALES, size=None),
        "outliers, k": level("count", ("0", *suite.COUNTS)),
        "when": level("when", ("random", "periodic", "burst", "first", "last", suite.ADAPTIVE)),
        "what": level("what", suite.WHATS),
        "truth": level("drift", DRIFTS),
        "noise": level("noise", NOISES),
        "real streams": {
            "as they are": lambda setting: setting.source != suite.SYNTHETIC and setting.count == "0",
            "corrupted": lambda setting: setting.source != suite.SYNTHETIC and setting.count != "0",
        },
    }


def draw_kinds(results: Results, folder: Path) -> Picture | None:
    """Geometric mean of the ratios: a row for each level of each factor, a column for each learner."""
    ratios = read_ratios(results)
    if not ratios.settings:
        return None
    title = "Regret as a multiple of the oracle's with the best step, geometric mean"
    heads = {head: learners for head, learners in ratios.group_by_step().items() if learners}
    kinds = {kind: _read_rows(ratios, levels, heads) for kind, levels in _group_by_level().items()}
    kinds = {kind: rows for kind, rows in kinds.items() if rows}
    cell, gap, top, left = 0.232, 0.1, 2.0, 2.35
    height = top + sum(cell * len(rows) + gap for rows in kinds.values()) + 0.1
    with open_sheet(folder, "suite-kinds", title, height) as sheet:
        from matplotlib.colors import LinearSegmentedColormap, LogNorm

        colors = LinearSegmentedColormap.from_list("ratio", [BLUE, "#FFFFFF", VERMILION])
        scale = LogNorm(0.1, 10.0)
        wide = (WIDTH - left - 0.15 - gap * (len(heads) - 1)) / sum(map(len, heads.values()))
        at = top
        for kind, rows in kinds.items():
            place = (0.12 / WIDTH, 1.0 - (at + 0.5 * cell) / height)
            sheet.figure.text(*place, kind, va="center", fontsize=9.5, color=GREY)
            across = left
            for head, learners in heads.items():
                size = (wide * len(learners), cell * len(rows))
                box = (across / WIDTH, 1.0 - (at + size[1]) / height, size[0] / WIDTH, size[1] / height)
                axes = sheet.figure.add_axes(box)
                values = np.array([[rows[row][learner] for learner in learners] for row in rows])
                axes.imshow(values, norm=scale, cmap=colors, aspect="auto")
                _write_values(axes, values)
                axes.set_yticks(range(len(rows)), list(rows) if across == left else [""] * len(rows))
                if at == top:
                    _write_head(axes, head, learners)
                across += size[0] + gap
            at += cell * len(rows) + gap
        sheet.caption = _describe_kinds(ratios.main_learner(), kinds)
    return sheet.picture


def _read_rows(ratios: Ratios, levels: dict[str, Members], heads: dict[str, list[str]]) -> dict[str, dict[str, float]]:
    rows = {}
    for level, members in levels.items():
        cells = {
            learner: ratios.summarize_group(learner, members) for learners in heads.values() for learner in learners
        }
        if all(cells.values()):
            rows[level] = {learner: cell.mean for learner, cell in cells.items() if cell is not None}
    return rows


def _write_values(axes: canvas.Axes, values: Any) -> None:
    for (row, column), value in np.ndenumerate(values):
        text = "≥ 500" if value >= 0.5 * CAP else f"{value:.2f}" if value < 9.95 else f"{value:.0f}"
        far = value > 5.0 or value < 0.2
        axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color="white" if far else "black")
    axes.grid(False)
    axes.tick_params(length=0.0, labelbottom=False, labelsize=9.0)
    for side in axes.spines.values():
        side.set_visible(True)
        side.set_color(PALE)


def _write_head(axes: canvas.Axes, head: str, learners: list[str]) -> None:
    axes.tick_params(labeltop=True)
    axes.set_xticks(
        range(len(learners)),
        [learner.removesuffix(BEST) for learner in learners],
        rotation=55.0,
        ha="left",
        va="bottom",
    )
    axes.set_xticks([], minor=True)
    axes.annotate(head, (0.0, 1.0), (0.0, 97.0), xycoords="axes fraction", textcoords="offset points", fontsize=9.0)


def _describe_kinds(subject: str, kinds: dict[str, dict[str, dict[str, float]]]) -> str:
    levels = {f"{kind} {level}".strip(): row[subject] for kind, rows in kinds.items() for level, row in rows.items()}
    worst = sorted(levels, key=lambda level: -levels[level])[:3]
    listed = ", ".join(f"{level} ({format_number(levels[level])})" for level in worst)
    return (
        "Blue is better than the oracle with the best step, white is equal, vermilion is worse. Colors end at a "
        f"factor of 10, and a ratio above {CAP:,.0f} counts as {CAP:,.0f}. Rows from outliers to noise have "
        f"features of size 1. {subject} loses most with: {listed}."
    )
