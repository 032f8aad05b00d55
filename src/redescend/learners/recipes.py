r"""The algorithms of the paper and their baselines: each is `Descent` with a gate of its own."""

from __future__ import annotations

from typing import Any, Required, TypedDict, Unpack

from redescend import domains, gates, losses, steps, transforms
from redescend.learners.descent import Descent


class Common(TypedDict, total=False):
    """What every recipe takes beside its own settings; see `Descent`."""

    loss: Required[losses.Loss]
    step: Required[steps.Step]
    domain: domains.Domain
    start: Any
    dtype: Any


class OGD(Descent):
    """Online gradient descent: every round is believed.

    Examples
    --------
    >>> OGD(2, loss=losses.Squared(), step=steps.Anytime()).update([1.0, 0.0], 2.0)
    Round(loss=4.0, weight=1.0)
    """

    def __init__(self, dim: int, **common: Unpack[Common]) -> None:
        super().__init__(dim, gate=gates.Always(), **common)


class Learn(Descent):
    r"""Algorithm 1 of the paper: descent on g = −a·log(exp(−f/a) + b), weight 1/(1 + b·exp(f/a)).

    Examples
    --------
    >>> Learn(1, loss=losses.Squared(), a=1.0, b=1.0, step=steps.Anytime()).update([1.0], 0.0)
    Round(loss=0.0, weight=0.5)
    """

    def __init__(self, dim: int, *, a: float, b: float, **common: Unpack[Common]) -> None:
        super().__init__(dim, gate=gates.Robust(transforms.Learn(a, b)), **common)


class Robust(Descent):
    """Descent on h(f), for any transform h.

    Examples
    --------
    >>> huber = Robust(1, loss=losses.Squared(), transform=transforms.Huber(1.0), step=steps.Anytime())
    >>> huber.update([1.0], 2.0)
    Round(loss=4.0, weight=0.5)
    """

    def __init__(self, dim: int, *, transform: transforms.Transform, **common: Unpack[Common]) -> None:
        super().__init__(dim, gate=gates.Robust(transform), **common)


class TopK(Descent):
    """van Erven's Top-k filter, which knows the number k of outliers. Uncertain Top-k is ``k=int(0.75 * k)``.

    Examples
    --------
    >>> TopK(1, loss=losses.Squared(), k=1, step=steps.Anytime()).update([1.0], 2.0)
    Round(loss=4.0, weight=0.0)
    """

    def __init__(self, dim: int, *, k: int, **common: Unpack[Common]) -> None:
        super().__init__(dim, gate=gates.TopK(k), **common)


class Oracle(Descent):
    """Is told which rounds are clean, and learns from those alone: what a perfect gate would reach.

    Examples
    --------
    >>> Oracle(1, loss=losses.Squared(), clean=[False], step=steps.Anytime()).update([1.0], 2.0)
    Round(loss=4.0, weight=0.0)
    """

    def __init__(self, dim: int, *, clean: Any, **common: Unpack[Common]) -> None:
        super().__init__(dim, gate=gates.Oracle(clean), **common)


class NormalisedOGD(Descent):
    """Normalised descent: every round moves the action by α_t, whatever its gradient's length.

    Examples
    --------
    >>> fixed = NormalisedOGD(1, loss=losses.Squared(), step=steps.Constant(0.5))
    >>> fixed.update([1.0], 100.0).weight, fixed.theta.item()
    (1.0, 0.5)

    References
    ----------
    Gao, Li and Zhang, Online learning with non-convex losses and non-stationary regret, AISTATS 2018.
    """

    def __init__(self, dim: int, **common: Unpack[Common]) -> None:
        step = common.get("step")
        if isinstance(step, steps.Step) and not isinstance(step, steps.Normalised):
            common["step"] = steps.Normalised(step)
        super().__init__(dim, gate=gates.Always(), **common)


class ClippedOGD(Descent):
    """Descent with gradients shortened to a running quantile of their lengths; the median unless told otherwise.

    Examples
    --------
    >>> clipped = ClippedOGD(1, loss=losses.Squared(), step=steps.Constant(0.1))
    >>> clipped.update([1.0], 1.0).weight, clipped.update([1.0], 1000.0).weight < 0.01
    (1.0, True)
    """

    def __init__(self, dim: int, *, quantile: float = 0.5, window: int = 101, **common: Unpack[Common]) -> None:
        super().__init__(dim, gate=gates.Clip(quantile, window), **common)
