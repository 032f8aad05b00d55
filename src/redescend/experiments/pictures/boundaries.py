"""Decision boundaries of the learners over the points of the stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from redescend.experiments.pictures import canvas
from redescend.experiments.results import Results, angle_between
from redescend.numeric import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRUTH, STREAM = "truth", "stream"
TITLE = "Online support vector machine: decision boundaries after the last round"


def draw(results: Results, folder: Path) -> canvas.Picture | None:
    """The lines ⟨θ, x⟩ = 0 of every learner and of the truth, one panel for each outlier count."""
    rows = results.select(experiment="boundaries")
    stream = rows.select(learner=STREAM)
    if not len(stream):
        return None
    titles = canvas.count_titles(stream)
    angles: dict[str, dict[str, float]] = {}
    handles: dict[str, Any] = {}
    with canvas.sheet(folder, "boundaries", TITLE, 11.0) as drawn:
        panels = drawn.panels(list(titles.values()), head=0.7)
        for axes, count in zip(panels, titles, strict=True):
            here = rows.select(count=count)
            thetas = {learner: _read_theta(here, learner) for learner in here.unique("learner") if learner != STREAM}
            # A learner that is still at 0 has no boundary.
            thetas = {learner: theta for learner, theta in thetas.items() if theta.any()}
            handles |= _draw_points(axes, here.select(learner=STREAM)) | _draw_lines(axes, thetas)
            if TRUTH in thetas:
                truth = thetas.pop(TRUTH)
                angles[count] = {learner: angle_between(thetas[learner], truth) for learner in thetas}
                axes.set_title(axes.get_title("left"), loc="left", pad=20.0)
                axes.text(0.0, 1.015, f"off by {_list(angles[count])}", fontsize=8.5, transform=axes.transAxes)
        canvas.label_outer(panels, "first feature", "second feature")
        learners = canvas.sort_learners({each for found in angles.values() for each in found})
        listed = learners + [key for key in handles if key not in learners]
        drawn.legend_below({key: handles[key] for key in listed}, 4, markers=1.5)
        drawn.caption = "The broad grey line is the true boundary; rings mark corrupted rounds."
        if any(angles.values()):
            count = list(angles)[-1]
            drawn.caption += f" Angles to the true boundary at k = {count}: {_list(angles[count])}."
    return drawn.picture


def _list(angles: dict[str, float]) -> str:
    return ", ".join(f"{learner} {angles[learner]:.1f}°" for learner in canvas.sort_learners(angles))


def _read_theta(rows: Results, learner: str) -> Array:
    found = rows.select(learner=learner)
    return np.array([found.select(measure=f"theta {place}").column("value")[-1] for place in (0, 1)])


def _draw_points(axes: Axes, stream: Results) -> dict[str, Any]:
    """Points by their label; corrupted ones have the flipped label and a ring."""
    x0, x1, y, clean = (_read_by_round(stream, measure) for measure in ("x 0", "x 1", "y", "clean"))
    handles: dict[str, Any] = {}
    for label, value, marker, color in (("label +1", 1.0, "+", canvas.GREEN), ("label −1", -1.0, "_", canvas.PURPLE)):
        own = y == value
        style: dict[str, Any] = {"color": color, "marker": marker, "linewidths": 1.2, "alpha": 0.8, "zorder": 1.0}
        handles[label] = axes.scatter(x0[own], x1[own], 30.0, **style)
    bad = clean == 0.0
    if bad.any():
        ring: dict[str, Any] = {"facecolors": "none", "edgecolors": canvas.ORANGE, "linewidths": 1.2, "zorder": 1.2}
        handles["corrupted: label flipped"] = axes.scatter(x0[bad], x1[bad], 80.0, **ring)
    reach = 1.05 * float(np.abs([x0, x1]).max())
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    axes.grid(False)
    return handles


def _read_by_round(stream: Results, measure: str) -> Array:
    rows = stream.select(measure=measure)
    return rows.column("value")[np.argsort(rows.column("round"), kind="stable")]


def _draw_lines(axes: Axes, thetas: dict[str, Array]) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    for learner in reversed(canvas.sort_learners(thetas)):
        first, second = thetas[learner]
        truth: dict[str, Any] = {"color": canvas.PALE, "linewidth": 8.0, "zorder": 0.8}
        line = truth if learner == TRUTH else {**canvas.line_style(learner).options, "zorder": 2.5}
        handles[learner] = axes.axline((0.0, 0.0), (-second, first), **line)
    return handles
