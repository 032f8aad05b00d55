r"""A LEARN loss whose a and b follow the losses of the batches.

Everything is relative to the losses themselves, so that their unit does not matter. Single numbers are stored as arrays
of length 1: a compiler takes a tensor without dimensions for a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from typing import Any

import torch
from torch import Tensor, nn

from redescend.errors import ParameterError
from redescend.parameters import Interval, check
from redescend.torch.learn_loss import GatedLoss, LearnLoss

# Losses that are minus the logarithm of the probability of a label, for which `LabelNoise` is meant.
MULTICLASS = (nn.CrossEntropyLoss, nn.NLLLoss)
BINARY = (nn.BCELoss, nn.BCEWithLogitsLoss, nn.SoftMarginLoss)

# Before the first batch the gate is open, whatever the loss.
OPEN_A, OPEN_B = 1e30, 1e-200

SHARES = (0.01, 0.05, 0.1, 0.17, 0.25, 0.33, 0.4)  # possible shares of wrong labels
PRIOR = (0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)  # their prior probabilities
DECAY = 0.9  # weight of the past after one more batch
SHARE_DECAY = 0.9999  # the estimated share of wrong labels falls at most by this factor in a batch

POWER = 1.5
"""A loss is far where it exceeds the median by (median/quartile)^1.5: 9.5 medians for the square of a normal residual,
and the same residual for its absolute value or any other power of it."""

MIN_RATIO = 2.0  # the least ratio of median and quartile: equal losses say nothing about the spread
SOFTNESS = 4.0  # the threshold divided by the softness of the switch


class LabelNoise(nn.Module):
    r"""Noise of labels: a share ε of them is replaced by one of the K − 1 others.

    The unit a is such that the median loss of the first batch is that of a guess among K labels, a·ln K; if a later
    batch does worse than a guess, the unit grows. The share follows from the losses by Bayes' rule. A network that
    memorizes wrong labels hides them, so the share rises at once but falls slowly.

    A sample with the median loss m has weight 1 − ε, and the odds of any other are multiplied by exp((m − f)/a):
    b = ε/(1 − ε)·exp(−m/a). While the network guesses, this is the probability that a label is right; the surer it
    becomes, the less it learns from what contradicts it. In any case, half of a batch passes.
    """

    unit: Tensor
    median: Tensor
    share: Tensor
    evidence: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("unit", "median", "share"):
            self.register_buffer(name, torch.zeros(1, dtype=torch.float64))
        self.register_buffer("evidence", torch.zeros(len(SHARES), dtype=torch.float64))

    def forward(self, f: Tensor, labels: int) -> tuple[Tensor, Tensor]:
        """Return a and b for these losses with this number of labels; a is 0 while nothing is known."""
        _, median = quartiles(f)
        is_known, is_valid = self.unit > 0.0, torch.isfinite(f)
        has_some = is_valid.any()
        decay = torch.where(has_some, DECAY, 1.0)
        self.median.copy_(torch.where(is_known, decay * self.median + (1.0 - decay) * median, median))
        self.unit.copy_(torch.maximum(self.unit, median / log(labels)))
        shares = torch.tensor(SHARES, dtype=f.dtype, device=f.device)
        right = torch.exp(-torch.where(self.unit > 0.0, f / self.unit, 0.0))[:, None]
        each = torch.log((1.0 - shares) * right + shares * (1.0 - right) / (labels - 1.0))
        self.evidence.mul_(decay).add_(torch.where(is_valid[:, None], each, 0.0).sum(dim=0))
        posterior = torch.softmax(self.evidence + torch.tensor(PRIOR, dtype=f.dtype, device=f.device).log(), 0)
        estimate = (posterior * shares).sum()
        self.share.copy_(torch.where(has_some, torch.maximum(estimate, SHARE_DECAY * self.share), self.share))
        return self.unit.clone(), self.share / (1.0 - self.share) * torch.exp(-self.median / self.unit)


class ValueNoise(nn.Module):
    """Noise of values, of any scale: the threshold is a running mean of the limits of the batches, in logarithms.

    The median and the quartile below it are those of clean samples as long as at most half are outliers.
    """

    threshold: Tensor
    batches: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("threshold", torch.zeros(1, dtype=torch.float64))
        self.register_buffer("batches", torch.zeros(1, dtype=torch.int64))

    def forward(self, f: Tensor, labels: int) -> tuple[Tensor, Tensor]:
        """Return a and b for losses like these; a is 0 while nothing is known."""
        quartile, median = quartiles(f)
        has_some = median > 0.0
        far = torch.log(median) + POWER * torch.log((median / quartile).clamp(min=MIN_RATIO))
        batches = self.batches + has_some
        rate = torch.clamp(1.0 / batches, min=1.0 - DECAY)
        self.threshold.copy_(torch.where(has_some, self.threshold + rate * (far - self.threshold), self.threshold))
        self.batches.copy_(batches)
        a = torch.where(batches > 0, torch.exp(self.threshold) / SOFTNESS, 0.0)
        return a, torch.full_like(a, exp(-SOFTNESS))


def quartiles(f: Tensor) -> tuple[Tensor, Tensor]:
    """The lower quartile and the median of the positive and finite losses; 0 if there are none."""
    is_usable = torch.isfinite(f) & (f > 0.0)
    rising = torch.sort(torch.where(is_usable, f, torch.inf)).values
    last = (is_usable.sum() - 1).clamp(min=0)
    both = rising[torch.stack([last // 4, last // 2])]
    quartile, median = torch.where(torch.isfinite(both), both, 0.0).unbind()
    return quartile, median


class SelfTuningLearnLoss(GatedLoss):
    r"""A `LearnLoss` with nothing to tune: the scale of clean samples and the share of outliers follow the batches.

    In training mode, the noise is estimated from every batch before it is weighted, including the first; in evaluation
    mode nothing changes. Multiplying the loss by a constant changes no weight. Everything learned is in buffers, so a
    `state_dict` continues where it was taken. Samples that the loss ignores by its ``ignore_index`` are left out.

    Parameters
    ----------
    loss : callable or nn.Module
        Returns a tensor of losses, one for each sample, such as ``nn.CrossEntropyLoss(reduction="none")``.
    labels : int, optional
        The number of labels, if targets are labels of which some are wrong. Not needed for ``CrossEntropyLoss``,
        ``NLLLoss``, ``BCELoss``, ``BCEWithLogitsLoss`` and ``SoftMarginLoss``; for any other loss, targets are values
        unless this is given.
    reduction : {'mean', 'sum', 'none'}
        As in PyTorch's losses.

    Notes
    -----
    For labels, the first batch should come from a network that only guesses: then a is 1 for a cross-entropy. A sample
    with the median loss m has weight 1 − ε, where ε is the estimated share of wrong labels, and
    b = ε/(1 − ε)·exp(−m/a). For values, the weight is 1/2 at 9.5 medians of a squared normal residual, or what
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
        self.noise = LabelNoise() if self.labels is not None or isinstance(loss, MULTICLASS) else ValueNoise()
        self.register_buffer("a", torch.tensor([OPEN_A], dtype=torch.float64))
        self.register_buffer("b", torch.tensor([OPEN_B], dtype=torch.float64))

    def _observe(self, f: Tensor, *args: Any, **keywords: Any) -> None:
        if self.training and f.numel() > 0:
            with torch.no_grad():
                a, b = self.noise(f.detach().flatten().to(self.a.dtype), self._count_labels(*args, **keywords))
                is_known = a > 0.0
                self.a.copy_(torch.where(is_known, a, self.a))
                self.b.copy_(torch.where(is_known, b.clamp(1e-200, 1e200), self.b))

    def _count_labels(self, *args: Any, **keywords: Any) -> int:
        """The number of labels: PyTorch's losses take a score for each. Values need none."""
        if self.labels is not None or isinstance(self.noise, ValueNoise):
            return self.labels or 0
        scores = args[0] if args else keywords["input"]
        return max(2, int(scores.shape[min(1, scores.ndim - 1)]))

    def _gate_modules(self) -> list[nn.Module]:
        return [self, self.noise]

    def extra_repr(self) -> str:
        """Return the parameters for the repr of the module."""
        return f"reduction={self.reduction!r}"


def robustify(
    loss: Callable[..., Tensor], *, a: float | None = None, b: float | None = None, reduction: str = "mean"
) -> GatedLoss:
    """Make a loss robust.

    Parameters
    ----------
    loss : callable or nn.Module
        Returns a tensor of losses, one for each sample, such as ``nn.CrossEntropyLoss(reduction="none")``.
    a, b : float, optional
        The constants of a `LearnLoss`. Without them, the loss tunes itself.
    reduction : {'mean', 'sum', 'none'}
        As in PyTorch's losses.

    Returns
    -------
    criterion : LearnLoss or SelfTuningLearnLoss
        Called like `loss`.

    Examples
    --------
    >>> from torch import nn
    >>> robustify(nn.MSELoss(reduction="none"))
    SelfTuningLearnLoss(
      reduction='mean'
      (loss): MSELoss()
      (noise): ValueNoise()
    )
    """
    if a is None and b is None:
        return SelfTuningLearnLoss(loss, reduction=reduction)
    if a is None or b is None:
        raise ParameterError(f"robustify needs both a and b, or neither. Got a={a} and b={b}.")
    return LearnLoss(loss, a, b, reduction=reduction)
