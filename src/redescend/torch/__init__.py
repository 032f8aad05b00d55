"""Robust losses for PyTorch: wrappers of any loss that returns a number for each sample.

>>> import torch
>>> from torch import nn
>>> criterion = robustify(nn.CrossEntropyLoss(reduction="none"))
>>> logits, labels = torch.zeros(4, 10, requires_grad=True), torch.tensor([0, 1, 2, 3])
>>> criterion(logits, labels).backward()
"""

from redescend.errors import needs_extra

with needs_extra("redescend.torch needs PyTorch", "torch"):
    from redescend.torch.learn_loss import LearnLoss
    from redescend.torch.selftuning import SelfTuningLearnLoss, robustify

__all__ = ["LearnLoss", "SelfTuningLearnLoss", "robustify"]
