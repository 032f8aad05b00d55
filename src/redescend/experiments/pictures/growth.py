"""How regret grows: with the number of outliers in a run of fixed length, and with the length at k = T^⅔."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from redescend.experiments.pictures.style import (
    PALE,
    Picture,
    files,
    in_order,
    legend_below,
    log_axis,
    look,
    panels,
    reach,
    sheet,
)
from redescend.experiments.pictures.subjects import TITLES
from redescend.experiments.problems import PAPER
from redescend.experiments.results import Results
from redescend.numeric import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THEOREM = {"k": 1.0, "rounds": 2.0 / 3.0}
"""The exponents of √T + k: in k once k dominates, and in T at k = T^⅔."""
BOUND = "theorem, √T + k"
RAISED = r"$\mathregular{{{}^{{{:.2f}}}}}$"

Line = tuple[Array, Array, Array]
"""Where, mean, standard error."""


def draw(problem: str, results: Results, folder: Path) -> Picture | None:
    """Final regret of each learner against k and against T, log-log, with the exponents fitted and the theorem's."""
    sweep = results.select(experiment="sweep", measure="final regret")
    found = {
        "k": lines(sweep.select(problem=f"{problem}-k"), "k"),
        "rounds": lines(sweep.select(problem=f"{problem}-T"), "rounds"),
    }
    if not all(each and _drawable(each) for each in found.values()):
        return None
    fits = {by: _fits(each) for by, each in found.items()}
    length = int(sweep.select(problem=f"{problem}-k").column("rounds").max())
    name, title = f"{problem}-growth", f"{TITLES[problem]}: how final regret grows"
    titles = [f"T = {length:,} rounds", r"k = $\mathregular{T^{2/3}}$ outliers"]
    with sheet(folder, name, title, 6.0) as figure:
        left, right = panels(figure, titles, bottom=1.2, gap=0.8)
        handles = _panel(left, found["k"], lambda k: np.sqrt(length) + k)
        handles |= _panel(right, found["rounds"], lambda T: np.sqrt(T) + T ** THEOREM["rounds"])
        left.set(xlabel="outliers k (log scale, and 0)", ylabel="final regret (log scale)")
        right.set(xlabel="rounds T (log scale)")
        listed = [*in_order(each for each in handles if each != BOUND), BOUND]
        legend_below(figure, {f"{each}: {_told(each, fits, RAISED)}": handles[each] for each in listed}, 3)
    return Picture(name, title, _see(fits), *files(folder, name))


def _drawable(found: dict[str, Line]) -> bool:
    """Whether every line has two points on a log axis."""
    return all(np.count_nonzero(where > 0.0) > 1 for where, _, _ in found.values())


def _panel(axes: Axes, found: dict[str, Line], bound: Callable[[Array], Array]) -> dict[str, Any]:
    top = 1.5 * _top(found)
    lowest = min(float(mean[mean > 0.0].min(initial=top)) for _, mean, _ in found.values())
    handles: dict[str, Any] = {}
    for learner in reversed(in_order(found)):
        where, mean, error = found[learner]
        # What diverges is drawn to a little beyond the panel only.
        mean, error = np.minimum(mean, 10.0 * top), np.where(mean <= top, error, 0.0)
        # A dashed line over LEARN's broad one shows both where they are the same.
        line = {**look(learner).line, "marker": "o", "markersize": 3.5, "zorder": 2.0 if learner in PAPER else 3.0}
        handles[learner] = axes.errorbar(where, mean, error, elinewidth=1.0, capsize=0.0, **line)
    where, mean, _ = found.get("LEARN", next(iter(found.values())))
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
        log_axis(axis)
    return handles


def lines(rows: Results, by: str) -> dict[str, Line]:
    """For each learner the mean and standard error over the runs at each value of a column, in order."""
    return {learner: _line(rows.select(learner=learner), by) for learner in rows.unique("learner")}


def _line(rows: Results, by: str) -> Line:
    where, values = rows.column(by), rows.column("value")
    each = np.unique(where)
    groups = [values[where == place] for place in each]
    with np.errstate(over="ignore", invalid="ignore"):
        error = [group.std(ddof=1) / np.sqrt(len(group)) if len(group) > 1 else 0.0 for group in groups]
    return each.astype(np.float64), np.array([group.mean() for group in groups]), np.array(error)


def _fits(found: dict[str, Line]) -> dict[str, float]:
    """The exponent of each learner; NaN for one that leaves the panel, as a divergence is no power of anything."""
    top = _top(found)
    return {name: exponent(where, mean) if mean.max() <= top else np.nan for name, (where, mean, _) in found.items()}


def _top(found: dict[str, Line]) -> float:
    return reach({learner: float(mean.max()) for learner, (_, mean, _) in found.items()})


def exponent(where: Array, values: Array) -> float:
    """The slope in log-log of the larger half of the points, by least squares; NaN if there are not two to fit.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 10.0, 100.0, 1000.0])
    >>> round(exponent(x, 3.0 * x**0.5), 9)
    0.5
    """
    usable = (where > 0.0) & (values > 0.0) & np.isfinite(values)
    x, y = np.log(where[usable]), np.log(values[usable])
    # Three at least where there are three: a line through two points fits anything.
    kept = np.argsort(x, kind="stable")[-max(3, -(-len(x) // 2)) :]
    if len(np.unique(x[kept])) < 2:
        return float("nan")
    x, y = x[kept] - x[kept].mean(), y[kept]
    return float(x @ y / (x @ x))


def _told(learner: str, fits: dict[str, dict[str, float]], form: str = "{}^{:.2f}") -> str:
    found = {
        name: THEOREM[by] if learner == BOUND else fits[by].get(learner) for by, name in (("k", "k"), ("rounds", "T"))
    }
    return ", ".join(
        f"{name}: diverges" if np.isnan(power) else form.format(name, power)
        for name, power in found.items()
        if power is not None
    )


def _see(fits: dict[str, dict[str, float]]) -> str:
    told = [f"{learner} {_told(learner, fits)}" for learner in ("LEARN", "OGD", "Top-k") if learner in fits["k"]]
    return (
        "The slopes of the lines beside that of the broad grey one, the theorem's √T + k, scaled to meet LEARN's last "
        f"point. Fitted over the larger half of each line: {'; '.join(told)}. The theorem allows {_told(BOUND, fits)} "
        "against a comparator that does not move, and more against each round's own minimiser, as here."
    )
