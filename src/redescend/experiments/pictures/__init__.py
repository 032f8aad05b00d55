"""The pictures of the report, drawn only from the tidy results.

To add a picture, write a function that draws it and a row in `PICTURES`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from redescend.experiments.pictures import grids, paper_runs, suite_ratios
from redescend.experiments.pictures.canvas import Picture
from redescend.experiments.problems import PROBLEMS
from redescend.experiments.results import Results

__all__ = ["PICTURES", "Picture"]

Draw = Callable[[Results, Path], Picture | None]

_DRAW: dict[str, Callable[..., Picture | None]] = {
    "losses": paper_runs.draw_losses,
    "{problem}-regret": paper_runs.draw_regret,
    "boundaries": paper_runs.draw_boundaries,
    "{problem}-weights": paper_runs.draw_weights,
    "{problem}-bounds": paper_runs.draw_bounds,
    "{problem}-growth": grids.draw_growth,
    "{problem}-grid": grids.draw_grid,
    "experts-{problem}-alone": grids.draw_alone,
    "experts-{problem}-weights": grids.draw_expert_weights,
    "experts-distinct": grids.draw_distinct,
    "suite-profile": suite_ratios.draw_profile,
    "suite-kinds": suite_ratios.draw_kinds,
}

PICTURES: dict[str, Draw] = {
    name.format(problem=problem): partial(draw, problem) if "{" in name else draw
    for name, draw in _DRAW.items()
    for problem in PROBLEMS
}
"""A function for each picture. It draws into a folder, or returns None if its results are missing."""
