r"""LEARN with experts (Algorithm 2 of the paper), and two expert algorithms that do not expect outliers."""

from __future__ import annotations

from math import ceil, exp, inf, log, log2, sqrt
from typing import Any, Literal

import numpy as np

from redescend import domains, losses, transforms
from redescend.kernels import experts as kernel
from redescend.learners.grid import ANY_RADIUS, ROUNDS, Expert, Experts
from redescend.learners.recipes import Learn
from redescend.losses import linear
from redescend.numeric import Array, norm
from redescend.parameters import SCALE, Interval, bad_parameter, check, check_choice, check_instance
from redescend.steps import Constant

A_MAX = Interval(2.0, 1e100)

NEGLIGIBLE_PRIOR = 1e-60  # experts whose prior is below this share of the largest are left out: they change no digit
HALVINGS = 12  # number of steps of the robust experts: the longest that is stable on the median record, and its halves


class LearnWithExperts(Experts):
    r"""Many LEARN descents, whose weighted mean is played, for an unknown step, domain and number of outliers.

    ``meta="paper"`` is Algorithm 2 exactly as printed. An expert has a step α_i = min(2^i, a_max)/√T and a ball of
    radius D_j = ε·2^j/T, for i = 1..⌈log₂ a_max⌉ and j = 1..T; its weight falls by exp(−β·η·f), where η is the smallest
    LEARN weight of all experts in that round. Experts with the same step are one until they reach the edge of a ball,
    so that only those that differ cost anything, and none is left out.

    ``meta="robust"`` needs no horizon. Its experts have steps m/(κ·w(0)) for m = 1, ½, ¼, …, where κ is the curvature
    of a typical record and w(0) the LEARN weight of a loss of 0. AdaHedge with a share of 1/(t + 1) weights
    them by their LEARN losses, which are in [0, a·ln(1 + 1/b)] whatever the records.

    Parameters
    ----------
    dim, loss
        As in `Descent`.
    a : float
        Loss scale at which the gate closes.
    b : float
        Odds of an outlier.
    rounds : int, optional
        The number T of rounds; required by ``meta="paper"`` and not used by ``meta="robust"``.
    epsilon : float, default 1.0
        The scale of the radii of ``meta="paper"``.
    a_max : float, optional
        The largest step of ``meta="paper"`` in units of 1/√T. By default 2√T.
    meta : "paper" or "robust"
        The grid of experts and how they are weighted.
    domain : Domain, default Reals()
        The set of actions; it must contain 0, where all experts start.

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
        self.meta = check_choice(name, "meta", meta, ("paper", "robust"))
        if rounds is None and meta == "paper":
            raise bad_parameter(name, "rounds", f"{ROUNDS} for meta='paper'", rounds)
        T = inf if rounds is None else check(name, "rounds", rounds, ROUNDS)
        self.epsilon = check(name, "epsilon", epsilon, SCALE)
        self.a_max = 2.0 * sqrt(T) if a_max is None else check(name, "a_max", a_max, A_MAX)
        learn = transforms.Learn(a, b)
        settings = self._make_paper_grid(learn, T) if meta == "paper" else self._make_robust_grid()
        super().__init__(dim, loss=loss, transform=learn, domain=domain, **settings)

    def _make_paper_grid(self, learn: transforms.Learn, T: float) -> dict[str, Any]:
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

    def _make_robust_grid(self) -> dict[str, Any]:
        self._weighting = kernel.ADAPTIVE
        groups = [[0.5**i, i, ANY_RADIUS, ANY_RADIUS, -log(HALVINGS)] for i in range(HALVINGS)]
        return {"rounds": inf, "rate": 0.0, "unit": 1.0, "groups": groups}

    def alone(self, expert: Expert) -> Learn:
        """Make the learner that an `expert` of the paper's grid is before its first round: Algorithm 1 in its ball."""
        if self.meta != "paper":
            raise TypeError("alone needs meta='paper': the steps of robust experts depend on the stream.")
        domain = domains.limit_to_ball(self.domain, expert.radius) if expert.radius < 1e150 else self.domain
        a, b = self.transform.a, self.transform.b
        return Learn(self.dim, loss=self.loss, a=a, b=b, step=Constant(expert.step), domain=domain)

    def _scale_steps(self, steps: Array, x: Array, y: float) -> Array:
        if self.meta == "paper":
            return steps
        origin = np.zeros(self.dim)
        value, pull, length = self.loss.value(origin, x, y), norm(self.loss.gradient(origin, x, y)), norm(x)
        with np.errstate(all="ignore"):
            scale = np.float64(2.0 * np.sqrt(value) * length / pull) ** 2 if 0.0 < pull < np.inf else 0.0
            curvature = kernel.update_curvature(
                self._arrays["clock"], float(np.square(length)), float(scale), getattr(self.loss, "l2", 0.0)
            )
        return steps / (curvature * self.transform.weight(0.0)) if curvature > 0.0 else steps[:0]

    def __repr__(self) -> str:
        grid = f"rounds={self.horizon}, epsilon={self.epsilon}, a_max={self.a_max}, " if self.meta == "paper" else ""
        return f"{type(self).__name__}({self.dim}, {self.loss}, {self.transform}, {grid}{self.domain}, {self.meta!r})"


class Ader(Experts):
    r"""Hedge over online gradient descents with steps on a geometric grid, for dynamic regret on a bounded domain.

    η_i = 2^{i−1}·(D/G)·√(7/(2T)) for i = 1..⌈½·log₂(1 + 4T/7)⌉ + 1, prior ∝ 1/(i(i+1)), rate √(8/(T·c²)), with D the
    diameter of the domain.

    Parameters
    ----------
    dim : int
        Number of features.
    loss : Loss
        A convex loss.
    domain : Domain
        A bounded domain that contains 0.
    rounds : int
        The number T of rounds.
    gradient : float
        A bound G on the length of every gradient in the domain.
    span : float
        A bound c on every loss in the domain.

    Examples
    --------
    >>> learner = Ader(2, loss=losses.Squared(), domain=domains.Ball(1.0), rounds=100, gradient=10.0, span=9.0)
    >>> len(learner.experts)
    4

    References
    ----------
    Zhang, Lu and Zhou, Adaptive online learning in dynamic environments, NeurIPS 2018.
    """

    def __init__(
        self, dim: int, *, loss: losses.Loss, domain: domains.Domain, rounds: int, gradient: float, span: float
    ) -> None:
        name = type(self).__name__
        check_instance(name, "domain", domain, domains.Domain, "a domain, such as Ball(1.0)")
        if not np.isfinite(domain.diameter):
            raise bad_parameter(name, "domain", "a bounded domain, such as Ball(1.0)", domain)
        T = check(name, "rounds", rounds, ROUNDS)
        self.gradient = check(name, "gradient", gradient, SCALE)
        self.span = check(name, "span", span, SCALE)
        count = ceil(0.5 * log2(1.0 + 4.0 * T / 7.0)) + 1
        first = domain.diameter / self.gradient * sqrt(3.5 / T)
        super().__init__(
            dim,
            loss=loss,
            transform=transforms.Identity(),
            domain=domain,
            rounds=T,
            rate=sqrt(8.0 / T) / self.span,
            unit=1.0,
            groups=[
                [2.0 ** (i - 1) * first, i, ANY_RADIUS, ANY_RADIUS, log(2.0 / (i * (i + 1)))]
                for i in range(1, count + 1)
            ],
        )

    def __repr__(self) -> str:
        settings = f"rounds={self.horizon}, gradient={self.gradient}, span={self.span}"
        return f"Ader({self.dim}, {self.loss}, {self.domain}, {settings})"


class JacobsenCutkosky(Experts):
    r"""Dynamic regret without a bounded domain, for losses with ‖∇f(θ)‖ ≤ G + L·‖θ‖.

    Experts with steps η_i = min(ε·2^i/(8(G + εL)T), 1/(8L)) in balls of radius ε·2^j/T, i, j = 0, 1, …, T, move by
    η(1 + 8η·L_t)·∇f. Each has its own rate μ = 1/(2D(G + D/η)) and a prior ∝ μ², and is weighted by its loss beyond
    that of the action 0.

    Parameters
    ----------
    dim : int
        Number of features.
    loss : LinearLoss
        A convex loss of the prediction.
    rounds : int
        The number T of rounds.
    gradient : float
        A bound G on the length of every gradient at 0.
    smoothness : float
        A bound L on how fast a gradient grows with ‖θ‖.
    epsilon : float
        The scale of the radii.

    Examples
    --------
    >>> learner = JacobsenCutkosky(2, loss=losses.Squared(), rounds=100, gradient=4.0, smoothness=8.0)
    >>> learner.update([1.0, 0.0], 1.0)
    Round(loss=1.0, weight=1.0)

    References
    ----------
    Jacobsen and Cutkosky, Unconstrained online learning with unbounded losses, ICML 2023, Algorithm 3.
    """

    _weighting = kernel.CENTRED

    def __init__(
        self,
        dim: int,
        *,
        loss: losses.LinearLoss,
        rounds: int,
        gradient: float,
        smoothness: float,
        epsilon: float = 1.0,
    ) -> None:
        name = type(self).__name__
        check_instance(name, "loss", loss, losses.LinearLoss, "a loss of the prediction, such as Squared()")
        T = check(name, "rounds", rounds, ROUNDS)
        G = self.gradient = check(name, "gradient", gradient, SCALE)
        L = self.smoothness = check(name, "smoothness", smoothness, SCALE)
        self.epsilon = check(name, "epsilon", epsilon, SCALE)
        first, largest = self.epsilon / (8.0 * (G + self.epsilon * L) * T), 1.0 / (8.0 * L)
        steps = [first]
        while steps[-1] < largest and len(steps) <= T:
            steps.append(min(2.0 * steps[-1], largest))
        prior = self._compute_prior(np.array(steps), T)
        radii = prior.shape[1]
        logs = np.log(prior.mean(axis=1))
        super().__init__(
            dim,
            loss=loss,
            transform=transforms.Identity(),
            domain=domains.Reals(),
            rounds=T,
            rate=1.0 - exp(-1.0 / T),
            unit=self.epsilon / T,
            groups=[[step, i, 0.0, radii - 1, logs[i]] for i, step in enumerate(steps)],
            gradient=G,
            expert_weights=prior,
        )

    def _compute_prior(self, steps: Array, T: int) -> Array:
        D = self.epsilon / T * 2.0 ** np.arange(min(T, 1000) + 1)
        with np.errstate(over="ignore"):
            rates = 0.5 / (D * (self.gradient + D / steps[:, None]))
            prior = (rates / rates.max()) ** 2
        prior = prior[:, prior.max(axis=0) > NEGLIGIBLE_PRIOR]
        return prior / prior.sum()

    def _scale_steps(self, steps: Array, x: Array, y: float) -> Array:
        assert isinstance(self.loss, losses.LinearLoss)
        growth = linear.curvature(self.loss.kind) * min(norm(x), 1e100) ** 2 + self.loss.l2
        return steps * (1.0 + 8.0 * steps * growth)

    def __repr__(self) -> str:
        settings = f"gradient={self.gradient}, smoothness={self.smoothness}, epsilon={self.epsilon}"
        return f"{type(self).__name__}({self.dim}, {self.loss}, rounds={self.horizon}, {settings})"
