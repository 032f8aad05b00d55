r"""Gates: the weight in [0, 1] that each round gets.

A gate sees the loss f and the length ‖∇f‖ of a round, and its own memory of earlier rounds. `weigh` computes the weight
and changes nothing; `remember` updates the memory after the round. The weight h'(f) of LEARN and of the other robust
losses is a formula in `transforms`, which `Robust` applies. The compiled rounds call the same functions.
CONTRIBUTING shows how to add a gate.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from redescend import transforms
from redescend.errors import ParameterError
from redescend.numeric import Array, unknown_code
from redescend.parameters import AT_LEAST_ONE, COUNT, Component, Interval, check_instance
from redescend.state import ArraySpec

ALWAYS, ROBUST, TOP_K, ORACLE, CLIP = range(5)


# --- the k largest gradients: a heap of k + 1 lengths, smallest first ---


def top_k_weight(heap: Array, length: float) -> float:
    """0 if the length is more than twice the smallest of the k + 1 largest lengths, including this one."""
    smallest = heap[0]
    if length > smallest:
        smallest = length
        for child in range(1, min(3, len(heap))):
            smallest = min(smallest, heap[child])
    return 0.0 if length > 2.0 * smallest else 1.0


def top_k_remember(heap: Array, length: float) -> None:
    """Replace the smallest entry if this one is larger."""
    if length <= heap[0]:
        return
    at = 0
    child = 1
    while child < len(heap):
        if child + 1 < len(heap) and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= length:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = length


# --- a running quantile: [count, next place, ring of lengths, the same lengths sorted] ---


def clip_weight(memory: Array, quantile: float, length: float) -> float:
    """min(1, Q/‖g‖), Q the quantile of the lengths before this round; 1 where there are none."""
    count = int(memory[0])
    if count == 0:
        return 1.0
    window = (len(memory) - 2) // 2
    rank = max(int(np.ceil(quantile * count)), 1) - 1
    limit = memory[2 + window + rank]
    return limit / length if length > limit else 1.0


def clip_remember(memory: Array, length: float) -> None:
    """Put this length in the ring, and in its place among the sorted ones."""
    window = (len(memory) - 2) // 2
    count, place = int(memory[0]), int(memory[1])
    order = memory[2 + window :]
    if count == window:
        out = memory[2 + place]
        at = np.searchsorted(order, out)
        for j in range(at, count - 1):
            order[j] = order[j + 1]
        count -= 1
    at = np.searchsorted(order[:count], length)
    for j in range(count, at, -1):
        order[j] = order[j - 1]
    order[at] = length
    memory[2 + place] = length
    memory[0] = count + 1
    memory[1] = (place + 1) % window


def weigh(kind: int, transform: int, c: float, b: float, memory: Array, t: int, f: float, length: float) -> float:
    """The weight of round t, from 0, with loss f and length ‖∇f‖; NaN if an oracle has no label for it."""
    if kind == ROBUST:
        return transforms.weight(transform, c, b, f)
    if kind == TOP_K:
        return top_k_weight(memory, length)
    if kind == ORACLE:
        return memory[t] if t < len(memory) else np.nan
    if kind == CLIP:
        return clip_weight(memory, c, length)
    if kind == ALWAYS:
        return 1.0
    return unknown_code(kind)


def remember(kind: int, memory: Array, length: float) -> None:
    """Update the memory after a round with gradient length ‖∇f‖."""
    if kind == TOP_K:
        top_k_remember(memory, length)
    elif kind == CLIP:
        clip_remember(memory, length)
    elif kind not in (ALWAYS, ROBUST, ORACLE):
        unknown_code(kind)


def needs_length(kind: int) -> bool:
    """Whether the gate looks at ‖∇f‖; a new gate does, unless it is listed here."""
    return kind not in (ALWAYS, ROBUST, ORACLE)


class Gate(Component):
    """Computes the weight of a round."""

    kind: ClassVar[int]
    """The code of the gate in compiled rounds."""

    @property
    def settings(self) -> tuple[int, float, float]:
        """The settings for compiled rounds: the code of a transform and two parameters."""
        return transforms.IDENTITY, 1.0, 1.0

    def fresh_memory(self) -> Array:
        """Return the memory before the first round."""
        return np.zeros(0)

    def memory_spec(self) -> ArraySpec:
        """The spec of its memory in a saved state."""
        return ArraySpec("memory", (len(self.fresh_memory()),), low=0.0)


class Always(Gate):
    """Weight 1 for every round: plain online gradient descent.

    Examples
    --------
    >>> Always()
    Always()
    """

    kind: ClassVar[int] = ALWAYS


@dataclass(frozen=True)
class Robust(Gate):
    """Weight h'(f) of a transform: descent on the robust loss h(f).

    Parameters
    ----------
    transform : Transform
        The transform h, such as ``transforms.Huber(1.0)``.

    Examples
    --------
    >>> Robust(transforms.Learn(a=10.0, b=10.0))
    Robust(transform=Learn(a=10.0, b=10.0))
    """

    transform: transforms.Transform
    kind: ClassVar[int] = ROBUST

    def __post_init__(self) -> None:
        check_instance("Robust", "transform", self.transform, transforms.Transform, "a transform, such as Huber(1.0)")

    @property
    def settings(self) -> tuple[int, float, float]:
        return self.transform.kind, *self.transform.settings


@dataclass(frozen=True)
class TopK(Gate):
    """Weight 0 if the gradient is more than twice the (k+1)-th largest so far: van Erven's Top-k filter.

    Parameters
    ----------
    k : int
        Number of rounds that may be outliers.

    Examples
    --------
    >>> TopK(k=2).fresh_memory()
    array([0., 0., 0.])

    References
    ----------
    van Erven, Sachs, Koolen and Kotłowski, Robust online convex optimization in the presence of outliers, COLT 2021.
    """

    k: Annotated[int, COUNT]
    kind: ClassVar[int] = TOP_K

    def fresh_memory(self) -> Array:
        return np.zeros(self.k + 1)


@dataclass(frozen=True, eq=False)
class Oracle(Gate):
    """Weight 1 for the rounds that are known to be clean and 0 for the others: a baseline for comparisons.

    Parameters
    ----------
    clean : array of bools
        Whether each round is clean.

    Examples
    --------
    >>> Oracle([True, False]).fresh_memory()
    array([1., 0.])
    """

    clean: Any
    kind: ClassVar[int] = ORACLE

    def __post_init__(self) -> None:
        clean = np.array(self.clean)
        if clean.ndim != 1 or clean.dtype != np.bool_ or not len(clean):
            raise ParameterError(
                "The 'clean' parameter of Oracle must be a one-dimensional array of bools, one for each round. "
                f"Got shape {clean.shape} of type {clean.dtype} instead."
            )
        clean.flags.writeable = False
        object.__setattr__(self, "clean", clean)

    def __repr__(self) -> str:
        digest = hashlib.sha256(self.clean.tobytes()).hexdigest()[:8]
        return f"Oracle({int(self.clean.sum())} of {len(self.clean)} rounds clean, #{digest})"

    def fresh_memory(self) -> Array:
        return self.clean.astype(np.float64)


@dataclass(frozen=True)
class Clip(Gate):
    """Clips a gradient to a running quantile of the lengths of the last rounds.

    With a loss that is flat in most rounds, such as the hinge, that quantile is near 0 and the learner hardly moves.

    Parameters
    ----------
    quantile : float, default 0.5
        Which quantile of the lengths.
    window : int, default 101
        Number of rounds that the quantile is taken over.

    Examples
    --------
    >>> Clip(quantile=0.5, window=101).fresh_memory().size
    204
    """

    quantile: Annotated[float, Interval(0, 1, "right")] = 0.5
    window: Annotated[int, AT_LEAST_ONE] = 101
    kind: ClassVar[int] = CLIP

    @property
    def settings(self) -> tuple[int, float, float]:
        return transforms.IDENTITY, self.quantile, 1.0

    def fresh_memory(self) -> Array:
        return np.zeros(2 + 2 * self.window)

    def memory_spec(self) -> ArraySpec:
        # The loop does not check bounds: how many lengths there are, and the next place in the ring.
        count = ArraySpec("memory", kind="count", high=self.window)
        place = ArraySpec("memory", kind="index", high=self.window)
        return replace(super().memory_spec(), parts={0: count, 1: place})
