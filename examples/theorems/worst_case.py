r"""How tight the bounds are: the worst stream that a search finds.

Problem. One dimension, x = 1, actions and minimizers in [−1, 1], T rounds of which k are corrupted. The clean records,
the corrupted ones and their places are all free; for LEARN so are a and b. The first action is −1, at one end.

Algorithm. LEARN, Top-k and normalised OGD, each at the step that its theorem prescribes for the stream at hand.

Claim. measured ≤ bound for all of them (Theorem 3.3 with sharp constants; Appendix B; normalised descent); the search
is for the largest measured/bound.

Code. Differential evolution (SciPy), from a stream that jumps from end to end and from a constant one. For Absolute the
convexity inequality is an equality: G = 1, and m is nearly 0. Where rounds are corrupted LEARN plays Squared
instead, m = L = 2, because its constants φ and κ grow without limit as m goes to 0. `--thorough` searches longer and
over more lengths.

Kind: upper. Source: the theorems named above.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from _claim import claim, format_case, show
from scipy.optimize import differential_evolution

import redescend as rd

BALL, START = rd.domains.Ball(1.0), [-1.0]
NEARLY_FLAT = 1e-12

Game = tuple[float, float]


def measure_regret(
    theorem: Callable[[rd.bounds.Setting], rd.bounds.Bound],
    learner: Callable[..., Any],
    loss: rd.losses.LinearLoss,
    stream: rd.Stream,
    **known: float,
) -> Game:
    """Clean regret at the step that the theorem prescribes, and its bound; `known` is what is known of the losses."""
    path = float(rd.regret.path_length(stream, loss, BALL)[-1])
    before = rd.bounds.Setting(rounds=len(stream), k=stream.corrupted, D=1.0, path=path, **known)
    player = learner(step=rd.steps.Constant(theorem(before).step), loss=loss, domain=BALL, start=START)
    trace = rd.play(player, stream)
    largest = float(trace.losses[stream.clean].max(initial=0.0))
    setting = replace(before, B=largest, deviation=rd.regret.deviation(stream, loss, BALL))
    return float(rd.regret.clean_dynamic(trace, stream, loss, domain=BALL)[-1]), theorem(setting).value


def learn(stream: rd.Stream, a: float, b: float) -> Game:
    theorem, learner = partial(rd.bounds.clean_dynamic, a=a, b=b, sharp=True), partial(rd.Learn, 1, a=a, b=b)
    if stream.corrupted:
        return measure_regret(theorem, learner, rd.losses.Squared(), stream, m=2.0, L=2.0)
    # ‖±1 + l2·θ‖ ≤ 1 + l2·‖ω‖ + l2·‖θ − ω‖, and ω is at most 1.
    flat = rd.losses.Absolute(l2=NEARLY_FLAT)
    return measure_regret(theorem, learner, flat, stream, m=NEARLY_FLAT, G=1.0 + NEARLY_FLAT, L=NEARLY_FLAT)


def top_k(stream: rd.Stream, a: float, b: float) -> Game:
    learner = partial(rd.TopK, 1, k=stream.corrupted)
    return measure_regret(rd.bounds.top_k, learner, rd.losses.Absolute(), stream, m=0.0, gradient=1.0)


def normalised(stream: rd.Stream, a: float, b: float) -> Game:
    learner = partial(rd.NormalisedOGD, 1)
    return measure_regret(rd.bounds.normalised, learner, rd.losses.Absolute(), stream, m=0.0, gradient=1.0)


ALGORITHMS = {"learn": learn, "top_k": top_k, "normalised": normalised}


def make_game(numbers: np.ndarray, rounds: int, k: int) -> tuple[rd.Stream, float, float]:
    """Make the stream and LEARN's a and b from numbers in [−1, 1].

    They are the clean records, log a, log b, the corrupted records, and a key for each round: the k rounds with the
    smallest keys are corrupted. There are no keys if k = 0.
    """
    nature, (log_a, log_b), corrupted, keys = np.split(numbers, [rounds, rounds + 2, rounds + 2 + k])
    rows = np.sort(np.argsort(keys, kind="stable")[:k])
    y, clean = nature.copy(), np.ones(rounds, dtype=bool)
    y[rows], clean[rows] = corrupted, False
    X = np.ones((rounds, 1))
    stream = rd.Stream(X, y, clean, originals=rd.Originals(rows, X[rows], nature[rows]))
    return stream, 10.0 ** (2.0 * log_a), 10.0 ** (2.0 * log_b - 2.0)


def make_starts(rounds: int, k: int) -> list[np.ndarray]:
    """Return the starts of the search: a minimizer that jumps from end to end, and a constant one."""
    jumps = np.where(np.arange(rounds) % 2 == 0, 1.0, -1.0)
    root = np.sqrt(rounds)
    # A step of OGD is 2/√T: after a whole number of them it is half a step before the minimizer, then half behind it.
    stays = np.full(rounds, 2.0 * (np.floor(root - 0.5) + 0.5) / root - 1.0)
    # Without outliers the gate should stay open: a = 100 and b = 1e-4. With them the bound needs a gate that closes.
    rest = np.concatenate([[0.0, -0.5] if k else [1.0, -1.0], -np.ones(k), np.linspace(-1.0, 1.0, rounds if k else 0)])
    return [np.concatenate([nature, rest]) for nature in (jumps, stays)]


CASES = tuple({"algorithm": name, "rounds": 8, "k": k} for name in ALGORITHMS for k in (0, 2))


@claim("upper", *CASES)
def worst_case(algorithm: str, rounds: int, k: int, generations: int = 5, seeds: int = 1) -> Game:
    def play(numbers: np.ndarray) -> Game:
        return ALGORITHMS[algorithm](*make_game(numbers, rounds, k))

    def objective(numbers: np.ndarray) -> float:
        measured, bound = play(numbers)
        return -measured / bound

    searches = [
        differential_evolution(
            objective, [(-1.0, 1.0)] * len(x0), x0=x0, maxiter=generations, popsize=1, polish=False, seed=seed, tol=0.0
        )
        for x0 in make_starts(rounds, k)
        for seed in range(seeds)
    ]
    return play(min(searches, key=lambda found: found.fun).x)


def search_thoroughly() -> None:
    for algorithm in ALGORITHMS:
        for rounds, k in ((1, 0), (2, 0), (8, 0), (30, 0), (8, 2), (30, 6)):
            case = {"algorithm": algorithm, "rounds": rounds, "k": k}
            measured, bound = worst_case(**case, generations=100, seeds=2)
            print(f"{format_case(case)}: {measured:.4g} ≤ {bound:.4g}, ratio {measured / bound:.3f}", flush=True)
        for rounds in (1000, 100_000):
            measured, bound = ALGORITHMS[algorithm](*make_game(make_starts(rounds, 0)[1], rounds, 0))
            print(f"{algorithm}, rounds={rounds}, constant minimizer: ratio {measured / bound:.3f}", flush=True)


if __name__ == "__main__":
    if "--thorough" in sys.argv[1:]:
        search_thoroughly()
    else:
        show(worst_case)
