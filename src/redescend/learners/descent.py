r"""Online projected gradient descent behind a gate: θ ← Π_Θ(θ − α_t·w_t·∇f_t(θ)).

`Descent` is this update; `recipes` has the algorithms that it becomes with other gates. Records are played by a
compiled loop. Records that overflow there, and every record of a `Custom` loss, are played by `_play_safely`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np
from numpy import ndarray

from redescend import domains, gates, losses, steps
from redescend.errors import DataError, DivergenceError, MissingLabelError
from redescend.kernels import descent, layout, projected
from redescend.kernels.layout import Outcomes
from redescend.learners.learner import (
    Learner,
    Round,
    check_dtype,
    check_features,
    check_record,
    float_array,
    float_number,
    read_state,
    select_constructor_arguments,
)
from redescend.numeric import LARGEST, Array, norm
from redescend.parameters import AT_LEAST_ONE, check, check_instance
from redescend.state import ArraySpec, require

_new_tuple = tuple.__new__  # a third of the cost of calling the class

SCALARS = tuple(name for name in layout.STATE if name != "rounds")


class Descent(Learner):
    r"""Online projected gradient descent behind a gate.

    Parameters
    ----------
    dim : int
        Number of features.
    loss : Loss
        A convex loss, such as ``losses.Squared(l2=1e-4)``.
    gate : Gate
        Gives every round a weight between 0 and 1, such as ``gates.Always()``.
    step : Step
        The step size, such as ``steps.Anytime()``.
    domain : Domain, default Reals()
        The set of actions; the action is projected on it after every step.
    start : array of dim floats, optional
        The first action. By default the point of the domain nearest to 0.
    dtype : float32 or float64, optional
        Precision of the action. By default that of the first records.

    Examples
    --------
    >>> from redescend import gates, losses, steps
    >>> learner = Descent(2, loss=losses.Squared(), gate=gates.Always(), step=steps.Constant(0.25))
    >>> learner.update([1.0, 0.0], 2.0)
    Round(loss=4.0, weight=1.0)
    >>> learner.theta
    array([1., 0.])
    """

    def __init__(
        self,
        dim: int,
        *,
        loss: losses.Loss,
        gate: gates.Gate,
        step: steps.Step,
        domain: domains.Domain = domains.Reals(),  # noqa: B008 -- frozen
        start: Any = None,
        dtype: Any = None,
    ) -> None:
        name = type(self).__name__
        self.dim = check(name, "dim", dim, AT_LEAST_ONE)
        self.loss = check_instance(name, "loss", loss, losses.Loss, "a loss, such as Squared()")
        self.gate = check_instance(name, "gate", gate, gates.Gate, "a gate, such as Always()")
        self.step = check_instance(name, "step", step, steps.Step, "a step, such as Anytime()")
        self.domain = check_instance(name, "domain", domain, domains.Domain, "a domain, such as Ball(1.0)")
        self._free_precision = dtype is None
        code = domain.code(self.dim)
        self._config = np.concatenate([_settings_array(loss, gate, step, domain), code, gate.fresh_memory()])
        self._config[layout.MEMORY] = layout.DOMAIN + len(code)
        self._identity = repr(self)
        self._choose_loops()
        self._allocate_vectors(check_dtype(name, dtype))
        self._set_action(_choose_first_action(name, self.dim, domain, start))

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Show the parameters that a recipe passes on in its signature."""
        super().__init_subclass__(**keywords)
        own = [part for part in signature(cls.__init__).parameters.values() if part.kind is not Parameter.VAR_KEYWORD]
        names = {part.name for part in own}
        shared = signature(Descent.__init__).parameters.values()
        rest = [part for part in shared if part.name not in names | {"gate"}]
        cls.__signature__ = Signature([*own[1:], *rest])  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        parts = (self.loss, self.gate, self.step, self.domain)
        return f"{type(self).__name__}({self.dim}, {', '.join(map(repr, parts))})"

    def _choose_loops(self) -> None:
        loops = descent if self.domain.radial else projected
        self._run, self._run_one = loops.run, loops.run_one
        if not isinstance(self.loss, losses.LinearLoss):
            # A loss that is not compiled: no row can be played.
            self._run, self._run_one = lambda *_: 0, lambda *_: (0.0, layout.UNPLAYED)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the compiled loops out: the other process has its own."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_run", "_run_one")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.dtype = np.dtype(self.dtype.type)
        self._choose_loops()

    @property
    def parameters(self) -> dict[str, Any]:
        # The parameters of a recipe are those of its gate.
        own = {**vars(getattr(self.gate, "transform", self.gate)), **vars(self.gate)}
        precision = None if self._free_precision else self.dtype.name
        return select_constructor_arguments(type(self), {**own, **vars(self), "dtype": precision})

    @property
    def _memory(self) -> Array:
        return self._config[int(self._config[layout.MEMORY]) :]

    @property
    def kernel_settings(self) -> Array:
        """The array of settings, scalar state, domain and gate memory that the compiled loops take; see `layout`."""
        return self._config

    @property
    def rounds(self) -> int:
        return int(self._config[layout.ROUNDS])

    @property
    def theta(self) -> Array:
        out = np.empty(self.dim, self.dtype)
        self.write_action(out)
        return out

    def write_action(self, out: Array) -> None:
        """Write the current action to an array `out` of the learner's dtype."""
        descent.action(self._pair, self._config, out)

    def play_one(self, x: Array, y: float) -> tuple[float, float]:
        """Learn from one C-ordered record `x`, `y` of the learner's dtype by the compiled loop.

        Returns its loss and weight; a negative weight means that it could not be played and that nothing changed.
        """
        return self._run_one(x, y, self._pair, self._config)

    def update(self, x: Any, y: float) -> Round:
        if type(y) is not float:
            y = float_number("y", y)
        if type(x) is not ndarray or x.dtype is not self.dtype or x.shape != self._shape or not x.flags.carray:
            x = self._convert_record(x, y)
        if self._is_playing:
            raise self._concurrent_use_error()
        self._is_playing = True
        try:
            played = self._run_one(x, y, self._pair, self._config)
            if played[1] >= 0.0:
                return _new_tuple(Round, played)
            check_record(x, y, self.loss)
            return self._play_safely(x, y)
        finally:
            self._is_playing = False

    @contextmanager
    def scaled_step(self, factor: float) -> Iterator[None]:
        """Multiply the step size by a `factor` within a with statement."""
        scale = self._config[layout.SCALE]
        self._config[layout.SCALE] = scale * factor
        try:
            yield
        finally:
            self._config[layout.SCALE] = scale

    def _play_rows(self, X: Array, y: Array, out: Outcomes) -> int:
        return self._run(X, y, self._pair, self._config, tuple(out))

    def skip(self) -> None:
        self._config[layout.ROUNDS] += 1

    def state(self) -> dict[str, Any]:
        return {
            "learner": self._identity,
            "previous": self._pair[0].copy(),
            "record": self._pair[1].copy(),
            "memory": self._memory.copy(),
            **{name: float(self._config[place]) for name, place in layout.STATE.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        scalars = (ArraySpec(name, low=0.0 if name in ("norm2", "peak", "travelled") else None) for name in SCALARS)
        vectors = (ArraySpec(name, (self.dim,), dtype=None) for name in ("previous", "record"))
        specs = (*vectors, self.gate.memory_spec(), ArraySpec("rounds", kind="count"), *scalars)
        arrays = read_state(specs, state, self._identity)
        precision = arrays["previous"].dtype
        require(arrays["record"].dtype == precision, self._identity, "vectors of two precisions")
        if precision != self.dtype and not self._free_precision:
            raise DataError(f"The state is of {precision}, but {self!r} was made for {self.dtype}.")
        self._allocate_vectors(precision)
        self._pair[:] = arrays["previous"], arrays["record"]
        self._memory[:] = arrays["memory"]
        for name, place in layout.STATE.items():
            self._config[place] = arrays[name]

    def settle_precision(self, dtype: np.dtype[Any]) -> None:
        if self._free_precision and self.rounds == 0 and dtype != self.dtype:
            theta = self.theta
            self._allocate_vectors(np.dtype(dtype))
            self._set_action(theta)

    def _play_safely(self, x: Array, y: float) -> Round:
        """Play a record with vectors, without an intermediate product that overflows."""
        config, t = self._config, self.rounds
        theta = self.theta.astype(np.float64)
        f = self.loss.value(theta, x, y)
        gradient = self.loss.gradient(theta, x, y)
        length = min(norm(gradient), LARGEST)
        with np.errstate(all="ignore"):
            kind, c, b = self.gate.settings
            weight = float(gates.weigh(self.gate.kind, kind, c, b, self._memory, t, np.float64(f), length))
            if np.isnan(weight):
                name = type(self.gate).__name__
                raise MissingLabelError(
                    f"{name} has no label for round {t + 1}; give one for every round of the stream."
                )
            travelled = config[layout.TRAVELLED]
            if self.step.kind == steps.PER_TRAVELLED:
                travelled = min(np.hypot(travelled, weight * length), LARGEST)
            scale, normalised = config[[layout.SCALE, layout.NORMALISED]].tolist()
            if length > 0.0 and (normalised or self.step.kind == steps.PER_TRAVELLED):
                gradient = gradient / length
                travelled_so = travelled if normalised else travelled / length
                rate = steps.size(self.step.kind, scale, normalised, t + 1.0, travelled_so, 1.0)
            else:
                rate = steps.size(self.step.kind, scale, normalised, t + 1.0, travelled, length)
            moved = np.clip(theta - (rate * weight) * gradient, -LARGEST, LARGEST) if weight > 0.0 else theta
            action = self.domain.project(moved) if weight > 0.0 else theta
            finite = np.isfinite(np.square(action.astype(self.dtype)).sum(dtype=np.float64))
        if not finite:
            raise DivergenceError(
                f"Round {t + 1}: the update overflowed; the model is unchanged. Try a smaller step, features scaled to "
                "unit size, a bounded domain such as Ball(10.0), or a robust gate such as Learn."
            )
        gates.remember(self.gate.kind, self._memory, length)
        if weight > 0.0:
            self._set_action(action)
        config[layout.ROUNDS], config[layout.TRAVELLED] = t + 1, travelled
        return Round(f, weight)

    def _convert_record(self, x: Any, y: float) -> Array:
        x = float_array("x", x, 1)
        check_features(x, self.dim)
        check_record(x, y, self.loss)
        self.settle_precision(x.dtype)
        with np.errstate(over="ignore"):
            return x.astype(self.dtype)

    def _allocate_vectors(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self._shape = (self.dim,)
        self._pair = np.zeros((2, self.dim), dtype)

    def _set_action(self, theta: Array) -> None:
        """Set the action, with no move pending."""
        self._pair[0] = theta
        self._pair[1] = 0.0
        self._config[layout.KEEP], self._config[layout.MOVE] = 1.0, 0.0
        self._config[[layout.NORM2, layout.PEAK]] = np.square(self._pair[0], dtype=np.float64).sum()


def _settings_array(loss: losses.Loss, gate: gates.Gate, step: steps.Step, domain: domains.Domain) -> Array:
    config = np.zeros(layout.DOMAIN)
    if isinstance(loss, losses.LinearLoss):
        config[[layout.LOSS, layout.LOSS_C, layout.L2, layout.MARGIN]] = loss.kind, loss.setting, loss.l2, loss.margin
    config[[layout.GATE, layout.TRANSFORM, layout.GATE_C, layout.GATE_B]] = gate.kind, *gate.settings
    config[[layout.STEP, layout.SCALE, layout.NORMALISED]] = step.kind, *step.settings
    config[layout.RADIUS2] = domain.radius**2 if isinstance(domain, domains.Ball) else np.inf
    return config


def _choose_first_action(owner: str, dim: int, domain: domains.Domain, start: Any) -> Array:
    if start is None:
        return domain.project(np.zeros(dim))
    theta = float_array("start", start, 1).astype(np.float64)
    if len(theta) != dim or not np.isfinite(theta).all():
        raise DataError(f"The 'start' parameter of {owner} must be {dim} finite floats. Got {start!r} instead.")
    if not domain.contains(theta):
        raise DataError(f"The 'start' parameter of {owner} must be a point of {domain}. Got {start!r} instead.")
    return theta
