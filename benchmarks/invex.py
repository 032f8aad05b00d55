"""A round on a manifold, against pymanopt's own exp + log on the same matrices."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.report import Goal, Row, compare
from benchmarks.timing import Effort, Task, best_of
from redescend import gates, invex, steps, transforms
from redescend.numeric import Array

GOAL = Goal(3.0)
SIZE = 5


def invex_rows(effort: Effort) -> Iterator[Row]:
    """SPD(5): descent, the running mean behind a gate, and the robust one."""
    if importlib.util.find_spec("pymanopt") is None:
        yield Row(f"a round on SPD({SIZE})", "not measured", "pip install pymanopt", None)
        return
    space, generator = invex.SPD(SIZE), np.random.default_rng(0)
    matrices = [space.random(generator, 0.3) for _ in range(max(20, effort.calls // 5))]
    learn = gates.Robust(transforms.Learn(a=1.0, b=0.01))
    learners: dict[str, Callable[[Array], Any]] = {
        "Riemannian descent": invex.ManifoldDescent(
            invex.SquaredDistance(space), step=steps.Anytime(0.1), domain=invex.GeodesicBall(space, 10.0)
        ).update,
        "running Fréchet mean behind LEARN": invex.FrechetMean(space, gate=learn).update,
        "robust Fréchet mean, nothing to tune": invex.RobustFrechetMean(space).update,
    }
    tasks = {name: _over(matrices, update) for name, update in learners.items()}
    # Threads that wait for one another make a 5 × 5 matrix ten times slower, for pymanopt more than for us.
    with threadpool_limits(1):
        times = best_of({**tasks, "pymanopt": _pymanopt(matrices)}, effort.repetitions)
    for name in learners:
        ours, theirs = times[name] / len(matrices), times["pymanopt"] / len(matrices)
        yield compare(f"{name}, SPD({SIZE})", ours, "pymanopt's exp + log", theirs, GOAL, per="round")


def _over(matrices: list[Array], function: Callable[[Array], Any]) -> Task:
    def task() -> None:
        for matrix in matrices:
            function(matrix)

    return task


def _pymanopt(matrices: list[Array]) -> Task:
    from pymanopt.manifolds import SymmetricPositiveDefinite

    manifold, theta = SymmetricPositiveDefinite(SIZE), np.eye(SIZE)
    return _over(matrices, lambda matrix: manifold.exp(theta, 0.1 * manifold.log(theta, matrix)))
