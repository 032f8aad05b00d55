"""Records that are odd but ordinary are not called wrong, and extremes leave beliefs finite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from redescend.belief import ResidualBelief
from redescend.kernels.belief import layout
from tests import reference_belief
from tests.belief_games import stream


@pytest.mark.parametrize("count", [1, 3])
def test_targets_that_are_cut_off_are_those_of_the_slow_reference(count: int) -> None:
    X, predictions, targets, _ = stream(900, seed=1)
    targets = np.maximum(targets, -1.0)
    keys = np.random.default_rng(6).integers(0, count, 900)
    belief = ResidualBelief(2)
    judgements = belief.update(predictions, targets, X, keys)
    expected, (final, _) = reference_belief.judge_residuals(X, predictions, targets, keys)
    np.testing.assert_allclose(judgements.clean_log_odds, expected[0], rtol=1e-9, atol=1e-9)
    verdict = belief.judge_log(predictions, targets, judgements, keys)
    np.testing.assert_allclose(verdict.clean_log_odds, final, rtol=1e-9, atol=1e-9)


def test_many_equal_targets_are_natural_where_predictions_are_near_or_beyond_them() -> None:
    """A fifth of the targets is 0: because targets are not below 0, or because 0 is written where none was measured."""
    random = np.random.default_rng(2)
    predictions = 3.0 + 4.0 * random.normal(size=3000)
    exact = predictions + 0.2 * random.normal(size=3000)
    missing = random.random(3000) < 0.2
    for targets, wrong in ((np.maximum(exact, 0.0), 0.0), (np.where(missing, -9.0, exact), 1.0)):
        shares = []
        for learn in ("update", "learn_table"):
            belief = ResidualBelief()
            judgements = getattr(belief, learn)(predictions, targets)
            verdict = belief.judge_log(predictions, targets, judgements)
            suspect = np.isin(np.arange(3000), verdict.suspects(0.1))
            shares.append(suspect[(targets == 0.0) | (targets == -9.0)].mean())
        np.testing.assert_allclose(shares, wrong, atol=0.03)
    assert belief.judge([-100.0, 3.0], [0.0, 0.0])[0] < 0.0


@pytest.mark.parametrize("place", [0, 1, 2, 10])
@pytest.mark.parametrize("wild", [1e9, 1e12])
def test_a_wild_target_at_the_start_blinds_nothing(place: int, wild: float) -> None:
    random = np.random.default_rng(4)
    predictions = 3.0 * random.normal(size=1000)
    targets = predictions + 0.1 * random.normal(size=1000)
    wrong = np.arange(100, 1000, 35)
    targets[wrong] += 20.0
    targets[place] = wild
    belief = ResidualBelief()
    verdict = belief.judge_log(predictions, targets, belief.update(predictions, targets))
    assert np.isin(wrong, verdict.suspects(0.1)).mean() > 0.9


def test_a_quarter_of_errors_is_listed_and_a_third_is_another_population() -> None:
    random = np.random.default_rng(5)
    for share, listed in ((0.25, True), (0.33, False)):
        predictions, bad = random.normal(size=3000), random.random(3000) < share
        targets = predictions + 0.1 * random.normal(size=3000) + 50.0 * bad
        belief = ResidualBelief()
        verdict = belief.judge_log(predictions, targets, belief.update(predictions, targets))
        assert (len(verdict.suspects(0.1)) > 0.9 * bad.sum()) == listed


@pytest.mark.parametrize("sizes", ["power law", "log-normal"])
@pytest.mark.parametrize("learn", ["update", "learn_table"])
def test_a_heavy_tail_is_natural_but_a_second_group_beyond_it_is_not(sizes: str, learn: str) -> None:
    random = np.random.default_rng(7)
    drawn = random.pareto(0.8, 2000) if sizes == "power law" else np.exp(2.0 * random.normal(size=2000))
    predictions, noise = random.normal(size=2000), random.choice([-1.0, 1.0], 2000) * drawn
    wrong = np.arange(100, 2000, 40)
    for listed in (0.0, 1.0):
        targets = predictions + noise
        if listed:
            targets[wrong] = predictions[wrong] + 1e8
        belief = ResidualBelief()
        verdict = belief.judge_log(predictions, targets, getattr(belief, learn)(predictions, targets))
        suspects = verdict.suspects(0.1)
        assert np.isin(wrong, suspects).mean() == pytest.approx(listed, abs=0.05)
        # Between the tail and the second group, it is not clear where records belong.
        assert np.count_nonzero(~np.isin(suspects, wrong)) <= (0.025 if listed else 0.005) * len(targets)


@pytest.mark.parametrize("jump", [1e9, 1e12, 1e200])
@pytest.mark.parametrize("first", [2, 16])
def test_beliefs_stay_finite_after_a_jump_beyond_all_others(jump: float, first: int) -> None:
    random = np.random.default_rng(6)
    targets = random.normal(size=1500) + jump * (np.arange(1500) >= first)
    belief = ResidualBelief()
    judgements = belief.update(np.zeros(1500), targets)
    assert np.isfinite(judgements.clean_log_odds).all()
    ResidualBelief().restore(belief.state())


def test_predictions_and_residuals_of_any_size_leave_a_state_that_is_restored() -> None:
    for predictions, targets in (
        (np.tile([1.7e308, -1.7e308], 200), np.tile([0.0, 1.0, 0.0], 134)[:400]),
        ([-1e308, 0.0], [1e308, 0.0]),
        ([], []),
    ):
        belief = ResidualBelief()
        judgements = belief.update(predictions, targets)
        belief.judge_log(predictions, targets, judgements)
        assert np.isfinite(judgements.clean_log_odds).all()
        ResidualBelief().restore(belief.state())


@pytest.mark.parametrize(
    ("value", "rows", "signs", "stuck"),
    [(0.0, 400, 0, False), (0.0, 400, 30, False), (3.0, 400, 0, True), (3.0, 600, 0, False)],
)
def test_a_sorted_table_with_its_zeros_in_a_row_has_no_stuck_sensor(
    value: float, rows: int, signs: int, stuck: bool
) -> None:
    """Also if some of its other targets have a wrong sign."""
    random = np.random.default_rng(3)
    predictions = random.uniform(1.0, 6.0, 1000)
    targets = predictions + 0.3 * random.normal(size=1000)
    targets[-rows:] = value
    targets, X = np.maximum(targets, 0.0), predictions[:, None].copy()
    targets[20 : 20 + signs] *= -1.0
    belief = ResidualBelief(1)
    verdict = belief.judge_log(predictions, targets, belief.update(predictions, targets, X))
    assert (verdict.stuck[610:] > 0.99).all() == (verdict.stuck[610:] > 0.0).any() == stuck
    _, (final, _) = reference_belief.judge_residuals(X, predictions, targets)
    np.testing.assert_allclose(verdict.clean_log_odds, final, rtol=1e-9, atol=1e-9)


def mostly_sorted(random: np.random.Generator) -> np.ndarray:
    """Counts of which some parts are sorted, so that half of the zeros are in three long runs."""
    counts = random.poisson(1.7, size=1200).astype(float)
    counts[300:350], counts[500:590], counts[800:860] = 0.0, 0.0, 0.0
    return counts


def grouped(random: np.random.Generator) -> np.ndarray:
    """A number of each group: groups of one or two first, then larger ones."""
    sizes = np.concatenate([random.integers(1, 3, 300), random.integers(20, 40, 30)])
    return np.repeat(random.normal(size=330), sizes)


@pytest.mark.parametrize(("make", "end"), [(mostly_sorted, 1000), (grouped, 1100)])
def test_runs_like_others_are_ordinary_and_one_of_another_value_is_stuck(
    make: Callable[[np.random.Generator], np.ndarray], end: int
) -> None:
    random = np.random.default_rng(4)
    targets = make(random)
    X = random.normal(size=(len(targets), 1))
    predictions = np.mean(targets) + 0.5 * X[:, 0]
    for stuck in (False, True):
        if stuck:
            targets[900:end] = 3.125
        belief = ResidualBelief(1)
        said = belief.update(predictions, targets, X)
        assert (said.stuck > 0.5).any()
        verdict = belief.judge_log(predictions, targets, said)
        np.testing.assert_array_equal(np.flatnonzero(verdict.stuck > 0.5), np.arange(901, end) if stuck else [])
        _, (final, held) = reference_belief.judge_residuals(X, predictions, targets)
        np.testing.assert_allclose(verdict.clean_log_odds, final, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(verdict.stuck, held, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_sensor_that_sticks_often_is_found_if_the_other_targets_of_all_keys_change(grouped: bool) -> None:
    random = np.random.default_rng(6)
    keys = np.tile(np.arange(5), 200)
    X, targets = random.normal(size=(1000, 1)), random.normal(size=1000)
    for key in range(5):
        rows = np.flatnonzero(keys == key)
        targets[rows[150:180]] = 6.0 + key
        if grouped:
            targets[rows[60:150]], targets[rows[180:]] = np.repeat(targets[rows[60:63]], 30), -6.0 - key
    predictions, belief = 0.5 * X[:, 0], ResidualBelief(1)
    judgements = belief.update(predictions, targets, X, keys)
    verdict = belief.judge_log(predictions, targets, judgements, keys)
    assert np.count_nonzero(judgements.stuck > 0.5) > 50
    assert np.count_nonzero(verdict.stuck > 0.5) == (0 if grouped else 145)
    _, (final, _) = reference_belief.judge_residuals(X, predictions, targets, keys)
    np.testing.assert_allclose(verdict.clean_log_odds, final, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "targets", [[-1.0, 0.0, -1e-310], [1e16, -1e-310, 1e-310, -1e300], [1e-5, 1.7e308, 2.0, -1e-310, 0.0]]
)
def test_targets_of_very_different_sizes_have_no_resolution(targets: list[float]) -> None:
    """A difference that is nothing beside the resolution so far ended it as infinity."""
    belief = ResidualBelief()
    belief.update(np.zeros(len(targets)), targets)
    ResidualBelief().restore(belief.state())
    assert belief.state()["numbers"][0, layout.GRID] == -1.0


@pytest.mark.parametrize(("share", "listed"), [(0.25, True), (0.3, True), (0.4, False)])
@pytest.mark.parametrize("sizes", [(300.0, 300.0), (40.0, -2000.0)])
def test_only_a_group_of_more_than_a_third_is_another_population(
    share: float, listed: bool, sizes: tuple[float, float]
) -> None:
    """The tail of the noise does not count: with a quarter wrong targets, almost a third of all are far off."""
    random = np.random.default_rng(0)
    predictions = random.normal(size=5000)
    targets = predictions + random.standard_t(1.5, size=5000)
    wrong = random.random(5000) < share
    targets[wrong] += random.choice(sizes, size=wrong.sum())
    belief = ResidualBelief()
    verdict = belief.judge_log(predictions, targets, belief.update(predictions, targets))
    suspects = verdict.suspects(fdr=0.1)
    assert belief.outlier_share > share
    assert np.count_nonzero(wrong[suspects]) > 0.9 * np.count_nonzero(wrong) if listed else not len(suspects)
    assert np.count_nonzero(~wrong[suspects]) <= 0.05 * len(suspects)


def test_intervals_recover_soon_after_predictions_that_were_exact() -> None:
    random = np.random.default_rng(10)
    predictions, noise = random.normal(size=9000), 0.1 * random.normal(size=9000)
    targets = predictions + np.where(np.arange(9000) < 8000, 0.0, noise)
    judged = ResidualBelief().update(predictions, targets)
    inside = (judged.low <= targets) & (targets <= judged.high)
    assert inside[8300:].mean() > 0.85
