r"""LEARN whose a and b follow the losses of the batches: nothing to set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from redescend.parameters import Interval, check
from redescend.torch.fixed import Gated
from redescend.torch.noise import Labels, Values

# Those that are minus the logarithm of a label's probability, for which `Labels` is meant.
SCORED = (nn.CrossEntropyLoss, nn.NLLLoss)
BINARY = (nn.BCELoss, nn.BCEWithLogitsLoss, nn.SoftMarginLoss)

# Before the first batch the gate is open, whatever the loss.
OPEN_A, OPEN_B = 1e30, 1e-200


class SelfTuningLearnLoss(Gated):
    r"""A `LearnLoss` with nothing to set: the scale of clean samples and the share of outliers follow the batches.

    In training mode every batch is first looked at and then weighed, so that the very first is weighed well; in
    evaluation mode nothing changes. Multiplying the loss by a constant changes no weight. All that is learned is in
    buffers: a `state_dict` continues where it was taken. Samples that the loss leaves out by its ``ignore_index`` say
    nothing, and a mean is that of the others.

    Parameters
    ----------
    loss : function or module
        Gives a tensor of losses, one for each sample, such as ``nn.CrossEntropyLoss(reduction="none")``.
    labels : int, optional
        How many labels there are, if the targets are labels of which some are wrong. ``CrossEntropyLoss``, ``NLLLoss``,
        ``BCELoss``, ``BCEWithLogitsLoss`` and ``SoftMarginLoss`` need not be told; with any other loss targets are
        values, unless this is given.
    reduction : "mean", "sum" or "none"
        As usual.

    Notes
    -----
    For labels, the first batch should be that of a network that only guesses: then a is 1 for a cross-entropy. A sample
    with the median loss m is believed by 1 − ε, with the share ε of wrong labels that the losses suggest, and
    b = ε/(1 − ε)·exp(−m/a). For values the gate is half open at 9.5 medians of a squared normal residual, or what
    corresponds to them for another power of it: a is a quarter of that threshold, and b = exp(−4).

    Examples
    --------
    >>> criterion = SelfTuningLearnLoss(nn.MSELoss(reduction="none"))
    >>> targets = torch.cat([torch.linspace(-0.01, 0.01, 99), torch.tensor([50.0])])
    >>> loss = criterion(torch.zeros(100), targets)
    >>> criterion.weights(torch.zeros(3), torch.tensor([0.0, 0.005, 50.0])).round()
    tensor([1., 1., 0.])
    """

    def __init__(self, loss: Callable[..., Tensor], labels: int | None = None, reduction: str = "mean") -> None:
        super().__init__(loss, reduction)
        if labels is not None:
            labels = int(check(type(self).__name__, "labels", labels, Interval(2, float("inf"), "left", whole=True)))
        self.labels = 2 if labels is None and isinstance(loss, BINARY) else labels
        self.noise = Labels() if self.labels is not None or isinstance(loss, SCORED) else Values()
        self.register_buffer("a", torch.tensor([OPEN_A], dtype=torch.float64))
        self.register_buffer("b", torch.tensor([OPEN_B], dtype=torch.float64))

    def _look(self, f: Tensor, *args: Any, **keywords: Any) -> None:
        if self.training and f.numel() > 0:
            with torch.no_grad():
                a, b = self.noise(f.detach().flatten().to(self.a.dtype), self._how_many(*args, **keywords))
                known = a > 0.0
                self.a.copy_(torch.where(known, a, self.a))
                self.b.copy_(torch.where(known, b.clamp(1e-200, 1e200), self.b))

    def _how_many(self, *args: Any, **keywords: Any) -> int:
        """Labels that were possible; PyTorch's losses are given a score for each. Values need no such number."""
        if self.labels is not None or isinstance(self.noise, Values):
            return self.labels or 0
        scores = args[0] if args else keywords["input"]
        return max(2, int(scores.shape[min(1, scores.ndim - 1)]))

    def _gates(self) -> list[nn.Module]:
        return [self, self.noise]

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"
