"""`FitConfig`: the settings of a run, made by the command and by `fit_stream`, and stored in its checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redescend.belief.suspects import SHARE
from redescend.engines.config import ModelConfig, ModelParameters
from redescend.errors import OnBad, ParameterError
from redescend.parameters import AT_LEAST_ONE, COUNT, bad_parameter, check, check_bool, check_choice
from redescend.streaming.encoding.features import MAX_LAG
from redescend.streaming.encoding.schema import Schema

NUMBERS = {"fdr": SHARE, "every": AT_LEAST_ONE, "top": COUNT, "passes": AT_LEAST_ONE, "jobs": AT_LEAST_ONE}


@dataclass(frozen=True)
class Outputs:
    """Output files of a run, written at its end; None is not written."""

    model: Path | None = None
    rounds: Path | None = None
    report: Path | None = None
    quarantine: Path | None = None
    suspects: Path | None = None
    keep_empty_quarantine: bool = True  # whether the quarantine is written even if no record was rejected

    def by_content(self) -> dict[str, Path]:
        """The files by content."""
        names = ("model", "report", "rounds", "suspects", "quarantine")
        return {name: path for name in names if (path := getattr(self, name)) is not None}


@dataclass(frozen=True, kw_only=True)
class FitConfig(ModelParameters):
    """The settings of a run, with the parameters of its model; `redescend.fit_stream` documents them."""

    target: str
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    task: str = "auto"
    labels: Sequence[Any] | None = None
    linear: bool | None = None
    on_bad: str = OnBad.QUARANTINE.value
    format: str | None = None
    header: bool = True
    decimal: str | None = None
    encoding: str | None = None
    kinds: Sequence[tuple[str, str]] = ()
    by: str | None = None
    lags: Sequence[int] = ()
    lag_columns: Sequence[str] = ()
    passes: int | None = 1
    shuffle: bool | None = False
    final_look: bool = False
    fdr: float = 0.1
    top: int = 10
    id: Sequence[str] = ()
    outputs: Outputs = Outputs()
    checkpoint: Path | None = None
    every: int = 1_000_000
    resume: bool = False
    jobs: int | None = None
    cluster: str | None = None

    def __post_init__(self) -> None:
        check_choice("fit_stream", "on_bad", self.on_bad, OnBad)
        if self.outputs.quarantine is not None and self.on_bad != OnBad.QUARANTINE:
            raise ParameterError(f"on_bad='{self.on_bad}' does not quarantine records; leave 'quarantine' out.")
        if self.resume and self.checkpoint is None:
            raise ParameterError("To resume a run, name the folder of its checkpoint.")
        if self.by is None and (self.jobs, self.cluster) != (None, None):
            raise ParameterError("'jobs' and 'cluster' train one model per key; name the column of keys with 'by'.")
        if self.outputs.suspects is not None and self.transform is not None:
            raise ParameterError(
                "A list of all suspects needs a model without a fixed transform; leave one of the two out."
            )
        self._check_lags()
        if self.linear is not None:
            object.__setattr__(self, "linear", check_bool("fit_stream", "linear", self.linear))
        for name, rule in NUMBERS.items():
            if (value := getattr(self, name)) is not None or name not in ("passes", "jobs"):
                object.__setattr__(self, name, check("fit_stream", name, value, rule))

    def _check_lags(self) -> None:
        lags: Any = self.lags
        if isinstance(lags, str) or not all(type(lag) is int and 1 <= lag <= MAX_LAG for lag in lags):
            raise bad_parameter("fit_stream", "lags", f"a list of whole numbers from 1 to {MAX_LAG:,}", lags)
        if isinstance(self.lag_columns, str):
            raise bad_parameter("fit_stream", "lag_columns", "a list of columns", self.lag_columns)
        if self.lag_columns and not lags:
            raise ParameterError("'lag_columns' needs 'lags': the numbers of records to look back.")
        if lags and self.shuffle:
            raise ParameterError("Lags need the order of the stream; leave 'shuffle' out.")

    def model_settings(self, schema: Schema) -> dict[str, Any]:
        """The parameters of `StreamModel` and `ModelStore`; with trees by default, if possible."""
        parameters, linear = self.model_parameters(), self.linear
        if linear is None:
            config = ModelConfig.from_parameters("fit_stream", schema.task, **parameters)
            linear = schema.by is not None or config.find_obstacle(schema.dim) is not None
        return parameters | {"features": "linear" if linear else "auto"}

    def select(self, *names: str) -> dict[str, Any]:
        """Select settings by name."""
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine the results, as plain values: a run can only be resumed with the same.

        Paths, checkpoints, threads and clusters do not change the results.
        """
        free = {"outputs", "checkpoint", "every", "resume", "jobs", "cluster"}
        plain = {name: value for name, value in vars(self).items() if name not in free}
        plain |= {
            name: None if plain[name] is None else list(plain[name])
            for name in ("features", "ignore", "labels", "id", "lags", "lag_columns")
        }
        plain["kinds"] = [list(pair) for pair in self.kinds]
        files = {"rounds": self.outputs.rounds, "quarantine": self.outputs.quarantine}
        return plain | {name: None if path is None else "a file" for name, path in files.items()}

    def check_resumable(self, stored: dict[str, Any]) -> None:
        """Raise an error if the run in the checkpoint had other settings."""
        # Checkpoints of older versions lack newer settings.
        stored = FitConfig(target=self.target).to_dict() | stored
        for name, now in self.to_dict().items():
            if stored.get(name) != now and not (name == "linear" and now is None):  # as the stored model is
                raise ParameterError(
                    f"The run in '{self.checkpoint}' was started with {name} = {stored.get(name)!r} and cannot be "
                    f"resumed with {name} = {now!r}; use the same settings, or name an empty folder."
                )
