"""The LEARN loss beside the classic robust losses, and what each believes of a residual."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from redescend import transforms
from redescend.experiments.pictures.style import LONG, Picture, files, legend_below, look, number, panels, sheet
from redescend.experiments.results import Results
from redescend.transforms import Transform

NAME, TITLE = "losses", "Robust losses of a residual r, and their weights"
REACH, CEILING = 8.0, 8.0


class Curve(NamedTuple):
    """A loss: its name, the transform of r² that it is, its factor in the paper's scale, and its line."""

    label: str
    transform: Transform
    factor: float
    line: dict[str, Any]


def curves() -> list[Curve]:
    """The losses of the paper's figure; its Tukey is half and its Welsch 1/2c² of those in redescend.transforms."""
    broad = {"linewidth": 2.0}
    wide, narrow, welsch = transforms.Tukey(6.0), transforms.Tukey(4.0), transforms.Welsch(2.0)
    return [
        Curve("LEARN, a = 2, b = e⁻²", transforms.Learn.from_threshold(4.0, softness=2.0), 1.0, look("LEARN").line),
        Curve("square, r²", transforms.Identity(), 1.0, look("OGD").line),
        Curve("Tukey, c = 4", narrow, 0.5, look("Tukey").line | broad),
        Curve("Tukey, c = 6", wide, 0.5, look("Tukey").line | broad | {"linestyle": (0, LONG)}),
        Curve("Welsch, c = 2", welsch, 1.0 / (2.0 * welsch.c**2), look("Welsch").line | broad),
    ]


def draw(results: Results, folder: Path) -> Picture | None:
    """The losses in the paper's own scales on the left, and on the right their weights relative to that at r = 0."""
    r = np.linspace(-REACH, REACH, 801)
    drawn = curves()
    titles = ["loss, shifted to 0 at r = 0", "weight h′(r²), as a share of that at r = 0"]
    handles: dict[str, Any] = {}
    with sheet(folder, NAME, TITLE, 5.4) as figure:
        left, right = panels(figure, titles, bottom=1.15, gap=0.6)
        for label, transform, factor, line in drawn:
            left.plot(r, factor * (transform.value(r * r) - transform.value(0.0)), **line)
            (handles[label],) = right.plot(r, transform.weight(r * r) / transform.weight(0.0), **line)
        learn = drawn[0].transform
        own = drawn[0].line | {"linewidth": 0.9}
        (handles["LEARN, not as a share"],) = right.plot(r, learn.weight(r * r), **own)
        left.set(xlim=(-REACH, REACH), ylim=(0.0, CEILING), xlabel="residual r", ylabel="loss")
        right.set(xlim=(-REACH, REACH), ylim=(0.0, 1.05), xlabel="residual r")
        legend_below(figure, handles, 3)
    return Picture(NAME, TITLE, _see(learn), *files(folder, NAME))


def _see(learn: Transform) -> str:
    grid = np.linspace(0.0, REACH, 8001)
    weight = learn.weight(grid * grid)
    half = float(grid[np.argmax(weight < 0.5 * weight[0])])
    top = float(learn.value(REACH**2) - learn.value(0.0))
    return (
        f"LEARN follows the square near 0 and levels off at {number(top)}; its weight starts at {number(weight[0])}, "
        f"has fallen by half at a residual of {number(half)}, and nears 0 without reaching it, as Welsch's does and "
        "Tukey's does not. All scales are the paper's; LEARN is shifted so that it is 0 at 0."
    )
