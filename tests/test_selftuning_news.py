"""What is new in a record: its parts against the reference, and that what is rare is learned."""

import numpy as np
import pytest

import redescend as rd
from redescend import losses
from redescend.kernels.selftuning import layout, novelty
from tests.reference_selftuning import News


def test_what_is_new_is_as_stated():
    """With features that come late, one that never does, scales that are not known yet, and records far too long."""
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 5)) * (random.random((200, 5)) < [1.0, 0.5, 0.1, 0.02, 0.0])
    X[::9] *= 100.0
    X[:, 0][X[:, 0] == 0.0] = 1.0
    expected, table, scalars = News(5), np.outer([1.0, 0.0], np.ones(5)), np.zeros(layout.SCALARS)
    scalars[layout.NEW] = 1.0
    some_new = 0
    for row, x in enumerate(X):
        metric = np.where(random.random(5) < 0.1, 0.0, random.uniform(0.5, 2.0, size=5))
        typical, fits, size = random.uniform(1.0, 5.0), random.random() ** 4, random.exponential()
        longer, norm2 = metric.copy(), float(x @ x)
        assert novelty.anything(X, row, table) == bool(np.any((x != 0.0) & (expected.newness > 0.0)))
        seen = novelty.look(X, row, norm2, typical, float(metric @ x**2), table, scalars, longer)
        share, wide, stretched = expected.look(x, metric, typical)
        np.testing.assert_allclose(seen, [share, wide, stretched @ x**2], rtol=1e-12)
        np.testing.assert_allclose(longer, stretched, rtol=1e-12)
        if novelty.anything(X, row, table):
            novelty.grow_old(X, row, fits, size, longer, table)
        scalars[layout.NEW] = novelty.age(scalars[layout.NEW], fits, novelty.SLOWLY)
        expected.learn(x, stretched, fits, size)
        np.testing.assert_allclose(table, [expected.newness, expected.sizes], rtol=1e-12)
        assert scalars[layout.NEW] == pytest.approx(expected.stream, rel=1e-12)
        some_new += share > 0.0
    assert some_new > 20
    assert (table[:, 4] == [1.0, 0.0]).all()
    assert table[0, 0] == 0.0


def with_levels(levels, others, share_wrong, seed, rounds=10_000):
    """A category of many levels whose effects are fifty times the noise, beside features that are always there."""
    random = np.random.default_rng(seed)
    level, rest = random.integers(levels, size=rounds), random.normal(size=(rounds, others))
    X = np.hstack([np.eye(levels)[level], rest, np.ones((rounds, 1))])
    truth = np.concatenate([50.0 * random.normal(size=levels), random.normal(size=others), [3.0]])
    y, wrong = X @ truth + random.normal(size=rounds), random.random(rounds) < share_wrong
    y[wrong] = random.uniform(-150.0, 150.0, size=wrong.sum())
    return rd.Stream(X, y), X @ truth, wrong


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("levels", "others", "share_wrong"), [(10, 0, 0.0), (20, 0, 0.0), (20, 10, 0.0), (10, 5, 0.1)])
def test_levels_that_matter_much_are_learned(levels, others, share_wrong, order):
    for seed in range(4):
        stream, truth, wrong = with_levels(levels, others, share_wrong, seed)
        learner = rd.SelfTuning(stream.dim, loss=losses.Squared(), order=order)
        weights = rd.play(learner, stream).weights
        late = slice(5_000, None)
        explained = 1.0 - np.mean((stream.X @ learner.theta - truth)[late] ** 2) / np.var(truth[late])
        assert explained > 0.99
        assert weights[late][~wrong[late]].mean() > 0.5
        assert share_wrong == 0.0 or weights[late][wrong[late]].mean() < 0.15


def test_without_it_they_are_not():
    """So the test above can fail."""
    worst = 1.0
    for seed in range(4):
        stream, truth, _ = with_levels(20, 0, 0.0, seed)
        learner = rd.SelfTuning(stream.dim, loss=losses.Squared(), without=["novelty"])
        rd.play(learner, stream)
        worst = min(worst, 1.0 - np.mean((stream.X @ learner.theta - truth)[5000:] ** 2) / np.var(truth[5000:]))
    assert worst < 0.9


@pytest.mark.parametrize("order", [1, 2])
def test_a_rare_switch_is_learned(order):
    """Two records in a hundred have it, among twenty features that are known well, with a tenth of outliers."""
    random = np.random.default_rng(1)
    X = np.hstack([random.normal(size=(10_000, 20)), random.random((10_000, 1)) < 0.02, np.ones((10_000, 1))])
    y = X @ np.r_[random.normal(size=20), 50.0, 3.0] + random.normal(size=10_000)
    wrong = random.random(10_000) < 0.1
    y[wrong] = random.uniform(-100.0, 100.0, size=wrong.sum())
    learner = rd.SelfTuning(22, loss=losses.Squared(), order=order)
    rd.play(learner, rd.Stream(X, y))
    assert learner.theta[20] == pytest.approx(50.0, abs=3.0)


def test_dense_records_are_judged_as_before():
    """Where every feature is in every record nothing stands out, so nothing changes."""
    stream = rd.adversaries.UniformResponse(-50, 50).corrupt(rd.streams.ridge(3000, seed=0, dim=10), k=500, seed=1)
    one = rd.play(rd.SelfTuning(10, loss=losses.Squared()), stream)
    two = rd.play(rd.SelfTuning(10, loss=losses.Squared(), without=["novelty"]), stream)
    assert (one.weights == two.weights).all()
    assert (one.theta == two.theta).all()
