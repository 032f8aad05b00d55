"""The mean of a stream of covariance matrices with outliers: plain, LEARN with constants, robust, and an oracle.

python examples/frechet_mean.py [runs] [rounds] [folder]

Records are sample covariances of 30 observations in 5 dimensions, in the affine-invariant geometry. Their Fréchet mean
is known: the truth. Clean regret is Σ Δ(θ_t, A_t)²/2 − Δ(truth_t, A_t)²/2 over the clean rounds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import psi

from redescend import gates, invex, transforms

SIZE, OBSERVATIONS = 5, 30
SPACE = invex.SPD(SIZE)
Corruption = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def square(vector: np.ndarray) -> np.ndarray:
    return np.outer(vector, vector)


CORRUPTIONS: dict[str, Corruption] = {
    "scaled by 100": lambda matrix, random: 100.0 * matrix,
    "scaled by 5 to 20": lambda matrix, random: random.uniform(5.0, 20.0) * matrix,
    "inverted": lambda matrix, random: np.linalg.inv(matrix),
    "unrelated": lambda matrix, random: SPACE.random(random),
    "one direction added": lambda matrix, random: matrix + 9.0 * square(random.normal(size=SIZE)),
    "always the same": lambda matrix, random: np.diag(np.arange(5.0, 30.0, 5.0)),
    "doubled (near)": lambda matrix, random: 2.0 * matrix,
}


class Covariances(NamedTuple):
    """Records, a mask of the clean ones, and the truth of each round."""

    records: list[np.ndarray]
    clean: np.ndarray
    truths: list[np.ndarray]


def make_stream(seed: int, rounds: int, rate: float, corrupt: Corruption, drift: float = 0.0) -> Covariances:
    """Sample covariances around a truth that is fixed, or does a random walk with steps of size `drift`."""
    random = np.random.default_rng(seed)
    # E[ln det] of a Wishart matrix; divided by it, sample covariances have the truth as their Fréchet mean.
    shrunk = np.exp(np.mean(psi((OBSERVATIONS - np.arange(SIZE)) / 2.0))) * 2.0 / OBSERVATIONS
    truth = SPACE.random(random, 0.5)
    clean = np.ones(rounds, dtype=bool)
    clean[random.choice(rounds, round(rate * rounds), replace=False)] = False
    records, truths = [], []
    for good in clean:
        root = np.linalg.cholesky(truth)
        observed = root @ random.normal(size=(SIZE, OBSERVATIONS))
        matrix = observed @ observed.T / OBSERVATIONS / shrunk
        truths.append(truth)
        records.append(matrix if good else corrupt(matrix, random))
        if drift > 0.0:
            truth = root @ SPACE.random(random, drift) @ root.T
    return Covariances(records, clean, truths)


def make_learners(clean: np.ndarray) -> dict[str, invex.FrechetMean | invex.RobustFrechetMean]:
    """LEARN gets constants that the robust mean must infer: weight ½ at twice the squared clean distance."""
    typical = SPACE.dim * 2.0 / OBSERVATIONS
    learn = gates.Robust(transforms.Learn.from_threshold(threshold=typical, softness=typical / 6.0))
    return {
        "plain": invex.FrechetMean(SPACE),
        "LEARN, constants given": invex.FrechetMean(SPACE, gate=learn),
        "robust": invex.RobustFrechetMean(SPACE),
        "oracle": invex.FrechetMean(SPACE, gate=gates.Oracle(clean)),
    }


def compute_regret(learner: invex.FrechetMean | invex.RobustFrechetMean, game: Covariances) -> np.ndarray:
    """Clean regret up to every round."""
    paid = np.zeros(len(game.records))
    for t, (record, truth) in enumerate(zip(game.records, game.truths, strict=True)):
        lost = learner.update(record).loss
        paid[t] = game.clean[t] * (lost - 0.5 * SPACE.distance(truth, record) ** 2)
    return paid.cumsum()


def compute_curves(
    runs: int, rounds: int, rate: float, corrupt: Corruption, drift: float = 0.0
) -> dict[str, np.ndarray]:
    """The regret of every learner, one row per run."""
    found: dict[str, list[np.ndarray]] = {}
    for seed in range(runs):
        game = make_stream(seed, rounds, rate, corrupt, drift)
        for name, learner in make_learners(game.clean).items():
            found.setdefault(name, []).append(compute_regret(learner, game))
    return {name: np.array(rows) for name, rows in found.items()}


def print_table(runs: int, rounds: int) -> None:
    """Mean regret relative to the oracle's; in brackets the median of the ratios."""
    print(f"{runs} runs of {rounds} rounds")
    far = CORRUPTIONS["scaled by 100"]
    settings = [("none", 0.0, far, 0.0)]
    settings += [(name, 0.10, corrupt, 0.0) for name, corrupt in CORRUPTIONS.items()]
    settings += [(name, 0.25, CORRUPTIONS[name], 0.0) for name in ("scaled by 100", "unrelated", "always the same")]
    settings += [("none", 0.0, far, 0.02), ("scaled by 100", 0.10, far, 0.02)]
    for name, rate, corrupt, drift in settings:
        ends = {learner: rows[:, -1] for learner, rows in compute_curves(runs, rounds, rate, corrupt, drift).items()}
        oracle = ends.pop("oracle")
        cells = (
            f"{learner} {end.mean() / oracle.mean():.2f} ({np.median(end / oracle):.2f})"
            for learner, end in ends.items()
        )
        walk = ", drift" if drift else ""
        print(f"{rate:4.0%} {name}{walk}: oracle {oracle.mean():.1f}; " + "; ".join(cells), flush=True)


def draw(runs: int, rounds: int, path: Path) -> None:
    from matplotlib.figure import Figure

    looks = {"plain": ("#000000", "-"), "LEARN, constants given": ("#0072B2", "--"), "robust": ("#D55E00", "-"),
             "oracle": ("#8C8C8C", (0, (6, 1.5)))}  # fmt: skip
    figure = Figure(figsize=(10.0, 4.2), dpi=150, layout="constrained")
    for axes, rate in zip(figure.subplots(1, 2, sharey=True), (0.10, 0.25), strict=True):
        for name, rows in compute_curves(runs, rounds, rate, CORRUPTIONS["scaled by 100"]).items():
            color, dash = looks[name]
            across = np.arange(1, rounds + 1)
            axes.plot(across, np.median(rows, axis=0), color=color, linestyle=dash, label=name)
            if name in ("robust", "LEARN, constants given"):
                axes.plot(across, rows.T, color=color, alpha=0.35, linewidth=0.6)
        axes.set_title(f"{rate:.0%} of the matrices scaled by 100", loc="left")
        axes.set(xlabel="round", xscale="log", yscale="log")
        axes.grid(color="#E6E6E6", linewidth=0.6)
    figure.axes[0].set(ylabel=f"clean regret, median of {runs} runs; thin: each run", ylim=(0.5, None))
    figure.axes[0].legend(frameon=False, loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})
    print(path)


def main() -> None:
    given = dict(enumerate(sys.argv[1:]))
    runs, rounds, folder = int(given.get(0, 40)), int(given.get(1, 1000)), Path(given.get(2, "results"))
    print_table(runs, rounds)
    draw(min(runs, 20), rounds, folder / "frechet.png")


if __name__ == "__main__":
    main()
