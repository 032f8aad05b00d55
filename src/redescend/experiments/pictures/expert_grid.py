"""The experts of Algorithm 2: their regret alone, their weights along a run, and the number of distinct ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from redescend.experiments.expert_runs import BEST, PRINTED, ROBUST
from redescend.experiments.pictures import canvas
from redescend.experiments.pictures.canvas import BLUE, GREY, ORANGE, VERMILION, Picture
from redescend.experiments.problems import TITLES
from redescend.experiments.results import Results, format_number
from redescend.numeric import Array

LINES = {PRINTED: (VERMILION, "-"), ROBUST: (BLUE, "-"), "LEARN": (ORANGE, (0, (4.0, 1.5)))}
CEILING = 3e4  # regret is drawn up to this multiple of the lowest


def draw_alone(problem: str, results: Results, folder: Path) -> Picture | None:
    """Regret of every expert of the grid alone, and of the learners that combine them."""
    rows = results.select(experiment="experts", problem=problem, run=0)
    alone, finals = rows.select(measure="meta regret"), rows.select(measure="final regret")
    if not len(alone):
        return None
    titles = canvas.count_titles(alone)
    regrets: dict[str, dict[str, float]] = {}
    for row in finals.table.to_pylist():
        regrets.setdefault(row["count"], {})[row["learner"]] = row["value"]
    title = f"{TITLES[problem]}: every expert of the paper's grid alone, and the learners that combine them"
    handles: dict[str, Any] = {}
    with canvas.open_sheet(folder, f"experts-{problem}-alone", title, 7.6) as sheet:
        panels = sheet.add_panels(list(titles.values()))
        least = min(by_learner[name] for by_learner in regrets.values() for name in (BEST, ROBUST))
        top = min(CEILING * least, float(np.max(alone.column("value"))))
        for axes, count in zip(panels, titles, strict=True):
            selected = alone.select(count=count)
            axes.set(xscale="log", yscale="log")
            dots = axes.scatter(selected.column("a"), np.minimum(selected.column("value"), top), 14.0, color=GREY)
            handles["one expert: a step and a ball"] = dots
            for learner, (color, dash) in LINES.items():
                level = min(regrets[count][learner], top)
                handles[learner] = axes.axhline(level, color=color, linestyle=dash, linewidth=2.0)
            axes.set_ylim(0.5 * least, 2.0 * top)
        canvas.label_outer(panels, "step α of the expert", "clean regret")
        for axes in panels:
            canvas.format_log_axis(axes.yaxis)
        sheet.add_legend_below(handles, 3)
        printed, robust = (
            _format_range([row[name] / row[BEST] for row in regrets.values()]) for name in (PRINTED, ROBUST)
        )
        sheet.caption = (
            "Compare each line with the lowest dot, the best expert in hindsight. Algorithm 2 as printed has "
            f"{printed} times its regret, and with robust weights {robust} times. Dots at the upper edge lie beyond it."
        )
    return sheet.picture


def _format_range(values: list[float]) -> str:
    return f"{format_number(min(values))} to {format_number(max(values))}"


Shares = tuple[Array, Array, Array]  # steps, longest first, rounds, and the weight of each step in each round


def draw_weights(problem: str, results: Results, folder: Path) -> Picture | None:
    """The weight of each step along one run: as printed in the upper row, robust in the lower."""
    rows = results.select(experiment="experts", problem=problem, run=0, measure="weight")
    if not len(rows):
        return None
    titles = canvas.count_titles(rows)
    ends = [next(iter(titles)), next(reversed(titles))]
    cells = [(learner, count) for learner in (PRINTED, ROBUST) for count in ends]
    shares = {cell: _read_shares(rows.select(learner=cell[0], count=cell[1])) for cell in cells}
    title = f"{TITLES[problem]}: weights of the experts by step"
    with canvas.open_sheet(folder, f"experts-{problem}-weights", title, 7.6) as sheet:
        headings = [f"{learner}\n{titles[count]}" for learner, count in cells]
        panels = sheet.add_panels(headings, bottom=0.7, head=0.75)
        for axes, cell in zip(panels, cells, strict=True):
            _draw_shares(axes, shares[cell], relative=cell[0] == ROBUST)
        canvas.label_outer(panels, "round", "share of the weight")
        steps, _, weights = shares[ROBUST, ends[-1]]
        leader = steps[int(np.argmax(weights[:, -1]))]
        uniform = float(np.ptp(shares[PRINTED, ends[-1]][2][:, -1]))
        sheet.caption = (
            "Dark is a long step, light a short one. As printed, the shares of the steps stay within "
            f"{100 * uniform:.2g} % of each other to the end. Robust weights move to shorter steps as outliers arrive, "
            f"and end mostly on 1/{round(1 / leader)} of the longest stable step."
        )
    return sheet.picture


def _read_shares(rows: Results) -> Shares:
    steps, place = np.unique(rows.column("a"), return_inverse=True)
    rounds, at = np.unique(rows.column("round"), return_inverse=True)
    weights = np.zeros((len(steps), len(rounds)))
    weights[len(steps) - 1 - place, at] = rows.column("value")
    return steps[::-1], rounds, weights


def _draw_shares(axes: canvas.Axes, shares: Shares, *, relative: bool) -> None:
    from matplotlib import colormaps

    steps, rounds, weights = shares
    colors = colormaps["cividis"](np.linspace(0.0, 0.95, len(steps)))
    axes.stackplot(rounds, weights, colors=colors, linewidth=0.0)
    below = np.cumsum(weights[:, -1]) - weights[:, -1]
    for place, share in enumerate(weights[:, -1]):
        if share > 0.08:
            color = "white" if place < len(steps) / 2 else "black"
            label = f"longest × $2^{{{np.log2(steps[place]):.0f}}}$" if relative else f"α = {steps[place]:.2g}"
            at = (rounds[-1] * 0.93, below[place] + share / 2)
            axes.annotate(label, at, fontsize=8.5, ha="right", va="center", color=color)
    axes.set(xscale="log", xlim=(1.0, rounds[-1]), ylim=(0.0, 1.0))
    axes.grid(visible=False)


def draw_distinct(results: Results, folder: Path) -> Picture | None:
    """Draw the number of experts of the full grid with distinct actions, round by round."""
    rows = results.select(experiment="experts", run=0, learner=PRINTED, measure="distinct experts")
    problems = [problem for problem in TITLES if len(rows.select(problem=problem))]
    if not problems:
        return None
    parts = []
    handles: dict[str, Any] = {}
    with canvas.open_sheet(folder, "experts-distinct", "Distinct experts in the paper's full grid", 4.6) as sheet:
        panels = sheet.add_panels([TITLES[problem] for problem in problems], bottom=0.9)
        for axes, problem in zip(panels, problems, strict=True):
            selected = rows.select(problem=problem)
            for count, color in zip(selected.unique("count"), (GREY, BLUE, ORANGE, VERMILION), strict=False):
                each = selected.select(count=count)
                label = f"k = {canvas.typeset_outlier_count(count)}"
                (handles[label],) = axes.plot(each.column("round"), each.column("value"), color=color)
            axes.set(xscale="log", ylim=(0.0, 1.05 * float(rows.column("value").max())))
            weights = results.select(experiment="experts", problem=problem, run=0, learner=PRINTED, measure="weight")
            grid = int(selected.column("rounds")[0]) * len(np.unique(weights.column("a")))
            parts.append(f"{int(selected.column('value').max())} of {grid:,} in {TITLES[problem].lower()}")
        canvas.label_outer(panels, "round", "distinct experts")
        sheet.add_legend_below(handles, 4)
        sheet.caption = f"At the end {' and '.join(parts)} are distinct; the others still have the same action."
    return sheet.picture
