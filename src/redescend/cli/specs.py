"""What is named on the command line: columns, losses and transforms."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from redescend import losses, transforms
from redescend.errors import ParameterError
from redescend.parameters import Component

T = TypeVar("T", bound=Component)

LOSSES: dict[str, type[losses.LinearLoss]] = {
    "squared": losses.Squared,
    "absolute": losses.Absolute,
    "epsilon_insensitive": losses.EpsilonInsensitive,
    "pinball": losses.Pinball,
    "logistic": losses.Logistic,
    "hinge": losses.Hinge,
}
TRANSFORMS: dict[str, type[transforms.Transform]] = {
    "identity": transforms.Identity,
    "learn": transforms.Learn,
    "huber": transforms.Huber,
    "cauchy": transforms.Cauchy,
    "welsch": transforms.Welsch,
    "geman_mcclure": transforms.GemanMcClure,
    "tukey": transforms.Tukey,
    "barron": transforms.Barron,
}


def listed(texts: Iterable[str] | None) -> list[str] | None:
    """Names with commas between; one with a comma in it is put in quotes.

    Examples
    --------
    >>> listed(["a,b", '"x, y",z']), listed(None)
    (['a', 'b', 'x, y', 'z'], None)
    """
    if not texts:
        return None
    return [name.strip() for text in texts for name in next(csv.reader([text], skipinitialspace=True), [])]


def loss_named(text: str | None) -> losses.LinearLoss | None:
    """The loss of a name, such as ``pinball:0.9``."""
    return _made("--loss", LOSSES, text)


def transform_named(text: str | None) -> transforms.Transform | None:
    """The transform of a name and its numbers.

    Examples
    --------
    >>> transform_named("learn:0.1,0.01")
    Learn(a=0.1, b=0.01)
    >>> transform_named("hubert:1")
    Traceback (most recent call last):
        ...
    redescend.errors.ParameterError: --transform hubert:1: 'hubert' is none of identity, learn, huber, ...
    """
    return _made("--transform", TRANSFORMS, text)


def _made(option: str, known: Mapping[str, type[T]], text: str | None) -> T | None:
    if text is None:
        return None
    name, _, rest = text.partition(":")
    make = known.get(name.strip().lower().replace("-", "_"))
    if make is None:
        raise ParameterError(f"{option} {text}: '{name}' is none of {', '.join(known)}.")
    try:
        numbers: list[Any] = [float(part) for part in rest.split(",")] if rest else []
    except ValueError:
        raise ParameterError(f"{option} {text}: what follows the colon must be numbers, as in '{name}:1.0'.") from None
    try:
        return make(*numbers)
    except TypeError:
        wanted = ":" + ",".join(field.name for field in fields(make) if field.default is MISSING)
        raise ParameterError(f"{option} {text}: it is written {name}{wanted.rstrip(':')}.") from None
