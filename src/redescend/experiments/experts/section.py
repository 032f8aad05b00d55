"""What the report says of experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.experiments.experts.compute import BEST, PRINTED, ROBUST
from redescend.experiments.results import Results
from redescend.experiments.statistics import mean_and_error, number

LEARNERS = (ROBUST, PRINTED, "LEARN", "Ader", "Jacobsen–Cutkosky", BEST)


def section(results: Results) -> list[dict[str, Any]]:
    """A table for each problem: final regret by learner and outlier count, and as a multiple of the best expert's."""
    rows = results.select(experiment="experts", measure="final regret")
    return [_table(rows.select(problem=problem), problem) for problem in rows.unique("problem")]


def _table(rows: Results, problem: str) -> dict[str, Any]:
    counts = rows.unique("count")
    cells: dict[tuple[str, str], tuple[str, str]] = {}
    for count in counts:
        here = rows.select(count=count)
        best = dict(zip(*_runs(here, BEST), strict=True))
        for learner in LEARNERS:
            runs, values = _runs(here, learner)
            if len(runs):
                ratio = float(np.mean([value / best[run] for run, value in zip(runs, values, strict=True)]))
                cells[learner, count] = _text(values), f"{number(ratio)} × best"
    learners = [learner for learner in LEARNERS if any((learner, count) in cells for count in counts)]
    played = len(np.unique(rows.column("run")))
    return {"problem": problem, "counts": counts, "learners": learners, "cells": cells, "runs": played}


def _runs(rows: Results, learner: str) -> tuple[list[int], Any]:
    own = rows.select(learner=learner)
    return own.column("run").tolist(), own.column("value")


def _text(values: Any) -> str:
    mean, error = mean_and_error(values)
    return number(mean) if np.isnan(error) else f"{number(mean)} ± {number(error)}"
