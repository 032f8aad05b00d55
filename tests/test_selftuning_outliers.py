"""The self-tuning learner on streams that change and have outliers: how soon it recovers, and what weights say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, rankdata

import redescend as rd
from redescend import adversaries, losses, regret, streams
from redescend.experiments.problems import svm
from redescend.kernels.selftuning import layout
from tests import reference_selftuning
from tests.catalogue import name_of
from tests.games import sample
from tests.selftuning_games import every_loss, every_order, played, records


@every_order
@every_loss
def test_what_is_played_is_a_mean_of_the_members(loss, order):
    """Also in rounds in which a member is replaced: otherwise the prediction would be too small."""
    X, y = records(loss, "jump", 800, 3, seed=24)
    learner = rd.SelfTuning(3, loss=loss, order=order)
    for x, target in zip(X, y, strict=True):
        learner.update(x, target)
        assert learner.kernel_state.played.sum() == pytest.approx(1.0)


@every_order
@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_with_little_noise_no_prediction_is_off(noise, order):
    random = np.random.default_rng(25)
    X = np.c_[random.normal(size=(1_500, 3)), np.ones(1_500)]
    y = X @ [1.0, 2.0, 3.0, 4.0] + noise * random.normal(size=1_500)
    trace = played(rd.SelfTuning(4, loss=losses.Squared(), order=order), X, y)
    assert np.abs(trace.predictions - y)[200:].max() <= 10.0 * noise + 1e-6


# --- change ---


def rounds_until(found: np.ndarray) -> int:
    """The first round at which this holds; beyond the game if it never does."""
    return int(np.argmax(found)) if found.any() else len(found) + 1000


def rounds_to_recover(trace: rd.Trace, jump: int) -> int:
    """From the jump to where the median of 20 losses is at most 3 times what the game ends with."""
    level = 3.0 * np.mean(trace.losses[-200:])
    later = np.lib.stride_tricks.sliding_window_view(trace.losses[jump:], 20)
    return rounds_until(np.median(later, axis=1) <= level)


@every_order
@pytest.mark.parametrize("dim", [1, 3, 10, 30])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e6])
@every_loss
def test_it_recovers_from_a_jump(loss, size, dim, order):
    """Back within 200 rounds and 30 a feature (a quantile 35), of which a fresh one takes up to 28; moving within 80.

    Labels may be the same on both sides of a jump, and then nothing has to move.
    """
    random = np.random.default_rng([12, dim])
    X, y = records(loss, "clean", 4_000, dim, seed=12)
    y[2_000:] = size * (X[2_000:] @ random.normal(size=dim)) + 0.1 * random.normal(size=2_000)
    y = np.where(y >= 0.0, 1.0, -1.0) if loss.margin else y
    trace = played(rd.SelfTuning(dim, loss=loss, order=order), X, y, keep_actions=True)
    before = trace.actions[2_000]
    far = np.linalg.norm(trace.actions[2_000:] - before, axis=1) > 0.1 * np.linalg.norm(before)
    assert loss.margin or rounds_until(far) <= 80
    assert rounds_to_recover(trace, 2_000) <= 200 + (35 if isinstance(loss, losses.Pinball) else 30) * dim


@every_order
def test_a_truth_that_drifts_slowly_is_tracked(order):
    """Rotating by .001 in a round, with noise as large as the signal: least squares that forgets has .03."""
    random = np.random.default_rng(34)
    X, angle = random.normal(size=(6_000, 3)), 0.001 * np.arange(6_000)
    signal = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]
    y = np.where(random.random(6_000) < 0.1, 10.0 * random.normal(size=6_000), signal + random.normal(size=6_000))
    predictions = played(rd.SelfTuning(3, loss=losses.Squared(), order=order), X, y).predictions
    assert np.mean((predictions - signal)[1_000:] ** 2) <= 0.08


def test_false_alarms_are_forgotten():
    """After eight bursts in the first 3,000 rounds, jumps 20,000 rounds later cost at most twice a fresh start."""
    costs = np.zeros(2)
    for seed in range(4):
        random = np.random.default_rng([33, seed])
        X, truths = random.normal(size=(24_000, 5)), random.normal(size=(2, 5))
        signal = np.r_[X[:23_000] @ truths[0], X[23_000:] @ truths[1]]
        y = signal + 0.1 * random.normal(size=24_000)
        for start in range(500, 2_900, 300):
            y[start : start + 12] = y.std() * random.normal(size=12)
        for i, first in enumerate((0, 23_000)):
            predictions = played(rd.SelfTuning(5, loss=losses.Squared()), X[first:], y[first:]).predictions[-1_000:]
            costs[i] += np.sum((predictions - signal[23_000:]) ** 2)
    assert costs[0] <= 2.0 * costs[1]


@every_order
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_labels_of_another_truth_are_no_flips(share, order):
    """After 5,000 rounds and a jump, errors on clean labels are at most 1.3 times those of a fresh learner, plus 8."""
    errors = np.zeros(2)
    for seed in range(6):
        random = np.random.default_rng([32, seed])
        X, truths = random.normal(size=(6_000, 10)), random.normal(size=(2, 10))
        right = np.where(np.r_[X[:5_000] @ truths[0], X[5_000:] @ truths[1]] > 0.0, 1.0, -1.0)
        y = np.where(random.random(6_000) < share, -right, right)
        for i, first in enumerate((0, 5_000)):
            learner = rd.SelfTuning(10, loss=losses.Logistic(), order=order)
            predictions = played(learner, X[first:], y[first:]).predictions[-1_000:]
            errors[i] += np.sum(predictions * right[5_000:] < 0.0) / 6
    assert errors[0] <= 1.3 * errors[1] + 8.0


@every_order
@pytest.mark.parametrize("kind", ["flip", "far", "another truth"])
@pytest.mark.parametrize("dim", [3, 10, 30])
def test_after_a_burst_the_kept_model_is_played_again(dim, kind, order):
    """Within 10 rounds, after 5 000 of which all were clean and a burst of just under a quarter of that."""
    random = np.random.default_rng([13, dim])
    X, y = records(losses.Squared(), "clean", 6_300, dim, seed=13)
    burst = slice(5_000, 6_200)
    y[burst] = {"flip": -y[burst], "far": 100.0 + y[burst], "another truth": 5.0 * X[burst] @ random.normal(size=dim)}[
        kind
    ]
    trace = played(rd.SelfTuning(dim, loss=losses.Squared(), order=order), X, y, keep_actions=True)
    kept = trace.actions[5_000]
    away = np.linalg.norm(trace.actions[6_200:] - kept, axis=1) / np.linalg.norm(kept)
    assert rounds_until(away < 0.3) <= 10


@every_order
def test_signs_do_not_matter(order):
    """Of the targets, or of a feature: predictions have the other sign, or are the same, up to rounding errors."""
    random = np.random.default_rng(31)
    X = np.c_[random.normal(size=(600, 4)), np.ones(600)]
    y = 5.0 * X @ random.normal(size=5) + random.normal(size=600)
    y = np.where(random.random(600) < 0.2, 50.0 * random.normal(size=600), y)
    predictions, mirrored, turned = (
        played(rd.SelfTuning(5, loss=losses.Squared(), order=order), features, targets).predictions
        for features, targets in ((X, y), (X, -y), (X * [-1.0, 1.0, 1.0, 1.0, -1.0], y))
    )
    np.testing.assert_allclose(mirrored, -predictions, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(turned, predictions, rtol=1e-6, atol=1e-6)


def test_a_posterior_that_believes_no_record_is_restarted():
    """Random walks and a date: if it takes all records for outliers, it learns nothing, however wide it is."""
    random = np.random.default_rng(5)
    level = 40.0 + 0.1 * np.cumsum(random.normal(size=1_200))
    walks = level[:, None] + 0.3 * np.cumsum(random.normal(size=(1_200, 5)), axis=0)
    X = np.c_[736_000.0 + np.arange(1_200), walks, np.ones(1_200)]
    learner = rd.SelfTuning(7, loss=losses.Squared(), order=2)
    out = 0.0
    for x, target in zip(X, level, strict=True):
        learner.update(x, target)
        out = max(out, learner.kernel_state.scalar[layout.OUT])
    assert out <= 8.0 + 4.0 * 7.0


@every_order
def test_far_outliers_cost_next_to_nothing(order):
    """40 % at +1000: the median of six games is within 1.2 of least squares on the rest; a bad start may cost more."""
    ratios = []
    for seed in range(6):
        random = np.random.default_rng([21, seed])
        truth, X, noise = random.normal(size=5), random.normal(size=(6_000, 5)), random.normal(size=6_000)
        clean = random.random(6_000) > 0.4
        y = X @ truth + noise + 1_000.0 * ~clean
        found = played(rd.SelfTuning(5, loss=losses.Squared(), order=order), X, y).theta
        best = np.linalg.lstsq(X[clean], y[clean], rcond=None)[0]
        ratios.append(np.sum((found - truth) ** 2) / np.sum((best - truth) ** 2))
    assert np.median(ratios) <= 1.2


@every_order
def test_equal_targets_are_not_mirrored_records(order):
    """Targets that are all 5 have the sign of half of the predictions: no sign is wrong."""
    random = np.random.default_rng(22)
    X = random.normal(size=(2_000, 10))
    y = X @ random.normal(size=10) / 3.0 + 0.1 * random.normal(size=2_000)
    y[1_000:] = 5.0
    learner = rd.SelfTuning(10, loss=losses.Squared(), order=order)
    played(learner, X, y)
    assert learner.kernel_state.scalar[layout.MIRRORED] < 0.05


@every_order
@pytest.mark.parametrize("size", [1e20, 1e300])
def test_how_wild_a_target_is_does_not_matter(size, order):
    """A target of any size moves the learner no more than one of 1,000."""
    random = np.random.default_rng(23)
    X = random.random((1_500, 4))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + random.normal(size=1_500)
    bad, sign = random.random(1_500) < 0.05, random.choice([-1.0, 1.0], 1_500)
    errors = []
    for wild in (1e3, size):
        told = played(rd.SelfTuning(4, loss=losses.Squared(), order=order), X, np.where(bad, wild * sign, y))
        errors.append(np.abs(told.predictions - y)[300:][~bad[300:]].mean())
    assert errors[1] <= 1.05 * errors[0]


@every_order
def test_a_quarter_of_the_labels_flipped_costs_no_more_than_an_oracle_pays(order):
    """The paper's classification at k = T/4, mean of six games, against the oracle at the paper's step."""
    problem, ratios = svm(), []
    for seed in range(30, 36):
        stream = problem.streams(seed)["T/4"]
        learners = problem.learners(stream)
        own, best = (
            regret.clean_dynamic(rd.play(learners[name], stream), stream, problem.loss)[-1]
            for name in (f"self-tuning, order {order}", "oracle")
        )
        ratios.append(own / best)
    assert np.mean(ratios) <= 1.0


# --- what the weights say ---


@every_order
@pytest.mark.parametrize("k", [5_000, 737])
def test_weights_rank_outliers(k, order):
    """1 − weight against the true mask after the first tenth: k = T/4 and T^⅔ of T = 20 000."""
    stream = adversaries.UniformResponse(0, 1).corrupt(streams.ridge(20_000, seed=14, dim=30), k=k, seed=15)
    trace = rd.play(rd.SelfTuning(30, loss=losses.Squared(l2=1e-4), order=order), stream)
    ranks, bad = rankdata(1.0 - trace.weights[2_000:]), ~stream.clean[2_000:]
    auc = (ranks[bad].mean() - (bad.sum() + 1) / 2) / (~bad).sum()
    assert auc >= 0.99


@every_order
@pytest.mark.parametrize(("quantile", "within"), [(0.2, 1.1), (0.5, 1.02), (0.8, 1.1), (0.95, 1.6)])
def test_a_quantile_of_clean_records_is_nearly_as_cheap_as_the_best(quantile, within, order):
    """The gate pulls extreme quantiles in, as it cannot tell a tail from outliers; docs/selftuning.md has figures."""
    random = np.random.default_rng(7)
    X, noise = np.c_[np.ones(8000), random.normal(size=(8000, 3))], random.normal(size=8000)
    loss = losses.Pinball(quantile)
    paid = played(rd.SelfTuning(4, loss=loss, order=order), X, X @ [10.0, 1.0, 2.0, 3.0] + noise).losses[3000:]
    best = loss.of_prediction(norm.ppf(quantile), noise[3000:])
    assert paid.mean() <= within * best.mean()


ABSURD = [1e9, 1e20, 1e30, -3.4028235e38, 1e300, 1e-30, 1e-300]
TRUTH = np.array([1.0, -2.0, 0.5])


def noisy_records(rounds: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(5)
    X = random.normal(size=(rounds, 3))
    return X, X @ TRUTH + 0.1 * random.normal(size=rounds)


@pytest.mark.parametrize(("first", "size", "order"), sample([1, 3], ABSURD, [1, 2], every=3), ids=str)
def test_absurd_first_targets_do_not_blind_it(first, size, order):
    X, y = noisy_records(1_000)
    y[:first] = size
    trace = played(rd.SelfTuning(3, loss=losses.Squared(), order=order), X, y, keep_actions=True)
    expected = reference_selftuning.play(X[:100], y[:100], loss=losses.Squared(), order=order)
    np.testing.assert_allclose(trace.actions[20:100], expected.actions[20:100], rtol=1e-6, atol=1e-9)
    assert np.linalg.norm(trace.theta - TRUTH) < 0.1


LEARNED = [losses.Squared(), losses.Absolute(), losses.Logistic()]


@pytest.mark.parametrize(("loss", "first", "size", "order"), sample(LEARNED, [1, 3], ABSURD, [1, 2], every=5), ids=str)
def test_absurd_first_features_do_not_blind_it(loss, first, size, order):
    X, y = noisy_records(1_000)
    y = np.where(y >= 0.0, 1.0, -1.0) if loss.margin else y
    X[:first, 1] = size
    trace = played(rd.SelfTuning(3, loss=loss, order=order), X, y, keep_actions=True)
    expected = reference_selftuning.play(X[:100], y[:100], loss=loss, order=order)
    np.testing.assert_allclose(trace.actions[20:100], expected.actions[20:100], rtol=1e-5, atol=1e-7)
    assert np.linalg.norm(trace.theta / np.linalg.norm(trace.theta) - TRUTH / np.linalg.norm(TRUTH)) < 0.1


@every_order
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic()], ids=name_of)
def test_a_constant_feature_stays_one_if_records_are_a_thousand_times_too_large(loss, order):
    X, y = noisy_records(2_000)
    X = np.c_[X + 5.0, np.ones(len(X))]
    y, costs = np.where(y >= 0.0, 1.0, -1.0) if loss.margin else y + 10.0, []
    for seed in range(29, 35):
        wrong = np.random.default_rng(seed).random(len(X)) < 0.1
        wrong[[2, 9]] = True
        wild = np.where(wrong[:, None], 1e3 * X, X)
        learner = rd.SelfTuning(4, loss=loss, order=order)
        trace = played(learner, wild, y, keep_actions=True)
        assert learner.kernel_state.scalar[layout.CONSTANT] == 3
        without = played(rd.SelfTuning(4, loss=loss, order=order), X[~wrong], y[~wrong])
        costs.append([trace.losses[~wrong][50:].mean(), without.losses[50:].mean()])
    expected = reference_selftuning.play(wild[:100], y[:100], loss=loss, order=order)
    np.testing.assert_allclose(trace.actions[20:100], expected.actions[20:100], rtol=1e-5, atol=1e-7)
    spoilt, clean = np.mean(costs, axis=0)
    assert spoilt <= 1.1 * clean


@every_order
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Hinge()], ids=name_of)
def test_no_label_is_surer_than_the_records_so_far_allow(loss, order):
    """A record far from all others: its logit is at most ln(n + 2), in every way to predict it."""
    X, y = noisy_records(300)
    learner = rd.SelfTuning(3, loss=loss, order=order)
    played(learner, X, np.where(y >= 0.0, 1.0, -1.0))
    length = max(learner.kernel_state.scalar[layout.COMMON], 1.0)
    far = 1e6 * X[:5]
    assert np.abs(learner.predict(far)) == pytest.approx(length * np.log(302.0))
    assert learner.predict(far).tolist() == [learner.predict(x) for x in far]
    expected = loss.of_prediction(learner.predict(far[0]), 1.0)
    assert learner.update(far[0], 1.0).loss == pytest.approx(expected)


@every_order
@pytest.mark.parametrize("size", [1e-30, 1e-300])
def test_a_tiny_target_among_the_first_does_not_blind_it(size, order):
    X, y = noisy_records(1_000)
    y[5] = size
    trace = played(rd.SelfTuning(3, loss=losses.Squared(), order=order), X, y)
    assert np.linalg.norm(trace.theta - TRUTH) < 0.1


@pytest.mark.parametrize("sign", [1.0, -1.0])
@every_order
def test_predictions_have_no_sign_that_no_target_has(sign, order):
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 3))  # without a constant, a linear model has to predict both signs
    y = sign * np.exp(0.5 * X[:, 0] + 0.3 * random.normal(size=500))
    learner = rd.SelfTuning(3, loss=losses.Squared(), order=order)
    predictions = played(learner, X, y).predictions
    assert (sign * predictions[16:] >= 0.0).all()
    assert (sign * learner.predict(X) >= 0.0).all()
    learner.update(X[0], -0.1 * y[0])
    assert (sign * learner.predict(-10.0 * X) < 0.0).any()


def jump(dim: int, seed: int, rounds: int, at: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, clean targets and targets with little noise, whose truth jumps at a round."""
    random = np.random.default_rng([seed, dim])
    X = random.normal(size=(rounds, dim))
    before, after = (truth / np.linalg.norm(truth) for truth in random.normal(size=(2, dim)))
    signal = np.where(np.arange(rounds) < at, X @ before, X @ after)
    return X, signal, signal + 0.1 * random.normal(size=rounds)


@pytest.mark.parametrize(("dim", "within"), [(5, 2.0), (20, 1.5)])
def test_a_jump_with_little_noise_costs_hardly_more_than_a_fresh_start(dim, within):
    """It takes about four rounds to find it, and a fresh learner of five features needs hardly more."""
    costs = np.zeros(2)
    for seed in range(8):
        X, signal, y = jump(dim, seed, 1_500, 1_000)
        for i, first in enumerate((0, 1_000)):
            predictions = played(rd.SelfTuning(dim, loss=losses.Squared(), order=2), X[first:], y[first:]).predictions
            costs[i] += np.sum((predictions[1_000 - first :] - signal[1_000:]) ** 2)
    assert costs[0] <= within * costs[1]


def test_a_jump_is_found_in_a_few_rounds_as_stated():
    X, _, y = jump(4, 0, 500, 400)
    learner = rd.SelfTuning(4, loss=losses.Squared(), order=2)
    trace = played(learner, X[:410], y[:410], keep_actions=True)
    assert learner._arrays["scalar"][layout.AGE] < layout.FEW
    expected = reference_selftuning.play(X[:410], y[:410], loss=losses.Squared(), order=2)
    np.testing.assert_allclose(trace.actions, expected.actions, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("count", [3, 8])
def test_equal_targets_in_a_row_are_not_a_jump(count):
    X, signal, y = jump(4, 2, 600, 600)
    y[500 : 500 + count] = 1.5
    learner = rd.SelfTuning(4, loss=losses.Squared(), order=2)
    predictions = played(learner, X, y).predictions
    assert learner._arrays["scalar"][layout.AGE] == 600
    assert np.abs(predictions - signal)[515:].max() < 0.5


def test_after_a_false_alarm_a_jump_has_to_be_more_certain():
    X, _, y = jump(4, 1, 1_500, 1_500)
    random, learner = np.random.default_rng(3), rd.SelfTuning(4, loss=losses.Squared(), order=2)
    for burst in range(500, 1_500, 100):
        y[burst : burst + 5] = random.normal(size=5)
    ages = []
    for x, target in zip(X, y, strict=True):
        learner.update(x, target)
        ages.append(learner._arrays["scalar"][layout.AGE])
    restarts = np.flatnonzero(np.diff(ages[100:]) < 0) + 100
    assert 1 <= len(restarts) <= 4  # of ten bursts
    assert ages[-1] > 1_000
