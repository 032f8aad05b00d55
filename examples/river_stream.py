"""A stream in which one target in twenty has an extra digit: python examples/river_stream.py docs/images

Draws the predictions of River's linear regression, with three losses, and of ours; prints the mean errors.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from river import datasets, linear_model, optim, preprocessing

from redescend.experiments.pictures.canvas import BLUE, GREEN, GREY, ORANGE, SETTINGS, VERMILION
from redescend.river import RedescendingFilter, RedescendingRegressor

SLIPS, WARM_UP, WINDOW = 0.05, 100, 50


def plain(loss: optim.losses.RegressionLoss | None = None) -> Any:
    return linear_model.LinearRegression(loss=loss, intercept_lr=0.1)


MODELS = {
    "LinearRegression": (plain(), BLUE),
    "LinearRegression(loss=Huber())": (plain(optim.losses.Huber(1.0)), ORANGE),
    "LinearRegression(loss=Cauchy())": (plain(optim.losses.Cauchy()), GREY),
    "RedescendingFilter | LinearRegression": (RedescendingFilter() | plain(), GREEN),
    "RedescendingRegressor": (RedescendingRegressor(), VERMILION),
}

LINE_WIDTHS = {"LinearRegression": 0.6, "RedescendingRegressor": 1.8}
"""Of the models whose predictions are drawn."""


def follow(model: Any) -> tuple[list[float], list[float], list[bool]]:
    """Predict, then learn; return the true targets, the predictions, and which targets had an extra digit."""
    dice = random.Random(0)
    pipeline = preprocessing.StandardScaler() | model.clone()
    truths, predictions, slips = [], [], []
    for x, y in datasets.TrumpApproval():
        truths.append(y)
        predictions.append(pipeline.predict_one(x))
        slips.append(dice.random() < SLIPS)
        pipeline.learn_one(x, 10.0 * y if slips[-1] else y)
    return truths, predictions, slips


def main(folder: Path) -> None:
    plt.style.use(SETTINGS)
    figure, (above, below) = plt.subplots(2, 1, figsize=(10.0, 7.0), sharex=True, layout="constrained")
    for name, (model, color) in MODELS.items():
        truths, predictions, slips = (np.array(part) for part in follow(model))
        errors = np.abs(truths - predictions)
        print(f"{name}: mean error {errors[WARM_UP:].mean():.2f}")
        if name in LINE_WIDTHS:
            above.plot(predictions, color=color, linewidth=LINE_WIDTHS[name])
        below.plot(
            np.arange(WINDOW, len(errors) + 1),
            np.convolve(errors, np.ones(WINDOW) / WINDOW, "valid"),
            color=color,
            label=name,
        )
    above.plot(truths, color="black", linewidth=0.8, label="truth")
    above.plot(np.flatnonzero(slips), np.full(slips.sum(), 31.0), "|k", markersize=9, label="wrong target")
    above.set(ylim=(30, 60), ylabel="approval, %")
    above.set_title("Predictions of a president's approval; one target in twenty has a digit too many", loc="left")
    below.set(xlabel="record", ylabel="distance from the truth", xlim=(0, len(truths)), yscale="log", ylim=(0.1, 100))
    below.set_title(f"How far off they are, mean of the last {WINDOW} records", loc="left")
    below.yaxis.set_major_formatter("{x:g}")
    figure.legend(ncols=3, loc="outside lower center")
    figure.savefig(folder / "river.png", dpi=120)
    print(folder / "river.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
