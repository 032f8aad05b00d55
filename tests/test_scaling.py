"""Quantiles of a stream in a fixed size, and the scaler made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import RobustScaler

from redescend.errors import DataError, ParameterError
from redescend.scaling import RunningQuantiles
from redescend.sklearn import MedianScaler
from redescend.state import CORRUPT

ROWS = 2000
SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def streams() -> dict[str, Any]:
    random, steps = np.random.default_rng(0), np.arange(ROWS, dtype=float)
    normal = random.normal(size=ROWS)
    return {
        "sorted": steps,
        "falling": -steps,
        "outward": np.where(steps % 2, steps, -steps),
        "inward": np.where(steps % 2, ROWS - steps, steps - ROWS),
        "heavy tails": random.standard_cauchy(ROWS),
        "constant": np.ones(ROWS),
        "two values": (random.random(ROWS) < 0.4).astype(float),
        "a quarter outliers": np.where(random.random(ROWS) < 0.25, 1e9, normal),
        "drift": steps / 100.0 + normal,
        "huge": normal * 1e307,
    }


def rank_gap(stream: Any, value: float, share: float) -> float:
    """How far the share is from the ranks that a value can have, as a share of all."""
    place = share * (len(stream) - 1)
    below, upto = np.sum(stream < value), np.sum(stream <= value)
    return max(below - 1 - place, place - upto, 0.0) / len(stream)


@pytest.mark.parametrize(("name", "stream"), streams().items())
def test_quantiles_are_within_their_stated_error(name: str, stream: Any) -> None:
    for size in (16, 128):
        quantiles = RunningQuantiles(1, size)
        quantiles.update(stream[:, None])
        stated = quantiles.rank_error[0]
        assert max(rank_gap(stream, quantiles.at(share)[0], share) for share in SHARES) <= stated
        assert stated <= 11.0 / size
        assert (quantiles.at(0.0)[0], quantiles.at(1.0)[0]) == (stream.min(), stream.max())


def test_quantiles_are_exact_while_all_values_fit() -> None:
    values = np.random.default_rng(0).normal(size=(100, 2))
    quantiles = RunningQuantiles(2, size=100)
    quantiles.update(values)
    assert (quantiles.rank_error == 0.0).all()
    for share in SHARES:
        np.testing.assert_allclose(quantiles.at(share), np.quantile(values, share, axis=0), rtol=1e-12)


def test_quantiles_leave_nan_out_and_know_nothing_at_first() -> None:
    quantiles = RunningQuantiles(2)
    assert np.isnan(quantiles.at(0.5)).all()
    quantiles.update(np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, np.nan]]))
    np.testing.assert_array_equal(quantiles.at(0.5), [2.0, np.nan])
    np.testing.assert_array_equal(quantiles.counts, [2.0, 0.0])


def test_quantiles_refuse_what_they_cannot_use() -> None:
    with pytest.raises(ParameterError, match=r"'size' .* a whole number in \[8, inf\)"):
        RunningQuantiles(1, size=4)
    quantiles = RunningQuantiles(2)
    with pytest.raises(ParameterError, match="'share'"):
        quantiles.at(2.0)
    with pytest.raises(DataError, match=r"shape \(rows, 2\)"):
        quantiles.update(np.zeros((3, 3)))
    with pytest.raises(DataError, match="shape"):
        quantiles.restore(RunningQuantiles(3).state())
    with pytest.raises(DataError, match="keys"):
        quantiles.restore({})


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("summaries", (0, 0, -1)), -3e8),
        (("summaries", (0, 0, -1)), 1e18),
        (("summaries", (0, 0, -1)), 0.5),
        (("summaries", (0, 1, -1)), -1.0),
        (("summaries", (1, 0, 3)), 1e9),
        (("summaries", (1, 1, 3)), 0.0),
        (("summaries", (1, 2, 3)), -1.0),
        (("summaries", (1, 0, 3)), np.nan),
        (("kept", 0), 17.0),
        (("kept", 0), 5.0),
        (("counts", 1), 1e300),
    ],
)
def test_quantiles_refuse_a_state_that_cannot_be(place: Any, value: float) -> None:
    quantiles = RunningQuantiles(2, size=16)
    quantiles.update(np.random.default_rng(0).normal(size=(100, 2)))
    state = quantiles.state()
    state[place[0]][place[1]] = value
    with pytest.raises(DataError, match=CORRUPT):
        quantiles.restore(state)


def test_the_scaler_is_robust_scaler_until_it_is_full() -> None:
    X = np.random.default_rng(0).standard_cauchy((128, 3))
    X[:, 2] = 5.0
    X[::9, 0] = np.nan
    for settings in ({}, {"quantile_range": (10.0, 80.0)}, {"with_centering": False}, {"with_scaling": False}):
        ours, theirs = MedianScaler(**settings).fit(X), RobustScaler(**settings).fit(X)
        np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-12, atol=1e-12)


def test_the_scaler_learns_from_batches_what_it_learns_from_all() -> None:
    X = np.random.default_rng(0).normal(size=(700, 2)) * [1.0, 1e6] + [0.0, 1e3]
    whole, parts = MedianScaler().fit(X), MedianScaler()
    for first, last in ((0, 1), (1, 300), (300, 700)):
        parts.partial_fit(X[first:last])
        if last == 300:
            restored = MedianScaler()
            restored.restore(parts.state())
            parts = restored
    np.testing.assert_array_equal(whole.center_, parts.center_)
    np.testing.assert_array_equal(whole.scale_, parts.scale_)
    np.testing.assert_array_equal(parts.n_samples_seen_, [700, 700])
    assert 0.0 < whole.rank_error_.max() < 0.03
    np.testing.assert_allclose(whole.inverse_transform(whole.transform(X)), X, rtol=1e-9)
    with pytest.raises(ParameterError, match=r"'quantile_range' .* two increasing numbers"):
        MedianScaler(quantile_range=(80.0, 20.0)).fit(X)
    with pytest.raises(ParameterError, match="'size' parameter of MedianScaler"):
        MedianScaler(size=4).fit(X)
    with pytest.raises(ParameterError, match=r"'with_centering' .* True or False"):
        MedianScaler(with_centering="no").fit(X)
