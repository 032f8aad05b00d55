"""One line that makes a training loop robust."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from redescend.errors import ParameterError
from redescend.torch.fixed import Gated, LearnLoss
from redescend.torch.selftuning import SelfTuningLearnLoss


def robustify(
    loss: Callable[..., Tensor], *, a: float | None = None, b: float | None = None, reduction: str = "mean"
) -> Gated:
    """The same loss, robust: one that tunes itself, or with the a and b that are given.

    Parameters
    ----------
    loss : function or module
        Gives a tensor of losses, one for each sample, such as ``nn.CrossEntropyLoss(reduction="none")``.
    a, b : float, optional
        The constants of a `LearnLoss`; without them it is a `SelfTuningLearnLoss`.
    reduction : "mean", "sum" or "none"
        As usual.

    Examples
    --------
    >>> from torch import nn
    >>> robustify(nn.MSELoss(reduction="none"))
    SelfTuningLearnLoss(
      reduction='mean'
      (loss): MSELoss()
      (noise): Values()
    )
    """
    if a is None and b is None:
        return SelfTuningLearnLoss(loss, reduction=reduction)
    if a is None or b is None:
        raise ParameterError(f"robustify needs both a and b, or neither. Got a = {a} and b = {b}.")
    return LearnLoss(loss, a, b, reduction=reduction)
