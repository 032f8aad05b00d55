"""A model as plain values and arrays, and back.

Values that JSON has are stored as they are: None, booleans, integers, finite floats, strings and lists. Anything else
is an object with a tag for its type; arrays are stored apart, by name. A model is its class, the parameters of its
constructor and, if it learns, its state.

Only the classes in `CLASSES` can be named, under the names that users import them by, so that files outlive a move from
one module to another. A module is imported only when a file names one of its classes.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

import numpy as np

from redescend.errors import DataError, MissingExtraError, ParameterError
from redescend.learners.learner import Learner
from redescend.losses import Custom
from redescend.numeric import Array
from redescend.parameters import Component
from redescend.registry import REGISTRIES
from redescend.state import count_values

# A class that has been in a release stays here.
CLASSES: dict[str, tuple[str, ...]] = {
    "redescend": (
        *("OGD", "Learn", "Robust", "TopK", "Oracle", "NormalisedOGD", "ClippedOGD", "Descent"),
        *("LearnWithExperts", "Ader", "JacobsenCutkosky", "SelfTuning"),
    ),
    **{registry.module: tuple(kind.__name__ for kind in registry.values()) for registry in REGISTRIES},
    "redescend.belief": ("ResidualBelief", "LabelBelief"),
    "redescend.sklearn": ("RedescendingRegressor", "RedescendingClassifier", "MedianScaler"),
    "redescend.river": ("RedescendingRegressor", "RedescendingClassifier", "RedescendingFilter"),
    "redescend.streaming": ("ModelStore", "StreamModel"),
}

DTYPES = frozenset(
    ["bool", "float16", "float32", "float64"] + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
"""Types of arrays that every reader of the format knows."""

SIZES = frozenset({"dim", "k", "window"})
"""Parameters that a constructor allocates memory for. The state has at least as many numbers."""

TEXT_BYTES = 100  # the most bytes of an array of texts per byte of the file: all texts take as much as the longest
MAX_BITS = 10_000  # the most bits of an integer; Python does not parse much longer ones


class Serializer:
    """Turns a model into values that JSON has, and collects its `arrays`."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def serialize(self, value: Any, where: str = "model") -> Any:
        """The value in terms of JSON; `where` it is in the model names its arrays, and is named in errors."""
        if isinstance(value, np.ndarray):
            return self._serialize_array(value, where)
        if isinstance(value, np.generic) and not isinstance(value, np.str_):
            return {"scalar": self._serialize_array(np.asarray(value), where)}
        if isinstance(value, int) and value.bit_length() > MAX_BITS:
            raise ParameterError(f"'{where}' cannot be saved, because it is an integer of more than {MAX_BITS} bits.")
        if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
            return str(value) if isinstance(value, np.str_) else value
        if isinstance(value, float):
            return {"float": repr(value)}
        if isinstance(value, list):
            return self._serialize_all(value, where)
        if type(value) is tuple:
            return {"tuple": self._serialize_all(value, where)}
        if isinstance(value, Mapping):
            pairs = value.items()
            return {"dict": [[self.serialize(key, where), self.serialize(of, f"{where}.{key}")] for key, of in pairs]}
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
            return {"dtype": np.dtype(value).name}
        return self._serialize_model(value, where)

    def _serialize_all(self, values: Any, where: str) -> list[Any]:
        return [self.serialize(value, f"{where}.{place}") for place, value in enumerate(values)]

    def _serialize_array(self, values: Array, where: str) -> dict[str, Any]:
        if values.dtype.kind in "UO":
            tag = "texts" if values.dtype.kind == "U" else "objects"
            return {tag: self._serialize_all(values.ravel().tolist(), where), "shape": list(values.shape)}
        if values.dtype.name not in DTYPES:
            raise ParameterError(f"'{where}' cannot be saved, because it is an array of {values.dtype}.")
        name = where
        while name in self.arrays:
            name += "'"
        self.arrays[name] = np.asarray(values, dtype=values.dtype.newbyteorder("="), order="C")
        return {"array": name}

    def _serialize_model(self, model: Any, where: str) -> dict[str, Any]:
        kind = type(model)
        if isinstance(model, Custom):
            raise ParameterError(
                "A model with a Custom loss cannot be saved, because its functions are code, and files contain none. "
                "Save its state() instead, and restore() that in a model made with the same functions."
            )
        name = class_name(kind)
        if name is None:
            raise ParameterError(
                f"'{where}' cannot be saved, because it is a {kind.__module__}.{kind.__qualname__}. Files contain only "
                "models of redescend, numbers, strings and arrays."
            )
        settings = {
            key: self.serialize(value, f"{where}.{key}") for key, value in _constructor_parameters(model).items()
        }
        description = {"class": name, "settings": settings}
        if not isinstance(model, Component):
            description["state"] = self.serialize(model.state(), f"{where}.state")
        return description


class Deserializer:
    """Makes a model from the description that a `Serializer` made, and the arrays of a file of `file_size` bytes."""

    def __init__(self, arrays: dict[str, Array], file_size: int) -> None:
        self._arrays, self._file_size = arrays, file_size

    def deserialize(self, description: Any) -> Any:
        if description is None or isinstance(description, bool | int | float | str):
            return description
        if isinstance(description, list):
            return [self.deserialize(part) for part in description]
        match description:
            case {"float": "inf" | "-inf" | "nan" as text, **rest} if not rest:
                return float(text)
            case {"tuple": list(parts), **rest} if not rest:
                return tuple(self.deserialize(parts))
            case {"dict": list(pairs), **rest} if not rest:
                return {self.deserialize(key): self.deserialize(value) for key, value in pairs}
            case {"array": str(name), **rest} if not rest and name in self._arrays:
                # Popped, so that a large array is not in memory twice.
                return self._arrays.pop(name).copy()
            case {"scalar": {"array": str(name)}, **rest} if not rest and name in self._arrays:
                return self._arrays[name][()]
            case {"dtype": str(name), **rest} if not rest and name in DTYPES:
                return np.dtype(name)
            case {"texts": list(parts), "shape": list(shape), **rest} if not rest:
                return self._make_texts(parts).reshape(shape)
            case {"objects": list(parts), "shape": list(shape), **rest} if not rest:
                values = np.empty(len(parts), dtype=object)
                values[:] = self.deserialize(parts)
                return values.reshape(shape)
            case {"class": name, "settings": dict(settings), **rest} if rest.keys() <= {"state"}:
                return self._make_model(find_class(name), settings, rest)
        raise DataError("it contains something that this version of redescend does not know.")

    def _make_model(self, kind: Any, settings: dict[str, Any], rest: Mapping[Any, Any]) -> Any:
        parameters = {name: self.deserialize(value) for name, value in settings.items()}
        if issubclass(kind, Component) == ("state" in rest):
            raise DataError(f"its {kind.__name__} has a state that it should not have, or lacks one.")
        state = self.deserialize(rest.get("state"))
        # A part of a model has no state of its own, but the file has that of the model.
        _check_sizes(parameters, count_values(state) if "state" in rest else self._file_size)
        variadic = [one.name for one in signature(kind).parameters.values() if one.kind is Parameter.VAR_POSITIONAL]
        parts = [part for name in variadic for part in parameters.pop(name)]
        model = kind(*parts, **parameters)
        if "state" in rest:
            model.restore(state)
        return model

    def _make_texts(self, parts: list[Any]) -> Array:
        longest = max((len(part) if isinstance(part, str) else 0 for part in parts), default=0)
        if not all(isinstance(part, str) for part in parts) or 4 * longest * len(parts) > TEXT_BYTES * self._file_size:
            raise DataError(f"its {len(parts)} texts of up to {longest} letters are not an array that it has room for.")
        return np.array(parts, dtype=np.str_)


def _check_sizes(parameters: dict[str, Any], values: int) -> None:
    """Raise before a constructor allocates more than the state, which has this number of values, can fill."""
    for name in SIZES & parameters.keys():
        if not isinstance(parameters[name], numbers.Integral):
            continue  # the constructor refuses it
        size = int(parameters[name])
        if size > values:
            raise DataError(f"it is too short for {name} = {size}.")
        if name == "dim" and parameters.get("order") == 2 and size**2 > values:
            raise DataError(f"it is too short for a model of order 2 and dim = {size}.")


def _constructor_parameters(model: Any) -> dict[str, Any]:
    """The parameters that the constructor of a model takes, by name."""
    if isinstance(model, Component):
        return {field.name: getattr(model, field.name) for field in fields(model)}
    if isinstance(model, Learner):
        return model.parameters
    if hasattr(model, "get_params"):
        return model.get_params(deep=False)
    return {name: getattr(model, name) for name in signature(type(model)).parameters}


def class_name(kind: type) -> str | None:
    """The name of a class in files, or None: a class of a user's own has none."""
    for module, names in CLASSES.items():
        if kind.__name__ in names and getattr(sys.modules.get(module), kind.__name__, None) is kind:
            return f"{module}.{kind.__name__}"
    return None


def find_class(name: Any) -> Any:
    """The class that a file names, if it is one of `CLASSES`."""
    module, _, last = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    if last not in CLASSES.get(module, ()):
        raise DataError(f"it names {name!r}, which is not a model of this version of redescend.")
    try:
        return getattr(import_module(module), last)
    except MissingExtraError:
        raise
    except ImportError as error:
        extra = module.rpartition(".")[2]
        raise MissingExtraError(
            f"A {last} needs an optional dependency ({error}); install it with: pip install 'redescend[{extra}]'"
        ) from None
