"""Settings of a model: declared and checked here, for scikit-learn, River and streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from redescend import losses, steps, transforms
from redescend.engines.descent import DescentEngine
from redescend.engines.engine import Engine, Shape, read_shape
from redescend.engines.nonlinear import NonlinearEngine
from redescend.engines.selftuning import SelfTuningEngine
from redescend.kernels.selftuning import layout
from redescend.kernels.tabular.standardize import CENTRED, SCALED, UNSCALED, WITH_MISSING
from redescend.learners.recipes import Robust
from redescend.learners.selftuning import Scorer, SelfTuning, resolve_order
from redescend.parameters import (
    COUNT,
    NONNEGATIVE,
    Order,
    bad_parameter,
    check,
    check_bool,
    check_choice,
    check_instance,
    check_order,
)
from redescend.registry import LOSSES
from redescend.state import corrupt_state, require

Task: TypeAlias = Literal["regression", "classification"]
Features: TypeAlias = Literal["auto", "linear"]

FEATURES: Features = "linear"  # the default of `features`
MOST_FEATURES = 500  # the most features of a model with trees

DEFAULT_LOSS: Mapping[Task, str] = {"regression": "squared", "classification": "logistic"}

LOSSES_OF_TREES = (losses.Squared, losses.Logistic)

LEARNER_STEP = steps.Constant(0.01)  # the default step of a learner with a transform: River's default learning rate


@dataclass(frozen=True, kw_only=True)
class ModelParameters:
    """Parameters of a model of a stream, as `redescend.fit_stream` documents them, not checked yet.

    Runs, `StreamModel` and `ModelStore` inherit or accept all fields, and pass them to `ModelConfig.from_parameters`.
    """

    order: Order = "auto"
    loss: losses.LinearLoss | None = None
    transform: transforms.Transform | None = None
    step: steps.Step | None = None

    def model_parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(ModelParameters)}


@dataclass(frozen=True)
class ModelConfig:
    """Checked settings of a model; make one with `from_parameters`.

    Parameters
    ----------
    loss : LinearLoss
        The loss, including its l2 penalty.
    order : 'auto', 1 or 2
        The order of the self-tuning learner. 'auto': 2 with trees or for at most 150 features that are not sparse,
        otherwise 1.
    transform : Transform or None
        A fixed robust transform. None: the model tunes itself.
    step : Step or None
        The step that goes with the transform. None: the default of the engine or learner.
    fit_intercept : bool
        Whether there is a constant feature.
    standardize : bool or 'scale'
        With a transform, whether features are centered and scaled, or only scaled. Self-tuning depends on no units.
    average : int or None
        Number of rows after which models are averaged. None: they are not.
    features : 'auto' or 'linear'
        'auto': add trees if the loss is squared or logistic without penalty, and there is an intercept, neither a
        transform nor averaging, and at most 500 features that are not sparse. 'linear': do not.

    Examples
    --------
    >>> config = ModelConfig.from_parameters("Model", "regression", loss="absolute", alpha=0.1)
    >>> config.loss
    Absolute(l2=0.1)
    >>> ModelConfig.from_parameters("Model", "regression", order=3)
    Traceback (most recent call last):
        ...
    redescend.errors.ParameterError: The 'order' parameter of Model must be 'auto', 1 or 2. Got 3 instead.
    """

    loss: losses.LinearLoss
    order: Order = "auto"
    transform: transforms.Transform | None = None
    step: steps.Step | None = None
    fit_intercept: bool = True
    standardize: bool | Literal["scale"] = True
    average: int | None = None
    features: Features = FEATURES

    @classmethod
    def from_parameters(
        cls,
        owner: str,
        task: Task | None,
        *,
        loss: Any = None,
        order: Any = "auto",
        transform: Any = None,
        step: Any = None,
        alpha: Any = 0.0,
        fit_intercept: Any = True,
        standardize: Any = True,
        average: Any = False,
        features: Any = FEATURES,
    ) -> ModelConfig:
        """Check the parameters of a model; errors name the class or function `owner`.

        The losses are those of the `task`, or all; a loss may be a name, and None is the default of the task. `alpha`
        is added to its l2. `average` says whether to average models, or after how many rows to start.
        """
        loss = check_loss(owner, loss, task)
        if l2 := check(owner, "alpha", alpha, NONNEGATIVE):
            loss = replace(loss, l2=loss.l2 + l2)
        order = check_order(owner, order)
        if transform is None:
            if step is not None:
                raise bad_parameter(owner, "step", "None unless a transform is given", step)
        else:
            example = "a transform, such as Huber(1.0), or None"
            check_instance(owner, "transform", transform, transforms.Transform, example)
            if order == 2:
                raise bad_parameter(owner, "order", "'auto' or 1 if a transform is given", order)
            if step is not None:
                check_instance(owner, "step", step, steps.Step, "a step, such as Constant(0.01), or None")
        return cls(
            loss=loss,
            order=order,
            transform=transform,
            step=step,
            fit_intercept=check_bool(owner, "fit_intercept", fit_intercept),
            standardize=_check_standardize(owner, standardize),
            average=_check_average(owner, average),
            features=check_choice(owner, "features", features, ("auto", "linear")),
        )

    def make_engine(self, dim: int, outputs: int, *, sparse: bool = False, missing: bool = False) -> Engine:
        """Make a new engine for `dim` features and some outputs.

        If the first rows are `sparse`, features are scaled but never centered; if they may be `missing`, NaN, they are
        standardized and imputed.
        """
        order = self.choose_order(dim, sparse)
        if self.has_trees(dim, sparse):
            return NonlinearEngine(dim, outputs, self.loss, order, missing)
        shape = Shape(dim, outputs, self.loss, self.fit_intercept, self.average)
        if self.transform is None:
            return SelfTuningEngine(shape, order, missing, linked=True)
        method = WITH_MISSING if missing else self._choose_standardization(sparse)
        return DescentEngine(shape, method, self.transform, self.step)

    def restore_engine(self, state: dict[str, Any], *, missing: bool = False) -> Engine:
        """Restore an engine from a state, whose size is checked first: a small file cannot claim a large model."""
        dim, outputs = read_shape(state)
        if "forests" in state:
            return self._restore_forests(state, dim, outputs, missing)
        width, owner = dim + self.fit_intercept, "an engine"
        models = np.shape(state["states"])
        if self.transform is None:
            order: Any = state.get("order")
            self._check_saved_order(order, dim)
            require(models == (outputs, layout.row_size(width, order)), owner, f"states of shape {models}")
            shape = Shape(dim, outputs, self.loss, self.fit_intercept, self.average)
            engine: Engine = SelfTuningEngine(shape, order, missing, linked=True)
        else:
            units = np.shape(state["units"])
            if units[1:] != (dim,) or models[:1] != (outputs,) or models[1:] < (width,):
                raise corrupt_state(owner, f"arrays too small for {dim} features and {outputs} outputs")
            engine = self.make_engine(dim, outputs, sparse=state.get("standard") == SCALED, missing=missing)
        engine.restore(state)
        return engine

    def _restore_forests(self, state: dict[str, Any], dim: int, outputs: int, missing: bool) -> Engine:
        owner, forests = "an engine", state["forests"]
        require(self.has_trees(dim), owner, "trees in spite of its settings")
        require(isinstance(forests, dict) and isinstance(state.get("linear"), dict), owner, "no forests")
        shapes = np.shape(forests.get("X"))[1:], np.shape(forests.get("target"))[1:]
        require(shapes == ((dim,), (outputs,)), owner, f"records of shape {shapes[0]}")
        order = state["linear"].get("order")
        self._check_saved_order(order, dim)
        require(np.shape(state["linear"].get("states"))[:1] == (outputs,), owner, "another number of outputs")
        engine = NonlinearEngine(dim, outputs, self.loss, order, missing)
        engine.restore(state)
        return engine

    def choose_order(self, dim: int, sparse: bool = False) -> Literal[1, 2]:
        """The order of the self-tuning learner in a model of this size; beside trees, order 2 costs little."""
        if self.order == "auto" and self.has_trees(dim, sparse):
            return 2
        return resolve_order(self.order, dim + self.fit_intercept, sparse)

    def _check_saved_order(self, order: Any, dim: int) -> None:
        """Check the order in a state; where the rows are sparse, 'auto' is 1."""
        allowed = (1, self.choose_order(dim)) if self.order == "auto" else (self.order,)
        require(type(order) is int and order in allowed, "an engine", f"the order {order!r}")

    def has_trees(self, dim: int, sparse: bool = False) -> bool:
        """Whether a model of this size has trees."""
        return self.features == "auto" and self.find_obstacle(dim, sparse) is None

    def find_obstacle(self, dim: int, sparse: bool = False) -> str | None:
        """Find what a model with trees cannot have, in words; None if there is nothing."""
        obstacles = {
            "a transform": self.transform is not None,
            "averaging": self.average is not None,
            "a model without intercept": not self.fit_intercept,
            f"the loss {type(self.loss).__name__}": type(self.loss) not in LOSSES_OF_TREES,
            "an l2 penalty": self.loss.l2 != 0.0,
            "sparse rows": sparse,
            f"{dim:,} encoded features, more than {MOST_FEATURES}": dim > MOST_FEATURES,
        }
        return next((what for what, found in obstacles.items() if found), None)

    def make_learner(self, dim: int) -> Robust | SelfTuning:
        """Make a learner of one output in double precision; features are neither standardized nor averaged."""
        if self.transform is None:
            return Scorer(dim, loss=self.loss, order=self.order)
        step = LEARNER_STEP if self.step is None else self.step
        return Robust(dim, loss=self.loss, transform=self.transform, step=step, dtype=np.float64)

    def _choose_standardization(self, sparse: bool) -> int:
        if not self.standardize:
            return UNSCALED
        return SCALED if self.standardize == "scale" or sparse or not self.fit_intercept else CENTRED


def check_loss(owner: str, loss: Any, task: Task | None = None) -> losses.LinearLoss:
    """Return a loss, given itself or its name, if it suits the task."""
    if loss is None and task is not None:
        loss = DEFAULT_LOSS[task]
    is_label_loss = task == "classification"
    names = [name for name, kind in LOSSES.items() if task is None or kind.margin == is_label_loss]
    checked = LOSSES.make_default(loss) if isinstance(loss, str) and loss in names else loss
    if not isinstance(checked, losses.LinearLoss) or (task is not None and checked.margin != is_label_loss):
        what = f"one of {', '.join(map(repr, names))}, or a LinearLoss{f' for {task}' if task else ''}"
        raise bad_parameter(owner, "loss", what, loss)
    return checked


def _check_standardize(owner: str, standardize: Any) -> bool | Literal["scale"]:
    if isinstance(standardize, str) and standardize == "scale":
        return "scale"
    if not isinstance(standardize, bool | np.bool_):
        raise bad_parameter(owner, "standardize", "True, False or 'scale'", standardize)
    return bool(standardize)


def _check_average(owner: str, average: Any) -> int | None:
    if isinstance(average, bool | np.bool_):
        return 0 if average else None
    if average not in COUNT:
        raise bad_parameter(owner, "average", "True, False or a whole number in [0, inf)", average)
    return int(average)
