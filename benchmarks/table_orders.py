"""How much the suspects of a table depend on the order of its rows: ``python -m benchmarks.table_orders``.

With ``--draw N``, tables and targets are drawn at random instead, as in `benchmarks.clean_tables`.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.belief_tables import Table
from benchmarks.clean_tables import draw_tables
from benchmarks.table_errors import TABLES, load, spoil
from redescend.errors import RedescendError
from redescend.numeric import Array
from redescend.streaming.config import FitConfig
from redescend.streaming.fit import start_run

SHARE, TABLES_USED, ENOUGH = 0.02, 4, 0.9
KINDS = ("decimal", "+8 sigma")


def list_rows(frame: Any, target: str, order: Array) -> tuple[set[int], bool]:
    """The rows of the final list, with the settings of the command, of a table in this order, and whether the model
    follows the order.
    """
    table = pa.Table.from_pandas(frame.iloc[order].reset_index(drop=True), preserve_index=False)
    config = FitConfig(target=target, task="regression", passes=None, shuffle=None, final_look=True, top=0)
    with start_run(table, config) as run:
        run.run()
        assert run.final is not None
        return set(order[run.final.rounds.rows[: run.final.listed] - 1].tolist()), bool(run.follows)


def make_orders(frame: Any, target: str) -> dict[str, Array]:
    """The table's own order, a random one, and sorted by the target and by another column."""
    others = [name for name in frame if name != target and frame[name].nunique() > 1]
    keys = frame[others[len(frame) % len(others)]].astype(
        str if frame[others[len(frame) % len(others)]].dtype == object else None
    )
    return {
        "own": np.arange(len(frame)),
        "shuffled": np.random.default_rng(0).permutation(len(frame)),
        "sorted": np.argsort(frame[target].to_numpy(np.float64), kind="stable"),
        "by a feature": keys.argsort(kind="stable").to_numpy(),
    }


def measure_overlap(one: set[int], two: set[int]) -> float:
    """The records in both lists, relative to the mean length of the lists; 1 if both are empty."""
    return 2 * len(one & two) / (len(one) + len(two)) if one or two else 1.0


def choose_cases(draw: int, seed: int) -> Iterator[tuple[str, str, Any, str, Array]]:
    """Names of tables, kinds of errors, frames with errors, targets, and the rows with errors."""
    if not draw:
        for place, table in enumerate(TABLES["tune"][:TABLES_USED]):
            for kind in KINDS:
                case = spoil(table, load(table), kind, SHARE, np.random.default_rng(place))
                yield table.name, kind, case.frame, table.target, case.bad
        return
    drawn, known = 0, {(table.package, table.item) for split in TABLES.values() for table in split}
    for name, frame, target in draw_tables(seed):
        package, item = name.split("/")
        if (package, item) in known:
            continue
        table = Table(package, item, target)
        for kind in KINDS:
            case = spoil(table, frame.reset_index(drop=True), kind, SHARE, np.random.default_rng(drawn))
            yield name, kind, case.frame, target, case.bad
        drawn += 1
        if drawn == draw:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--draw", type=int, default=0, help="how many tables to draw at random")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    chosen = parser.parse_args()
    overlaps: dict[str, list[float]] = defaultdict(list)
    found, listed, errors = 0, 0, 0
    for name, kind, frame, target, bad in choose_cases(chosen.draw, chosen.seed):
        try:
            lists = {order: list_rows(frame, target, rows) for order, rows in make_orders(frame, target).items()}
        except RedescendError as error:
            print(f"{name}: {error}")
            continue
        wrong = set(np.flatnonzero(bad).tolist())
        told = []
        for order, (rows, followed) in lists.items():
            found, listed, errors = found + len(rows & wrong), listed + len(rows), errors + len(wrong)
            told.append(f"{order} {len(rows & wrong)}+{len(rows - wrong)}{' followed' if followed else ''}")
        for one, two in combinations(lists, 2):
            overlaps[f"{one} and {two}"].append(measure_overlap(lists[one][0], lists[two][0]))
        least = min(values[-1] for values in overlaps.values())
        print(f"{least:.2f} {name} {target} {kind}, {len(wrong)} errors:", ", ".join(told), flush=True)
    for pair, values in overlaps.items():
        print(
            f"{pair}: mean {np.mean(values):.3f}, {np.count_nonzero(np.array(values) < 0.9)} of {len(values)} below 0.9"
        )
    print(f"{errors} errors, {found} found, {listed - found} false alarms")


if __name__ == "__main__":
    main()
