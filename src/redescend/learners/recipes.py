r"""The algorithms of the paper and their baselines: each is `Descent` with its own gate."""

from __future__ import annotations

from typing import Any, Required, TypedDict, Unpack

from redescend import domains, gates, losses, steps, transforms
from redescend.learners.descent import Descent


class Common(TypedDict, total=False):
    """The parameters that every recipe passes on to `Descent`."""

    loss: Required[losses.Loss]
    step: Required[steps.Step]
    domain: domains.Domain
    start: Any
    dtype: Any


class OGD(Descent):
    """Online gradient descent: every round has weight 1.

    Parameters
    ----------
    dim : int
        Number of features.
    **common
        loss, step, domain, start and dtype, as in `Descent`.

    Examples
    --------
    >>> OGD(2, loss=losses.Squared(), step=steps.Anytime()).update([1.0, 0.0], 2.0)
    Round(loss=4.0, weight=1.0)
    """

    def __init__(self, dim: int, **common: Unpack[Common]) -> None:
        super().__init__(dim, gate=gates.Always(), **common)


class Learn(Descent):
    r"""Algorithm 1 of the paper: descent on g = −a·log(exp(−f/a) + b), with weight 1/(1 + b·exp(f/a)).

    The weight is ½ at a loss of −a·ln b: choose b < 1, and a from the losses of clean records.

    Parameters
    ----------
    a : float
        Loss scale at which the gate closes: the larger, the softer the switch.
    b : float
        Odds of an outlier: the weight of a loss of 0 is 1/(1 + b).
    dim, **common
        As in `OGD`.

    Examples
    --------
    >>> learner = Learn(1, loss=losses.Squared(), a=1.0, b=0.01, step=steps.Anytime())
    >>> learner.update([1.0], 0.1).weight > 0.9, learner.update([1.0], 10.0).weight < 0.1
    (True, True)
    """

    def __init__(self, dim: int, *, a: float, b: float, **common: Unpack[Common]) -> None:
        super().__init__(dim, gate=gates.Robust(transforms.Learn(a, b)), **common)


class Robust(Descent):
    """Descent on h(f), for any transform h.

    Parameters
    ----------
    transform : Transform
        The robust transform h of the loss, such as ``transforms.Huber(1.0)``; the weight of a round is h'(f).
    dim, **common
        As in `OGD`.

    Examples
    --------
    >>> huber = Robust(1, loss=losses.Squared(), transform=transforms.Huber(1.0), step=steps.Anytime())
    >>> huber.update([1.0], 2.0)
    Round(loss=4.0, weight=0.5)
    """

    def __init__(self, dim: int, *, transform: transforms.Transform, **common: Unpack[Common]) -> None:
        super().__init__(dim, gate=gates.Robust(transform), **common)


class TopK(Descent):
    """van Erven's Top-k filter, which needs the number k of outliers. Uncertain Top-k is ``k=int(0.75 * k)``.

    Parameters
    ----------
    k : int
        Number of outliers in the stream.
    dim, **common
        As in `OGD`.

    Examples
    --------
    >>> TopK(1, loss=losses.Squared(), k=1, step=steps.Anytime()).update([1.0], 2.0)
    Round(loss=4.0, weight=0.0)
    """

    def __init__(self, dim: int, *, k: int, **common: Unpack[Common]) -> None:
        super().__init__(dim, gate=gates.TopK(k), **common)


class Oracle(Descent):
    """Learns from the clean rounds only: what a perfect gate would reach.

    Parameters
    ----------
    clean : array of bools
        Which rounds are clean; one for every round of the stream.
    dim, **common
        As in `OGD`.

    Examples
    --------
    >>> Oracle(1, loss=losses.Squared(), clean=[False], step=steps.Anytime()).update([1.0], 2.0)
    Round(loss=4.0, weight=0.0)
    """

    def __init__(self, dim: int, *, clean: Any, **common: Unpack[Common]) -> None:
        super().__init__(dim, gate=gates.Oracle(clean), **common)


class NormalisedOGD(Descent):
    """Normalised descent: every round moves the action by α_t, whatever the length of its gradient.

    Parameters
    ----------
    dim, **common
        As in `OGD`; the step is made a ``steps.Normalised``.

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
    """Descent with gradients clipped to a running quantile of their lengths.

    Parameters
    ----------
    quantile : float, default 0.5
        The quantile of the lengths that a gradient is clipped to.
    window : int, default 101
        Number of the last rounds whose lengths count.
    dim, **common
        As in `OGD`.

    Examples
    --------
    >>> clipped = ClippedOGD(1, loss=losses.Squared(), step=steps.Constant(0.1))
    >>> clipped.update([1.0], 1.0).weight, clipped.update([1.0], 1000.0).weight < 0.01
    (1.0, True)
    """

    def __init__(self, dim: int, *, quantile: float = 0.5, window: int = 101, **common: Unpack[Common]) -> None:
        super().__init__(dim, gate=gates.Clip(quantile, window), **common)
