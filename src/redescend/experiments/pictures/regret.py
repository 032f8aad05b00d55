"""Regret along the run: one panel for each outlier count, one line for each learner."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from redescend.experiments.pictures.style import (
    Picture,
    files,
    in_order,
    log_axis,
    look,
    number,
    panels,
    reach,
    share_axes,
    sheet,
    titles_of,
)
from redescend.experiments.pictures.subjects import TITLES
from redescend.experiments.problems import PAPER
from redescend.experiments.results import Curves, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIRST_ROUND = 10
"""Where the round axis begins, if the run is long enough: before it nobody has learned anything."""


def draw(problem: str, results: Results, folder: Path) -> Picture | None:
    """Mean clean dynamic regret and a band of one standard error, on log axes."""
    rows = results.select(experiment=problem, problem=problem, measure="regret")
    if not len(rows):
        return None
    titles = titles_of(rows)
    curves = {count: _curves(rows.select(count=count)) for count in titles}
    runs = max(len(found.runs) for each in curves.values() for found in each.values())
    last = int(rows.column("round").max())
    first = FIRST_ROUND if last > 10 * FIRST_ROUND else 1
    low, high = _limits(curves, first)
    name = f"{problem}-regret"
    title = f"{TITLES[problem]}: clean dynamic regret, mean of {runs} runs ± standard error"
    lines: dict[str, Any] = {}
    with sheet(folder, name, title, 7.6) as figure:
        drawn = panels(figure, list(titles.values()), right=2.1, bottom=0.6, gap=0.55)
        for axes, found in zip(drawn, curves.values(), strict=True):
            axes.set(xscale="log", yscale="log", xlim=(first, max(last, first + 1)), ylim=(low, high))
            lines |= _panel(axes, found)
            log_axis(axes.xaxis)
            log_axis(axes.yaxis)
        share_axes(drawn, "round (log scale)", "regret so far (log scale)")
        top = 0.935
        for heading, paper in (("compared in the paper", True), ("left out by the paper", False)):
            group = [each for each in in_order(lines) if (each in PAPER) == paper]
            labels = [f"{each} ↑" if _over(each, curves, high) else each for each in group]
            place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.795, top), "alignment": "left"}
            if group:
                figure.legend([lines[each] for each in group], labels, title=heading, **place)
            top -= 0.0272 * (len(group) + 2)
        if any(_over(each, curves, high) for each in lines):
            figure.text(0.803, top, "↑ ends above the panels", fontsize=9.5)
    lost = results.select(experiment=problem, problem=problem, measure="diverged").unique("learner")
    return Picture(name, title, _see(curves, in_order(lost)), *files(folder, name))


def _panel(axes: Axes, found: dict[str, Curves]) -> dict[str, Any]:
    low, high = axes.get_ylim()
    # What diverges is drawn to a little beyond the panel only: nobody sees the rest, and an SVG would store it.
    clip = partial(np.clip, a_min=0.1 * low, a_max=10.0 * high)
    lines: dict[str, Any] = {}
    for learner in reversed(in_order(found)):
        rounds, mean = found[learner].rounds, found[learner].mean
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.nan_to_num(found[learner].error)
        # A dashed line over LEARN's broad one shows both where they are the same.
        (lines[learner],) = axes.plot(rounds, clip(mean), **look(learner).line, zorder=2.0 if learner in PAPER else 3.0)
        band = clip(mean - error), clip(mean + error)
        axes.fill_between(rounds, *band, color=look(learner).color, alpha=0.18, linewidth=0.0)
    return lines


def _curves(rows: Results) -> dict[str, Curves]:
    return {learner: rows.curves(learner=learner) for learner in rows.unique("learner")}


def _limits(curves: dict[str, dict[str, Curves]], first: int) -> tuple[float, float]:
    """The range of the panels: one that diverges leaves them at the top, and does not flatten the rest."""
    seen = [(learner, found.mean[found.rounds >= first]) for each in curves.values() for learner, found in each.items()]
    peaks: dict[str, float] = {}
    lowest = np.inf
    for learner, mean in seen:
        peaks[learner] = max(peaks.get(learner, 0.0), float(mean.max(initial=0.0)))
        lowest = min(lowest, float(mean[mean > 0.0].min(initial=np.inf)))
    high = 1.3 * reach(peaks)
    return min(0.8 * lowest, 0.5 * high), high


def _over(learner: str, curves: dict[str, dict[str, Curves]], high: float) -> bool:
    return all(not found[learner].final <= high for found in curves.values() if learner in found)


def _see(curves: dict[str, dict[str, Curves]], lost: list[str]) -> str:
    count = list(curves)[-1]
    found = curves[count]
    finals = {name: found[name].final for name in in_order(found) if np.isfinite(found[name].final)}
    smaller = next((name for name in finals if name.startswith("OGD, step/")), None)
    parts = [f"{name} ends at {number(finals[name])}" for name in (*PAPER[:3], smaller, "oracle") if name in finals]
    told = f"With k = {count}, {', '.join(parts)}." if parts else f"The last panel, k = {count}, separates them most."
    if lost:
        told += f" Runs that did not stay finite are left out; they are of {'; '.join(lost)}."
    if smaller is None or "LEARN" not in finals:
        return told
    both = [each for each in curves.values() if smaller in each and "LEARN" in each]
    ratios = [f"{ratio:.2f}" for ratio in sorted(each[smaller].final / each["LEARN"].final for each in both)]
    times = ratios[0] if ratios[0] == ratios[-1] else f"{ratios[0]} to {ratios[-1]}"
    return (
        f"{told} Compare LEARN with the dashed '{smaller}', which takes LEARN's largest step and has no gate: over the "
        f"panels its final regret is {times} times LEARN's."
    )
