"""Errors found with lags in time series, and whether an error misleads the records after it.

``python -m benchmarks.table_lags`` takes a minute. One record in fifty of a real series gets an error of eight times
the spread of its changes. Lists of k records, the number of errors, are made without lags, with lagged values as
they are, and with corrected ones, the default. Then the series is shifted from its middle on, without errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.belief_tables import Table
from benchmarks.table_errors import load
from redescend.numeric import Array
from redescend.streaming import lags
from redescend.streaming.config import FitConfig
from redescend.streaming.fit import start_run

SERIES = (
    (Table("nycflights13", "weather", "temp", ignored=("dewp", "humid")), [1, 24]),
    (Table("robustbase", "NOxEmissions", "LNOx", ignored=("julday",)), [1, 24]),
    (Table("modeldata", "Chicago", "ridership"), [1, 7]),
)
SHARE, SIZE, ROWS = 0.02, 8.0, 3000


def rank(frame: Any, target: str, **settings: Any) -> tuple[Array, int]:
    """The rows of a table, the most suspicious first, and how many are listed."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    config = FitConfig(
        target=target, linear=True, passes=None, shuffle=None, final_look=True, top=len(frame), **settings
    )
    with start_run(table, config) as run:
        run.run()
        assert run.final is not None
        return run.final.rounds.rows - 1, run.final.listed


def main() -> None:
    random, patience = np.random.default_rng(0), lags.PATIENCE
    print("| series | errors | list | found | behind an error | listed after a move |\n|---|---|---|---|---|---|")
    for table, back in SERIES:
        frame = load(table, None).iloc[:ROWS].reset_index(drop=True)
        y = frame[table.target].to_numpy(np.float64)
        spread = float(np.median(np.abs(np.diff(y)))) / 0.6745
        bad = np.sort(random.choice(np.arange(200, len(y) - 1), round(SHARE * len(y)), replace=False))
        wrong = y.copy()
        wrong[bad] += SIZE * spread * random.choice([-1.0, 1.0], len(bad))
        moved = y + np.where(np.arange(len(y)) >= len(y) // 2, SIZE * spread, 0.0)
        behind = np.setdiff1d(np.unique(np.concatenate([bad + lag for lag in back])), bad)
        for name, settings, used in (
            ("without lags", {}, patience),
            ("values as they are", {"lags": back}, 0),
            ("with lags", {"lags": back}, patience),
        ):
            lags.PATIENCE = used
            order, _ = rank(frame.assign(**{table.target: wrong}), table.target, **settings)
            _, listed = rank(frame.assign(**{table.target: moved}), table.target, **settings)
            first = order[: len(bad)]
            found, misled = int(np.isin(first, bad).sum()), int(np.isin(first, behind).sum())
            print(f"| {table.name} | {len(bad)} | {name} | {found} | {misled} | {listed} |", flush=True)
        lags.PATIENCE = patience


if __name__ == "__main__":
    main()
