"""The suite of adversity: a balanced design, games as stated, ratios by hand, and a small run from end to end."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from redescend import steps
from redescend.experiments import paper, report
from redescend.experiments import suite as design
from redescend.experiments.pictures import PICTURES, canvas
from redescend.experiments.pictures import suite_ratios as ratios
from redescend.experiments.results import Options, Results, join_blocks
from redescend.experiments.suite import SuiteSetting
from redescend.learners.recipes import OGD

FACTORS = {
    "when": design.TIMES,
    "what": design.WHATS,
    "count": design.COUNTS,
    "drift": design.DRIFTS,
    "noise": design.NOISES,
    "scales": tuple(design.SCALES),
}
PLAIN = SuiteSetting("regression", "synthetic", "none", "gaussian", "1", "random", "sign flipped", "T/4", 5)


def of_task(task, settings):
    return [setting for setting in settings if setting.task == task and setting.source == design.SYNTHETIC]


def corrupted(task, settings):
    return [own for own in of_task(task, settings) if own.count != "0" and own.when != design.ADAPTIVE]


# --- the design ---


def test_a_seed_is_a_design():
    assert design.choose_settings(3) == design.choose_settings(3) != design.choose_settings(4)


@pytest.mark.parametrize("seed", [0, 1])
def test_no_setting_is_there_twice(seed):
    for quick in (False, True):
        settings = design.choose_settings(seed, quick)
        assert len({(setting.name, setting.count) for setting in settings}) == len(settings)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("task", design.TASKS)
@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(FACTORS, 2)])
def test_every_pair_of_levels_is_played(one, other, task, quick):
    played = {(getattr(own, one), getattr(own, other)) for own in corrupted(task, design.choose_settings(0, quick))}
    assert played == set(itertools.product(FACTORS[one], FACTORS[other]))


@pytest.mark.parametrize("task", design.TASKS)
def test_levels_are_balanced(task):
    settings = corrupted(task, design.choose_settings(0))
    for name in ("when", "what"):
        counts = [sum(getattr(own, name) == level for own in settings) for level in FACTORS[name]]
        # Five levels have a fifth each, but for settings that two blocks happen to share.
        assert max(counts) - min(counts) <= 3
        assert abs(sum(counts) - 25 * design.BLOCKS) <= 5
    assert {own.dim for own in settings} == set(design.DIMS)


@pytest.mark.parametrize("task", design.TASKS)
@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(("drift", "noise", "scales"), 2)])
def test_every_pair_is_played_without_outliers_too(one, other, task):
    clean = [own for own in of_task(task, design.choose_settings(0)) if own.count == "0"]
    assert {(getattr(own, one), getattr(own, other)) for own in clean} == set(
        itertools.product(FACTORS[one], FACTORS[other])
    )


def test_the_adaptive_adversary_meets_every_drift_and_real_streams_come_with_and_without_outliers():
    settings = design.choose_settings(0)
    for task in design.TASKS:
        adaptive = [own for own in of_task(task, settings) if own.when == design.ADAPTIVE]
        assert {own.drift for own in adaptive} == set(design.DRIFTS)
    sources = {own.source for own in settings} - {design.SYNTHETIC}
    assert sources == {*design.real.REGRESSION, *design.real.CLASSIFICATION}
    for source in sources:
        assert [own.count for own in settings if own.source == source] == ["0", "T/10", "T/4", "T/10"]


def test_a_setting_is_what_its_name_says():
    for setting in design.choose_settings(0):
        assert SuiteSetting.parse(setting.name, setting.count) == setting
        for word in (setting.task, setting.count):
            assert word in setting.description


# --- games ---


@pytest.mark.parametrize("when", design.TIMES)
@pytest.mark.parametrize("what", design.WHATS)
@pytest.mark.parametrize("task", design.TASKS)
def test_a_game_is_corrupted_as_it_says(task, what, when):
    setting = replace(PLAIN, task=task, what=what, when=when, count="T/10")
    game = design.make_game(setting, 200, (7, 1))
    clean = design.make_game(replace(setting, count="0"), 200, (7, 1)).stream
    bad = np.flatnonzero(~game.stream.clean)
    assert len(bad) == game.k == 20
    if when != "random":
        start = {"first": 0, "last": 180, "periodic": 5, "burst": bad[0]}[when]
        np.testing.assert_array_equal(bad, start + np.arange(20) * (10 if when == "periodic" else 1))
    X, y, before, response = game.stream.X[bad], game.stream.y[bad], clean.X[bad], clean.y[bad]
    labels = task == "classification"
    if what == "x scaled by 1000":
        np.testing.assert_array_equal(X, 1000.0 * before)
    elif what == "x and y replaced":
        assert (before != X).all()
        assert 0.5 < X.std() / clean.X.std() < 2.0
    else:
        np.testing.assert_array_equal(X, before)
    if what == "sign flipped":
        np.testing.assert_array_equal(y, -response)
    elif what == "response shifted":
        np.testing.assert_allclose(y, 1.0 if labels else response + 10.0 * clean.y.std(), rtol=1e-13)
    elif what == "x scaled by 1000":
        np.testing.assert_array_equal(y, response)
    else:
        assert np.isin(y, clean.y).all()
    np.testing.assert_array_equal(game.stream.uncorrupted().y, clean.y)


def test_a_game_is_the_same_every_time_and_another_with_another_seed():
    first, again, other = (design.make_game(PLAIN, 100, seed).stream for seed in ((0, 1), (0, 1), (0, 2)))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    np.testing.assert_array_equal(first.clean, again.clean)
    assert not np.array_equal(first.X, other.X)
    assert not np.array_equal(first.clean, other.clean)


@pytest.mark.parametrize("task", design.TASKS)
def test_an_oracle_skips_the_rounds_that_the_adaptive_adversary_takes(task):
    setting = replace(PLAIN, task=task, when=design.ADAPTIVE, what="record chosen", count="√T")
    game = design.make_game(setting, 100, (3,))
    learner = design.PEERS["LEARN"](game, steps.Constant(0.1))
    _, played = game._play_adaptive(learner)
    np.testing.assert_array_equal(played.clean, game.stream.clean)
    assert played.corrupted == game.k == 10
    # Told of those rounds, a learner's regret is that of a game in which they are whatever they are.
    oracle = design.PEERS["oracle"](game, steps.Constant(0.01))
    answered = design.PEERS["oracle"](game, steps.Constant(0.01))
    trace, stream = game._play_adaptive(answered)
    expected = design.clean_dynamic(trace, stream, game.rules.loss)[-1]
    # The update of one record and that of many are the same arithmetic.
    assert game.play(oracle) == expected


def test_divergence_is_infinite_regret():
    game = design.make_game(replace(PLAIN, scales="1000"), 400, (3,))
    assert game.play(design.PEERS["OGD"](game, steps.Constant(1.0))) == np.inf


@pytest.mark.parametrize("name", ["OGD", "normalised OGD", "oracle"])
@pytest.mark.parametrize("task", design.TASKS)
def test_the_best_step_is_that_of_the_whole_ladder(name, task):
    game = design.make_game(replace(PLAIN, task=task), 300, (1,))
    every = {}
    for power in range(-24, 9):
        alpha = design.compute_unit_step(game, name) * 2.0**power
        every[alpha] = game.play(design.PEERS[name](game, steps.Constant(alpha)))
    found = {learner: own for learner, *own in design.play_all(game)}
    regret, step = found[f"{name}, best step"]
    assert regret == min(every.values()) == every[step]


# --- ratios ---


def rows(values, task="regression"):
    """Final regrets by setting and learner; None for divergence."""
    for place, own in enumerate(values):
        setting = replace(PLAIN, task=task, dim=place + 1, count="T/4" if place % 2 else "√T")
        here = {"experiment": "suite", "problem": setting.name, "run": 0, "rounds": 100, "count": setting.count, "k": 1}
        for learner, value in own.items():
            measure = "diverged" if value is None else "final regret"
            number = np.array([1.0 if value is None else value])
            yield here | {"learner": learner, "round": 100, "measure": measure, "value": number}


BY_HAND = [
    {"OGD": 6.0, "LEARN": 2.4, "oracle": 3.0, "oracle, best step": 2.0},
    {"OGD": None, "LEARN": 10.0, "oracle": 5.0, "oracle, best step": 5.0},
    {"OGD": 1.0, "LEARN": 45.0, "oracle": 8.0, "oracle, best step": 10.0},
]


@pytest.fixture
def by_hand():
    return ratios.read_ratios(Results(join_blocks(rows(BY_HAND))))


def test_ratios_are_to_the_oracle_with_the_best_step(by_hand):
    assert by_hand.learners == ["LEARN", "OGD", "oracle", "oracle, best step"]
    np.testing.assert_allclose(by_hand.ratios_of("OGD"), [3.0, np.inf, 0.1])
    np.testing.assert_allclose(by_hand.ratios_of("LEARN"), [1.2, 2.0, 4.5])
    np.testing.assert_array_equal(by_hand.ratios_of("oracle, best step"), 1.0)


def test_a_cell_is_what_a_person_would_compute(by_hand):
    every = by_hand.summarize_group("LEARN", lambda setting: True)
    assert every == (3, pytest.approx((1.2 * 2.0 * 4.5) ** (1 / 3)), pytest.approx(1 / 3), pytest.approx(1 / 3), 4.5)
    diverged = by_hand.summarize_group("OGD", lambda setting: True)
    assert diverged == (3, pytest.approx((3.0 * 1000.0 * 0.1) ** (1 / 3)), 1 / 3, 1 / 3, math.inf)
    assert by_hand.summarize_group("OGD", lambda setting: setting.count == "T/4") == (
        1,
        pytest.approx(1000.0),
        0.0,
        0.0,
        math.inf,
    )
    assert by_hand.summarize_group("OGD", lambda setting: False) is None


def test_the_worst_settings_come_first_and_say_who_is_best_there(by_hand):
    first, second = by_hand.describe_worst_settings("OGD", number=2)
    assert first.endswith("d = 2: diverged (lowest there: LEARN, 2)")
    assert second.endswith("d = 1: 3 times the oracle (lowest there: LEARN, 1.2)")


def test_an_unfinished_setting_is_left_out():
    blocks = [
        block for block in rows(BY_HAND) if not (block["problem"].endswith("; 2") and block["learner"] == "LEARN")
    ]
    assert [setting.dim for setting in ratios.read_ratios(Results(join_blocks(blocks))).settings] == [1, 3]
    assert ratios.read_ratios(Results(join_blocks([]))).settings == []


def test_the_profile_against_counting():
    random = np.random.default_rng(0)
    values = np.append(np.exp(random.normal(size=200)), [np.inf, 1.0, 1.0])
    within = np.array([0.0, 0.3, 1.0, 1.5, 20.0])
    slow = [sum(1 for value in values if value <= bound) / len(values) for bound in within]
    np.testing.assert_array_equal(ratios.compute_profile(values, within), slow)


# --- a small run ---


@pytest.fixture(scope="module")
def small():
    """The first task, with real streams, and the last, with the adversary that sees the action."""
    tasks = list(design.SUITE.tasks(Options(rounds=100, quick=True)))
    return Results(
        join_blocks(block for task in (tasks[0], tasks[-1]) for block in design.SUITE.compute(**dict(task.settings)))
    )


def test_every_learner_has_a_result_in_every_setting(small):
    finals = small.table.filter(np.isin(small.column("measure"), ["final regret", "diverged"])).to_pylist()
    settings = {(row["problem"], row["count"]) for row in finals}
    names = {*design.UNTUNED, *design.PEERS, *(f"{name}, best step" for name in design.PEERS)}
    assert len(finals) == len(settings) * len(names)
    assert {row["learner"] for row in finals} == names
    found = ratios.read_ratios(small)
    assert len(found.settings) == len(settings)
    assert np.isfinite(found.ratios_of("oracle, best step")).all()
    assert any(setting.when == design.ADAPTIVE for setting in found.settings)
    assert any(setting.source != design.SYNTHETIC for setting in found.settings)


def test_tasks_are_all_settings_once():
    tasks = list(design.SUITE.tasks(Options(rounds=50)))
    firsts = [dict(task.settings)["first"] for task in tasks]
    assert firsts == list(range(0, len(design.choose_settings(0)), design.SETTINGS_PER_TASK))
    assert "suite" in paper.EXPERIMENTS


def test_the_report_has_the_table_the_pictures_and_where_it_loses(small, tmp_path, monkeypatch):
    monkeypatch.setattr(canvas, "PIXELS_PER_INCH", 30)
    pictures = [PICTURES[name](small, tmp_path) for name in ("suite-profile", "suite-kinds")]
    path = report.write_report(
        small, pictures, tmp_path, options={"experiment": "suite"}, command="redescend", seconds={}, notes=[]
    )
    text = re.sub(r"data:image/png;base64,[^\"]*", "", path.read_text(encoding="utf-8"))
    section = ratios.make_suite_section(small)
    assert text.count('id="suite"') == 1
    assert "picture-suite-profile" in text
    assert "picture-suite-kinds" in text
    assert f"Where {section['subject']} loses" in text
    share = np.mean(ratios.read_ratios(small).ratios_of(section["subject"]) <= 1.5)
    assert f"{section['subject']} is within 1.5 times the regret of an oracle with the best step in {share:.0%}" in text
    for mean, below in section["cells"].values():
        assert f"{mean}<br>" in text
        assert below in text
    assert len(section["losses"]) == len(ratios.read_ratios(small).settings[:10])
    assert "This report is not complete" not in text
    found = ratios.read_ratios(small)
    share = np.mean(found.ratios_of(found.main_learner()) <= 1.5)
    profile, kinds = (picture.caption for picture in pictures)
    assert f"{found.main_learner()} {share:.0%}" in profile
    assert "loses most with: " in kinds


def test_the_star_is_at_the_lowest_without_an_oracle(small):
    found, section = ratios.read_ratios(small), ratios.make_suite_section(small)
    for learner, group in section["best"]:
        cells = {
            name: found.summarize_group(name, ratios.GROUPS[group]).mean
            for name in found.learners
            if not name.startswith("oracle")
        }
        assert cells[learner] == min(cells.values())
    assert {group for _, group in section["best"]} == set(section["columns"])


def test_one_line_adds_a_learner_without_a_step(monkeypatch, tmp_path):
    name = "mine"
    monkeypatch.setitem(
        design.UNTUNED, name, lambda game: OGD(game.stream.dim, loss=game.rules.loss, step=steps.AdaptiveNorm())
    )
    monkeypatch.setattr(design, "SETTINGS_PER_TASK", 1)
    settings = {"first": len(design.choose_settings(0, quick=True)) // 2, "quick": 1, "rounds": 100, "seed": 0}
    results = Results(join_blocks(design.SUITE.compute(**settings)))
    assert name in ratios.read_ratios(results).learners
    section = ratios.make_suite_section(results)
    assert section["kinds"]["no step"] == list(design.UNTUNED)
    assert section["subject"] == next(iter(design.UNTUNED))
    assert not results.select(learner=name, measure="step")
    monkeypatch.setattr(canvas, "_save_figure", lambda *arguments: None)
    drawn = PICTURES["suite-kinds"](results, tmp_path)
    assert drawn.caption.split(" loses most")[0].endswith(section["subject"])
