"""The pictures of the report, drawn only from the tidy results.

To add a picture, write a function that draws it and a row in `PICTURES`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from redescend.experiments.pictures import boundaries, expert_grid, loss_curves, paper_runs, suite_ratios, sweeps
from redescend.experiments.pictures.canvas import Picture
from redescend.experiments.results import Results

__all__ = ["PICTURES", "Picture", "draw_all"]

Draw = Callable[[Results, Path], Picture | None]

PICTURES: dict[str, Draw] = {
    "losses": loss_curves.draw,
    "ridge-regret": partial(paper_runs.draw_regret, "ridge"),
    "svm-regret": partial(paper_runs.draw_regret, "svm"),
    "boundaries": boundaries.draw,
    "ridge-weights": partial(paper_runs.draw_weights, "ridge"),
    "svm-weights": partial(paper_runs.draw_weights, "svm"),
    "ridge-bounds": partial(paper_runs.draw_bounds, "ridge"),
    "svm-bounds": partial(paper_runs.draw_bounds, "svm"),
    "ridge-growth": partial(sweeps.draw_growth, "ridge"),
    "svm-growth": partial(sweeps.draw_growth, "svm"),
    "ridge-grid": partial(sweeps.draw_grid, "ridge"),
    "svm-grid": partial(sweeps.draw_grid, "svm"),
    "experts-ridge-alone": partial(expert_grid.draw_alone, "ridge"),
    "experts-ridge-weights": partial(expert_grid.draw_weights, "ridge"),
    "experts-svm-alone": partial(expert_grid.draw_alone, "svm"),
    "experts-svm-weights": partial(expert_grid.draw_weights, "svm"),
    "experts-distinct": expert_grid.draw_distinct,
    "suite-profile": suite_ratios.draw_profile,
    "suite-kinds": suite_ratios.draw_kinds,
}
"""A function for each picture. It draws into a folder, or returns None if its results are missing."""


def draw_all(results: Results, folder: Path) -> list[Picture]:
    """Draw every picture that the results allow."""
    drawn = (draw(results, folder) for draw in PICTURES.values())
    return [picture for picture in drawn if picture is not None]
