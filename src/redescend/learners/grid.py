"""Many descents at once, whose weighted mean is played; identical experts are stored once."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from redescend import domains, losses, transforms
from redescend.errors import DivergenceError
from redescend.kernels import experts as kernel
from redescend.kernels.layout import Outcomes
from redescend.learners.learner import Ensemble, Round, read_state, select_constructor_arguments
from redescend.losses import LinearLoss
from redescend.numeric import LARGEST, Array
from redescend.parameters import Interval, bad_parameter, check_instance
from redescend.state import ArraySpec, require

ROUNDS = Interval(1, 2**53, whole=True)  # rounds are counted as floats, and radii by their exponents
ANY_RADIUS = 4096.0  # an exponent whose radius overflows: no ball at all


class Expert(NamedTuple):
    """Experts that are still the same: one step, and radii unit·2^j for j = lowest..highest that none has reached.

    Attributes
    ----------
    step : float
        Their step size.
    lowest, highest : int
        The exponents of their radii.
    radius : float
        The smallest of their radii.
    weight : float
        The weight of all of them together.
    theta : array
        Their iterate.
    """

    step: float
    lowest: int
    highest: int
    radius: float
    weight: float
    theta: Array


class Experts(Ensemble):
    """Projected descents, each with its own step and ball, combined by exponential weights."""

    _weighting: int = kernel.HEDGE

    def __init__(
        self,
        dim: int,
        *,
        loss: losses.Loss,
        transform: transforms.Transform,
        domain: domains.Domain,
        rounds: float,
        rate: float,
        unit: float,
        groups: Any,
        gradient: float = 0.0,
        expert_weights: Any = None,
    ) -> None:
        super().__init__(dim, loss)
        name = type(self).__name__
        self.domain = check_instance(name, "domain", domain, domains.Domain, "a domain, such as Ball(1.0)")
        if not domain.contains(np.zeros(self.dim)):
            raise bad_parameter(name, "domain", "a domain that contains 0, where all experts start", domain)
        self.transform = transform
        self.horizon = rounds
        self._config = self._make_settings(rate, unit, gradient), self._encode_domain()
        groups = np.array(groups, dtype=np.float64)
        self._experts = _count_experts(groups)
        self._first = groups[:, : kernel.LOG_WEIGHT].copy()
        self._arrays = {
            "thetas": np.zeros((len(groups), self.dim)),
            "groups": groups,
            "clock": np.zeros(kernel.COUNTERS),
            "beliefs": np.zeros((0, 0)) if expert_weights is None else np.array(expert_weights, np.float64, order="C"),
        }
        self._arrays["clock"][kernel.GROUPS] = len(groups)

    def _make_settings(self, rate: float, unit: float, gradient: float) -> Array:
        settings = np.zeros(kernel.SETTINGS)
        if isinstance(self.loss, LinearLoss):
            loss = (self.loss.kind, self.loss.setting, self.loss.l2, self.loss.margin)
            settings[[kernel.LOSS, kernel.LOSS_C, kernel.L2, kernel.MARGIN]] = loss
        kind = (self.transform.kind, *self.transform.settings)
        settings[[kernel.TRANSFORM, kernel.GATE_C, kernel.GATE_B]] = kind
        settings[[kernel.META, kernel.RATE, kernel.UNIT, kernel.GRADIENT]] = self._weighting, rate, unit, gradient
        return settings

    def _encode_domain(self) -> Array | None:
        """The code of the domain within a ball, whose radius is its last number; None if only the ball limits it."""
        if isinstance(self.domain, domains.Reals):
            return None
        return domains.limit_to_ball(self.domain, 1.0).code(self.dim)

    @property
    def parameters(self) -> dict[str, Any]:
        known = {**vars(self.transform), **vars(self), "rounds": self.horizon}
        # An infinite horizon, and the longest step that goes with it, are defaults.
        return {
            n: None if value == inf else value for n, value in select_constructor_arguments(type(self), known).items()
        }

    @property
    def _kernel_state(self) -> Any:
        return tuple(self._arrays.values())

    @property
    def rounds(self) -> int:
        return int(self._arrays["clock"][kernel.ROUNDS])

    @property
    def theta(self) -> Array:
        return kernel.mean_action(self._arrays["thetas"], self._arrays["groups"], self._arrays["clock"])

    @property
    def distinct(self) -> int:
        """Number of experts that differ."""
        return int(self._arrays["clock"][kernel.GROUPS])

    @property
    def experts(self) -> list[Expert]:
        """The experts that differ, in the order in which they split off."""
        count = self.distinct
        thetas, groups = self._arrays["thetas"][:count], self._arrays["groups"][:count]
        weights = (groups[:, kernel.HIGH] - groups[:, kernel.LOW] + 1.0) * np.exp(groups[:, kernel.LOG_WEIGHT])
        weights /= weights.sum()
        with np.errstate(over="ignore"):
            radii = np.ldexp(self._config[0][kernel.UNIT], np.minimum(groups[:, kernel.LOW], ANY_RADIUS).astype(int))
        return [
            Expert(float(step), int(low), int(high), float(radius), float(weight), theta.copy())
            for (step, _, low, high, _), radius, weight, theta in zip(groups, radii, weights, thetas, strict=True)
        ]

    def skip(self) -> None:
        self.check_horizon(1)
        self._arrays["clock"][kernel.ROUNDS] += 1

    def _play_rows(self, X: Array, y: Array, out: Outcomes) -> int:
        if not isinstance(self.loss, LinearLoss):
            return 0
        at, outcome = kernel.run(X, y, self._kernel_state, self._config, tuple(out))
        while outcome == kernel.FULL:
            self._grow_capacity()
            played, outcome = kernel.run(X[at:], y[at:], self._kernel_state, self._config, tuple(out.rows(at)))
            at += played
        return at

    def _grow_capacity(self) -> None:
        """Double the capacity for groups."""
        for name in ("thetas", "groups"):
            array = self._arrays[name]
            self._arrays[name] = np.concatenate([array, np.zeros_like(array)])

    def _scale_steps(self, steps: Array, x: Array, y: float) -> Array:
        """The step sizes for this record; none where nothing can be learned from it."""
        return steps

    def _play_safely(self, x: Array, y: float) -> Round:
        loss = self.loss.value(self.theta, x, y)
        thetas, groups = (self._arrays[name][: self.distinct] for name in ("thetas", "groups"))
        losses = np.array([self.loss.value(theta, x, y) for theta in thetas])
        gates = np.array(self.transform.weight(losses))
        steps = self._scale_steps(groups[:, kernel.STEP], x, y)
        if len(steps) == 0:
            self._arrays["clock"][kernel.ROUNDS] += 1
            return Round(loss, float(self.transform.weight(loss)))
        moved = thetas.copy()
        with np.errstate(over="ignore"):
            for k in np.flatnonzero(gates):
                move = steps[k] * gates[k] * self.loss.gradient(thetas[k], x, y)
                moved[k] = np.clip(thetas[k] - move, -LARGEST, LARGEST)
        origin = self.loss.value(np.zeros(self.dim), x, y)
        while (outcome := kernel.finish(self._kernel_state, self._config, moved, losses, gates, origin)) == kernel.FULL:
            self._grow_capacity()
        if outcome == kernel.UNPLAYABLE:
            raise DivergenceError(
                f"Round {self.rounds + 1}: the update of an expert overflowed; the model is unchanged. Try smaller "
                "steps, features scaled to unit size, or a bounded domain such as Ball(10.0)."
            )
        return Round(loss, float(self.transform.weight(loss)))

    def _read_state(self, state: dict[str, Any]) -> dict[str, Array]:
        owner, count = repr(self), ArraySpec("clock", kind="count")
        counters = {
            kernel.ROUNDS: ArraySpec("clock", kind="count", high=self.horizon),
            kernel.GROUPS: ArraySpec("clock", kind="count", low=1, high="capacity"),
            kernel.GAP: ArraySpec("clock", low=0.0),
            kernel.NORMS: count,
            kernel.SCALES: count,
        }
        specs = (
            ArraySpec("thetas", ("capacity", "dim"), low=-kernel.FARTHEST, high=kernel.FARTHEST),
            ArraySpec("groups", ("capacity", 5)),
            ArraySpec("clock", (kernel.COUNTERS,), parts=counters),
            ArraySpec("beliefs", self._arrays["beliefs"].shape, low=np.nextafter(0.0, 1.0)),
        )
        arrays = read_state(specs, state, owner, {"dim": self.dim})
        groups = arrays["groups"][: int(arrays["clock"][kernel.GROUPS])]
        low, high, logs = groups[:, kernel.LOW], groups[:, kernel.HIGH], groups[:, kernel.LOG_WEIGHT]
        whole = np.all(groups[:, [kernel.LOW, kernel.HIGH]] % 1.0 == 0.0) and (low <= high).all()
        require(whole and self._fits_grid(groups), owner, "groups of other experts")
        require(_count_experts(groups) == self._experts, owner, "another number of experts")
        require((logs <= 0.0).all() and logs.max() > -700.0, owner, "impossible weights")
        return arrays

    def _fits_grid(self, groups: Array) -> bool:
        """Whether every group is part of one of the initial groups."""
        first = {(step, place): (low, high) for step, place, low, high in self._first.tolist()}
        ranges = [first.get((step, place), (inf, -inf)) for step, place, *_ in groups.tolist()]
        low, high = np.array(ranges).T
        return bool((groups[:, kernel.LOW] >= low).all() and (groups[:, kernel.HIGH] <= high).all())


def _count_experts(groups: Array) -> float:
    return float(np.sum(groups[:, kernel.HIGH] - groups[:, kernel.LOW] + 1.0))
