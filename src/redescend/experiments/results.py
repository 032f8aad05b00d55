"""What came out, as a person asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from redescend.errors import DataError
from redescend.numeric import Array


@dataclass(frozen=True, eq=False)
class Curves:
    """A measure over the rounds: one row for each run, and their mean and standard error."""

    rounds: Array
    runs: Array

    @property
    def mean(self) -> Array:
        return self.runs.mean(axis=0)

    @property
    def error(self) -> Array:
        if len(self.runs) == 1:
            return np.zeros(len(self.rounds))
        with np.errstate(over="ignore"):
            return self.runs.std(axis=0, ddof=1) / np.sqrt(len(self.runs))

    @property
    def finals(self) -> Array:
        """The value in the last round of every run."""
        return self.runs[:, -1]

    @property
    def final(self) -> float:
        return float(self.mean[-1])

    @property
    def final_error(self) -> float:
        return float(self.error[-1])


class Results:
    """The tidy table, and questions to it."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def select(self, **where: Any) -> Results:
        """The rows in which every named column has the given value."""
        kept = self.table
        for name, value in where.items():
            kept = kept.filter(pc.equal(kept[name], value))
        return Results(kept)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> Array:
        return self.table[name].to_numpy()

    def unique(self, name: str) -> list[Any]:
        """The values of a column in the order in which they first appear."""
        values: list[Any] = pc.unique(self.table[name]).to_pylist()
        return values

    def curves(self, **where: Any) -> Curves:
        """One measure of one learner in one setting, as runs × rounds."""
        rows = self.select(**where)
        runs, rounds, values = rows.column("run"), rows.column("round"), rows.column("value")
        order = np.lexsort((rounds, runs))
        each = np.unique(rounds)
        if not len(each):
            raise DataError(
                f"The results have no rows with {', '.join(f'{name} {value}' for name, value in where.items())}."
            )
        return Curves(each, values[order].reshape(-1, len(each)))
