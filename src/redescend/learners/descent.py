r"""One sentence: θ ← Π_Θ(θ − α_t·w_t·∇f_t(θ)).

`Descent` is the sentence; `recipes` puts other words in it. Records are played by a compiled loop. A record that it
cannot play, because a product overflows, and every record of a `Custom` loss, is played by `_carefully`: the same
sentence with vectors.
"""

from __future__ import annotations

from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np
from numpy import ndarray

from redescend import domains, gates, losses, steps
from redescend.errors import DataError, DivergenceError, UntoldError
from redescend.kernels import layout
from redescend.kernels.descent import projected, radial
from redescend.learners.base import (
    Learner,
    Round,
    Trouble,
    check_record,
    checked_dim,
    checked_precision,
    constructor_settings,
    float_array,
    float_number,
)
from redescend.numeric import LARGEST, Array, norm
from redescend.parameters import check_instance

_new_tuple = tuple.__new__  # a third of the cost of calling the class


class Descent(Learner):
    r"""Online projected gradient descent behind a gate.

    Parameters
    ----------
    dim : int
        Number of features.
    loss : Loss
        A convex loss, such as ``losses.Squared(l2=1e-4)``.
    gate : Gate
        How much of a round is believed.
    step : Step
        How far to go, such as ``steps.Anytime()``.
    domain : Domain
        Where actions may be; all of space unless given.
    start : array of dim floats, optional
        The first action; the point of the domain nearest to 0 unless given.
    dtype : float32 or float64, optional
        Precision of the action; that of the first records unless given.

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
        self.dim = checked_dim(name, dim)
        self.loss = check_instance(name, "loss", loss, losses.Loss, "a loss, such as Squared()")
        self.gate = check_instance(name, "gate", gate, gates.Gate, "a gate, such as Always()")
        self.step = check_instance(name, "step", step, steps.Step, "a step, such as Anytime()")
        self.domain = check_instance(name, "domain", domain, domains.Domain, "a domain, such as Ball(1.0)")
        self._free_precision = dtype is None
        code = domain.code(self.dim)
        self._numbers = np.concatenate([_settings(loss, gate, step, domain), code, gate.fresh_memory()])
        self._numbers[layout.MEMORY] = layout.DOMAIN + len(code)
        self._identity = repr(self)
        self._choose_loops()
        self._allocate(checked_precision(name, dtype))
        self._place(_first_action(name, self.dim, domain, start))

    def __init_subclass__(cls, **keywords: Any) -> None:
        """A recipe's signature names what it passes on."""
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
        loops = radial if self.domain.radial else projected
        compiled = isinstance(self.loss, losses.LinearLoss)
        self._run = loops.run if compiled else _no_rows
        self._run_one = loops.run_one if compiled else _no_record

    def __getstate__(self) -> dict[str, Any]:
        """A compiled loop is not sent to another process, which would compile it again."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_run", "_run_one")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.dtype = np.dtype(self.dtype.type)
        self._choose_loops()

    @property
    def parameters(self) -> dict[str, Any]:
        # A recipe's own settings are those of its gate.
        own = {**vars(getattr(self.gate, "transform", self.gate)), **vars(self.gate)}
        precision = None if self._free_precision else self.dtype.name
        return constructor_settings(type(self), {**own, **vars(self), "dtype": precision})

    @property
    def _memory(self) -> Array:
        return self._numbers[int(self._numbers[layout.MEMORY]) :]

    @property
    def kernel_settings(self) -> Array:
        """Settings, scalar state, domain and gate memory in one row, as kernels take them; no copy."""
        return self._numbers

    @property
    def rounds(self) -> int:
        return int(self._numbers[layout.ROUNDS])

    @property
    def theta(self) -> Array:
        out = np.empty(self.dim, self.dtype)
        radial.action(self._pair, self._numbers, out)
        return out

    def update(self, x: Any, y: float) -> Round:
        if type(y) is not float:
            y = float_number("y", y)
        if type(x) is not ndarray or x.dtype is not self.dtype or x.shape != self._shape or not x.flags.carray:
            x = self._converted(x, y)
        played = self._run_one(x, y, self._pair, self._numbers)
        if played[1] >= 0.0:
            return _new_tuple(Round, played)
        check_record(x, y, self.loss)
        return self._carefully(x, y)

    def learn_rows(self, X: Array, y: Array, losses: Array, weights: Array, actions: Array) -> Trouble | None:
        at = 0
        while at < len(X):
            rows = slice(at, None)
            at += self._run(X[rows], y[rows], self._pair, self._numbers, losses[rows], weights[rows], actions[rows])
            if at == len(X):
                break
            try:
                check_record(X[at], y[at], self.loss)
            except DataError as error:
                return Trouble(at, error)
            if len(actions):
                actions[at] = self.theta
            try:
                losses[at], weights[at] = self._carefully(X[at], float(y[at]))
            except UntoldError:
                raise
            except DataError as error:
                return Trouble(at, error)
            at += 1
        return None

    def skip(self) -> None:
        self._numbers[layout.ROUNDS] += 1

    def state(self) -> dict[str, Any]:
        return {
            "learner": self._identity,
            "previous": self._pair[0].copy(),
            "record": self._pair[1].copy(),
            "memory": self._memory.copy(),
            **{name: float(self._numbers[place]) for name, place in layout.STATE.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        expected = self.state()
        if not isinstance(state, dict) or state.keys() != expected.keys():
            raise DataError(f"The state of {self!r} must be a dict with the keys {', '.join(expected)}.")
        if state["learner"] != expected["learner"]:
            raise DataError(f"The state belongs to {state['learner']}, not to {self!r}; make a learner like that one.")
        try:
            pair = np.array([state["previous"], state["record"]])
            memory = np.array(state["memory"], dtype=np.float64)
            scalars = np.array([float_number(name, state[name]) for name in layout.STATE])
            precision = checked_precision("restore", pair.dtype)
            whole = pair.shape == self._pair.shape and memory.shape == self._memory.shape
            whole = whole and all(np.isfinite(part).all() for part in (pair, memory, scalars))
            whole = whole and scalars[0] == int(scalars[0]) and all(state[name] >= 0.0 for name in layout.NOT_NEGATIVE)
        except (TypeError, ValueError):
            whole = False
        if not whole:
            raise DataError(f"The state of {self!r} has missing, misshapen or impossible numbers; it has been altered.")
        if precision != self.dtype and not self._free_precision:
            raise DataError(f"The state is of {precision}, but {self!r} was made for {self.dtype}.")
        self._allocate(precision)
        self._pair[:] = pair
        self._memory[:] = memory
        self._numbers[list(layout.STATE.values())] = scalars

    def settle_precision(self, dtype: np.dtype[Any]) -> None:
        if self._free_precision and self.rounds == 0 and dtype != self.dtype:
            theta = self.theta
            self._allocate(np.dtype(dtype))
            self._place(theta)

    def _carefully(self, x: Array, y: float) -> Round:
        """The sentence with vectors, without an intermediate product that overflows."""
        numbers, t = self._numbers, self.rounds
        theta = self.theta.astype(np.float64)
        f = self.loss.value(theta, x, y)
        gradient = self.loss.gradient(theta, x, y)
        length = min(norm(gradient), LARGEST)
        with np.errstate(all="ignore"):
            kind, c, b = self.gate.settings
            weight = float(gates.weigh(self.gate.kind, kind, c, b, self._memory, t, np.float64(f), length))
            if np.isnan(weight):
                raise UntoldError(f"{self!r} knows nothing of round {t + 1}; tell it of every round of the stream.")
            travelled = numbers[layout.TRAVELLED]
            if self.step.kind == steps.PER_TRAVELLED:
                travelled = min(np.hypot(travelled, weight * length), LARGEST)
            scale, normalised = self.step.settings
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
                f"Round {t + 1}: the action would stop being finite, so the last one is kept. Try a smaller step, "
                "features scaled to unit size, a bounded domain such as Ball(10.0), or a robust gate such as Learn."
            )
        gates.remember(self.gate.kind, self._memory, length)
        if weight > 0.0:
            self._place(action)
        numbers[layout.ROUNDS], numbers[layout.TRAVELLED] = t + 1, travelled
        return Round(f, weight)

    def _converted(self, x: Any, y: float) -> Array:
        x = float_array("x", x, 1)
        if len(x) != self.dim:
            raise DataError(f"x must have {self.dim} features. Got {len(x)} instead.")
        check_record(x, y, self.loss)
        self.settle_precision(x.dtype)
        with np.errstate(over="ignore"):
            return x.astype(self.dtype)

    def _allocate(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self._shape = (self.dim,)
        self._pair = np.zeros((2, self.dim), dtype)

    def _place(self, theta: Array) -> None:
        """Stand at an action, with no move pending."""
        self._pair[0] = theta
        self._pair[1] = 0.0
        self._numbers[layout.KEEP], self._numbers[layout.MOVE] = 1.0, 0.0
        self._numbers[[layout.NORM2, layout.PEAK]] = np.square(self._pair[0], dtype=np.float64).sum()


def _no_rows(*_: Any) -> int:
    """The loop of a loss that is not compiled: it plays no row."""
    return 0


def _no_record(*_: Any) -> tuple[float, float]:
    return 0.0, layout.UNPLAYED


def _settings(loss: losses.Loss, gate: gates.Gate, step: steps.Step, domain: domains.Domain) -> Array:
    numbers = np.zeros(layout.DOMAIN)
    if isinstance(loss, losses.LinearLoss):
        numbers[[layout.LOSS, layout.LOSS_C, layout.L2]] = loss.kind, loss.setting, loss.l2
        numbers[layout.MARGIN] = loss.margin
    numbers[layout.GATE] = gate.kind
    numbers[[layout.TRANSFORM, layout.GATE_C, layout.GATE_B]] = gate.settings
    numbers[layout.STEP] = step.kind
    numbers[[layout.SCALE, layout.NORMALISED]] = step.settings
    numbers[layout.RADIUS2] = domain.radius**2 if isinstance(domain, domains.Ball) else np.inf
    return numbers


def _first_action(owner: str, dim: int, domain: domains.Domain, start: Any) -> Array:
    if start is None:
        return domain.project(np.zeros(dim))
    theta = float_array("start", start, 1).astype(np.float64)
    if len(theta) != dim or not np.isfinite(theta).all():
        raise DataError(f"The 'start' parameter of {owner} must be {dim} finite floats. Got {start!r} instead.")
    if not domain.contains(theta):
        raise DataError(f"The 'start' parameter of {owner} must be a point of {domain}. Got {start!r} instead.")
    return theta
