"""Grids of settings: regret over k, T, a and b, and the experts of Algorithm 2, alone and with their weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from redescend.experiments.paper import BEST, PRINTED, ROBUST
from redescend.experiments.pictures import canvas
from redescend.experiments.pictures.canvas import BLUE, GREY, ORANGE, PALE, VERMILION, Picture
from redescend.experiments.problems import PAPER, PROBLEMS, TITLES
from redescend.experiments.results import Line, Results, format_number
from redescend.numeric import Array

THEOREM = {"k": 1.0, "rounds": 2.0 / 3.0}  # the exponents of √T + k: in k where k dominates, and in T at k = T^⅔

BOUND = "theorem, √T + k"
RAISED = r"$\mathregular{{{}^{{{:.2f}}}}}$"

WORST = 100.0  # the colors end at this multiple of the lowest regret

Cell = tuple[int, int]


def draw_growth(problem: str, results: Results, folder: Path) -> Picture | None:
    """Final regret of each learner against k and against T, log-log, with fitted exponents and the theorem's."""
    sweep = results.select(experiment="sweep", measure="final regret")
    lines = {
        "k": sweep.select(problem=f"{problem}-k").read_lines("k"),
        "rounds": sweep.select(problem=f"{problem}-T").read_lines("rounds"),
    }
    # Every line needs two points on a log axis.
    points = [[np.count_nonzero(line.where > 0.0) for line in each.values()] for each in lines.values()]
    if min(min(each, default=0) for each in points) < 2:
        return None
    fits = {by: _fit_exponents(each) for by, each in lines.items()}
    length = int(sweep.select(problem=f"{problem}-k").column("rounds").max())
    titles = [f"T = {length:,} rounds", f"k = {canvas.typeset_outlier_count('T^⅔')} outliers"]
    with canvas.open_sheet(folder, f"{problem}-growth", f"{TITLES[problem]}: how final regret grows", 6.0) as sheet:
        left, right = sheet.add_panels(titles, bottom=1.2, gap=0.8)
        handles = _draw_lines(left, lines["k"], lambda k: np.sqrt(length) + k)
        handles |= _draw_lines(right, lines["rounds"], lambda T: np.sqrt(T) + T ** THEOREM["rounds"])
        left.set(xlabel="outliers k (log scale, and 0)", ylabel="final regret (log scale)")
        right.set(xlabel="rounds T (log scale)")
        listed = [*canvas.sort_learners(each for each in handles if each != BOUND), BOUND]
        sheet.add_legend_below(
            {f"{each}: {_format_exponents(each, fits, RAISED)}": handles[each] for each in listed}, 3
        )
        listed_names = [name for name in ("LEARN", "OGD", "Top-k") if name in fits["k"]]
        sheet.caption = (
            "Compare the slopes with the broad grey line, the theorem's √T + k scaled to LEARN's last point. Exponents "
            f"fitted to the larger half of each line: "
            f"{'; '.join(f'{name} {_format_exponents(name, fits)}' for name in listed_names)}. The theorem allows "
            f"{_format_exponents(BOUND, fits)} against a fixed comparator, and more against the minimizer of each "
            "round, as here."
        )
    return sheet.picture


def _draw_lines(axes: canvas.Axes, lines: dict[str, Line], bound: Callable[[Array], Array]) -> dict[str, Any]:
    top = 1.5 * _find_top(lines)
    lowest = min(float(mean[mean > 0.0].min(initial=top)) for _, mean, _ in lines.values())
    handles: dict[str, Any] = {}
    for learner in reversed(canvas.sort_learners(lines)):
        where, mean, error = lines[learner]
        # Clipped a little beyond the panel.
        mean, error = np.minimum(mean, 10.0 * top), np.where(mean <= top, error, 0.0)
        # A dashed line on top of LEARN's broad one shows both where they coincide.
        line = {"marker": "o", "markersize": 3.5, "zorder": 2.0 if learner in PAPER else 3.0}
        style = canvas.line_style(learner).options | line
        handles[learner] = axes.errorbar(where, mean, error, elinewidth=1.0, capsize=0.0, **style)
    where, mean, _ = lines.get("LEARN", next(iter(lines.values())))
    smallest = float(where[where > 0.0].min())
    fine = np.geomspace(smallest, float(where.max()), 100)
    if where.min() == 0.0:
        axes.set_xscale("symlog", linthresh=smallest, linscale=0.4)
        axes.set_xticks([0.0, *10.0 ** np.arange(np.ceil(np.log10(smallest)), np.log10(where.max()) + 0.01)])
        fine = np.concatenate([[0.0], fine])
    else:
        axes.set_xscale("log")
    axes.set(yscale="log", ylim=(0.5 * lowest, top))
    scale = mean[-1] / float(bound(where[-1]))
    (handles[BOUND],) = axes.plot(fine, scale * bound(fine), color=PALE, linewidth=7.0, zorder=1.0)
    for axis in (axes.xaxis, axes.yaxis):
        canvas.format_log_axis(axis)
    return handles


def _fit_exponents(lines: dict[str, Line]) -> dict[str, float]:
    """The exponent of each learner; NaN for one that diverges out of the panel."""
    top = _find_top(lines)
    return {
        name: fit_exponent(line.where, line.mean) if line.mean.max() <= top else np.nan for name, line in lines.items()
    }


def _find_top(lines: dict[str, Line]) -> float:
    return canvas.find_panel_top({learner: float(line.mean.max()) for learner, line in lines.items()})


def fit_exponent(where: Array, values: Array) -> float:
    """The log-log slope of the larger half of the points by least squares; NaN if there are not two."""
    usable = (where > 0.0) & (values > 0.0) & np.isfinite(values)
    x, y = np.log(where[usable]), np.log(values[usable])
    # At least three of them if possible: a line through two points fits anything.
    largest = np.argsort(x, kind="stable")[-max(3, -(-len(x) // 2)) :]
    if len(np.unique(x[largest])) < 2:
        return float("nan")
    return float(np.polyfit(x[largest], y[largest], 1)[0])


def _format_exponents(learner: str, fits: dict[str, dict[str, float]], form: str = "{}^{:.2f}") -> str:
    powers = THEOREM if learner == BOUND else {by: fit[learner] for by, fit in fits.items() if learner in fit}
    named = {{"k": "k", "rounds": "T"}[by]: power for by, power in powers.items()}
    return ", ".join(
        f"{name}: diverges" if np.isnan(power) else form.format(name, power) for name, power in named.items()
    )


class Grid(NamedTuple):
    """Mean final regret over a grid, rows by b and columns by a; NaN where there is no result."""

    a: Array
    b: Array
    regret: Array

    def find(self, a: float, b: float) -> Cell | None:
        """The cell of these constants, if the grid has it and it was computed."""
        matches = np.isclose(self.b, b)[:, None] & np.isclose(self.a, a) & ~np.isnan(self.regret)
        row, column = np.unravel_index(matches.argmax(), matches.shape)
        return (int(row), int(column)) if matches.any() else None

    def find_best(self) -> Cell:
        """The cell of the lowest regret."""
        row, column = np.unravel_index(np.nanargmin(self.regret), self.regret.shape)
        return int(row), int(column)


def draw_grid(problem: str, results: Results, folder: Path) -> Picture | None:
    """A heat map for each outlier count on one log color scale, with the paper's cell and the best one marked."""
    rows = results.select(experiment="sweep", problem=f"{problem}-ab", measure="final regret", learner="LEARN")
    titles = canvas.count_titles(rows)
    grids = {count: read_grid(rows.select(count=count)) for count in titles}
    every = np.concatenate([np.zeros(0), *(grid.regret.ravel() for grid in grids.values())])
    every = every[np.isfinite(every) & (every > 0.0)]
    if not len(every):
        return None
    a, b = PROBLEMS[problem]().a, PROBLEMS[problem]().b
    title = f"{TITLES[problem]}: final regret of LEARN over its constants a and b, T = {rows.unique('rounds')[0]:,}"
    handles: dict[str, Any] = {}
    parts = []
    with canvas.open_sheet(folder, f"{problem}-grid", title, 9.0) as sheet:
        from matplotlib.colors import LogNorm

        # Constants that never learn must not take the whole color scale.
        top = min(float(every.max()), WORST * float(every.min()))
        scale = LogNorm(float(every.min()), top)
        panels = sheet.add_panels(list(titles.values()), right=1.2)
        for axes, (count, grid) in zip(panels, grids.items(), strict=True):
            image = axes.imshow(grid.regret, norm=scale, cmap="viridis", origin="lower", aspect="auto")
            axes.set_facecolor(PALE)
            axes.set_xticks(range(len(grid.a)), [_format_power(value) for value in grid.a])
            axes.set_yticks(range(len(grid.b)), [_format_power(value) for value in grid.b])
            axes.grid(False)
            best, paper = grid.find_best(), grid.find(a, b)
            handles["lowest on the grid"] = _draw_mark(axes, best, "*", 16.0)
            heading = f"lowest {format_number(grid.regret[best])}"
            if paper is not None:
                handles[f"the paper's choice, a = {a:,.0f}, b = {b:,.0f}"] = _draw_mark(axes, paper, "s", 17.0)
                heading += f", the paper's {format_number(grid.regret[paper])}"
                times = format_number(grid.regret[paper] / grid.regret[best])
                constants = f"a = {format_number(grid.a[best[1]])}, b = {format_number(grid.b[best[0]])}"
                parts.append(f"{times} at k = {count} (star: {constants})")
            axes.set_title(axes.get_title("left").split(":")[0] + f": {heading}", loc="left", fontsize=10.0)
        canvas.label_outer(
            panels, "a: softness of the gate (log scale)", "b: weight at loss 0 is 1/(1 + b) (log scale)"
        )
        bar = sheet.figure.colorbar(
            image,
            cax=sheet.figure.add_axes((0.9, 0.3, 0.017, 0.45)),
            extend="max" if top < every.max() else "neither",
            label="final regret (log scale)",
        )
        canvas.format_log_axis(bar.ax.yaxis)
        sheet.add_legend_below(handles, 2)
        sheet.caption = "The star marks the constants with the lowest regret."
        if parts:
            sheet.caption += f" The regret of the paper's choice, as a multiple of the star's: {', '.join(parts)}."
    return sheet.picture


def read_grid(rows: Results) -> Grid:
    """The mean over the runs in every cell of the grid."""
    a, b, values = rows.column("a"), rows.column("b"), rows.column("value")
    columns, rows_of = np.unique(a), np.unique(b)
    places = np.searchsorted(rows_of, b) * len(columns) + np.searchsorted(columns, a)
    cells = len(columns) * len(rows_of)
    runs = np.bincount(places, minlength=cells)
    sums = np.bincount(places, values, cells)
    mean = np.divide(sums, runs, out=np.full(cells, np.nan), where=runs > 0)
    return Grid(columns, rows_of, mean.reshape(len(rows_of), len(columns)))


def _format_power(value: float) -> str:
    power = float(np.log10(value))
    return rf"$\mathregular{{10^{{{power:.0f}}}}}$" if np.isclose(power, round(power)) else f"{value:.2g}"


def _draw_mark(axes: canvas.Axes, cell: Cell, marker: str, size: float) -> Any:
    """White on black, which is visible on every color of the map."""
    marks = []
    for color, width in (("black", 4.5), ("white", 2.0)):
        look: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": color, "markeredgewidth": width}
        marks += axes.plot(cell[1], cell[0], marker, markersize=size, **look)
    return tuple(marks)


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
            " to ".join(format_number(end([row[name] / row[BEST] for row in regrets.values()])) for end in (min, max))
            for name in (PRINTED, ROBUST)
        )
        sheet.caption = (
            "Compare each line with the lowest dot, the best expert in hindsight. Algorithm 2 as printed has "
            f"{printed} times its regret, and with robust weights {robust} times. Dots at the upper edge lie beyond it."
        )
    return sheet.picture


Shares = tuple[Array, Array, Array]  # steps, longest first, rounds, and the weight of each step in each round


def draw_expert_weights(problem: str, results: Results, folder: Path) -> Picture | None:
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
