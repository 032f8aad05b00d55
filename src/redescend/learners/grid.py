"""Many descents at once, played in the mean; experts are kept only where they differ."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from redescend import domains, losses, transforms
from redescend.errors import DivergenceError
from redescend.kernels.experts import groups as layout
from redescend.kernels.experts import loop as kernel
from redescend.kernels.experts import weighting
from redescend.learners.base import Round, constructor_settings
from redescend.learners.ensemble import Ensemble
from redescend.losses import LinearLoss
from redescend.numeric import LARGEST, Array
from redescend.parameters import Interval, bad_parameter, check_instance

# Both are called with the state and the settings as one row of arguments.
_run: Any = kernel.run
_settle: Any = kernel.settle

ROUNDS = Interval(1, 2**53, whole=True)
"""Rounds are counted as floats, and radii by their exponents."""

ANY_RADIUS = 4096.0
"""An exponent whose radius no float holds: no ball at all."""


class Expert(NamedTuple):
    """Experts that are still one: the same step, and radii unit·2^j for j = lowest..highest that none has met.

    `radius` is the smallest of theirs, and `weight` that of all of them together.
    """

    step: float
    lowest: int
    highest: int
    radius: float
    weight: float
    theta: Array


class Experts(Ensemble):
    """Projected descents with steps and balls of their own; exponential weights decide how much of each is played."""

    _weighing: int = weighting.HEDGE

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
        beliefs: Any = None,
    ) -> None:
        super().__init__(dim, loss)
        name = type(self).__name__
        self.domain = check_instance(name, "domain", domain, domains.Domain, "a domain, such as Ball(1.0)")
        if not domain.contains(np.zeros(self.dim)):
            raise bad_parameter(name, "domain", "a domain that contains 0, where all experts start", domain)
        self.transform = transform
        self.horizon = rounds
        self._settings = self._written_out(rate, unit, gradient), self._code()
        groups = np.array(groups, dtype=np.float64)
        self._experts = _how_many(groups)
        self._first = groups[:, : layout.LOG_WEIGHT].copy()
        self._arrays = {
            "thetas": np.zeros((len(groups), self.dim)),
            "groups": groups,
            "clock": np.zeros(layout.CLOCK),
            "beliefs": np.zeros((0, 0)) if beliefs is None else np.array(beliefs, dtype=np.float64),
        }
        self._arrays["clock"][layout.GROUPS] = len(groups)

    def _written_out(self, rate: float, unit: float, gradient: float) -> Array:
        numbers = np.zeros(layout.SETTINGS)
        if isinstance(self.loss, LinearLoss):
            numbers[[layout.LOSS, layout.LOSS_C, layout.L2]] = self.loss.kind, self.loss.setting, self.loss.l2
            numbers[layout.MARGIN] = self.loss.margin
        numbers[layout.TRANSFORM] = self.transform.kind
        numbers[[layout.GATE_C, layout.GATE_B]] = self.transform.settings
        numbers[[layout.META, layout.RATE, layout.UNIT, layout.GRADIENT]] = self._weighing, rate, unit, gradient
        return numbers

    def _code(self) -> Array | None:
        """The domain within a ball, whose radius is the last number; nothing if only the ball limits it."""
        if isinstance(self.domain, domains.Reals):
            return None
        parts = self.domain.parts if isinstance(self.domain, domains.Intersection) else (self.domain,)
        return domains.Intersection(*parts, domains.Ball(1.0)).code(self.dim)

    @property
    def parameters(self) -> dict[str, Any]:
        known = {**vars(self.transform), **vars(self), "rounds": self.horizon}
        # An endless horizon, and the longest step that goes with it, were not given.
        return {n: None if value == inf else value for n, value in constructor_settings(type(self), known).items()}

    @property
    def _parts(self) -> tuple[Any, ...]:
        """State and settings, in the order of the compiled loop."""
        return (*self._arrays.values(), *self._settings)

    @property
    def rounds(self) -> int:
        return int(self._arrays["clock"][layout.ROUNDS])

    @property
    def theta(self) -> Array:
        return layout.mean_action(self._arrays["thetas"], self._arrays["groups"], self._arrays["clock"])

    @property
    def distinct(self) -> int:
        """How many of the experts differ."""
        return int(self._arrays["clock"][layout.GROUPS])

    @property
    def experts(self) -> list[Expert]:
        """The experts that differ, in the order in which they parted."""
        count = self.distinct
        thetas, groups = self._arrays["thetas"][:count], self._arrays["groups"][:count]
        weights = (groups[:, layout.HIGH] - groups[:, layout.LOW] + 1.0) * np.exp(groups[:, layout.LOG_WEIGHT])
        weights /= weights.sum()
        with np.errstate(over="ignore"):
            radii = np.ldexp(self._settings[0][layout.UNIT], np.minimum(groups[:, layout.LOW], ANY_RADIUS).astype(int))
        return [
            Expert(float(step), int(low), int(high), float(radius), float(weight), theta.copy())
            for (step, _, low, high, _), radius, weight, theta in zip(groups, radii, weights, thetas, strict=True)
        ]

    def skip(self) -> None:
        self.expect(1)
        self._arrays["clock"][layout.ROUNDS] += 1

    def _play(self, X: Array, y: Array, losses: Array, weights: Array, actions: Array) -> int:
        at, outcome = 0, kernel.FULL if isinstance(self.loss, LinearLoss) else kernel.UNPLAYABLE
        while outcome == kernel.FULL:
            rows = slice(at, None)
            played, outcome = _run(X[rows], y[rows], *self._parts, losses[rows], weights[rows], actions[rows])
            at += played
            if outcome == kernel.FULL:
                self._make_room()
        return at

    def _make_room(self) -> None:
        for name in ("thetas", "groups"):
            array = self._arrays[name]
            self._arrays[name] = np.concatenate([array, np.zeros_like(array)])

    def _stretched(self, steps: Array, x: Array, y: float) -> Array:
        """The steps as they are taken on this record; none where nothing can be learned from it."""
        return steps

    def _carefully(self, x: Array, y: float) -> Round:
        loss = self.loss.value(self.theta, x, y)
        thetas, groups = (self._arrays[name][: self.distinct] for name in ("thetas", "groups"))
        paid = np.array([self.loss.value(theta, x, y) for theta in thetas])
        believed = np.array(self.transform.weight(paid))
        steps = self._stretched(groups[:, layout.STEP], x, y)
        if len(steps) == 0:
            self._arrays["clock"][layout.ROUNDS] += 1
            return Round(loss, float(self.transform.weight(loss)))
        moved = thetas.copy()
        with np.errstate(over="ignore"):
            for k in np.flatnonzero(believed):
                move = steps[k] * believed[k] * self.loss.gradient(thetas[k], x, y)
                moved[k] = np.clip(thetas[k] - move, -LARGEST, LARGEST)
        outcome = kernel.FULL
        while outcome == kernel.FULL:
            origin = self.loss.value(np.zeros(self.dim), x, y)
            outcome = _settle(*self._parts, moved, paid, believed, origin)
            if outcome == kernel.FULL:
                self._make_room()
        if outcome == kernel.UNPLAYABLE:
            raise DivergenceError(
                f"Round {self.rounds + 1}: an expert would stop being finite, so all stay where they are. "
                "Try smaller steps, features scaled to unit size, or a bounded domain such as Ball(10.0)."
            )
        return Round(loss, float(self.transform.weight(loss)))

    def _sound(self, arrays: dict[str, Any]) -> bool:
        thetas, groups, clock, beliefs = arrays.values()
        count = clock[layout.GROUPS]
        fits = groups.shape == (len(thetas), 5) and thetas.shape[1] == self.dim and clock.shape == (layout.CLOCK,)
        if not fits or not 1 <= count <= len(groups) or beliefs.shape != self._arrays["beliefs"].shape:
            return False
        groups, thetas = groups[: int(count)], thetas[: int(count)]
        low, high, logs = groups[:, layout.LOW], groups[:, layout.HIGH], groups[:, layout.LOG_WEIGHT]
        counts = clock[[layout.ROUNDS, layout.GROUPS, layout.NORMS, layout.SCALES]]
        whole = np.all(np.concatenate([counts, low, high]) % 1.0 == 0.0) and _how_many(groups) == self._experts
        ordered = clock[layout.ROUNDS] <= self.horizon and (counts >= 0.0).all() and (low <= high).all()
        weighed = (logs <= 0.0).all() and logs.max() > -700.0 and (beliefs > 0.0).all() and clock[layout.GAP] >= 0.0
        near = (np.abs(thetas) < kernel.FARTHEST).all()
        return bool(whole and ordered and weighed and near and self._of_the_grid(groups))

    def _of_the_grid(self, groups: Array) -> bool:
        """Whether every group is part of one that there was at first."""
        first = {(step, place): (low, high) for step, place, low, high in self._first.tolist()}
        ranges = [first.get((step, place), (inf, -inf)) for step, place, *_ in groups.tolist()]
        low, high = np.array(ranges).T
        return bool((groups[:, layout.LOW] >= low).all() and (groups[:, layout.HIGH] <= high).all())


def _how_many(groups: Array) -> float:
    """How many experts there are in these groups."""
    return float(np.sum(groups[:, layout.HIGH] - groups[:, layout.LOW] + 1.0))
