"""Experts: what each is worth alone, who holds the weight along a run, and how many of them differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from redescend.experiments.experts.compute import BEST, PRINTED, ROBUST
from redescend.experiments.pictures.style import (
    BLUE,
    GREY,
    ORANGE,
    VERMILION,
    Picture,
    files,
    legend_below,
    log_axis,
    number,
    panels,
    share_axes,
    sheet,
    titles_of,
)
from redescend.experiments.pictures.subjects import TITLES
from redescend.experiments.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = {PRINTED: (VERMILION, "-"), ROBUST: (BLUE, "-"), "LEARN": (ORANGE, (0, (4.0, 1.5)))}
CEILING = 3e4
"""Regret is drawn up to so many times the lowest."""


def draw_alone(problem: str, results: Results, folder: Path) -> Picture | None:
    """What every expert of the grid loses by itself, beside the learners that combine them."""
    rows = results.select(experiment="experts", problem=problem, run=0)
    alone, finals = rows.select(measure="meta regret"), rows.select(measure="final regret")
    if not len(alone):
        return None
    titles = titles_of(alone)
    name = f"experts-{problem}-alone"
    title = f"{TITLES[problem]}: every expert of the paper's grid alone, and what combines them"
    handles: dict[str, Any] = {}
    with sheet(folder, name, title, 7.6) as figure:
        drawn = panels(figure, list(titles.values()))
        least = min(_value(finals.select(count=count), learner) for count in titles for learner in (BEST, ROBUST))
        top = min(CEILING * least, float(np.max(alone.column("value"))))
        for axes, count in zip(drawn, titles, strict=True):
            handles |= _alone(axes, alone.select(count=count), finals.select(count=count), top)
            axes.set_ylim(0.5 * least, 2.0 * top)
        share_axes(drawn, "step α of the expert", "clean regret")
        for axes in drawn:
            log_axis(axes.yaxis)
        legend_below(figure, handles, 3)
    return Picture(name, title, _see(finals, list(titles)), *files(folder, name))


def _alone(axes: Axes, alone: Results, finals: Results, ceiling: float) -> dict[str, Any]:
    values = np.minimum(alone.column("value"), ceiling)
    axes.set(xscale="log", yscale="log")
    handles: dict[str, Any] = {
        "one expert: a step and a ball": axes.scatter(alone.column("a"), values, 14.0, color=GREY)
    }
    for learner, (color, dash) in LINES.items():
        level = min(_value(finals, learner), ceiling)
        handles[learner] = axes.axhline(level, color=color, linestyle=dash, linewidth=2.0)
    return handles


def _value(finals: Results, learner: str) -> float:
    return float(finals.select(learner=learner).column("value")[0])


def _see(finals: Results, counts: list[str]) -> str:
    printed, robust = (
        [_value(finals.select(count=count), learner) / _value(finals.select(count=count), BEST) for count in counts]
        for learner in (PRINTED, ROBUST)
    )
    return (
        "The distance of each line from the lowest dot. Algorithm 2 as printed has "
        f"{number(min(printed))} to {number(max(printed))} times the regret of the best expert in hindsight; with "
        f"robust weights it is {number(min(robust))} to {number(max(robust))} times. What lies at the upper edge is "
        "beyond it."
    )


def draw_weights(problem: str, results: Results, folder: Path) -> Picture | None:
    """How much weight each step has, along one run; as printed above, robust below."""
    rows = results.select(experiment="experts", problem=problem, run=0, measure="weight")
    if not len(rows):
        return None
    titles = titles_of(rows)
    ends = [next(iter(titles)), next(reversed(titles))]
    cells = [(learner, count) for learner in (PRINTED, ROBUST) for count in ends]
    name = f"experts-{problem}-weights"
    title = f"{TITLES[problem]}: which steps hold the weight"
    found: dict[tuple[str, str], tuple[Any, Any, Any]] = {}
    with sheet(folder, name, title, 7.6) as figure:
        drawn = panels(figure, [f"{learner}\n{titles[count]}" for learner, count in cells], bottom=0.7, head=0.75)
        for axes, cell in zip(drawn, cells, strict=True):
            found[cell] = _weights(rows.select(learner=cell[0], count=cell[1]))
            _shares(axes, *found[cell], cell[0] == ROBUST)
        share_axes(drawn, "round", "share of the weight")
    steps, _, shares = found[ROBUST, ends[-1]]
    leader = steps[int(np.argmax(shares[:, -1]))]
    uniform = float(np.ptp(found[PRINTED, ends[-1]][2][:, -1]))
    see = (
        "Dark is a long step, light a short one. As printed the shares of the steps stay within "
        f"{100 * uniform:.2g} % of each other to the end; robust weights move to shorter steps as outliers go on, and "
        f"end with most on the {round(1 / leader)}th part of the longest stable step."
    )
    return Picture(name, title, see, *files(folder, name))


def _weights(rows: Results) -> tuple[Any, Any, Any]:
    """Steps, longest first, rounds, and the share of each step in each round."""
    steps = np.unique(rows.column("a"))[::-1]
    rounds = np.unique(rows.column("round"))
    shares = np.zeros((len(steps), len(rounds)))
    at = np.searchsorted(rounds, rows.column("round"))
    shares[len(steps) - 1 - np.searchsorted(steps[::-1], rows.column("a")), at] = rows.column("value")
    return steps, rounds, shares


def _shares(axes: Axes, steps: Any, rounds: Any, shares: Any, relative: bool) -> None:
    from matplotlib import colormaps

    colors = colormaps["cividis"](np.linspace(0.0, 0.95, len(steps)))
    axes.stackplot(rounds, shares, colors=colors, linewidth=0.0)
    below = np.cumsum(shares[:, -1]) - shares[:, -1]
    for place, share in enumerate(shares[:, -1]):
        if share > 0.08:
            shown: dict[str, Any] = {
                "ha": "right",
                "va": "center",
                "color": "white" if place < len(steps) / 2 else "black",
            }
            label = f"longest × $2^{{{np.log2(steps[place]):.0f}}}$" if relative else f"α = {steps[place]:.2g}"
            axes.annotate(label, (rounds[-1] * 0.93, below[place] + share / 2), fontsize=8.5, **shown)
    axes.set(xscale="log", xlim=(1.0, rounds[-1]), ylim=(0.0, 1.0))
    axes.grid(visible=False)


def draw_distinct(results: Results, folder: Path) -> Picture | None:
    """How many experts of the full grid differ, round by round."""
    rows = results.select(experiment="experts", run=0, learner=PRINTED, measure="distinct experts")
    kept = [problem for problem in TITLES if len(rows.select(problem=problem))]
    if not kept:
        return None
    name, title = "experts-distinct", "How many experts of the paper's full grid differ"
    most: dict[str, tuple[int, int]] = {}
    with sheet(folder, name, title, 4.6) as figure:
        drawn = panels(figure, [TITLES[problem] for problem in kept], bottom=0.9)
        handles: dict[str, Any] = {}
        for axes, problem in zip(drawn, kept, strict=True):
            here = rows.select(problem=problem)
            for count, color in zip(here.unique("count"), (GREY, BLUE, ORANGE, VERMILION), strict=False):
                each = here.select(count=count)
                label = "k = " + count.replace("T^⅔", r"$\mathregular{T^{2/3}}$")
                (handles[label],) = axes.plot(each.column("round"), each.column("value"), color=color)
            axes.set(xscale="log", ylim=(0.0, 1.05 * float(rows.column("value").max())))
            weights = results.select(experiment="experts", problem=problem, run=0, learner=PRINTED, measure="weight")
            grid = int(here.column("rounds")[0]) * len(np.unique(weights.column("a")))
            most[problem] = int(here.column("value").max()), grid
        share_axes(drawn, "round", "experts that differ")
        legend_below(figure, handles, 4)
    parts = " and ".join(
        f"{differ} of {every:,} in {TITLES[problem].lower()}" for problem, (differ, every) in most.items()
    )
    return Picture(name, title, f"At the end {parts}: the others are still the same iterate.", *files(folder, name))
