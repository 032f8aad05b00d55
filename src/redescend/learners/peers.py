r"""Expert algorithms that do not have outliers in mind: the peers of `LearnWithExperts`."""

from __future__ import annotations

from math import ceil, exp, log, log2, sqrt

import numpy as np

from redescend import domains, losses, transforms
from redescend.kernels.experts import weighting
from redescend.learners.grid import ANY_RADIUS, ROUNDS, Experts
from redescend.losses import linear
from redescend.numeric import Array, norm
from redescend.parameters import SCALE, bad_parameter, check, check_instance

UNSEEN = 1e-60
"""Experts whose prior is below this share of the largest are left out: they change no digit."""


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
    η(1 + 8η·L_t)·∇f. Each has its own rate μ = 1/(2D(G + D/η)) and a prior ∝ μ², and is weighed by its loss beyond
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

    _weighing = weighting.CENTRED

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
        prior = self._prior(np.array(steps), T)
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
            beliefs=prior,
        )

    def _prior(self, steps: Array, T: int) -> Array:
        D = self.epsilon / T * 2.0 ** np.arange(min(T, 1000) + 1)
        with np.errstate(over="ignore"):
            rates = 0.5 / (D * (self.gradient + D / steps[:, None]))
            prior = (rates / rates.max()) ** 2
        prior = prior[:, prior.max(axis=0) > UNSEEN]
        return prior / prior.sum()

    def _stretched(self, steps: Array, x: Array, y: float) -> Array:
        assert isinstance(self.loss, losses.LinearLoss)
        growth = linear.curvature(self.loss.kind) * min(norm(x), 1e100) ** 2 + self.loss.l2
        return steps * (1.0 + 8.0 * steps * growth)

    def __repr__(self) -> str:
        settings = f"gradient={self.gradient}, smoothness={self.smoothness}, epsilon={self.epsilon}"
        return f"{type(self).__name__}({self.dim}, {self.loss}, rounds={self.horizon}, {settings})"
