"""What a model of a stream is made with, checked when it is made; and the engine that goes with it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from redescend import losses, steps, transforms
from redescend.engines import WITH_MISSING, DescentEngine, Engine, SelfTuningEngine
from redescend.parameters import bad_parameter, check_instance

NAMES: dict[str, losses.LinearLoss] = {
    "squared": losses.Squared(),
    "absolute": losses.Absolute(),
    "epsilon_insensitive": losses.EpsilonInsensitive(0.1),
    "pinball": losses.Pinball(0.5),
    "logistic": losses.Logistic(),
    "hinge": losses.Hinge(),
}


class Settings(NamedTuple):
    """All that an engine is made with, but for its size."""

    loss: losses.LinearLoss
    order: Literal[1, 2]
    transform: transforms.Transform | None
    step: steps.Step | None

    def engine(self, dim: int, outputs: int) -> Engine:
        shared = (dim, outputs, self.loss, True, WITH_MISSING, None)
        if self.transform is None:
            return SelfTuningEngine(*shared, self.order)
        return DescentEngine(*shared, self.transform, self.step)


def checked(owner: str, labels: bool, order: Any, loss: Any, transform: Any, step: Any) -> Settings:
    """The settings of a model of labels, or of numbers."""
    found = _loss(owner, labels, loss)
    if order not in (1, 2) or isinstance(order, bool):
        raise bad_parameter(owner, "order", "1 or 2", order)
    if transform is None:
        if step is not None:
            raise bad_parameter(owner, "step", "None unless a transform is given: self-tuning sets its own", step)
    else:
        check_instance(owner, "transform", transform, transforms.Transform, "a transform, such as Huber(1.0), or None")
        if order == 2:
            raise bad_parameter(owner, "order", "1 where a transform is given", order)
        if step is not None:
            check_instance(owner, "step", step, steps.Step, "a step, such as Constant(0.01), or None")
    return Settings(found, order, transform, step)


def _loss(owner: str, labels: bool, loss: Any) -> losses.LinearLoss:
    if loss is None:
        return NAMES["logistic" if labels else "squared"]
    suited = {name: named for name, named in NAMES.items() if named.margin is labels}
    found = suited.get(loss) if isinstance(loss, str) else loss
    if not isinstance(found, losses.LinearLoss) or found.margin is not labels:
        what = f"{', '.join(map(repr, suited))}, or a loss object for such targets"
        raise bad_parameter(owner, "loss", f"one of {what}", loss)
    return found
