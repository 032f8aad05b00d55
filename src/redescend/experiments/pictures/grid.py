"""Final regret of LEARN over a grid of its two constants: the paper's grid search, made visible."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from redescend.experiments.pictures.style import (
    PALE,
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
from redescend.experiments.pictures.subjects import PROBLEMS, TITLES
from redescend.experiments.problems import Problem
from redescend.experiments.results import Results
from redescend.numeric import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


WORST = 100.0
"""The colours end at so many times the lowest regret."""


class Grid(NamedTuple):
    """Mean final regret over a grid, rows by b and columns by a; NaN where there is no result."""

    a: Array
    b: Array
    regret: Array

    def at(self, a: float, b: float) -> tuple[int, int] | None:
        """The cell of these constants, if the grid has one and it was computed."""
        row, column = np.flatnonzero(np.isclose(self.b, b)), np.flatnonzero(np.isclose(self.a, a))
        if not len(row) or not len(column) or np.isnan(self.regret[row[0], column[0]]):
            return None
        return int(row[0]), int(column[0])

    def best(self) -> tuple[int, int]:
        """The cell of the lowest regret."""
        row, column = np.unravel_index(np.where(np.isnan(self.regret), np.inf, self.regret).argmin(), self.regret.shape)
        return int(row), int(column)


def draw(problem: str, results: Results, folder: Path) -> Picture | None:
    """One heat map for each outlier count, on one log colour scale; the paper's cell and the best are marked."""
    rows = results.select(experiment="sweep", problem=f"{problem}-ab", measure="final regret", learner="LEARN")
    if not len(rows):
        return None
    titles = titles_of(rows)
    grids = {count: gather(rows.select(count=count)) for count in titles}
    every = np.concatenate([grid.regret.ravel() for grid in grids.values()])
    every = every[np.isfinite(every) & (every > 0.0)]
    if not len(every):
        return None
    setting = PROBLEMS[problem]
    name, title = (
        f"{problem}-grid",
        f"{TITLES[problem]}: final regret of LEARN over its constants a and b, T = {rows.unique('rounds')[0]:,}",
    )
    with sheet(folder, name, title, 9.0) as figure:
        from matplotlib.colors import LogNorm

        # Constants with which it never learns must not take the whole scale.
        top = min(float(every.max()), WORST * float(every.min()))
        scale = LogNorm(float(every.min()), top)
        drawn = panels(figure, list(titles.values()), right=1.2)
        handles: dict[str, Any] = {}
        for axes, grid in zip(drawn, grids.values(), strict=True):
            image = axes.imshow(grid.regret, norm=scale, cmap="viridis", origin="lower", aspect="auto")
            axes.set_facecolor(PALE)
            _ticks(axes, grid)
            best, paper = grid.best(), grid.at(setting.a, setting.b)
            handles["lowest on the grid"] = _mark(axes, best, "*", 16.0)
            told = f"lowest {number(grid.regret[best])}"
            if paper is not None:
                handles[f"the paper's choice, a = {setting.a:,.0f}, b = {setting.b:,.0f}"] = _mark(
                    axes, paper, "s", 17.0
                )
                told += f", the paper's {number(grid.regret[paper])}"
            axes.set_title(axes.get_title("left").split(":")[0] + f": {told}", loc="left", fontsize=10.0)
        share_axes(drawn, "a: how soft the gate is (log scale)", "b: how far it is closed at a loss of 0 (log scale)")
        bar = figure.colorbar(
            image,
            cax=figure.add_axes((0.9, 0.3, 0.017, 0.45)),
            extend="max" if top < every.max() else "neither",
            label="final regret (log scale)",
        )
        log_axis(bar.ax.yaxis)
        legend_below(figure, handles, 2)
    return Picture(name, title, _see(grids, setting), *files(folder, name))


def gather(rows: Results) -> Grid:
    """Mean over the runs in every cell of the grid."""
    a, b, values = rows.column("a"), rows.column("b"), rows.column("value")
    columns, rows_of = np.unique(a), np.unique(b)
    places = np.searchsorted(rows_of, b) * len(columns) + np.searchsorted(columns, a)
    cells = len(columns) * len(rows_of)
    runs = np.bincount(places, minlength=cells)
    sums = np.bincount(places, values, cells)
    mean = np.divide(sums, runs, out=np.full(cells, np.nan), where=runs > 0)
    return Grid(columns, rows_of, mean.reshape(len(rows_of), len(columns)))


def _ticks(axes: Axes, grid: Grid) -> None:
    axes.set_xticks(range(len(grid.a)), [_power(value) for value in grid.a])
    axes.set_yticks(range(len(grid.b)), [_power(value) for value in grid.b])
    axes.grid(False)


def _power(value: float) -> str:
    power = float(np.log10(value))
    return rf"$\mathregular{{10^{{{power:.0f}}}}}$" if np.isclose(power, round(power)) else f"{value:.2g}"


def _mark(axes: Axes, cell: tuple[int, int], marker: str, size: float) -> Any:
    """White in black, which is seen on every colour of the map."""
    marks = []
    for color, width in (("black", 4.5), ("white", 2.0)):
        look: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": color, "markeredgewidth": width}
        marks += axes.plot(cell[1], cell[0], marker, markersize=size, **look)
    return tuple(marks)


def _see(grids: dict[str, Grid], setting: Problem) -> str:
    parts = []
    for count, grid in grids.items():
        paper, best = grid.at(setting.a, setting.b), grid.best()
        if paper is not None:
            times = number(grid.regret[paper] / grid.regret[best])
            parts.append(f"{times} at k = {count} (star: {_constants(grid, best)})")
    if not parts:
        return "Where the star lies: the constants with the lowest regret."
    return (
        "How far the square, the paper's choice, lies from the star. "
        f"Its final regret, as a multiple of the star's: {', '.join(parts)}."
    )


def _constants(grid: Grid, cell: tuple[int, int]) -> str:
    return f"a = {number(grid.a[cell[1]])}, b = {number(grid.b[cell[0]])}"
