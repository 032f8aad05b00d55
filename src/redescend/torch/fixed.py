r"""The LEARN loss around any loss that gives a number for each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from redescend import transforms
from redescend.errors import ParameterError
from redescend.parameters import bad_parameter

REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {"none": lambda each: each, "mean": torch.mean, "sum": torch.sum}
HALF = (torch.float16, torch.bfloat16)


def widened(f: Tensor) -> Tensor:
    """The same numbers, in single precision at least."""
    return f.float() if f.dtype in HALF else f


def opening(f: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """−f/a − ln b: the logit of the LEARN weight, in single precision at least, so that f/a does not overflow."""
    f = widened(f)
    return -f / a.to(f.dtype) - torch.log(b).to(f.dtype)


def learn_value(f: Tensor, a: Tensor, b: Tensor) -> Tensor:
    r"""h(f) = −a·log(exp(−f/a) + b).

    Both sides of the switch have a form of their own, in which nothing cancels and nothing overflows; so have their
    derivatives, to any order.
    """
    logit = opening(f, a, b)
    wide = f.to(logit.dtype)
    a, level = a.to(wide.dtype), -(a * torch.log(b)).to(wide.dtype)
    open_side, closed_side = wide + a * logsigmoid(logit), level + a * logsigmoid(-logit)
    return torch.where(logit > 0.0, open_side, closed_side).to(f.dtype)


def learn_weight(f: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """h'(f) = 1/(1 + b·exp(f/a))."""
    return torch.sigmoid(opening(f, a, b)).to(f.dtype)


class Gated(nn.Module):
    """A loss of each sample behind a LEARN gate whose a and b are buffers.

    The buffers are moved with the module and never rounded with it: a network in half precision keeps a gate in full.
    """

    a: Tensor
    b: Tensor

    def __init__(self, loss: Callable[..., Tensor], reduction: str) -> None:
        super().__init__()
        name = type(self).__name__
        if not callable(loss) or isinstance(loss, type):
            raise bad_parameter(name, "loss", "a loss, such as nn.MSELoss(reduction='none')", loss)
        if getattr(loss, "reduction", "none") != "none":
            raise bad_parameter(name, "loss", "a loss of each sample; make it with reduction='none'", loss)
        if reduction not in REDUCTIONS:
            raise bad_parameter(name, "reduction", "'none', 'mean' or 'sum'", reduction)
        self.loss = loss
        self.reduction = reduction

    def forward(self, *args: Any, **keywords: Any) -> Tensor:
        """The robust loss of what the wrapped loss is given."""
        f = self._of_each(*args, **keywords)
        ignored = self._ignored(f, *args, **keywords)
        self._look(f if ignored is None else torch.where(ignored, torch.nan, f), *args, **keywords)
        each = learn_value(f, *self._constants())
        if ignored is None:
            return REDUCTIONS[self.reduction](each)
        each = torch.where(ignored, 0.0, each)
        if self.reduction == "mean":
            return (widened(each).sum() / (~ignored).sum()).to(each.dtype)
        return REDUCTIONS[self.reduction](each)

    def weights(self, *args: Any, **keywords: Any) -> Tensor:
        """How much of each sample is believed, between 0 and 1: the probability that it is no outlier.

        Nothing is learned from these samples, and no gradient flows through the weights.
        """
        with torch.no_grad():
            return learn_weight(self._of_each(*args, **keywords), *self._constants())

    def _constants(self) -> tuple[Tensor, Tensor]:
        """Copies of a and b: the buffers may be written again before this batch goes backward."""
        return self.a[0].clone(), self.b[0].clone()

    def _of_each(self, *args: Any, **keywords: Any) -> Tensor:
        """The losses, one for each sample."""
        f = self.loss(*args, **keywords)
        # PyTorch's own losses were asked when they were wrapped; theirs of a single sample has no dimension either.
        if f.ndim == 0 and getattr(self.loss, "reduction", None) != "none":
            given = [one for one in (*args, *keywords.values()) if isinstance(one, Tensor)]
            if given and all(one.ndim > 0 for one in given):
                raise ParameterError(
                    f"The 'loss' parameter of {type(self).__name__} must give a number for each sample. Got one for "
                    f"all {len(given[0])} instead; use the like of functools.partial(F.mse_loss, reduction='none')."
                )
        return f

    def _ignored(self, f: Tensor, *args: Any, **keywords: Any) -> Tensor | None:
        """Which samples the wrapped loss leaves out by its `ignore_index`; none if it has no such thing."""
        index = getattr(self.loss, "ignore_index", None)
        target = args[1] if len(args) > 1 else keywords.get("target")
        if index is None or not isinstance(target, Tensor) or target.is_floating_point() or target.shape != f.shape:
            return None
        return target == index

    def _look(self, f: Tensor, *args: Any, **keywords: Any) -> None:
        """Learn from the losses of a batch before it is weighed; NaN stands for a sample that says nothing."""

    def _apply(self, function: Callable[[Tensor], Tensor], recurse: bool = True) -> Gated:
        kept = {part: dict(part.named_buffers(recurse=False)) for part in self._gates()}
        for part in kept:
            part._buffers.clear()
        apply: Any = super()._apply
        apply(function, recurse)
        for part, buffers in kept.items():
            for name, old in buffers.items():
                place = function(torch.empty(0, device=old.device)).device
                part._buffers[name] = _moved(old, place)
        return self

    def _gates(self) -> list[nn.Module]:
        """The modules whose buffers make up the gate."""
        return [self]


def _moved(old: Tensor, place: torch.device) -> Tensor:
    # Apple's devices know no float64.
    dtype = torch.float32 if old.dtype == torch.float64 and place.type == "mps" else old.dtype
    return torch.empty_like(old, device=place, dtype=dtype) if old.is_meta else old.to(place, dtype)


class LearnLoss(Gated):
    r"""g = h(f), where h(f) = −a·log(exp(−f/a) + b) and f is the loss of a sample; its gradient is w·∇f.

    The weight w = 1/(1 + b·exp(f/a)) is half open at f = −a·ln b, and a is how soft the switch is. On a
    cross-entropy, a = 1 and b = ε/((1 − ε)(K − 1)) make it the probability that a label is right where a share ε of
    labels is replaced by another of K.

    Parameters
    ----------
    loss : function or module
        Gives a tensor of losses, one for each sample, such as ``nn.CrossEntropyLoss(reduction="none")``.
    a, b : float
        Softness of the switch, in units of the loss, and its place.
    reduction : "mean", "sum" or "none"
        As usual.

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
        return f"a={float(self.a)!r}, b={float(self.b)!r}, reduction={self.reduction!r}"
