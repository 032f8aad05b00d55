"""How far the guarantees are from what happened: every run's regret, certificate and bounds, on a log axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from redescend.experiments.certificates import MEASURES
from redescend.experiments.pictures.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    Picture,
    files,
    legend_below,
    sheet,
    titles_of,
)
from redescend.experiments.pictures.subjects import TITLES
from redescend.experiments.results import Results
from redescend.numeric import Array

LABELS = {
    "measured": ("clean regret, measured", BLACK, "o"),
    "convexity": ("after convexity, the proof's first step", GREEN, "s"),
    "certificate": ("certificate of the run", BLUE, "D"),
    "sharp bound": ("Theorem 3.3, sharp constants", ORANGE, "^"),
    "printed bound": ("Theorem 3.3 as printed", VERMILION, "v"),
}


def draw(problem: str, results: Results, folder: Path) -> Picture | None:
    """A dot for each run and measure; one band for each outlier count, the runs one above the other in it."""
    rows = results.select(experiment=problem, problem=problem, learner="LEARN")
    if not len(rows.select(measure=MEASURES[0])):
        return None
    titles = titles_of(rows.select(measure=MEASURES[0]))
    values = {count: _runs(rows.select(count=count)) for count in titles}
    name, title = f"{problem}-bounds", f"{TITLES[problem]}: what LEARN lost, and what is guaranteed, in every run"
    handles: dict[str, Any] = {}
    with sheet(folder, name, title, 4.9) as figure:
        axes = figure.add_axes((0.205, 0.24, 0.765, 0.65))
        for band, runs in enumerate(values.values()):
            heights = -band + np.linspace(0.32, -0.32, runs.shape[1]) if runs.shape[1] > 1 else np.array([-band])
            for place, (measure, points) in enumerate(zip(MEASURES, runs, strict=True)):
                label, color, marker = LABELS[measure]
                # Where they coincide, what was measured is seen.
                look: dict[str, Any] = {"color": color, "marker": marker, "zorder": 4.0 - 0.1 * place}
                dots = look | {"linewidths": 0.0, "alpha": 0.8}
                handles[label] = axes.scatter(points, heights, 11.0, **dots)
        axes.set(xscale="log", xlabel="regret", ylim=(-len(values) + 0.4, 0.6))
        axes.set_yticks(-np.arange(len(values)), list(titles.values()))
        axes.grid(visible=False, axis="y")
        legend_below(figure, handles, 3, markers=2.0)
    return Picture(name, title, _see(values), *files(folder, name))


def _runs(rows: Results) -> Array:
    """A row for each measure, a column for each run."""
    return np.array([rows.curves(measure=measure).finals for measure in MEASURES])


def _see(values: dict[str, Array]) -> str:
    every = np.hstack(list(values.values()))
    held = int(np.count_nonzero((np.diff(every, axis=0) >= -1e-9 * np.abs(every[1:])).all(axis=0)))
    certificate, sharp, printed = every[2:]
    order = "measured ≤ convexity ≤ certificate ≤ sharp ≤ printed"
    near, far, gain = np.max(certificate / every[0]), np.min(printed / certificate), np.min(printed / sharp)
    return (
        f"The gaps. {order} in {held} of {every.shape[1]} runs. The certificate is at most {near:.2g} times the regret "
        f"and at least {far:.1g} times below the printed bound; sharp constants take that down {gain:.1g}-fold or more."
    )
