"""Problems to play: the distributions that they state, and seeds."""

import numpy as np
import pytest
from scipy import stats

from redescend import streams
from redescend.errors import ParameterError

MADE = [streams.regression, streams.classification]
KINDS = [streams.ridge, streams.svm, *MADE]

# A right distribution fails a statistical test with this probability; seeds decide it once and for all.
CHANCE = 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_is_a_stream(kind):
    first, second, other = kind(50, seed=3, dim=4), kind(50, seed=3, dim=4), kind(50, seed=4, dim=4)
    for name in ("X", "y", "truth"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        assert not np.array_equal(getattr(first, name), getattr(other, name))


@pytest.mark.parametrize("kind", KINDS)
def test_a_generator_goes_on(kind):
    random = np.random.default_rng(3)
    first, second = kind(50, seed=random), kind(50, seed=random)
    np.testing.assert_array_equal(first.X, kind(50, seed=3).X)
    assert not np.array_equal(first.X, second.X)


@pytest.mark.parametrize(("kind", "dim"), [(streams.ridge, 100), (streams.svm, 2), *((kind, 20) for kind in MADE)])
def test_sizes_unless_told(kind, dim):
    stream = kind(7, seed=0)
    assert stream.X.shape == (7, dim)
    assert stream.truth.shape == (dim,)
    assert stream.corrupted == 0
    assert stream.originals is None


def test_ridge_truth_is_a_uniform_direction_of_unit_length():
    truths = np.array([streams.ridge(1, seed=seed, dim=3).truth for seed in range(2000)])
    # The norm of a vector divided by its norm is 1 to a few rounding errors.
    np.testing.assert_allclose(np.linalg.norm(truths, axis=1), 1.0, rtol=1e-15)
    # The direction of a uniform point of the cube: its largest entry relative to the others is not that of a sphere.
    cube = np.random.default_rng(0).uniform(-1, 1, (20_000, 3))
    expected = np.abs(cube).max(axis=1) / np.linalg.norm(cube, axis=1)
    assert stats.ks_2samp(np.abs(truths).max(axis=1), expected).pvalue > CHANCE
    assert stats.binomtest(int((truths > 0).sum()), truths.size).pvalue > CHANCE


def test_ridge_records():
    stream = streams.ridge(20_000, seed=1, dim=3)
    assert stats.kstest(stream.X.ravel(), stats.norm.cdf).pvalue > CHANCE
    noise = stream.y - stream.X @ stream.truth
    # N(0, 1e-6) states a variance: the standard deviation is 1e-3.
    assert stats.kstest(noise / 1e-3, stats.norm.cdf).pvalue > CHANCE


def test_svm_truth_is_uniform_on_its_box():
    truths = np.array([streams.svm(1, seed=seed).truth for seed in range(2000)])
    assert stats.kstest(truths.ravel(), stats.uniform(1, 10).cdf).pvalue > CHANCE


def test_svm_features_have_variance_100():
    X = streams.svm(20_000, seed=1).X
    assert stats.kstest(X.ravel() / 10.0, stats.norm.cdf).pvalue > CHANCE


def test_svm_mislabels_one_in_twenty_and_only_near_the_line():
    stream = streams.svm(2_000_000, seed=2)
    margin = stream.X @ stream.truth
    wrong = stream.y != np.where(margin >= 0, 1.0, -1.0)
    near = np.abs(margin) <= 0.1
    assert not wrong[~near].any()
    assert near.sum() > 1000
    assert stats.binomtest(int(wrong[near].sum()), int(near.sum()), 0.05).pvalue > CHANCE


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "7", None])
def test_bad_sizes_are_refused(kind, bad):
    for name, arguments in {"rounds": {"rounds": bad}, "dim": {"rounds": 3, "dim": bad}}.items():
        with pytest.raises(ParameterError) as caught:
            kind(**arguments, seed=0)
        rule = rf"The '{name}' parameter of {kind.__name__} must be a whole number in [1, inf). Got {bad!r} instead."
        assert str(caught.value) == rule


# --- drift, noise and feature scales ---


def noise_of(stream):
    """What is left of the response without the signal, by the truth of each round."""
    truth = np.broadcast_to(stream.truth, stream.X.shape)
    return stream.y - np.array([x @ own for x, own in zip(stream.X, truth, strict=True)])


@pytest.mark.parametrize("drift", ["none", "jump", "rotation"])
@pytest.mark.parametrize("scales", [(1.0, 1.0), (1e-3, 1e3)])
def test_the_signal_is_standard_normal_whatever_the_drift_and_the_scales(drift, scales):
    stream = streams.regression(5000, seed=3, dim=6, drift=drift, noise_scale=0.0, feature_scales=scales)
    assert stats.kstest(stream.y, stats.norm.cdf).pvalue > CHANCE
    # Without noise the response is the signal: a sum of six products of size 1, to rounding.
    np.testing.assert_allclose(noise_of(stream), 0.0, atol=1e-13)


def test_settings_share_their_draws():
    plain = streams.regression(40, seed=3, dim=4)
    for other in (
        streams.regression(40, seed=3, dim=4, noise="student"),
        streams.regression(40, seed=3, dim=4, noise="heteroscedastic"),
        streams.classification(40, seed=3, dim=4),
        streams.regression(40, seed=3, dim=4, drift="jump"),
    ):
        np.testing.assert_array_equal(other.X, plain.X)
    wide = streams.regression(40, seed=3, dim=4, feature_scales=(0.5, 4.0))
    np.testing.assert_allclose(wide.y, plain.y, rtol=1e-12)


def test_feature_scales_are_spread_evenly_between_the_ends():
    plain, wide = (streams.regression(9, seed=2, dim=5, feature_scales=ends) for ends in ((1.0, 1.0), (1e-2, 1e2)))
    ratio = wide.X / plain.X
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape), rtol=1e-14)
    np.testing.assert_allclose(np.sort(ratio[0]), [1e-2, 1e-1, 1.0, 1e1, 1e2], rtol=1e-14)
    orders = {tuple(np.argsort(streams.regression(1, seed, 5, feature_scales=(1, 9)).X[0])) for seed in range(9)}
    assert len(orders) > 1


def test_without_drift_the_truth_is_one_action_of_uniform_direction():
    truths = np.array([streams.regression(1, seed=seed, dim=3).truth for seed in range(2000)])
    np.testing.assert_allclose(np.linalg.norm(truths, axis=1), 1.0, rtol=1e-15)
    # Archimedes: on the sphere in three dimensions each coordinate is uniform.
    assert stats.kstest(truths[:, 0], stats.uniform(-1, 2).cdf).pvalue > CHANCE


def test_a_jump_is_one_half_way_to_an_independent_truth():
    stream = streams.regression(11, seed=0, dim=3, drift="jump")
    assert stream.truth.shape == (11, 3)
    changes = np.flatnonzero((np.diff(stream.truth, axis=0) != 0).any(axis=1)) + 1
    assert changes.tolist() == [5]
    ends = [streams.regression(2, seed=seed, dim=3, drift="jump").truth for seed in range(2000)]
    # The cosine between two independent directions in three dimensions is uniform.
    cosines = [before @ after for before, after in ends]
    assert stats.kstest(cosines, stats.uniform(-1, 2).cdf).pvalue > CHANCE


def test_a_rotation_turns_evenly_by_half_a_turn():
    truth = streams.regression(101, seed=0, dim=4, drift="rotation").truth
    np.testing.assert_allclose(np.linalg.norm(truth, axis=1), 1.0, rtol=1e-14)
    # One round is a hundredth of half a turn; the arc cosine near 1 loses half of the digits.
    np.testing.assert_allclose(np.arccos((truth[1:] * truth[:-1]).sum(axis=1)), np.pi / 100, rtol=1e-10)
    np.testing.assert_allclose(truth[-1], -truth[0], atol=1e-14)


@pytest.mark.parametrize(("noise", "law"), [("gaussian", stats.norm), ("student", stats.t(2))])
@pytest.mark.parametrize("drift", ["none", "rotation"])
def test_noise_is_of_the_stated_law_and_scale(noise, law, drift):
    stream = streams.regression(20_000, seed=1, dim=3, drift=drift, noise=noise, noise_scale=0.3)
    assert stats.kstest(noise_of(stream) / 0.3, law.cdf).pvalue > CHANCE


def test_heteroscedastic_noise_depends_on_the_features_alone():
    stream = streams.regression(20_000, seed=1, dim=3, noise="heteroscedastic", noise_scale=0.3)
    noise = noise_of(stream) / 0.3
    random = np.random.default_rng(5)
    expected = random.standard_normal(20_000) * np.exp(random.standard_normal(20_000) - 1.0)
    assert stats.ks_2samp(noise, expected).pvalue > CHANCE
    # log|e| is a linear function of x of unit length, less 1, plus log|n| with n standard normal.
    design = np.column_stack([stream.X, np.ones(20_000)])
    fitted, *_ = np.linalg.lstsq(design, np.log(np.abs(noise)), rcond=None)
    # The standard deviation of log|n| is 1.11, so that five standard errors of a coefficient are 0.04.
    assert abs(np.linalg.norm(fitted[:3]) - 1.0) < 0.04
    rest = np.abs(noise) / np.exp(stream.X @ fitted[:3] / np.linalg.norm(fitted[:3]) - 1.0)
    assert stats.kstest(rest, stats.halfnorm.cdf).pvalue > CHANCE


@pytest.mark.parametrize("noise", ["gaussian", "student", "heteroscedastic"])
def test_labels_are_the_signs_of_the_responses(noise):
    settings = {"seed": 4, "dim": 3, "drift": "jump", "noise": noise, "noise_scale": 0.5}
    labels, responses = streams.classification(500, **settings).y, streams.regression(500, **settings).y
    np.testing.assert_array_equal(labels, np.where(responses >= 0, 1.0, -1.0))


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize(
    ("name", "bad", "rule"),
    [
        ("drift", "slow", "'none', 'jump' or 'rotation'"),
        ("drift", None, "'none', 'jump' or 'rotation'"),
        ("noise", "loud", "'gaussian', 'student' or 'heteroscedastic'"),
        ("noise_scale", -1.0, "a float in [0, 1e+100]"),
        ("noise_scale", float("nan"), "a float in [0, 1e+100]"),
        ("feature_scales", 1.0, "a pair of floats, each in [1e-100, 1e+100], the smaller first"),
        ("feature_scales", (2.0, 1.0), "a pair of floats, each in [1e-100, 1e+100], the smaller first"),
        ("feature_scales", (0.0, 1.0), "a pair of floats, each in [1e-100, 1e+100], the smaller first"),
        ("feature_scales", (1.0, 1.0, 1.0), "a pair of floats, each in [1e-100, 1e+100], the smaller first"),
    ],
)
def test_bad_settings_are_refused(kind, name, bad, rule):
    with pytest.raises(ParameterError) as caught:
        kind(5, seed=0, **{name: bad})
    assert str(caught.value) == f"The '{name}' parameter of {kind.__name__} must be {rule}. Got {bad!r} instead."


def test_one_feature_cannot_turn():
    with pytest.raises(ParameterError, match="at least 2 for a truth that turns"):
        streams.regression(5, seed=0, dim=1, drift="rotation")
    assert streams.regression(5, seed=0, dim=1, drift="jump").truth.shape == (5, 1)
