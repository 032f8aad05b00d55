"""The paper's problems: the distributions that it states, and seeds."""

import numpy as np
import pytest
from scipy import stats

from redescend import streams
from redescend.errors import ParameterError

KINDS = [streams.ridge, streams.svm]

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


@pytest.mark.parametrize(("kind", "dim"), [(streams.ridge, 100), (streams.svm, 2)])
def test_sizes_are_the_papers_unless_told(kind, dim):
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
