"""The limits of beliefs: ``python -m benchmarks.belief_limits`` compares them with a judge that knows more.

The informed judge knows the density of the clean residuals of a stream, which a belief has to estimate. Both estimate
the share and the sizes of outliers. The judge does not model stuck sensors, so streams with these are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.belief import ask_oracle, predict, residual_scale
from benchmarks.belief_scores import START, calibration_error
from benchmarks.belief_streams import Case, Recipe, synthetic
from benchmarks.belief_tables import real
from redescend.belief import ResidualBelief
from redescend.belief.densities import make_tables
from redescend.kernels.belief.cells import CELLS
from redescend.kernels.belief.layout import CLEAN_PRIOR
from redescend.numeric import Array

ITERATIONS = 300


@dataclass(frozen=True)
class Limits:
    """Calibration errors of the final verdict, and the effects of chance and of the predictions on intervals."""

    share: float
    said: float
    informed: float
    coverage: float
    chance: float
    width: float = np.nan


def judge_informed(sizes: Array, clean: Array) -> Array:
    """P(clean) of the residuals of one sign, by EM for the outliers, given the true density of the clean ones."""
    tables = make_tables()
    cells = np.clip(np.searchsorted(tables.edges, sizes, side="right") - 1, 0, CELLS - 1)
    counts = np.bincount(cells, minlength=CELLS)
    density = np.bincount(cells[clean], minlength=CELLS) + 1e-3
    density = density / density.sum()
    prior = tables.prior[0]
    shares = prior / (CLEAN_PRIOR + prior.sum())
    for _ in range(ITERATIONS):
        outlying = shares @ tables.outliers
        ratio = counts / ((1.0 - shares.sum()) * density + outlying)
        kept = len(sizes) - ratio @ outlying + CLEAN_PRIOR
        shares = shares * (tables.outliers @ ratio) + prior
        shares = shares / (shares.sum() + kept)
    good, bad = (1.0 - shares.sum()) * density, shares @ tables.outliers
    return (good / (good + bad))[cells]


def measure(case: Case, recipe: Recipe | None = None) -> Limits:
    predictions, _ = predict(case.X, case.y)
    belief = ResidualBelief(case.X.shape[1])
    judgements = belief.update(predictions, case.y, case.X)
    verdict = belief.judge_log(predictions, case.y, judgements)
    residuals, clean = ((case.y - predictions) / judgements.scale)[START:], case.clean[START:]
    informed = np.empty(len(residuals))
    for side in (residuals > 0.0, residuals <= 0.0):
        informed[side] = judge_informed(np.abs(residuals[side]), clean[side])
    inside = ((judgements.low <= case.y) & (case.y <= judgements.high))[START:][clean]
    chance, width = np.sqrt(0.09 / len(inside) * 2.0 / np.pi), np.nan
    if recipe is not None and case.true_scale is not None:
        low, high = np.quantile(((case.y - predictions) / case.true_scale)[START:][clean], [0.05, 0.95])
        width = float(high - low) / ask_oracle(recipe, case)[1]
    said, told = (calibration_error(values, clean) for values in (verdict.clean_probability[START:], informed))
    return Limits(case.share, said, told, abs(float(inside.mean()) - 0.9), float(chance), width)


def synthetic_limits(split: str) -> Iterator[Limits]:
    return (measure(recipe.make(), recipe) for recipe in synthetic(split) if recipe.error != "stuck")


def real_limits(split: str) -> Iterator[Limits]:
    return (measure(case) for case in real(split, residual_scale) if case.error != "stuck")


def report(title: str, found: list[Limits]) -> None:
    print(f"\n{title}: {len(found)} streams; calibration error of the final verdict / of the informed judge")
    for what, rows in {
        "all": found,
        "at most a tenth of errors": [row for row in found if row.share < 0.2],
        "a quarter of errors": [row for row in found if row.share >= 0.2],
    }.items():
        print(f"  {what:28}{np.mean([row.said for row in rows]):8.4f} {np.mean([row.informed for row in rows]):8.4f}")
    error, chance = (np.mean([getattr(row, name) for row in found]) for name in ("coverage", "chance"))
    print(f"  mean error of coverage {error:.4f}, of which chance is {chance:.4f}")
    if np.isfinite(found[0].width):
        width = np.mean([row.width for row in found])
        print(f"  width of clean residuals of these predictions over the oracle's {width:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.belief_limits", description=__doc__)
    parser.add_argument("--split", choices=("tune", "held"), default="tune")
    split = parser.parse_args().split
    report(f"{split}, synthetic", list(synthetic_limits(split)))
    report(f"{split}, real tables", list(real_limits(split)))


if __name__ == "__main__":
    main()
