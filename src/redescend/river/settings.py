"""What a model is made with, checked when it is made; and the learner that goes with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from redescend import losses, steps, transforms
from redescend.learners.recipes import Robust
from redescend.learners.selftuning import SelfTuning
from redescend.parameters import bad_parameter, check_instance

NAMED: dict[str, losses.LinearLoss] = {
    "squared": losses.Squared(),
    "absolute": losses.Absolute(),
    "logistic": losses.Logistic(),
    "hinge": losses.Hinge(),
}

USUAL_STEP = steps.Constant(0.01)
"""The step of a fixed transform unless one is given: River's own learning rate."""


@dataclass(frozen=True)
class Settings:
    """The learner of a model, for any number of features."""

    loss: losses.LinearLoss
    order: Literal[1, 2]
    transform: transforms.Transform | None
    step: steps.Step
    intercept: bool

    def learner(self, dim: int) -> Robust | SelfTuning:
        if self.transform is None:
            return SelfTuning(dim, loss=self.loss, order=self.order)
        return Robust(dim, loss=self.loss, transform=self.transform, step=self.step, dtype=np.float64)


def checked(owner: str, labels: bool, loss: Any, order: Any, transform: Any, step: Any, fit_intercept: Any) -> Settings:
    """The settings of a model of labels, or of numbers."""
    found = loss_of(owner, loss, labels)
    if not isinstance(fit_intercept, bool):
        raise bad_parameter(owner, "fit_intercept", "True or False", fit_intercept)
    if order not in (1, 2) or isinstance(order, bool):
        raise bad_parameter(owner, "order", "1 or 2", order)
    if transform is None and step is not None:
        raise bad_parameter(owner, "step", "None without a transform, as the model then finds its own", step)
    step = USUAL_STEP if step is None else step
    if transform is not None:
        check_instance(owner, "transform", transform, transforms.Transform, "a transform, such as Huber(1.0), or None")
        check_instance(owner, "step", step, steps.Step, "a step, such as Constant(0.01), or None")
        if order == 2:
            raise bad_parameter(owner, "order", "1 with a transform", order)
    return Settings(found, order, transform, step, fit_intercept)


def loss_of(owner: str, loss: Any, labels: bool | None) -> losses.LinearLoss:
    """The loss of this name, or the loss itself, if it suits what is learned."""
    suited = {name: named for name, named in NAMED.items() if labels is None or named.margin is labels}
    found = suited.get(loss) if isinstance(loss, str) else loss
    if not isinstance(found, losses.LinearLoss) or (labels is not None and found.margin is not labels):
        names, example = ", ".join(repr(name) for name in suited), next(iter(suited.values()))
        kind = {True: "a loss of labels", False: "a loss of numbers", None: "a loss"}[labels]
        raise bad_parameter(owner, "loss", f"{names} or {kind}, such as {example}", loss)
    return found
