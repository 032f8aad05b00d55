"""The suite: how often each learner is within a factor of the oracle, and its ratios by kind of setting."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from redescend.experiments.pictures import canvas
from redescend.experiments.pictures.canvas import BLUE, GREY, PALE, VERMILION, WIDTH, Picture, line_style, open_sheet
from redescend.experiments.results import Results, format_number
from redescend.experiments.suite import ADAPTIVE, BEST, COUNTS, SCALES, SYNTHETIC, TASKS, WHATS, SuiteSetting
from redescend.experiments.suite_ratios import CAP, Ratios, compute_profile, read_ratios
from redescend.streams import DRIFTS, NOISES

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
                axes.plot(within, share, **line_style(_strip_suffix(learner)).options)
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


def _strip_suffix(learner: str) -> str:
    return learner.removesuffix(BEST)


def _draw_ranking(axes: canvas.Axes, ratios: Ratios, learners: list[str]) -> None:
    """List the learners beside the panel by their share within 1.5."""
    shares = {learner: 100.0 * ratios.share_within(learner) for learner in learners}
    place: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
    axes.text(1.03, 1.0, "within 1.5", va="center", fontsize=9.0, color=GREY, **place)
    for row, learner in enumerate(sorted(shares, key=lambda learner: -shares[learner])):
        height = 0.93 - 0.07 * row
        axes.plot([1.03, 1.14], [height, height], **place, **line_style(_strip_suffix(learner)).options)
        axes.text(1.31, height, f"{shares[learner]:.0f} %", ha="right", va="center", fontsize=9.0, **place)
        axes.text(1.34, height, _strip_suffix(learner), va="center", fontsize=9.0, **place)


def _group_by_level() -> dict[str, dict[str, Members]]:
    """The rows of the heat map: every level of every factor, by factor.

    Feature sizes other than 1 have rows of their own, because a step that ignores them hides all other effects.
    """

    def level(field: str, values: Iterable[str], size: str | None = "1") -> dict[str, Members]:
        def members(value: str) -> Members:
            return lambda setting: getattr(setting, field) == value and size in (None, setting.scales)

        return {value: members(value) for value in values}

    return {
        "": {"all settings": lambda setting: True, **level("task", TASKS, size=None)},
        "feature size": level("scales", SCALES, size=None),
        "outliers, k": level("count", ("0", *COUNTS)),
        "when": level("when", ("random", "periodic", "burst", "first", "last", ADAPTIVE)),
        "what": level("what", WHATS),
        "truth": level("drift", DRIFTS),
        "noise": level("noise", NOISES),
        "real streams": {
            "as they are": lambda setting: setting.source != SYNTHETIC and setting.count == "0",
            "corrupted": lambda setting: setting.source != SYNTHETIC and setting.count != "0",
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
        range(len(learners)), [_strip_suffix(learner) for learner in learners], rotation=55.0, ha="left", va="bottom"
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
