"""Robust losses for PyTorch: wrappers of any loss that returns a number for each sample.

>>> import torch
>>> from torch import nn
>>> criterion = robustify(nn.CrossEntropyLoss(reduction="none"))
>>> logits, labels = torch.zeros(4, 10, requires_grad=True), torch.tensor([0, 1, 2, 3])
>>> criterion(logits, labels).backward()
"""

from redescend.errors import MissingExtraError

try:
    import torch as _torch  # noqa: F401 -- imported first, so that its absence is the error
except ImportError:
    raise MissingExtraError("redescend.torch needs PyTorch; install it with: pip install 'redescend[torch]'") from None

from redescend.torch.learn_loss import LearnLoss
from redescend.torch.selftuning import SelfTuningLearnLoss, robustify

__all__ = ["LearnLoss", "SelfTuningLearnLoss", "robustify"]
