r"""Algorithm 2 of the paper: LEARN with experts, for an unknown step and an unknown domain; and one that works."""

from __future__ import annotations

from math import inf, log, sqrt
from typing import Any, Literal

import numpy as np

from redescend import domains, losses, transforms
from redescend.kernels.experts import loop as kernel
from redescend.kernels.experts import weighting
from redescend.learners.grid import ANY_RADIUS, ROUNDS, Expert, Experts
from redescend.learners.recipes import Learn
from redescend.numeric import Array, norm
from redescend.parameters import SCALE, Interval, bad_parameter, check
from redescend.steps import Constant

A_MAX = Interval(2.0, 1e100)

HALVINGS = 12
"""Steps of the robust experts: the longest that is stable on its median record, and its halves."""


class LearnWithExperts(Experts):
    r"""Many LEARN descents, played in the mean, for an unknown step, domain and number of outliers.

    ``meta="paper"`` is Algorithm 2 exactly as printed. An expert has a step α_i = min(2^i, a_max)/√T and a ball of
    radius D_j = ε·2^j/T, for i = 1..⌈log₂ a_max⌉ and j = 1..T; its weight falls by exp(−β·η·f), where η is the least
    LEARN weight of all experts in that round. Experts with the same step are one until they meet the edge of a ball,
    so that only those that differ cost anything, and none is left out.

    ``meta="robust"`` needs no horizon. Its experts have steps m/(κ·w(0)) for m = 1, ½, ¼, …, where κ is the curvature
    of a typical record and w(0) the LEARN weight of a loss of 0. They are weighed by AdaHedge with a share of 1/(t + 1)
    on their LEARN losses, which no record and no expert can push out of [0, a·ln(1 + 1/b)].

    Parameters
    ----------
    dim : int
        Number of features.
    loss : Loss
        A convex loss, such as ``losses.Squared(l2=1e-4)``.
    a, b : float
        The LEARN transform.
    rounds : int
        The number T of rounds. It and the next two make the grid of ``meta="paper"``; ``meta="robust"`` does without.
    epsilon : float
        The scale of the radii.
    a_max : float
        The largest step, in units of 1/√T; 2√T unless given.
    meta : "paper" or "robust"
        How the experts are weighed.
    domain : Domain
        Where actions may be; it must contain 0, where all experts start.

    Examples
    --------
    >>> learner = LearnWithExperts(2, loss=losses.Squared(), a=1.0, b=0.1, rounds=1000)
    >>> learner.distinct, sum(expert.highest - expert.lowest + 1 for expert in learner.experts)
    (6, 6000)
    >>> LearnWithExperts(2, loss=losses.Squared(), a=1.0, b=0.1, meta="robust").update([1.0, 0.0], 0.0)
    Round(loss=0.0, weight=0.9090909090909091)

    References
    ----------
    Barik, Krishna and Tan, LEARN: an invex loss for outlier oblivious robust online optimization, Algorithm 2.
    de Rooij, van Erven, Grünwald and Koolen, Follow the leader if you can, hedge if you must, JMLR 2014.
    """

    transform: transforms.Learn

    def __init__(
        self,
        dim: int,
        *,
        loss: losses.Loss,
        a: float,
        b: float,
        rounds: int | None = None,
        epsilon: float = 1.0,
        a_max: float | None = None,
        meta: Literal["paper", "robust"] = "paper",
        domain: domains.Domain = domains.Reals(),  # noqa: B008 -- frozen
    ) -> None:
        name = type(self).__name__
        if meta not in ("paper", "robust"):
            raise bad_parameter(name, "meta", "'paper' or 'robust'", meta)
        if rounds is None and meta == "paper":
            raise bad_parameter(name, "rounds", f"{ROUNDS} for meta='paper'", rounds)
        self.meta = meta
        T = inf if rounds is None else check(name, "rounds", rounds, ROUNDS)
        self.epsilon = check(name, "epsilon", epsilon, SCALE)
        self.a_max = 2.0 * sqrt(T) if a_max is None else check(name, "a_max", a_max, A_MAX)
        learn = transforms.Learn(a, b)
        settings = self._as_printed(learn, T) if meta == "paper" else self._anytime()
        super().__init__(dim, loss=loss, transform=learn, domain=domain, **settings)

    def _as_printed(self, learn: transforms.Learn, T: float) -> dict[str, Any]:
        count = 1
        while 2.0**count < self.a_max:
            count += 1
        steps = [min(2.0**i, self.a_max) / sqrt(T) for i in range(1, count + 1)]
        nu = max(learn.a, 1.0 / learn.a) / learn.b
        return {
            "rounds": T,
            "rate": sqrt(8.0 * log(T * count) / T) / nu,
            "unit": self.epsilon / T,
            "groups": [[step, i, 1.0, T, 0.0] for i, step in enumerate(steps)],
        }

    def _anytime(self) -> dict[str, Any]:
        self._weighing = weighting.ADAPTIVE
        groups = [[0.5**i, i, ANY_RADIUS, ANY_RADIUS, -log(HALVINGS)] for i in range(HALVINGS)]
        return {"rounds": inf, "rate": 0.0, "unit": 1.0, "groups": groups}

    def alone(self, expert: Expert) -> Learn:
        """What an expert of the paper's grid is by itself, before its first round: Algorithm 1 in its ball."""
        if self.meta != "paper":
            raise TypeError("The steps of robust experts follow the stream; only those of meta='paper' can be alone.")
        domain = self.domain
        if expert.radius < 1e150:
            ball = domains.Ball(expert.radius)
            parts = domain.parts if isinstance(domain, domains.Intersection) else (domain,)
            domain = ball if isinstance(domain, domains.Reals) else domains.Intersection(*parts, ball)
        a, b = self.transform.a, self.transform.b
        return Learn(self.dim, loss=self.loss, a=a, b=b, step=Constant(expert.step), domain=domain)

    def _stretched(self, steps: Array, x: Array, y: float) -> Array:
        if self.meta == "paper":
            return steps
        origin = np.zeros(self.dim)
        value, pull, length = self.loss.value(origin, x, y), norm(self.loss.gradient(origin, x, y)), norm(x)
        with np.errstate(all="ignore"):
            scale = np.float64(2.0 * np.sqrt(value) * length / pull) ** 2 if 0.0 < pull < np.inf else 0.0
            curvature = kernel.observe(
                self._arrays["clock"], float(np.square(length)), float(scale), getattr(self.loss, "l2", 0.0)
            )
        return steps / (curvature * self.transform.weight(0.0)) if curvature > 0.0 else steps[:0]

    def __repr__(self) -> str:
        grid = f"rounds={self.horizon}, epsilon={self.epsilon}, a_max={self.a_max}, " if self.meta == "paper" else ""
        return f"{type(self).__name__}({self.dim}, {self.loss}, {self.transform}, {grid}{self.domain}, {self.meta!r})"
