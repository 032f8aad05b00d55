"""Robust losses for PyTorch: any loss that gives a number for each sample, wrapped.

>>> import torch
>>> from torch import nn
>>> criterion = robustify(nn.CrossEntropyLoss(reduction="none"))
>>> logits, labels = torch.zeros(4, 10, requires_grad=True), torch.tensor([0, 1, 2, 3])
>>> criterion(logits, labels).backward()
"""

from redescend.errors import MissingExtraError

try:
    import torch as _torch  # noqa: F401 -- its absence is told here, in one sentence
except ImportError:
    raise MissingExtraError("redescend.torch needs PyTorch; install it with: pip install 'redescend[torch]'") from None

from redescend.torch.fixed import LearnLoss
from redescend.torch.recipe import robustify
from redescend.torch.selftuning import SelfTuningLearnLoss

__all__ = ["LearnLoss", "SelfTuningLearnLoss", "robustify"]
