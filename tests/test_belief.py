"""Belief: against the slow reference, under any cut and unit, and on streams with known errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from redescend.belief import LabelBelief, ResidualBelief, Verdict, q_values, select_suspects, to_probability
from redescend.errors import DataError, ParameterError
from redescend.kernels.belief.cells import CELLS, find_quantiles
from redescend.state import CORRUPT
from tests import reference_belief
from tests.belief_games import labelled, stream


@pytest.mark.parametrize(
    ("rounds", "count", "digits", "positive"),
    [(700, 1, 99, False), (700, 4, 1, False), (160, 1, 99, False), (300, 2, 99, True)],
)
def test_every_judgement_is_that_of_the_slow_reference(rounds: int, count: int, digits: int, positive: bool) -> None:
    X, predictions, targets, _ = stream(rounds)
    targets = np.round(targets, digits)
    if positive:
        predictions, targets = np.exp(np.clip(predictions, -2, 2)), np.exp(np.clip(targets, -2, 2))
    keys = np.random.default_rng(5).integers(0, count, rounds)
    belief = ResidualBelief(2)
    judgements = belief.update(predictions, targets, X, keys)
    expected, (final, stuck) = reference_belief.judge_residuals(X, predictions, targets, keys)
    for part, values in zip(judgements, expected, strict=True):
        np.testing.assert_allclose(part, values, rtol=1e-9, atol=1e-9)
    verdict = belief.judge_log(predictions, targets, judgements, keys)
    np.testing.assert_allclose(verdict.clean_log_odds, final, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(verdict.stuck, stuck, rtol=1e-9, atol=1e-9)


def test_keys_have_scales_and_units_of_their_own_and_take_2_kilobytes() -> None:
    X, predictions, targets, _ = stream(1500)
    keys = np.arange(1500) % 3
    units = 2.0 ** np.array([0, 60, -60])[keys]
    one, other = ResidualBelief(2), ResidualBelief(2)
    expected = one.update(predictions, targets, X, keys).clean_log_odds
    np.testing.assert_array_equal(other.update(units * predictions, units * targets, X, keys).clean_log_odds, expected)
    assert one.keys == 3
    low, high = one.predict_interval(predictions, X, keys=keys)
    assert np.mean((low <= targets) & (targets <= high)) > 0.8
    many = ResidualBelief(40)
    many.update(np.zeros(100), np.ones(100), np.zeros((100, 40)), np.arange(100))
    few = sum(array.nbytes for array in ResidualBelief(40).state().values())
    assert sum(array.nbytes for array in many.state().values()) - few <= 99 * 2000
    with pytest.raises(DataError, match=r"keys must be below 3"):
        one.judge([0.0], [0.0], [[0.0, 0.0]], [3])


def test_equal_bits_wherever_a_stream_is_cut_and_saved() -> None:
    X, predictions, targets, _ = stream(1500)
    keys = np.minimum(np.arange(1500) % 7, np.arange(1500) // 300)
    whole = ResidualBelief(2)
    expected = whole.update(predictions, targets, X, keys)
    belief, parts = ResidualBelief(2), []
    for first, last in itertools.pairwise([0, 1, 2, 17, 100, 101, 900, 1500]):
        parts.append(belief.update(predictions[first:last], targets[first:last], X[first:last], keys[first:last]))
        saved, belief = belief.state(), ResidualBelief(2)
        belief.restore(saved)
    for column, values in zip(expected, zip(*parts, strict=True), strict=True):
        np.testing.assert_array_equal(column, np.concatenate(values))
    np.testing.assert_array_equal(
        whole.judge_log(predictions, targets, expected, keys).clean_log_odds,
        belief.judge_log(predictions, targets, expected, keys).clean_log_odds,
    )


def test_whatever_was_learned_can_be_restored() -> None:
    """Targets that only rise, with predictions that lag behind: hardly a residual is negative."""
    targets = np.arange(3000.0)
    belief = ResidualBelief(1)
    for first in range(0, 3000, 40):
        part = slice(first, first + 40)
        belief.update(targets[part] - 20.0 - 8.0 * (targets[part] % 11), targets[part], targets[part, None] % 11)
        ResidualBelief(1).restore(belief.state())


@pytest.mark.parametrize("size", [1e-310, 1.0, 1e20, 1e200, 1e306])
@pytest.mark.parametrize("rounded", [True, False])
def test_what_is_believed_is_finite_after_a_first_residual_of_almost_nothing(size: float, rounded: bool) -> None:
    """Targets and their resolution, divided by it, are beyond all floats."""
    random, belief = np.random.default_rng(0), ResidualBelief(0)
    values = 20.0 * random.normal(size=100)
    targets = np.concatenate([[1e-300], size * (np.round(values) if rounded else values)])
    predictions = np.concatenate([[0.0], targets[1:] + size * random.normal(size=100)])
    said = belief.update(predictions, targets)
    verdict = belief.judge_log(predictions, targets, said)
    assert all(np.isfinite(part).all() for part in (*said, *verdict, belief.judge(predictions, targets)))
    ResidualBelief(0).restore(belief.state())


def test_sizes_are_not_negative_whatever_the_rounding() -> None:
    """Where almost all clean residuals are of one sign, the interval ends at the prediction on the other side."""
    random, edges = np.random.default_rng(0), np.geomspace(1e-3, 1e3, CELLS + 1)
    for _ in range(300):
        clean = random.random((2, CELLS)) * 10.0 ** random.uniform(-3, 0, (2, 1))
        counts = random.random((2, CELLS)) * 10.0 ** random.uniform(0, 6, (2, 1))
        low, high = find_quantiles(clean, counts, edges, 0.9)
        assert low >= 0.0
        assert high >= 0.0
    assert find_quantiles(np.zeros((2, CELLS)), np.zeros((2, CELLS)), edges, 0.9) == (0.0, 0.0)


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**90, 1e-7, 3.7e20])
def test_probabilities_have_no_unit(unit: float) -> None:
    X, predictions, targets, _ = stream(1200)
    plain, scaled = ResidualBelief(2), ResidualBelief(2)
    one, other = plain.update(predictions, targets, X), scaled.update(unit * predictions, unit * targets, X)
    exact = np.log2(unit) % 1.0 == 0.0
    assert np.abs(one.clean_probability - other.clean_probability).max() <= (0.0 if exact else 1e-12)
    np.testing.assert_allclose(unit * one.low, other.low, rtol=1e-11)
    np.testing.assert_array_equal(one.suspect, other.suspect)


def test_probabilities_are_never_0_or_1_and_rank_without_ties() -> None:
    random = np.random.default_rng(0)
    targets = random.normal(size=2000)
    targets[500::100] = 10.0 ** np.linspace(2, 300, 15)
    belief = ResidualBelief()
    judgements = belief.update(np.zeros(2000), targets)
    probability = judgements.clean_probability
    assert ((probability > 0.0) & (probability < 1.0)).all()
    assert len(np.unique(judgements.clean_log_odds[targets < 1e90])) == np.count_nonzero(targets < 1e90)
    far = belief.judge(np.zeros(80), 10.0 ** np.arange(10, 90))
    assert (np.diff(far) < 0.0).all()
    near = belief.judge(np.zeros(80), np.linspace(1e-9, 0.03, 80))
    assert (np.diff(near) < 0.0).all()


def test_suspects_of_a_stream_with_errors_are_mostly_wrong_and_a_clean_stream_has_hardly_any() -> None:
    for share in (0.0, 0.05):
        X, predictions, targets, clean = stream(8000, seed=1, share=share)
        belief = ResidualBelief(2)
        judgements = belief.update(predictions, targets, X)
        suspects = belief.judge_log(predictions, targets, judgements).suspects(fdr=0.1)
        stuck = np.isin(suspects, np.arange(2000, 2012))
        false = np.count_nonzero(clean[suspects] & ~stuck)
        assert false <= (0.001 * 8000 if share == 0.0 else 0.15 * len(suspects))
        assert np.count_nonzero(~clean[suspects]) >= 0.6 * np.count_nonzero(~clean)
        inside = (judgements.low <= targets) & (targets <= judgements.high)
        assert abs(inside[clean][200:].mean() - 0.9) < 0.02


@pytest.mark.parametrize("size", [30.0, 100.0])
def test_a_single_gross_error_in_a_long_clean_stream_is_found(size: float) -> None:
    for seed in range(3):
        targets = np.random.default_rng(seed).normal(size=10_000)
        targets[7000] = size
        belief = ResidualBelief()
        judgements = belief.update(np.zeros(10_000), targets)
        assert belief.judge_log(np.zeros(10_000), targets, judgements).suspects(0.1).tolist() == [7000]


@pytest.mark.parametrize("size", [10.0, 15.0, 50.0])
@pytest.mark.parametrize("records", [120, 240, 500, 1000])
def test_gross_errors_of_one_sign_among_few_records_are_found(records: int, size: float) -> None:
    found = clean_found = 0
    for seed in range(8):
        random = np.random.default_rng(seed)
        targets = random.normal(size=records)
        wrong = random.choice(np.arange(30, records), 5, replace=False)
        targets[wrong] += size
        belief = ResidualBelief()
        belief.learn_table(np.zeros(records), targets)
        suspects = select_suspects(to_probability(belief.judge(np.zeros(records), targets)), 0.1, numbers=True)
        found += np.count_nonzero(np.isin(suspects, wrong))
        clean_found += np.count_nonzero(~np.isin(suspects, wrong))
    assert found >= 0.9 * 40
    assert clean_found <= 0.1 * 40


def test_a_larger_residual_is_never_more_likely_clean() -> None:
    """Errors around one size leave a gap behind them; what is farther out is no better."""
    random = np.random.default_rng(0)
    targets = random.standard_t(3, size=600)
    targets[::30] = 40.0 + random.normal(size=20)
    belief = ResidualBelief()
    belief.learn_table(np.zeros(600), targets)
    for sign in (-1.0, 1.0):
        sizes = np.geomspace(1e-3, 1e9, 500)
        assert (np.diff(belief.judge(np.zeros(500), sign * sizes)) < 0.0).all()


def test_a_number_in_a_list_is_at_most_twice_as_likely_clean_as_false_alarms() -> None:
    probability = np.array([1e-3, 1e-3, 1e-3, 0.19, 0.21, 0.4])
    assert select_suspects(probability, 0.1, numbers=True).tolist() == [0, 1, 2, 3]
    assert select_suspects(probability, 0.2, numbers=True).tolist() == [0, 1, 2, 3, 4, 5]
    assert select_suspects(probability, 0.12).tolist() == [0, 1, 2, 3, 4]
    assert Verdict(-np.log(1.0 / probability - 1.0), np.zeros(6), numbers=True).suspects(0.1).tolist() == [0, 1, 2, 3]


def test_a_second_peak_nearby_is_found() -> None:
    """A quarter of the targets is too low by five standard deviations: in that sign, nearly as many as clean ones."""
    random = np.random.default_rng(0)
    targets = random.normal(size=6000)
    wrong = random.random(6000) < 0.25
    targets[wrong] -= 5.0
    belief = ResidualBelief()
    verdict = belief.judge_log(np.zeros(6000), targets, belief.update(np.zeros(6000), targets))
    suspects = verdict.suspects(fdr=0.1)
    assert np.count_nonzero(wrong[suspects]) > 0.9 * np.count_nonzero(wrong)
    assert np.mean(~wrong[suspects]) < 0.1


@pytest.mark.parametrize("resolution", [0.01, 1.0, 7.0, 2.0**-20])
def test_rounding_errors_are_no_errors(resolution: float) -> None:
    """Half of the targets are exact, the others are rounded; and three are wrong."""
    random = np.random.default_rng(0)
    steps = random.integers(0, 10_000, size=3000)
    predictions = resolution * (steps + 0.5 * (random.random(3000) < 0.5)) + 1e-12 * random.normal(size=3000)
    targets = resolution * steps
    wrong = [1000, 2000, 2500]
    targets[wrong] += 200.0 * resolution
    belief = ResidualBelief()
    judgements = belief.update(predictions, targets)
    suspects = belief.judge_log(predictions, targets, judgements).suspects(0.1)
    assert set(wrong) <= set(suspects.tolist())
    assert len(suspects) < 10


def test_a_stuck_sensor_is_found_and_copies_of_a_record_change_nothing() -> None:
    X, predictions, targets, _ = stream(2000, share=0.0)
    belief = ResidualBelief(2)
    verdict = belief.judge_log(predictions, targets, belief.update(predictions, targets, X))
    np.testing.assert_array_equal(np.flatnonzero(verdict.stuck > 0.5), np.arange(501, 512))
    assert (verdict.clean_probability[501:512] < 0.5).all()
    assert (verdict.stuck[540:550] == 0.0).all()
    one, many = ResidualBelief(1), ResidualBelief(1)
    for model, copies in ((one, 1), (many, 12)):
        model.update(predictions[:300], targets[:300], X[:300, :1])
        model.update(np.full(copies, 1.0), np.full(copies, 1.001), np.full((copies, 1), 0.5))
    after = [model.update(predictions[1200:1240], targets[1200:1240], X[1200:1240, :1]) for model in (one, many)]
    np.testing.assert_allclose(after[0].scale, after[1].scale, rtol=0.02)
    assert after[1].clean_probability.min() > 0.01


def test_records_after_a_jump_are_no_suspects() -> None:
    random = np.random.default_rng(2)
    targets, predictions = random.normal(size=3000), np.zeros(3000)
    targets[1500:] += 40.0
    predictions[1512:] = 40.0
    belief = ResidualBelief()
    judgements = belief.update(predictions, targets)
    assert len(belief.judge_log(predictions, targets, judgements).suspects(0.1)) == 0
    assert judgements.clean_probability[1505:1512].min() > 0.5


def test_judging_does_not_learn_and_intervals_are_nested() -> None:
    X, predictions, targets, _ = stream(3000)
    belief = ResidualBelief(2)
    belief.update(predictions, targets, X)
    before = belief.state()
    log_odds = belief.judge(predictions, targets, X)
    assert log_odds[np.argmax(np.abs(targets - predictions))] < 0.0 < np.median(log_odds)
    ends = [belief.predict_interval(predictions, X, level) for level in (0.5, 0.8, 0.9, 0.99)]
    for (low, high), (lower, higher) in itertools.pairwise(ends):
        assert ((lower < low) & (low < high) & (high < higher)).all()
    for name, array in belief.state().items():
        np.testing.assert_array_equal(array, before[name])


def test_q_values_and_suspects_are_those_of_every_possible_list() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        probability = np.round(random.random(30) ** 3, 2) + 1e-6
        q = q_values(probability)
        for i in range(30):
            assert q[i] == pytest.approx(probability[probability <= probability[i]].mean())
        found = select_suspects(probability, 0.1)
        lists = [np.flatnonzero(probability <= p) for p in probability if p <= 0.5]
        longest = max((len(rows) for rows in lists if probability[rows].mean() <= 0.1), default=0)
        assert len(found) == longest
        assert (np.diff(probability[found]) >= 0.0).all()


def test_a_state_fits_in_20_kilobytes() -> None:
    for belief in (ResidualBelief(10), LabelBelief(10)):
        assert sum(array.nbytes for array in belief.state().values()) <= 20_000


@pytest.mark.parametrize(
    ("model", "name", "place", "value"),
    [
        (ResidualBelief(1), "scales", (0, 0), 17.0),
        (ResidualBelief(1), "scales", (0, 0), 0.5),
        (ResidualBelief(1), "counts", (0, 0, 0), -1.0),
        (ResidualBelief(1), "counts", (0, 0, 0), 1e101),
        (ResidualBelief(1), "features", (0, 0), 1e300),
        (ResidualBelief(1), "features", (0, 3), 0.0),
        (ResidualBelief(1), "numbers", (0, 0), np.nan),
        (ResidualBelief(1), "numbers", (0, 7), 1.5),
        (ResidualBelief(1), "shared", 5, 1.5),
        (ResidualBelief(1), "outliers", (0, 0), 0.5),
        (ResidualBelief(1), "features", (0, 1, 0), -1.0),
        (LabelBelief(), "flips", (0, 0), 0.5),
        (LabelBelief(), "numbers", 1, 0.0),
        (LabelBelief(), "log_odds", (0, 0), np.inf),
    ],
)
def test_a_corrupt_state_is_refused(model: Any, name: str, place: Any, value: float) -> None:
    state = model.state()
    state[name][place] = value
    with pytest.raises(DataError, match=CORRUPT):
        model.restore(state)


def test_bad_input_is_refused_in_one_sentence() -> None:
    belief = ResidualBelief(1)
    with pytest.raises(DataError, match="targets must be finite numbers, one for each record"):
        belief.update([0.0], [np.nan], [[0.0]])
    with pytest.raises(DataError, match=r"must be equally many\. Got 2 and 1"):
        belief.update([0.0, 1.0], [0.0], [[0.0]])
    with pytest.raises(DataError, match=r"X must have shape \(1, 1\)"):
        belief.update([0.0], [0.0])
    with pytest.raises(ParameterError, match="level"):
        belief.predict_interval([0.0], [[0.0]], level=1.0)
    with pytest.raises(ParameterError, match="dim"):
        ResidualBelief(-1)
    with pytest.raises(DataError, match="labels must be at least 0 and below 2"):
        LabelBelief().update([0.0], [2])
    with pytest.raises(DataError, match=r"margins must be finite, of shape \(1, 3\)"):
        LabelBelief(3).update([[0.0, np.inf, 0.0]], [0])
    with pytest.raises(ParameterError, match="fdr"):
        select_suspects(np.array([0.5]), fdr=0.0)
    assert belief.rounds == 0


def test_extreme_records_leave_numbers() -> None:
    targets = np.array([0.0, 0.0, 1e308, -1e308, 5e-324, 0.0, 1e308] * 60)
    predictions = -targets[::-1].copy()
    X = np.full((len(targets), 1), 1e308) * np.sign(targets)[:, None]
    judgements = ResidualBelief(1).update(predictions, targets, X)
    assert np.isfinite(judgements.clean_log_odds).all()
    assert not np.isnan(judgements.low).any()
    labels = LabelBelief().update(np.array([1e308, -1e308, 0.0, 5e-324] * 60), np.array([0, 1, 1, 0] * 60))
    assert np.isfinite(labels.clean_log_odds).all()
    assert (to_probability(labels.clean_log_odds) > 0.0).all()


@pytest.mark.parametrize("model", [ResidualBelief(2), LabelBelief(3)])
def test_a_forged_state_is_refused_or_goes_on(model: Any) -> None:
    random = np.random.default_rng(4)
    X, predictions, targets, _ = stream(120)
    margins, labels, _ = labelled(120, 3)
    records = (predictions, targets, X) if isinstance(model, ResidualBelief) else (margins, labels)
    model.update(*records)
    refused, sound = 0, model.state()
    for _ in range(200):
        forged = {name: array.copy() for name, array in sound.items()}
        array = forged[str(random.choice(list(forged)))]
        array.flat[random.integers(array.size)] = random.choice([-1.0, 0.0, 0.5, 1.0, 1e9, 1e300, -1e300, 17.0])
        other = type(model)(model.dim if isinstance(model, ResidualBelief) else model.classes)
        try:
            other.restore(forged)
        except DataError:
            refused += 1
            continue
        with np.errstate(all="ignore"):
            assert len(other.update(*records).clean_log_odds) == 120
    assert 0 < refused < 200


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_intervals_do_not_reach_beyond_0_where_no_target_does(sign):
    random = np.random.default_rng(0)
    predictions = sign * random.exponential(size=600)
    targets = predictions * np.exp(0.5 * random.normal(size=600))
    targets[50] = -sign * 1000.0  # an outlier does not count
    belief = ResidualBelief()
    said = belief.update(predictions, targets)
    for low, high in ((said.low[16:], said.high[16:]), belief.predict_interval(predictions)):
        assert (sign * low >= 0.0).all()
        assert (sign * high >= 0.0).all()
        assert (low == 0.0).any() or (high == 0.0).any()
    belief.update(predictions[:1], -0.1 * predictions[:1])
    low, high = belief.predict_interval(predictions)
    assert (sign * low < 0.0).any() or (sign * high < 0.0).any()
