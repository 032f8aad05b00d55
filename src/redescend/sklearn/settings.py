"""The settings of the regressor and the classifier, and the engine that is made with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import BaseEstimator

from redescend import losses, steps, transforms
from redescend.engines import DescentEngine, Engine, SelfTuningEngine
from redescend.kernels.tabular import standardize as unit
from redescend.parameters import AT_LEAST_ONE, COUNT, NONNEGATIVE, bad_parameter, check, check_instance

NAMES: dict[str, losses.LinearLoss] = {
    "squared": losses.Squared(),
    "absolute": losses.Absolute(),
    "epsilon_insensitive": losses.EpsilonInsensitive(0.1),
    "pinball": losses.Pinball(0.5),
    "logistic": losses.Logistic(),
    "hinge": losses.Hinge(),
}

MADE_WITH = ("loss", "transform", "step", "order", "alpha", "fit_intercept", "standardize", "average")
"""Settings that an engine is made with; changed ones hold from the next on."""


class Configured(BaseEstimator):
    """An estimator with settings, which are checked when they are used."""

    LOSSES: ClassVar[tuple[str, ...]]
    MARGIN: ClassVar[bool]

    def __init__(
        self,
        loss: Any,
        *,
        transform: Any,
        step: Any,
        order: int,
        alpha: float,
        fit_intercept: bool,
        standardize: Any,
        average: Any,
        max_iter: int,
        shuffle: bool,
        random_state: Any,
        warm_start: bool,
    ) -> None:
        self.loss = loss
        # An attribute of that name would make scikit-learn take the model for a transformer.
        self._transform = transform
        self.step = step
        self.order = order
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.average = average
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, by name."""
        names = self._get_param_names()
        return {name: self._transform if name == "transform" else getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Any:
        """Change settings; they hold from the next new model on."""
        if "transform" in params:
            self._transform = params.pop("transform")
        return super().set_params(**params)

    def _chosen_loss(self) -> losses.LinearLoss:
        owner = type(self).__name__
        loss = NAMES.get(self.loss) if isinstance(self.loss, str) and self.loss in self.LOSSES else self.loss
        if not isinstance(loss, losses.LinearLoss) or loss.margin != self.MARGIN:
            what = f"one of {', '.join(map(repr, self.LOSSES))}, or a loss object for such targets"
            raise bad_parameter(owner, "loss", what, self.loss)
        alpha = check(owner, "alpha", self.alpha, NONNEGATIVE)
        return cast(losses.LinearLoss, replace(cast(Any, loss), l2=loss.l2 + alpha))

    def _make_engine(self, dim: int, outputs: int, sparse: bool) -> Engine:
        """A new engine, from settings that are checked here."""
        owner, loss = type(self).__name__, self._chosen_loss()
        if self.order not in (1, 2) or isinstance(self.order, bool):
            raise bad_parameter(owner, "order", "1 or 2", self.order)
        self._check_switch("fit_intercept")
        average = self._averaging()
        if self._transform is None and self.step is not None:
            raise bad_parameter(owner, "step", "None unless a transform is given: self-tuning sets its own", self.step)
        shared = (dim, outputs, loss, bool(self.fit_intercept), self._standard(sparse), average)
        if self._transform is None:
            return SelfTuningEngine(*shared, self.order)  # type: ignore[arg-type]
        what = "a transform, such as Huber(1.0), or None"
        transform = check_instance(owner, "transform", self._transform, transforms.Transform, what)
        if self.order == 2:
            raise bad_parameter(owner, "order", "1 where a transform is given", self.order)
        if self.step is not None:
            check_instance(owner, "step", self.step, steps.Step, "a step, such as Constant(0.01), or None")
        return DescentEngine(*shared, transform, self.step)

    def _check_switch(self, name: str) -> None:
        if not isinstance(getattr(self, name), bool | np.bool_):
            raise bad_parameter(type(self).__name__, name, "True or False", getattr(self, name))

    def _goes_on(self) -> bool:
        """Whether `fit` goes on from what was learned, with settings of its own that are checked here."""
        self._check_switch("shuffle")
        self._check_switch("warm_start")
        check(type(self).__name__, "max_iter", self.max_iter, AT_LEAST_ONE)
        return bool(self.warm_start and "_engine" in self.__dict__)

    def _averaging(self) -> int | None:
        """After how many rows the mean of the models is taken; None: not at all."""
        if isinstance(self.average, bool | np.bool_):
            return 0 if self.average else None
        if self.average not in COUNT:
            what = "True, False or a whole number in [0, inf)"
            raise bad_parameter(type(self).__name__, "average", what, self.average)
        return int(self.average)

    def _standard(self, sparse: bool) -> int:
        if isinstance(self.standardize, str) and self.standardize == "scale":
            return unit.SCALED
        if not isinstance(self.standardize, bool | np.bool_):
            raise bad_parameter(type(self).__name__, "standardize", "True, False or 'scale'", self.standardize)
        if not self.standardize:
            return unit.AS_THEY_ARE
        return unit.SCALED if sparse or not self.fit_intercept else unit.CENTRED
