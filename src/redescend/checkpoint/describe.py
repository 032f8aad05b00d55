"""A model as plain values and arrays, and a model from them.

What JSON has is described by itself: None, bools, whole numbers, finite floats, texts and lists. Anything else is an
object whose one tag says what it is; arrays are kept apart, by name. A model is its class, the settings of its
constructor and, if it learns, its state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from inspect import Parameter, signature
from typing import Any

import numpy as np

from redescend.checkpoint.names import class_of, name_of
from redescend.errors import DataError, ParameterError
from redescend.learners.base import Learner
from redescend.losses import Custom
from redescend.numeric import Array
from redescend.parameters import Component

NUMBERS = frozenset(
    ["bool", "float16", "float32", "float64"] + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
"""Types of arrays that every reader of the format knows."""

SIZES = frozenset({"dim", "k", "window"})
"""Settings that a constructor makes room for. What they count is in the state, so none exceeds the file's length."""


LONGEST = 10_000
"""Bits of a whole number; texts of much longer ones are not read back."""


class Writer:
    """Describes a model; `arrays` fills up as it does."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def described(self, value: Any, where: str = "model") -> Any:
        """The value in terms of JSON; `where` it is in the model names its arrays, and the error if it has no form."""
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, np.generic) and not isinstance(value, np.str_):
            return {"scalar": self._array(np.asarray(value), where)}
        if isinstance(value, int) and value.bit_length() > LONGEST:
            raise ParameterError(f"'{where}' cannot be saved, because it is a whole number of over {LONGEST} bits.")
        if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
            return str(value) if isinstance(value, np.str_) else value
        if isinstance(value, float):
            return {"float": repr(value)}
        if isinstance(value, list):
            return self._each(value, where)
        if type(value) is tuple:
            return {"tuple": self._each(value, where)}
        if isinstance(value, Mapping):
            pairs = value.items()
            return {"dict": [[self.described(key, where), self.described(of, f"{where}.{key}")] for key, of in pairs]}
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
            return {"dtype": np.dtype(value).name}
        return self._model(value, where)

    def _each(self, values: Any, where: str) -> list[Any]:
        return [self.described(value, f"{where}.{place}") for place, value in enumerate(values)]

    def _array(self, values: Array, where: str) -> dict[str, Any]:
        if values.dtype.kind in "UO":
            tag = "texts" if values.dtype.kind == "U" else "objects"
            return {tag: self._each(values.ravel().tolist(), where), "shape": list(values.shape)}
        if values.dtype.name not in NUMBERS:
            raise ParameterError(f"'{where}' cannot be saved, because it is an array of {values.dtype}.")
        name = where
        while name in self.arrays:
            name += "'"
        self.arrays[name] = np.asarray(values, dtype=values.dtype.newbyteorder("="), order="C")
        return {"array": name}

    def _model(self, model: Any, where: str) -> dict[str, Any]:
        kind = type(model)
        if isinstance(model, Custom):
            raise ParameterError(
                "A model with a Custom loss cannot be saved, because its functions are code and a file holds none; "
                "save its state() instead, and restore() it in a model made with the same functions."
            )
        name = name_of(kind)
        if name is None:
            raise ParameterError(
                f"'{where}' cannot be saved, because a file holds models of redescend, numbers, texts and arrays, and "
                f"not {kind.__module__}.{kind.__qualname__}."
            )
        settings = {key: self.described(value, f"{where}.{key}") for key, value in _settings(model).items()}
        description = {"class": name, "settings": settings}
        if not isinstance(model, Component):
            description["state"] = self.described(model.state(), f"{where}.state")
        return description


class Reader:
    """Makes what a `Writer` described, from the arrays of a file of `room` bytes."""

    def __init__(self, arrays: dict[str, Array], room: int) -> None:
        self._arrays, self._room = arrays, room

    def made(self, description: Any) -> Any:
        if description is None or isinstance(description, bool | int | float | str):
            return description
        if isinstance(description, list):
            return [self.made(part) for part in description]
        match description:
            case {"float": "inf" | "-inf" | "nan" as text, **rest} if not rest:
                return float(text)
            case {"tuple": list(parts), **rest} if not rest:
                return tuple(self.made(parts))
            case {"dict": list(pairs), **rest} if not rest:
                return {self.made(key): self.made(value) for key, value in pairs}
            case {"array": str(name), **rest} if not rest and name in self._arrays:
                # Given away: a large array is not kept twice.
                return self._arrays.pop(name).copy()
            case {"scalar": {"array": str(name)}, **rest} if not rest and name in self._arrays:
                return self._arrays[name][()]
            case {"dtype": str(name), **rest} if not rest and name in NUMBERS:
                return np.dtype(name)
            case {"texts": list(parts), "shape": list(shape), **rest} if not rest:
                return np.array(parts, dtype=np.str_).reshape(shape)
            case {"objects": list(parts), "shape": list(shape), **rest} if not rest:
                values = np.empty(len(parts), dtype=object)
                values[:] = self.made(parts)
                return values.reshape(shape)
            case {"class": name, "settings": dict(settings), **rest} if rest.keys() <= {"state"}:
                return self._model(class_of(name), settings, rest)
        raise DataError("it describes something that this version of redescend does not know.")

    def _model(self, kind: Any, settings: dict[str, Any], rest: Mapping[Any, Any]) -> Any:
        given = {name: self.made(value) for name, value in settings.items()}
        for name in SIZES & given.keys():
            if isinstance(given[name], int) and given[name] > self._room:
                raise DataError(f"it asks for {name} = {given[name]}, for which it is too short.")
        together = [one.name for one in signature(kind).parameters.values() if one.kind is Parameter.VAR_POSITIONAL]
        parts = [part for name in together for part in given.pop(name)]
        model = kind(*parts, **given)
        if isinstance(model, Component) == ("state" in rest):
            raise DataError(f"its {kind.__name__} has a state that it should not have, or lacks one.")
        if "state" in rest:
            model.restore(self.made(rest["state"]))
        return model


def _settings(model: Any) -> dict[str, Any]:
    """What the constructor of a model takes, by name."""
    if isinstance(model, Component):
        return {field.name: getattr(model, field.name) for field in fields(model)}
    if isinstance(model, Learner):
        return model.parameters
    return model.get_params(deep=False) if hasattr(model, "get_params") else model._get_params()
