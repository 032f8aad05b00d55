"""Where each learner draws the line between two classes, over the points it saw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from redescend.experiments.pictures.style import (
    GREEN,
    ORANGE,
    PALE,
    PURPLE,
    Picture,
    files,
    in_order,
    legend_below,
    look,
    panels,
    share_axes,
    sheet,
    titles_of,
)
from redescend.experiments.results import Results
from redescend.numeric import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRUTH, STREAM = "truth", "stream"
NAME, TITLE = "boundaries", "Online support vector machine: decision boundaries after the last round"


def draw(results: Results, folder: Path) -> Picture | None:
    """The lines ⟨θ, x⟩ = 0 of every learner and of the truth, one panel for each outlier count."""
    rows = results.select(experiment="boundaries")
    stream = rows.select(learner=STREAM)
    if not len(stream):
        return None
    titles = titles_of(stream)
    angles: dict[str, dict[str, float]] = {}
    handles: dict[str, Any] = {}
    with sheet(folder, NAME, TITLE, 11.0) as figure:
        drawn = panels(figure, list(titles.values()), head=0.7)
        for axes, count in zip(drawn, titles, strict=True):
            here = rows.select(count=count)
            thetas = {learner: _theta(here, learner) for learner in here.unique("learner") if learner != STREAM}
            # Who has not moved from 0 has no boundary.
            thetas = {learner: theta for learner, theta in thetas.items() if theta.any()}
            handles |= _points(axes, here.select(learner=STREAM)) | _lines(axes, thetas)
            if TRUTH in thetas:
                angles[count] = {each: angle(theta, thetas[TRUTH]) for each, theta in thetas.items() if each != TRUTH}
                told = ", ".join(f"{learner} {angles[count][learner]:.1f}°" for learner in in_order(angles[count]))
                axes.set_title(axes.get_title("left"), loc="left", pad=20.0)
                axes.text(0.0, 1.015, f"off by {told}", fontsize=8.5, transform=axes.transAxes)
        share_axes(drawn, "first feature", "second feature")
        learners = in_order({each for found in angles.values() for each in found})
        listed = learners + [key for key in handles if key not in learners]
        legend_below(figure, {key: handles[key] for key in listed}, 4, markers=1.5)
    return Picture(NAME, TITLE, _see(angles), *files(folder, NAME))


def angle(theta: Array, truth: Array) -> float:
    """Degrees between two directions.

    Examples
    --------
    >>> round(angle(np.array([1.0, 0.0]), np.array([2.0, 2.0])), 9)
    45.0
    """
    across = abs(theta[0] * truth[1] - theta[1] * truth[0])
    return float(np.degrees(np.arctan2(across, theta @ truth)))


def _theta(rows: Results, learner: str) -> Array:
    found = rows.select(learner=learner)
    return np.array([found.select(measure=f"theta {place}").column("value")[-1] for place in (0, 1)])


def _points(axes: Axes, stream: Results) -> dict[str, Any]:
    """Clean points by their label; corrupted ones carry the label that was shown, and a ring."""
    x0, x1, y, clean = (_by_round(stream, measure) for measure in ("x 0", "x 1", "y", "clean"))
    handles: dict[str, Any] = {}
    for label, marker, color in ((1.0, "+", GREEN), (-1.0, "_", PURPLE)):
        kept = y == label
        style: dict[str, Any] = {"color": color, "marker": marker, "linewidths": 1.2, "alpha": 0.8, "zorder": 1.0}
        handles["label +1" if label > 0.0 else "label −1"] = axes.scatter(x0[kept], x1[kept], 30.0, **style)
    bad = clean == 0.0
    if bad.any():
        ring: dict[str, Any] = {"facecolors": "none", "edgecolors": ORANGE, "linewidths": 1.2, "zorder": 1.2}
        handles["corrupted: its label is flipped"] = axes.scatter(x0[bad], x1[bad], 80.0, **ring)
    reach = 1.05 * float(np.abs([x0, x1]).max())
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    axes.grid(False)
    return handles


def _by_round(stream: Results, measure: str) -> Array:
    rows = stream.select(measure=measure)
    return rows.column("value")[np.argsort(rows.column("round"), kind="stable")]


def _lines(axes: Axes, thetas: dict[str, Array]) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    for learner in reversed(in_order(thetas)):
        first, second = thetas[learner]
        truth: dict[str, Any] = {"color": PALE, "linewidth": 8.0, "zorder": 0.8}
        line = truth if learner == TRUTH else {**look(learner).line, "zorder": 2.5}
        handles[learner] = axes.axline((0.0, 0.0), (-second, first), **line)
    return handles


def _see(angles: dict[str, dict[str, float]]) -> str:
    if not any(angles.values()):
        return "How far each line lies from the data's own boundary."
    count = list(angles)[-1]
    found = {learner: angles[count][learner] for learner in in_order(angles[count])}
    told = ", ".join(f"{learner} {degrees:.1f}°" for learner, degrees in found.items())
    return (
        "How far each line turns away from the broad grey one, which made the data; rings are corrupted rounds. "
        f"At k = {count} the angles to it are: {told}."
    )
