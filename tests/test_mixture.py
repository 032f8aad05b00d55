"""The mixture of the members of a non-linear model against its slow statement, and its bound on runs."""

from __future__ import annotations

import numpy as np
import pytest

from redescend import losses
from redescend.bounds import tracking
from redescend.engines import NonlinearEngine
from redescend.kernels.forest.mixture import MEMBERS, PRIOR, mix, new_mixture
from tests.reference_mixture import SlowMixture
from tests.test_nonlinear import friedman


@pytest.mark.parametrize("labels", [False, True])
def test_a_mixture_is_what_its_statement_says(labels):
    random, count = np.random.default_rng(1), 500
    truth = random.normal(size=count)
    noise = np.array([0.5, 1.0, 0.3, 0.05])[:, None] * np.where(np.arange(count) < 250, 1.0, [[0.1], [1], [1], [20]])
    members = np.ascontiguousarray((truth + noise * random.normal(size=(MEMBERS, count))).T)
    y = np.where(truth + random.logistic(size=count) > 0, 1.0, -1.0) if labels else truth.copy()
    y[::17] *= -1.0 if labels else 1e3
    counts = np.where(np.arange(count) % 5, 1.0, 0.3)
    told, mixture, slow = np.empty((1, count)), new_mixture(1), SlowMixture(labels)
    mix(mixture, members[None], y[None], np.ones(count), counts[None], labels, told)
    for t in range(count):
        assert told[0, t] == pytest.approx(slow.predict(members[t]), rel=1e-9, abs=1e-12)
        slow.learn(members[t], y[t], counts[t])
    np.testing.assert_allclose(mixture.weight[0], np.exp(slow.logs), rtol=1e-9)
    np.testing.assert_allclose(mixture.played[0], slow.played, rtol=1e-9)
    assert labels or (mixture.played[0] == 0.0).any()


def test_a_member_with_few_but_large_errors_is_left_out():
    random, count = np.random.default_rng(2), 2000
    y, members = random.normal(size=count), np.zeros((count, MEMBERS))
    members[:, 0] = y + random.choice([-1.0, 1.0], count)
    errors = np.where(random.random(count) < 0.05, 100.0, 0.1)
    members[:, 1:] = (y + errors * random.choice([-1.0, 1.0], count))[:, None]
    told, mixture = np.empty((1, count)), new_mixture(1)
    mix(mixture, members[None], y[None], np.ones(count), np.ones((1, count)), False, told)
    assert mixture.weight[0, 0] < 0.01
    np.testing.assert_allclose(mixture.played[0], [1.0, 0.0, 0.0, 0.0])
    assert np.abs(told[0] - y)[200:].mean() < 1.03
    wild = np.where(np.arange(count) % 10, y, 1e300)
    mix(mixture := new_mixture(1), members[None], wild[None], np.ones(count), np.ones((1, count)), False, told)
    assert all(np.isfinite(array).all() for array in mixture)
    np.testing.assert_allclose(mixture.played[0], [1.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(("share", "member"), [(0.35, 1), (0.05, 0)])
def test_the_linear_member_is_left_out_only_where_it_is_often_worse(share, member):
    random, count = np.random.default_rng(3), 2000
    y, signs = random.normal(size=(2, count))
    errors = np.where(random.random(count) < share, 100.0, 0.1)
    members = (y + np.sign(signs) * np.where(np.arange(MEMBERS)[:, None] == 1, 1.0, errors)).T.copy()
    told, mixture = np.empty((1, count)), new_mixture(1)
    mix(mixture, members[None], y[None], np.ones(count), np.ones((1, count)), False, told)
    assert mixture.played[0, 1] == float(member == 1)


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic()])
def test_the_log_loss_of_a_run_is_within_the_tracking_bound(loss):
    X, y = friedman(500, 23)
    Y = np.where(y > np.median(y), 1.0, -1.0)[None] if loss.margin else y[None]
    Y[0, 100:130] *= -1.0
    engine, slow = NonlinearEngine(5, 1, loss, 2), SlowMixture(loss.margin)
    for t in range(len(y)):
        one = slice(t, t + 1)
        members = engine.predict_members(X[one])[0, 0]
        assert engine.learn_rounds(X[one], Y[:, one].copy()).predictions[0, 0] == pytest.approx(slow.predict(members))
        slow.learn(members, Y[0, t])
    mine, theirs = np.cumsum(slow.losses), np.cumsum(slow.member_losses, axis=0)
    for t in (10, 100, 500):
        for member in range(MEMBERS):
            assert mine[t - 1] - theirs[t - 1, member] <= tracking(t, MEMBERS, prior=PRIOR[member]) + 1e-9
        # One change of the member, anywhere: the best before it, and the best after it.
        best = min(theirs[s - 1].min() + (theirs[t - 1] - theirs[s - 1]).min() for s in range(1, t))
        assert mine[t - 1] - best <= tracking(t, MEMBERS, 1, min(PRIOR)) + 1e-9
    assert mine[-1] < theirs[-1, 0]
