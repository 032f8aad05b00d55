r"""What the losses of a batch say about noise, as the a and b of a LEARN loss.

All is relative to the losses themselves, so that their unit does not matter. Single numbers are kept as arrays of one:
a compiler takes a tensor without dimensions for a number that nobody writes to.
"""

from __future__ import annotations

from math import exp, log

import torch
from torch import Tensor, nn

SHARES = (0.01, 0.05, 0.1, 0.17, 0.25, 0.33, 0.4)
BELIEFS = (0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)
"""Shares of wrong labels that are thought possible, and how much each is believed at first."""

MEMORY = 0.9
"""How much of what was seen is left after one more batch."""

KEPT = 0.9999
"""How much of a share of wrong labels is still believed after one more batch, whatever it says."""

POWER = 1.5
"""A loss is far where it exceeds the median by (median/quartile)^1.5: 9.5 medians for the square of a normal residual,
and the same residual for its size or any other power of it."""

NARROWEST = 2.0
"""Losses that are all alike say nothing about how far they spread; the median is taken to be this many quartiles."""

SOFTNESS = 4.0
"""The threshold is four times the softness of the switch."""


class Labels(nn.Module):
    r"""Labels of which a share ε is replaced by one of the K − 1 others.

    The unit a is chosen so that the median loss of the first batch is that of a guess among K labels, a·ln K; should a
    later batch do worse than a guess, the unit grows with it. Bayes' rule says which share the losses suggest. A
    network that learns wrong labels by heart hides them, so that the share rises at once and falls slowly.

    A sample with the median loss m is believed by 1 − ε, and the odds of any other are multiplied by exp((m − f)/a):
    b = ε/(1 − ε)·exp(−m/a). While the network guesses, that is the probability that a label is right; the surer it
    becomes, the less it is tempted to learn what contradicts it. And whatever happened before, half of a batch passes.
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
        """a and b for these losses, when so many labels were possible; a is 0 where nothing is known yet."""
        _, median = quartiles(f)
        known, told = self.unit > 0.0, torch.isfinite(f)
        some = told.any()
        memory = torch.where(some, MEMORY, 1.0)
        self.median.copy_(torch.where(known, memory * self.median + (1.0 - memory) * median, median))
        self.unit.copy_(torch.maximum(self.unit, median / log(labels)))
        shares = torch.tensor(SHARES, dtype=f.dtype, device=f.device)
        right = torch.exp(-torch.where(self.unit > 0.0, f / self.unit, 0.0))[:, None]
        each = torch.log((1.0 - shares) * right + shares * (1.0 - right) / (labels - 1.0))
        self.evidence.mul_(memory).add_(torch.where(told[:, None], each, 0.0).sum(dim=0))
        beliefs = torch.softmax(self.evidence + torch.tensor(BELIEFS, dtype=f.dtype, device=f.device).log(), 0)
        suggested = (beliefs * shares).sum()
        self.share.copy_(torch.where(some, torch.maximum(suggested, KEPT * self.share), self.share))
        return self.unit.clone(), self.share / (1.0 - self.share) * torch.exp(-self.median / self.unit)


class Values(nn.Module):
    """Targets with noise of any scale: the threshold is a running mean of what each batch finds far, in logarithms.

    The median and the quartile below it are those of clean samples up to a share of one half of outliers.
    """

    threshold: Tensor
    batches: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("threshold", torch.zeros(1, dtype=torch.float64))
        self.register_buffer("batches", torch.zeros(1, dtype=torch.int64))

    def forward(self, f: Tensor, labels: int) -> tuple[Tensor, Tensor]:
        """a and b for losses like these; a is 0 where nothing is known yet."""
        quartile, median = quartiles(f)
        some = median > 0.0
        far = torch.log(median) + POWER * torch.log((median / quartile).clamp(min=NARROWEST))
        batches = self.batches + some
        rate = torch.clamp(1.0 / batches, min=1.0 - MEMORY)
        self.threshold.copy_(torch.where(some, self.threshold + rate * (far - self.threshold), self.threshold))
        self.batches.copy_(batches)
        a = torch.where(batches > 0, torch.exp(self.threshold) / SOFTNESS, 0.0)
        return a, torch.full_like(a, exp(-SOFTNESS))


def quartiles(f: Tensor) -> tuple[Tensor, Tensor]:
    """The lower quartile and the median of the positive and finite losses; 0 where there are none."""
    usable = torch.isfinite(f) & (f > 0.0)
    rising = torch.sort(torch.where(usable, f, torch.inf)).values
    last = (usable.sum() - 1).clamp(min=0)
    found = rising[torch.stack([last // 4, last // 2])]
    quartile, median = torch.where(torch.isfinite(found), found, 0.0).unbind()
    return quartile, median
