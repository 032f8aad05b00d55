"""The effect of mistyped targets on linear models.

python examples/scikit_learn.py docs/images [splits]

Disease progression of 442 patients (`load_diabetes`); some targets have an extra digit. Draws the error on test
patients against the share of such targets, and the score of each target; prints both.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import HuberRegressor, LinearRegression, SGDRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from redescend.experiments.pictures.canvas import BLUE, GREY, ORANGE, SETTINGS, SKY, VERMILION
from redescend.sklearn import RedescendingRegressor

SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)


def scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


MODELS = {
    "LinearRegression": (scaled(LinearRegression()), GREY),
    "SGDRegressor": (scaled(SGDRegressor(random_state=0)), BLUE),
    "SGDRegressor(loss='huber')": (scaled(SGDRegressor("huber", epsilon=50.0, max_iter=5000, random_state=0)), SKY),
    "HuberRegressor": (scaled(HuberRegressor(max_iter=1000)), ORANGE),
    "RedescendingRegressor": (RedescendingRegressor(), VERMILION),
}


def mistype(y: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Multiply some of the targets by ten; return which."""
    wrong = np.random.default_rng(seed).random(len(y)) < share
    return np.where(wrong, 10.0 * y, y), wrong


def error(model: Any, share: float, seed: int) -> float:
    """Mean absolute error on test patients, whose targets are right."""
    X, unseen, y, truth = train_test_split(*load_diabetes(return_X_y=True), random_state=seed)
    return float(np.mean(np.abs(model.fit(X, mistype(y, share, seed)[0]).predict(unseen) - truth)))


def main(folder: Path, splits: int = 20) -> None:
    plt.style.use(SETTINGS)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.6), width_ratios=(3, 2), layout="constrained")
    for name, (model, color) in MODELS.items():
        errors = [np.mean([error(model, share, seed) for seed in range(splits)]) for share in SHARES]
        print(f"{name}: " + ", ".join(f"{share:.0%}: {mean:.0f}" for share, mean in zip(SHARES, errors, strict=True)))
        left.plot(100.0 * np.array(SHARES), errors, "o-", color=color, markersize=4, label=name)
    left.set(xlabel="targets with a digit too many, %", ylabel="mean error on test patients", yscale="log")
    left.yaxis.set_major_formatter("{x:g}")
    left.yaxis.set_minor_formatter("{x:g}")
    left.set_title("Error of the model", loc="left")
    X, y = load_diabetes(return_X_y=True)
    y, wrong = mistype(y, 0.1, seed=0)
    scores = RedescendingRegressor().fit(X, y).score_samples(X, y)
    edges = np.linspace(0.0, 1.0, 21)
    right.hist([scores[~wrong], scores[wrong]], edges, stacked=True, color=[GREY, VERMILION])
    right.legend(right.patches[:: len(edges) - 1], ["as measured", "a digit too many"], loc="upper center")
    right.set(xlabel="score_samples: 1 is normal", ylabel="patients")
    right.set_title("Scores of the targets, at 10 %", loc="left")
    print(f"score below 0.1: {(scores < 0.1).sum()}, of which wrong: {(scores[wrong] < 0.1).sum()}")
    print(f"wrong: {wrong.sum()}")
    figure.legend(*left.get_legend_handles_labels(), ncols=3, loc="outside lower center")
    figure.savefig(folder / "scikit-learn.png", dpi=120)
    print(folder / "scikit-learn.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."), *map(int, sys.argv[2:3]))
