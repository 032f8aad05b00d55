"""Lists of models with trees: trees neither excuse groups of errors nor take ordinary records for errors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from redescend.streaming.config import FitConfig
from redescend.streaming.fit import start_run


def list_suspects(table, linear):
    """All records, the most suspicious first, and how many of them are suspects."""
    settings = {"passes": None, "shuffle": None, "final_look": True, "top": len(table)}
    with start_run(table, FitConfig(target="y", linear=linear, **settings)) as run:
        run.run()
        return run.final.rounds.rows - 1, run.final.listed


def test_trees_do_not_excuse_a_group_of_errors():
    random = np.random.default_rng(0)
    X = random.normal(size=(1200, 3))
    y = 4.0 + X @ [2.0, 1.0, -1.0] + 0.5 * random.normal(size=1200)
    bad = random.random(1200) < 0.2
    # The same columns are swapped in all of these rows, so that trees can tell them from the others.
    first = np.where(bad, y, X[:, 0])
    table = pa.table({"a": first, "b": X[:, 1], "c": X[:, 2], "y": np.where(bad, X[:, 0], y)})
    for linear in (True, False):
        order, _ = list_suspects(table, linear)
        assert bad[order[: bad.sum()]].mean() > 0.9


def test_records_in_noisy_parts_of_a_table_are_not_suspects():
    random = np.random.default_rng(1)
    X = random.random((2000, 3))
    y = np.exp(1.0 + 4.0 * X[:, 0] * X[:, 1]) * (1.0 + 0.1 * random.normal(size=2000))
    _, listed = list_suspects(pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y}), linear=False)
    assert listed <= 20
