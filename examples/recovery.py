"""How fast the self-tuning learner recovers from a jump of the truth, a burst of outliers and a bad first record.

python examples/recovery.py
"""

from __future__ import annotations

import numpy as np

import redescend as rd

SEEDS = 4


def recover_from_jump(factor: float, loss: rd.losses.LinearLoss, rounds: int = 1000, dim: int = 5) -> int:
    """Multiply the truth; return the rounds until the loss is below 1 % of that right after the jump."""
    random = np.random.default_rng(0)
    X, truth = random.normal(size=(2 * rounds, dim)), random.normal(size=dim)
    y = X @ truth + 1e-3 * random.normal(size=2 * rounds)
    y[rounds:] *= factor
    losses = rd.play(rd.SelfTuning(dim, loss=loss), rd.Stream(X, y)).losses[rounds:]
    high = np.flatnonzero(losses > 0.01 * losses[:10].mean())
    return int(high.max(initial=-1)) + 1


def compare_with_fresh_learner(dim: int, noise: float, order: int) -> float:
    """Change the truth at half time; return the loss from there on relative to a fresh learner's."""
    ratios, rounds = [], max(1000, 20 * dim)
    for seed in range(SEEDS):
        random = np.random.default_rng(seed)
        X, truths = random.normal(size=(2 * rounds, dim)), random.normal(size=(2, dim)) / np.sqrt(dim)
        y = np.concatenate([X[:rounds] @ truths[0], X[rounds:] @ truths[1]]) + noise * random.normal(size=2 * rounds)
        old, fresh = (rd.SelfTuning(dim, loss=rd.losses.Squared(), order=order) for _ in range(2))
        after = rd.play(old, rd.Stream(X, y)).losses[rounds:].sum()
        ratios.append(after / rd.play(fresh, rd.Stream(X[rounds:], y[rounds:])).losses.sum())
    return float(np.mean(ratios))


def recover_from_burst(loss: rd.losses.LinearLoss, seed: int, rounds: int = 1500) -> int:
    """Flip all signs for up to a quarter of the rounds so far; return the rounds until the action is back."""
    random = np.random.default_rng(seed + 100)
    dim, burst = int(random.integers(3, 30)), int(random.integers(20, rounds // 4))
    X, truth = random.normal(size=(rounds + burst + 200, dim)), random.normal(size=dim)
    y = X @ truth + 0.1 * random.normal(size=len(X))
    y = np.sign(X @ truth) if loss.margin else y
    y[rounds : rounds + burst] *= -1.0
    actions = rd.play(rd.SelfTuning(dim, loss=loss), rd.Stream(X, y), keep_actions=True).actions[rounds + burst :]
    lengths = np.maximum(np.linalg.norm(actions, axis=1), 1e-12)
    away = np.linalg.norm(actions / lengths[:, None] - truth / np.linalg.norm(truth), axis=1)
    return int(np.flatnonzero(away > 0.2).max(initial=-1)) + 1


def recover_from_bad_first_record(size: float) -> int:
    """Make the first target an outlier; return the last round with a loss above a tenth of the signal's."""
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 3))
    y = X @ [0.27, 0.54, 0.81] + 0.01 * random.normal(size=600)
    y[0] = size
    losses = rd.play(rd.SelfTuning(3, loss=rd.losses.Squared()), rd.Stream(X, y)).losses
    return int(np.flatnonzero(losses > 0.1).max(initial=0))


def main() -> None:
    squared, absolute, hinge = rd.losses.Squared(), rd.losses.Absolute(), rd.losses.Hinge()
    print("rounds until the loss is below 1 % of the jump's, d = 5")
    for loss in (squared, absolute):
        found = {factor: recover_from_jump(factor, loss) for factor in (1e-6, 10.0, 1e3, 1e5, 1e9, 1e30)}
        print(f"  {type(loss).__name__}: " + ", ".join(f"× {factor:g}: {rounds}" for factor, rounds in found.items()))
    print("loss after a jump as a multiple of a fresh learner's")
    for dim in (5, 20, 100):
        cells = {
            (noise, order): compare_with_fresh_learner(dim, noise, order) for noise in (0.01, 0.1) for order in (1, 2)
        }
        shown = (f"noise {noise:g}, order {order}: {ratio:.2f}" for (noise, order), ratio in cells.items())
        print(f"  d = {dim}: " + ", ".join(shown))
    print("rounds until the old model is played again, after 20 bursts")
    for loss in (squared, hinge):
        print(f"  {type(loss).__name__}: {sorted(recover_from_burst(loss, seed) for seed in range(20))}")
    print("last bad round after a bad first record")
    print("  " + ", ".join(f"{size:g}: {recover_from_bad_first_record(size)}" for size in (1e6, 1e30, 1e140)))


if __name__ == "__main__":
    main()
