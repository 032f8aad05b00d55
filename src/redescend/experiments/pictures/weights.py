"""How much of each round LEARN believed along a run: clean rounds and corrupted ones apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from redescend.experiments.pictures.style import (
    BLUE,
    GREY,
    ORANGE,
    Picture,
    files,
    legend_below,
    number,
    panels,
    share_axes,
    sheet,
    titles_of,
)
from redescend.experiments.pictures.subjects import PROBLEMS, TITLES
from redescend.experiments.results import Results
from redescend.numeric import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = {"weight clean": ("clean rounds", BLUE, "."), "weight corrupted": ("corrupted rounds", ORANGE, "x")}
STRETCHES, FEWEST = 30, 10
"""At most so many medians along a run, each of at least so many rounds."""


def draw(problem: str, results: Results, folder: Path) -> Picture | None:
    """The weights of single rounds of the first run, and their medians over stretches of it."""
    rows = results.select(experiment=problem, problem=problem, learner="LEARN", run=0)
    found = {kind: rows.select(measure=kind) for kind in KINDS}
    if not len(found["weight clean"]):
        return None
    titles, ceiling = titles_of(found["weight clean"]), 1.0 / (1.0 + PROBLEMS[problem].b)
    name, title = f"{problem}-weights", f"{TITLES[problem]}: how much of each round LEARN believed, in one run"
    last = max(float(each.column("round").max()) for each in found.values() if len(each))
    means: dict[str, dict[str, float]] = {count: {} for count in titles}
    handles: dict[str, Any] = {}
    with sheet(folder, name, title, 7.6) as figure:
        drawn = panels(figure, list(titles.values()))
        for axes, count in zip(drawn, titles, strict=True):
            for kind in KINDS:
                here = found[kind].select(count=count)
                if len(here):
                    means[count][kind] = float(here.column("value").mean())
                    handles |= _cloud(axes, here, *KINDS[kind])
            limit = axes.axhline(ceiling, color=GREY, linewidth=0.9)
            axes.set(xlim=(0.0, last), ylim=(0.0, 1.1 * ceiling))
            axes.locator_params("x", nbins=5)
            axes.xaxis.set_major_formatter("{x:,.0f}")
        share_axes(drawn, "round", "weight of a round")
        legend_below(figure, handles | {"largest possible, 1/(1 + b)": limit}, 3, markers=2.0)
    return Picture(name, title, _see(means), *files(folder, name))


def _cloud(axes: Axes, rows: Results, label: str, color: str, marker: str) -> dict[str, Any]:
    rounds, values = rows.column("round"), rows.column("value")
    # Thousands of dots are one image in the SVG too, which stays small.
    dots: dict[str, Any] = {"color": color, "marker": marker, "alpha": 0.4, "linewidths": 0.7, "rasterized": True}
    points = axes.scatter(rounds, values, 9.0, **dots)
    (line,) = axes.plot(*medians(rounds, values), color=color, linewidth=2.2, zorder=2.5)
    return {f"{label}: single rounds": points, f"{label}: median": line}


def medians(rounds: Array, values: Array) -> tuple[Array, Array]:
    """Medians over stretches of the run with equally many rounds in them, at the median round of each.

    Examples
    --------
    >>> rounds = np.arange(1, 101)
    >>> medians(rounds, np.where(rounds > 50, 0.5, 0.25))[1]
    array([0.25, 0.25, 0.25, 0.25, 0.25, 0.5 , 0.5 , 0.5 , 0.5 , 0.5 ])
    """
    order = np.argsort(rounds, kind="stable")
    stretches = np.array_split(order, min(STRETCHES, max(1, len(order) // FEWEST)))
    return (
        np.array([np.median(rounds[each]) for each in stretches]),
        np.array([np.median(values[each]) for each in stretches]),
    )


def _see(means: dict[str, dict[str, float]]) -> str:
    both = {count: each for count, each in means.items() if len(each) == len(KINDS)}
    if not both:
        return "All rounds are clean here; the weights are LEARN's largest, reached once it has learned."
    count, found = next(reversed(both.items()))
    clean, corrupted = (found[kind] for kind in KINDS)
    share = 1.0 - corrupted / clean
    verdict = "the gate hardly tells them apart" if share < 0.1 else "that difference is the gate at work"
    return (
        f"The distance between the two colours. At k = {count} a clean round has weight {number(clean)} on average and "
        f"a corrupted one {abs(100.0 * share):.2g} % {'less' if share >= 0.0 else 'more'}: {verdict}."
    )
