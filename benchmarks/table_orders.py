"""How much the suspects of a table depend on the order of its rows: ``python -m benchmarks.table_orders``."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.table_errors import TABLES, load, spoil
from redescend.numeric import Array
from redescend.streaming.config import FitConfig
from redescend.streaming.fit import start_run

SHARE, TABLES_USED = 0.02, 4


def list_rows(frame: Any, target: str, order: Array) -> set[int]:
    """The rows of the final list, with the settings of the command, of a table in this order."""
    table = pa.Table.from_pandas(frame.iloc[order].reset_index(drop=True), preserve_index=False)
    config = FitConfig(target=target, passes=None, shuffle=None, final_look=True, top=0)
    with start_run(table, config) as run:
        run.run()
        assert run.final is not None
        return set(order[run.final.rounds.rows[: run.final.listed] - 1].tolist())


def main() -> None:
    for place, table in enumerate(TABLES["tune"][:TABLES_USED]):
        for kind in ("decimal", "+8 sigma"):
            frame = spoil(table, load(table), kind, SHARE, np.random.default_rng(place)).frame
            orders = {
                "own": np.arange(len(frame)),
                "shuffled": np.random.default_rng(0).permutation(len(frame)),
                "sorted": np.argsort(frame[table.target].to_numpy(np.float64), kind="stable"),
            }
            lists = {name: list_rows(frame, table.target, order) for name, order in orders.items()}
            told = [f"{name} {len(rows)}" for name, rows in lists.items()]
            for one, two in combinations(lists, 2):
                common = 2 * len(lists[one] & lists[two]) / max(1, len(lists[one]) + len(lists[two]))
                told.append(f"{one} and {two} {common:.2f}")
            print(f"{table.name:28s} {kind:9s}", ", ".join(told), flush=True)


if __name__ == "__main__":
    main()
