"""The experts experiment: what is stored, what the report says, and that the split adds up."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import redescend as rd
from redescend.experiments import paper
from redescend.experiments.pictures import PICTURES, canvas
from redescend.experiments.results import Options, Results, Task, format_number

SETTINGS = {"name": "svm", "place": paper.EVERY, "rounds": 100, "run": 0, "seed": 3, "unit": 1.0}


@functools.cache
def results(**changed: object) -> Results:
    return Results(paper.compute(Task("experts", tuple({**SETTINGS, **changed}.items()))))


def value(rows: Results, learner: str, count: str) -> float:
    (found,) = rows.select(learner=learner, count=count, measure="final regret").column("value")
    return float(found)


def test_what_is_stored_is_what_a_person_would_compute():
    problem = paper.PROBLEMS["svm"](100)
    stream = problem.streams(3)["T/4"]
    common = {"loss": problem.loss, "a": problem.a, "b": problem.b}
    learner = rd.LearnWithExperts(2, rounds=100, **common)
    trace = rd.play(learner, stream)
    regret = rd.regret.clean_dynamic(trace, stream, problem.loss)[-1]
    np.testing.assert_allclose(value(results(), paper.PRINTED, "T/4"), regret)
    alone = [rd.play(learner.alone(expert), stream) for expert in learner.experts]
    finals = [rd.regret.clean_dynamic(each, stream, problem.loss)[-1] for each in alone]
    np.testing.assert_allclose(value(results(), paper.BEST, "T/4"), min(finals))
    parts = results().select(count="T/4", learner=paper.PRINTED)
    np.testing.assert_allclose(parts.select(measure="meta regret").column("value"), finals)
    split = [rd.regret.split(trace, each, stream, problem.loss).expert[-1] for each in alone]
    np.testing.assert_allclose(parts.select(measure="expert regret").column("value"), split, atol=1e-9)


def test_weights_sum_to_one_whenever_they_are_looked_at():
    rows = results().select(measure="weight")
    sums: dict[tuple[object, ...], float] = {}
    for row in rows.table.to_pylist():
        key = row["learner"], row["count"], row["round"]
        sums[key] = sums.get(key, 0.0) + row["value"]
    np.testing.assert_allclose(list(sums.values()), 1.0)
    assert {learner for learner, *_ in sums} == {paper.PRINTED, paper.ROBUST}


@pytest.mark.parametrize("unit", paper.UNITS)
def test_another_unit_is_the_same_game(unit):
    """Ridge with targets and a in other units: the ratio to the best expert in hindsight is the same."""
    settings = {"name": "ridge", "rounds": 300, "place": 3}
    plain, other = (results(**settings, unit=each) for each in (1.0, unit))
    ratios = [value(rows, paper.ROBUST, "T/4") / value(rows, "LEARN", "T/4") for rows in (plain, other)]
    np.testing.assert_allclose(ratios[1], ratios[0], rtol=1e-6)


def test_the_report_s_ratio_is_to_the_best_expert_of_the_same_run():
    (table,) = paper.make_tables(results())
    assert table["learners"] == list(paper.LEARNERS)
    for count in table["counts"]:
        ratio = value(results(), paper.ROBUST, count) / value(results(), paper.BEST, count)
        assert table["cells"][paper.ROBUST, count][1] == f"{format_number(ratio)} × best"
        assert table["cells"][paper.BEST, count][1] == "1 × best"


def test_nothing_is_said_without_results():
    empty = results().select(experiment="none")
    assert paper.make_tables(empty) == []
    assert all(PICTURES[name](empty, None) is None for name in PICTURES if name.startswith("experts"))


def test_the_pictures_have_captions_with_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(canvas, "_save_figure", lambda *arguments: None)
    for name in ("experts-svm-alone", "experts-svm-weights", "experts-distinct"):
        picture = PICTURES[name](results(), tmp_path)
        assert "nan" not in picture.caption


def test_a_run_of_every_count_and_unit_is_a_task():
    tasks = list(paper.EXPERTS.tasks(Options(runs=2)))
    assert len(set(tasks)) == len(tasks) == 2 * (2 * 4 + len(paper.UNITS))
    assert len(list(paper.EXPERTS.tasks(Options(runs=30)))) == 4 * (3 + 10) + 2 * len(paper.UNITS)
