"""The arrays of a saved state: the declaration of each, and its check before compiled code uses it.

Compiled loops do not check bounds, so every number that is used as an index, a count or a length is declared as one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any, Literal, TypeAlias

import numpy as np

from redescend.errors import DataError
from redescend.numeric import Array

Dims: TypeAlias = Mapping[str, int]
Size: TypeAlias = int | str | Callable[[Dims], int]
"""A length or a bound: a number, the name of a dimension, or a function of all dimensions."""

CORRUPT = "the file is corrupt or was written by an incompatible version"

MAX_COUNT = 2**53  # floats represent every whole number up to this one

SHARE_TOLERANCE = 1e-6


class Stateful(ABC):
    """A model that can return what it has learned, and continue from it."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return everything learned, as arrays and plain values.

        Returns
        -------
        state : dict
            A copy, for `restore`.

        Examples
        --------
        >>> from redescend.scaling import RunningQuantiles
        >>> RunningQuantiles(dim=2).state()["counts"]
        array([0., 0.])
        """

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Replace everything learned by a state; learning continues from there with identical results.

        Parameters
        ----------
        state : dict
            What `state` of a model of the same class and parameters returned.

        Raises
        ------
        DataError
            If the state is invalid. The model is then unchanged.

        Examples
        --------
        >>> from redescend.scaling import RunningQuantiles
        >>> model, other = RunningQuantiles(dim=1), RunningQuantiles(dim=1)
        >>> model.update(np.array([[1.0], [2.0], [3.0]]))
        >>> other.restore(model.state())
        >>> other.at(0.5)
        array([2.])
        """


@dataclass(frozen=True)
class ArraySpec:
    """The spec of one array of a state.

    Parameters
    ----------
    name : str
        Its key in the state.
    shape : tuple of Size
        The length of every axis. A named dimension that is not given is read off the first array that has it.
    kind : str
        "count": whole numbers from 0; "index": those below `high`; "flag": 0 or 1; "share": from 0, with a sum of 1.
    low, high : Size or float, optional
        The range of the values, ends included; the upper end of an index is excluded.
    dtype : dtype or None
        What the array is converted to. None: float32 or float64, whichever it has.
    finite : bool
        Whether NaN and infinity are refused.
    parts : mapping of int or tuple to ArraySpec
        Further rules for single entries of the first axis, or for what the tuple selects; their shape is ignored.
    """

    name: str
    shape: tuple[Size, ...] = ()
    kind: Literal["float", "count", "index", "flag", "share"] = "float"
    low: Size | float | None = None
    high: Size | float | None = None
    dtype: Any = np.float64
    finite: bool = True
    parts: Mapping[Any, ArraySpec] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind == "index" and self.high is None:
            raise TypeError(f"The index {self.name!r} needs a 'high'.")


def read_arrays(
    specs: Iterable[ArraySpec], state: Any, dims: Dims, owner: object, others: Iterable[str] = ()
) -> dict[str, Array]:
    """Copy the arrays of a state, checked: C-contiguous, writable and of the declared types.

    The state must have exactly the names of the specs and those of `others`, which the caller reads. `dims` are the
    dimensions that are known; errors name the owner.
    """
    specs = tuple(specs)
    names = [*others, *(spec.name for spec in specs)]
    check_keys(state, names, owner)
    known = dict(dims)
    arrays = {spec.name: _convert_array(spec, state[spec.name], owner) for spec in specs}
    for spec in specs:
        _infer_dims(spec, arrays[spec.name], known, owner)
    check_arrays(specs, arrays, known, owner)
    return arrays


def check_keys(state: Any, names: Sequence[str], owner: object) -> None:
    """Raise unless a state is a dict with exactly these keys."""
    if not isinstance(state, dict) or set(state) != set(names):
        raise DataError(f"The state of {owner} must be a dict with the keys {', '.join(names)}: {CORRUPT}.")


def check_arrays(specs: Iterable[ArraySpec], arrays: Mapping[str, Array], dims: Dims, owner: object) -> None:
    """Raise if the values of arrays are outside what their specs declare; any axes may precede those of a spec."""
    for spec in specs:
        array = arrays[spec.name]
        batch = array.ndim - len(spec.shape)
        _check_values(spec, array, dims, owner, axes=tuple(range(batch, array.ndim)))
        for place, part in spec.parts.items():
            selected = place if isinstance(place, tuple) else (place,)
            _check_values(part, array[(slice(None),) * batch + selected], dims, owner, axes=())


def require(condition: Any, owner: object, what: str) -> None:
    """Raise the one sentence about a corrupt state unless the condition holds."""
    if not condition:
        raise corrupt_state(owner, what)


def corrupt_state(owner: object, what: str) -> DataError:
    """The error that a state has something it cannot have."""
    return DataError(f"The state of {owner} has {what}: {CORRUPT}; fit the model again.")


def count_values(state: Any) -> int:
    """Count the values in a nested state, to refuse a model that needs more of them before it is made.

    >>> count_values({"rounds": 3, "engine": {"theta": np.zeros(4), "names": ["a", "b"]}})
    7
    """
    if isinstance(state, Mapping):
        return sum(map(count_values, state.values()))
    if isinstance(state, list | tuple):
        return sum(map(count_values, state))
    return int(np.size(state))


def packed_size(specs: Iterable[ArraySpec], dims: Dims) -> int:
    """The number of values of the arrays of these specs."""
    return sum(prod(_resolve_shape(spec, dims)) for spec in specs)


def unpack(specs: Iterable[ArraySpec], rows: Array, dims: Dims) -> dict[str, Array]:
    """Views of arrays that are packed one behind the other along the last axis of `rows`."""
    out, start = {}, 0
    for spec in specs:
        shape = _resolve_shape(spec, dims)
        end = start + prod(shape)
        out[spec.name] = rows[..., start:end].reshape(*rows.shape[:-1], *shape)
        start = end
    return out


def _resolve_size(size: Any, dims: Dims) -> Any:
    return size(dims) if callable(size) else dims[size] if isinstance(size, str) else size


def _resolve_shape(spec: ArraySpec, dims: Dims) -> tuple[int, ...]:
    return tuple(_resolve_size(size, dims) for size in spec.shape)


def _convert_array(spec: ArraySpec, value: Any, owner: object) -> Array:
    """A copy of the value in the type of its spec."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.empty(0, object)
    dtype = np.dtype(spec.dtype if spec.dtype is not None else array.dtype)
    if dtype not in (np.float32, np.float64) and spec.dtype is None:
        raise corrupt_state(owner, f"an array '{spec.name}' that is not of float32 or float64")
    kinds = {"f": "iuf", "i": "iu", "u": "iu", "b": "b"}[dtype.kind]
    if array.dtype.kind not in kinds and (array.size or array.dtype.kind == "O"):
        raise corrupt_state(owner, f"an array '{spec.name}' that is not of {dtype}")
    if array.size and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise corrupt_state(owner, f"values of '{spec.name}' that do not fit in {dtype}")
    with np.errstate(over="ignore"):
        return np.array(array, dtype=dtype, order="C")


def _infer_dims(spec: ArraySpec, array: Array, dims: dict[str, int], owner: object) -> None:
    """Add the dimensions that are not known yet; raises if the shape does not fit those that are."""
    if array.ndim == len(spec.shape):
        for size, length in zip(spec.shape, array.shape, strict=True):
            if isinstance(size, str):
                dims.setdefault(size, length)
    shape = tuple(_resolve_size(size, dims) if not isinstance(size, str) else dims.get(size, -1) for size in spec.shape)
    if array.shape != shape:
        raise corrupt_state(owner, f"an array '{spec.name}' of shape {array.shape}, not {shape}")


def _check_values(spec: ArraySpec, array: Array, dims: Dims, owner: object, axes: tuple[int, ...]) -> None:
    whole = spec.kind in ("count", "index", "flag")
    low = _resolve_size(spec.low, dims) if spec.low is not None else (-inf if spec.kind == "float" else 0)
    high = _resolve_size(spec.high, dims)
    if high is None:
        high = {"count": MAX_COUNT, "flag": 1}.get(spec.kind, inf)
    if array.dtype.kind == "f" and spec.finite and not np.isfinite(array).all():
        raise corrupt_state(owner, f"values of '{spec.name}' that are not finite")
    outside = (array < low) | ((array >= high) if spec.kind == "index" else (array > high))
    if whole and array.dtype.kind == "f":
        outside |= array % 1.0 != 0.0
    if outside.any():
        noun, end = "whole numbers" if whole else "numbers", ")" if spec.kind == "index" or high == inf else "]"
        raise corrupt_state(owner, f"values of '{spec.name}' that are not {noun} in [{low}, {high}{end}")
    if spec.kind == "share" and (abs(array.sum(axis=axes) - 1.0) > SHARE_TOLERANCE).any():
        raise corrupt_state(owner, f"shares '{spec.name}' whose sum is not 1")
