r"""The LEARN loss around any loss that returns a number for each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from redescend import transforms
from redescend.errors import ParameterError
from redescend.parameters import bad_parameter, check_choice

REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {"none": lambda each: each, "mean": torch.mean, "sum": torch.sum}


def upcast_half_precision(f: Tensor) -> Tensor:
    """Convert half precision to single precision."""
    return f.float() if f.dtype in (torch.float16, torch.bfloat16) else f


def gate_logit(f: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """−f/a − ln b: the logit of the LEARN weight, in single precision at least, so that f/a does not overflow."""
    f = upcast_half_precision(f)
    return -f / a.to(f.dtype) - torch.log(b).to(f.dtype)


def learn_value(f: Tensor, a: Tensor, b: Tensor) -> Tensor:
    r"""h(f) = −a·log(exp(−f/a) + b).

    Each side of the switch has its own form, in which nothing cancels or overflows, nor in derivatives of any order.
    """
    logit = gate_logit(f, a, b)
    wide = f.to(logit.dtype)
    a, level = a.to(wide.dtype), -(a * torch.log(b)).to(wide.dtype)
    open_side, closed_side = wide + a * logsigmoid(logit), level + a * logsigmoid(-logit)
    return torch.where(logit > 0.0, open_side, closed_side).to(f.dtype)


def learn_weight(f: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """h'(f) = 1/(1 + b·exp(f/a))."""
    return torch.sigmoid(gate_logit(f, a, b)).to(f.dtype)


class GatedLoss(nn.Module):
    """A loss of each sample behind a LEARN gate whose a and b are buffers, which are moved but never rounded."""

    a: Tensor
    b: Tensor

    def __init__(self, loss: Callable[..., Tensor], reduction: str) -> None:
        super().__init__()
        owner = type(self).__name__
        if not callable(loss) or isinstance(loss, type):
            raise bad_parameter(owner, "loss", "a loss, such as nn.MSELoss(reduction='none')", loss)
        if getattr(loss, "reduction", "none") != "none":
            raise bad_parameter(owner, "loss", "a loss with reduction='none'", loss)
        self.loss = loss
        self.reduction = check_choice(owner, "reduction", reduction, REDUCTIONS)

    def forward(self, *args: Any, **keywords: Any) -> Tensor:
        """Return the robust loss; `args` and `keywords` are those of the wrapped loss."""
        f = self._sample_losses(*args, **keywords)
        ignored = self._find_ignored(f, *args, **keywords)
        self._observe(f if ignored is None else torch.where(ignored, torch.nan, f), *args, **keywords)
        each = learn_value(f, *self._copy_constants())
        if ignored is None:
            return REDUCTIONS[self.reduction](each)
        each = torch.where(ignored, 0.0, each)
        if self.reduction == "mean":
            return (upcast_half_precision(each).sum() / (~ignored).sum()).to(each.dtype)
        return REDUCTIONS[self.reduction](each)

    def weights(self, *args: Any, **keywords: Any) -> Tensor:
        """Return the probability that each sample is not an outlier; nothing is learned, and no gradient flows.

        `args` and `keywords` are those of the wrapped loss.
        """
        with torch.no_grad():
            return learn_weight(self._sample_losses(*args, **keywords), *self._copy_constants())

    def _copy_constants(self) -> tuple[Tensor, Tensor]:
        """Copies of a and b: the buffers may change before this batch is propagated back."""
        return self.a[0].clone(), self.b[0].clone()

    def _sample_losses(self, *args: Any, **keywords: Any) -> Tensor:
        f = self.loss(*args, **keywords)
        # PyTorch's own losses were checked when they were wrapped; theirs of a single sample has no dimension either.
        if f.ndim == 0 and getattr(self.loss, "reduction", None) != "none":
            tensors = [one for one in (*args, *keywords.values()) if isinstance(one, Tensor)]
            if tensors and all(one.ndim > 0 for one in tensors):
                raise ParameterError(
                    f"The 'loss' parameter of {type(self).__name__} must return a number for each sample. Got one for "
                    f"all {len(tensors[0])} instead; use, for example, functools.partial(F.mse_loss, reduction='none')."
                )
        return f

    def _find_ignored(self, f: Tensor, *args: Any, **keywords: Any) -> Tensor | None:
        """Which samples the wrapped loss ignores by its `ignore_index`; None if it has none."""
        index = getattr(self.loss, "ignore_index", None)
        target = args[1] if len(args) > 1 else keywords.get("target")
        if index is None or not isinstance(target, Tensor) or target.is_floating_point() or target.shape != f.shape:
            return None
        return target == index

    def _observe(self, f: Tensor, *args: Any, **keywords: Any) -> None:
        """Learn from the losses of a batch before it is weighted; NaN marks an ignored sample."""

    def _apply(self, function: Callable[[Tensor], Tensor], recurse: bool = True) -> GatedLoss:
        buffers = {part: dict(part.named_buffers(recurse=False)) for part in self._gate_modules()}
        for part in buffers:
            part._buffers.clear()
        apply: Any = super()._apply
        apply(function, recurse)
        for part, named in buffers.items():
            for name, old in named.items():
                device = function(torch.empty(0, device=old.device)).device
                part._buffers[name] = _move_buffer(old, device)
        return self

    def _gate_modules(self) -> list[nn.Module]:
        """The modules whose buffers make up the gate."""
        return [self]


def _move_buffer(old: Tensor, device: torch.device) -> Tensor:
    # Apple's devices have no float64.
    dtype = torch.float32 if old.dtype == torch.float64 and device.type == "mps" else old.dtype
    return torch.empty_like(old, device=device, dtype=dtype) if old.is_meta else old.to(device, dtype)


class LearnLoss(GatedLoss):
    r"""The robust loss h(f) = −a·log(exp(−f/a) + b) of the loss f of each sample; its gradient is w·∇f.

    The weight w = 1/(1 + b·exp(f/a)) is 1/2 at f = −a·ln b, and a is the softness of the switch. For a cross-entropy,
    a = 1 and b = ε/((1 − ε)(K − 1)) make it the probability that a label is right, if a share ε of the labels is
    replaced by another of K.

    Parameters
    ----------
    loss : callable or nn.Module
        Returns a tensor of losses, one for each sample, such as ``nn.CrossEntropyLoss(reduction="none")``.
    a : float
        Softness of the switch, in units of the loss.
    b : float
        Where it switches: at a loss of −a·ln b.
    reduction : {'mean', 'sum', 'none'}
        As in PyTorch's losses.

    Examples
    --------
    >>> criterion = LearnLoss(nn.MSELoss(reduction="none"), a=1.0, b=1.0, reduction="none")
    >>> guess = torch.zeros(2, requires_grad=True)
    >>> criterion(guess, torch.tensor([0.0, 100.0])).sum().backward()
    >>> guess.grad.abs()
    tensor([0., 0.])
    >>> criterion.weights(guess, torch.tensor([0.0, 100.0]))
    tensor([0.5000, 0.0000])
    """

    def __init__(self, loss: Callable[..., Tensor], a: float, b: float, reduction: str = "mean") -> None:
        super().__init__(loss, reduction)
        learn = transforms.Learn(a, b)
        self.register_buffer("a", torch.tensor([learn.a], dtype=torch.float64))
        self.register_buffer("b", torch.tensor([learn.b], dtype=torch.float64))

    def extra_repr(self) -> str:
        """Return the parameters for the repr of the module."""
        return f"a={float(self.a)!r}, b={float(self.b)!r}, reduction={self.reduction!r}"
