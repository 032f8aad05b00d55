"""The gate on a manifold: its densities, its scale, and what it is worth on covariances with outliers."""

import numpy as np
import pytest
from examples import frechet_mean as example
from scipy import stats

import redescend as rd
from redescend import invex
from redescend.invex.noise_posterior import NoisePosterior


def seen(noise, *distances):
    return noise.compute_densities(np.array(distances))


def test_densities_are_those_of_the_statement():
    noise = NoisePosterior(15)
    clean, outlier, tops, _ = seen(noise, 0.7)
    scales = np.exp(noise.lowest + noise._offsets)[:-1]
    for place, k in enumerate(noise.kinds):
        # E[d²] = τ²: each of the k directions has the scale τ/√k
        density = stats.chi.pdf(0.7, k, scale=scales / np.sqrt(k))
        other = 0.5 * 0.7 ** (k - 1) / np.maximum(0.7, scales) ** k
        factor = 0.7 / np.exp(tops[0, 0, place])
        # exponentials of up to a hundred, where one rounding is 1e-14
        np.testing.assert_allclose(clean[0, :-1, place], density * factor, rtol=1e-11, atol=1e-300)
        np.testing.assert_allclose(outlier[0, :-1, place], other * factor, rtol=1e-11)


def test_the_weight_of_a_cell_is_that_of_learn():
    noise, tau, epsilon, k = NoisePosterior(4), 2.0, 0.1, 4
    cells = np.zeros_like(noise.cells)
    seen(noise, tau)
    scale = len(noise._offsets) // 2
    tau = np.exp(noise.lowest + noise._offsets[scale])
    cells[scale, -1, 2] = 1.0
    noise.cells = cells
    distances = np.linspace(0.05, 0.99, 7) * tau
    constant = (1 - k / 2) * np.log(2) - np.log(1.0) + (k / 2) * np.log(k)  # Γ(2) = 1
    transform = rd.transforms.Learn(a=tau**2 / k, b=epsilon * np.exp(-constant) / (2 * (1 - epsilon)))
    np.testing.assert_allclose(
        noise.weigh(noise.compute_densities(distances)), transform.weight(distances**2 / 2), rtol=1e-12
    )


@pytest.mark.parametrize("spread_in", [2, 15])
def test_the_stream_says_in_how_many_directions_it_spreads(spread_in):
    noise, generator = NoisePosterior(15), np.random.default_rng(0)
    for _ in range(400):
        noise.learn(seen(noise, np.linalg.norm(generator.normal(size=spread_in))), 0)
    likeliest = noise.kinds[noise.cells.sum(axis=(0, 2)).argmax()]
    assert likeliest == spread_in
    assert noise.typical == pytest.approx(np.sqrt(spread_in), rel=0.1)
    near, far = noise.weigh(seen(noise, np.sqrt(spread_in), 6.0 * np.sqrt(spread_in)))
    assert near > 0.9
    assert far < 1e-2


@pytest.mark.parametrize("unit", [1e-100, 1e-6, 1e6, 1e100])
def test_only_ratios_of_distances_count(unit):
    space, generator = invex.Euclidean(3), np.random.default_rng(1)
    records = generator.normal(size=(120, 3)) + 5.0
    records[::9] *= 40.0
    plain, scaled = invex.RobustFrechetMean(space), invex.RobustFrechetMean(space)
    for record in records:
        # logarithms of 1e100 have an error of 1e-14, a hundred times over
        assert plain.update(record).weight == pytest.approx(scaled.update(unit * record).weight, rel=1e-6, abs=1e-12)
    np.testing.assert_allclose(scaled.theta / unit, plain.theta, rtol=1e-6)


@pytest.mark.parametrize("first", [1e-100, 1e3, 1e100])
def test_neither_a_far_start_nor_a_first_outlier_freezes_it(first):
    space, generator = invex.Euclidean(2), np.random.default_rng(2)
    records = 7.0 + generator.normal(size=(80, 2))
    records[0] = first
    mean = invex.RobustFrechetMean(space, start=[-first, first])
    weights = [mean.update(record).weight for record in records]
    assert space.distance(mean.theta, np.full(2, 7.0)) < 1.0
    assert np.mean(weights[60:]) > 0.8


def test_it_follows_a_jump_and_is_back_soon():
    space, generator = invex.SPD(3), np.random.default_rng(3)
    mean = invex.RobustFrechetMean(space)
    for factor in (1.0, 50.0):
        for _ in range(100):
            mean.update(factor * space.random(generator, 0.1))
    assert space.distance(mean.theta, 50.0 * np.eye(3)) < 0.1


@pytest.mark.parametrize("value", [1e-120, 1e-30, 1e30, 1e120])
def test_no_record_makes_the_state_infinite(value):
    for space, far in (
        (invex.SPD(3), value * np.eye(3)),
        (invex.Hyperboloid(3), invex.Hyperboloid(3).lift([value] * 3)),
    ):
        generator = np.random.default_rng(4)
        mean = invex.RobustFrechetMean(space)
        for t in range(40):
            mean.update(far if t in (0, 1, 20, 21, 22) else space.random(generator, 0.1))
            assert all(np.isfinite(part).all() for part in mean.state().values() if isinstance(part, np.ndarray))
        assert space.distance(mean.theta, space.origin) < 1.0


def test_records_that_are_all_the_same_are_believed():
    space = invex.SPD(2)
    mean = invex.RobustFrechetMean(space, start=3.0 * np.eye(2))
    assert [mean.update(3.0 * np.eye(2)) for _ in range(3)] == [(0.0, 1.0)] * 3
    assert np.isnan(mean.typical)


def test_robust_is_near_the_oracle_where_plain_is_far():
    ends = {
        name: rows[:, -1]
        for name, rows in example.compute_curves(3, 300, 0.10, example.CORRUPTIONS["scaled by 5 to 20"]).items()
    }
    oracle = ends["oracle"].mean()
    assert ends["robust"].mean() < 1.5 * oracle
    assert ends["plain"].mean() > 5.0 * oracle


def test_without_outliers_it_costs_little_and_under_drift_it_wins():
    still, walk = (example.compute_curves(2, 200, 0.0, example.CORRUPTIONS["inverted"], drift) for drift in (0.0, 0.02))
    assert still["robust"][:, -1].mean() < 1.2 * still["oracle"][:, -1].mean()
    assert walk["robust"][:, -1].mean() < walk["oracle"][:, -1].mean()
