"""The LEARN loss and the classic robust losses, with their weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from redescend import transforms
from redescend.experiments.pictures.canvas import LONG, Picture, line_style, open_sheet
from redescend.experiments.results import Results, format_number
from redescend.transforms import Transform

REACH, CEILING = 8.0, 8.0


def make_curves() -> dict[str, tuple[Transform, float, dict[str, Any]]]:
    """Each loss of the paper's figure: a transform of r², its factor in the paper's scale, and its line.

    The paper's Tukey is half, and its Welsch 1/2c², of those in redescend.transforms.
    """
    learn, square = line_style("LEARN").options, line_style("OGD").options
    tukey, welsch = (line_style(name).options | {"linewidth": 2.0} for name in ("Tukey", "Welsch"))
    return {
        "LEARN, a = 2, b = e⁻²": (transforms.Learn.from_threshold(4.0, softness=2.0), 1.0, learn),
        "square, r²": (transforms.Identity(), 1.0, square),
        "Tukey, c = 4": (transforms.Tukey(4.0), 0.5, tukey),
        "Tukey, c = 6": (transforms.Tukey(6.0), 0.5, tukey | {"linestyle": (0, LONG)}),
        "Welsch, c = 2": (transforms.Welsch(2.0), 1.0 / 8.0, welsch),
    }


def draw(results: Results, folder: Path) -> Picture:
    """The losses in the paper's scales, and their weights relative to the weight at r = 0."""
    r = np.linspace(-REACH, REACH, 801)
    curves = make_curves()
    learn, _, style = next(iter(curves.values()))
    handles: dict[str, Any] = {}
    with open_sheet(folder, "losses", "Robust losses of a residual r, and their weights", 5.4) as sheet:
        titles = ["loss, shifted to 0 at r = 0", "weight h′(r²), relative to r = 0"]
        left, right = sheet.add_panels(titles, bottom=1.15, gap=0.6)
        for label, (transform, factor, line) in curves.items():
            left.plot(r, factor * (transform.value(r * r) - transform.value(0.0)), **line)
            (handles[label],) = right.plot(r, transform.weight(r * r) / transform.weight(0.0), **line)
        (handles["LEARN, absolute weight"],) = right.plot(r, learn.weight(r * r), **(style | {"linewidth": 0.9}))
        left.set(xlim=(-REACH, REACH), ylim=(0.0, CEILING), xlabel="residual r", ylabel="loss")
        right.set(xlim=(-REACH, REACH), ylim=(0.0, 1.05), xlabel="residual r")
        sheet.add_legend_below(handles, 3)
        sheet.caption = _describe_losses(learn)
    return sheet.picture


def _describe_losses(learn: Transform) -> str:
    grid = np.linspace(0.0, REACH, 8001)
    weight = learn.weight(grid * grid)
    half = float(grid[np.argmax(weight < 0.5 * weight[0])])
    top = float(learn.value(REACH**2) - learn.value(0.0))
    return (
        f"LEARN follows the square near 0 and levels off at {format_number(top)}. Its weight is "
        f"{format_number(weight[0])} at r = 0 and half of that at r = {format_number(half)}; like Welsch's and unlike "
        "Tukey's, it approaches 0 without reaching it. All scales are the paper's; LEARN is shifted to be 0 at r = 0."
    )
