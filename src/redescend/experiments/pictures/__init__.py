"""Every picture of the report, drawn from the tidy results alone.

A picture is one module with a function `draw`. To add one, write its module and a row in `PICTURES`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from redescend.experiments.pictures import boundaries, bounds, experts, grid, growth, losses, regret, suite, weights
from redescend.experiments.pictures.style import Picture
from redescend.experiments.results import Results

__all__ = ["PICTURES", "Picture", "draw_all"]

Draw = Callable[[Results, Path], Picture | None]

PICTURES: dict[str, Draw] = {
    "losses": losses.draw,
    "ridge-regret": partial(regret.draw, "ridge"),
    "svm-regret": partial(regret.draw, "svm"),
    "boundaries": boundaries.draw,
    "ridge-weights": partial(weights.draw, "ridge"),
    "svm-weights": partial(weights.draw, "svm"),
    "ridge-bounds": partial(bounds.draw, "ridge"),
    "svm-bounds": partial(bounds.draw, "svm"),
    "ridge-growth": partial(growth.draw, "ridge"),
    "svm-growth": partial(growth.draw, "svm"),
    "ridge-grid": partial(grid.draw, "ridge"),
    "svm-grid": partial(grid.draw, "svm"),
    "experts-ridge-alone": partial(experts.draw_alone, "ridge"),
    "experts-ridge-weights": partial(experts.draw_weights, "ridge"),
    "experts-svm-alone": partial(experts.draw_alone, "svm"),
    "experts-svm-weights": partial(experts.draw_weights, "svm"),
    "experts-distinct": experts.draw_distinct,
    "suite-profile": suite.draw_profile,
    "suite-kinds": suite.draw_kinds,
}
"""Each picture by its name; one draws into a folder, or gives None if the results for it are missing."""


def draw_all(results: Results, folder: Path) -> list[Picture]:
    """Draw every picture that the results are enough for."""
    drawn = (draw(results, folder) for draw in PICTURES.values())
    return [picture for picture in drawn if picture is not None]
