"""The settings of a served model, as clients send them, and the limits of a server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redescend.engines.config import ModelConfig
from redescend.errors import DataError, ParameterError, quote, suggest
from redescend.parameters import check_choice
from redescend.registry import LOSSES, TRANSFORMS
from redescend.sources import SAMPLE
from redescend.streaming.config import FitConfig
from redescend.streaming.encoding.schema import Schema

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

FIRST = 100  # records that a schema is inferred from, unless told otherwise

TYPES: dict[str, tuple[type, ...]] = {
    "target": (str,),
    "by": (str,),
    "task": (str,),
    "loss": (str,),
    "transform": (str,),
    "features": (list,),
    "ignore": (list,),
    "labels": (list,),
    "lags": (list,),
    "lag_columns": (list,),
    "order": (int, str),
    "linear": (bool,),
    "first": (int,),
    "schema": (dict,),
}
"""What each setting may be, besides null."""

COLUMNS = ("features", "ignore", "lag_columns")  # settings that are lists of columns


@dataclass(frozen=True)
class Limits:
    """What a server refuses, so that no client takes it from the others."""

    body: int = 16 << 20  # bytes of a body
    records: int = 100_000  # records of a request
    queued: int = 200_000  # records of a model that wait to be learned from
    models: int = 10_000
    requests: int = 1_000  # open requests
    seconds: float = 30.0  # for the head of a request, and for its body
    labels: int = 100_000  # records of a model that wait for their label
    label_seconds: float = 86_400.0  # for how long they do
    keys: int = 10_000  # idempotency keys of a model that are remembered
    group: int = 10_000  # records of a commit


def check_name(name: str) -> str:
    """A name that can be one of a folder on any system."""
    if not NAME.fullmatch(name):
        raise DataError(
            f"{quote(name)} cannot be the name of a model: use up to 64 letters, digits, dots, hyphens and "
            "underscores, and begin with a letter or a digit."
        )
    return name


@dataclass(frozen=True)
class ModelSettings:
    """What a model learns, and how: settings of `redescend.fit_stream` by their names.

    `first` is the number of records that the schema is inferred from; `schema` is one that is given instead, as
    ``…/schema`` returns it.
    """

    config: FitConfig
    first: int = FIRST
    schema: Schema | None = None

    @staticmethod
    def parse(content: Any) -> ModelSettings:
        """The settings in a JSON object; anything else is refused in one sentence."""
        if not isinstance(content, Mapping):
            raise DataError("The settings of a model are a JSON object.")
        settings: dict[str, Any] = dict(content)
        for name, value in settings.items():
            if name not in TYPES:
                raise DataError(f"There is no setting {quote(name)}; {suggest(list(TYPES), name)}")
            kinds, flag = TYPES[name], isinstance(value, bool)
            if value is not None and (not isinstance(value, kinds) or flag != (kinds == (bool,))):
                nouns = {list: "a list", dict: "an object", int: "an integer", bool: "true or false"}
                wanted = nouns.get(kinds[0], "a text")
                raise DataError(f"The setting {quote(name)} must be {wanted}. Got {quote(value)}.")
            if name in COLUMNS and not all(isinstance(each, str) for each in settings[name] or []):
                raise DataError(f"The setting {quote(name)} must be a list of names of columns.")
        given = {name: value for name, value in settings.items() if value is not None}
        first, plain = given.pop("first", FIRST), given.pop("schema", None)
        if not 1 <= first <= SAMPLE:
            raise DataError(f"The setting 'first' must be between 1 and {SAMPLE:,}. Got {first}.")
        schema = None if plain is None else Schema.from_dict(plain)
        if schema is not None:
            given = {"target": schema.target, "by": schema.by} | given
        if "target" not in given:
            raise DataError("The setting 'target' is missing: it names the column to predict.")
        if schema is not None and (schema.target, schema.by) != (given["target"], given["by"]):
            raise DataError("The settings 'target' and 'by' are not those of the schema; leave them out.")
        try:
            if "loss" in given:
                given["loss"] = LOSSES.parse(given["loss"])
            if "transform" in given:
                given["transform"] = TRANSFORMS.parse(given["transform"])
            config = FitConfig(**{"linear": True} | given)  # learning row by row
            check_choice("the model", "task", config.task, ("auto", "regression", "classification"))
            unknown = "regression" if config.loss is None else None
            task: Any = unknown if config.task == "auto" else config.task
            ModelConfig.from_parameters("the model", task, **config.model_parameters())
            return ModelSettings(config, first, schema)
        except ParameterError as error:
            raise DataError(str(error)) from None
