"""The self-tuning learner's own guarantees: formulas, a ledger that agrees with the learner, games that obey."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

import redescend as rd
from redescend import losses
from redescend.bounds import follow, noise, outlier_price, tracking

SHARE = 1e-3
LOSSES = [
    losses.Squared(),
    losses.Squared(l2=0.05),
    losses.Absolute(),
    losses.EpsilonInsensitive(0.2),
    losses.Pinball(0.8),
    losses.Logistic(),
    losses.Hinge(l2=1e-3),
]


def stream_for(loss, rounds: int, seed: int) -> rd.Stream:
    """A truth that jumps halfway, records of uneven length, a fifth of them corrupted."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rounds, 3)) * rng.choice([1.0, 1.0, 10.0], size=(rounds, 1))
    truth = np.where(np.arange(rounds)[:, None] < rounds // 2, rng.normal(size=3), rng.normal(size=3))
    y = np.einsum("ij,ij->i", X, truth) + 0.1 * rng.normal(size=rounds)
    adversary = rd.adversaries.LabelFlip() if loss.margin else rd.adversaries.ShiftResponse(1e3)
    return adversary.corrupt(rd.Stream(X, np.sign(y) if loss.margin else y), rounds // 5, seed=seed)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_every_run_obeys(loss, order):
    stream = stream_for(loss, 300, seed=order)
    ledger = follow(rd.SelfTuning(3, loss=loss, order=order), stream)
    assert ledger.tracks
    assert ledger.knows_the_noise
    assert ledger.outliers_cost_no_more
    # Not for want of meaning: the weights follow the best sequence closely, and some cells stayed all along.
    assert ledger.best_sequence - ledger.played.sum() < 0.1 * tracking(300, 9, switches=20)
    assert np.isfinite(ledger.cells).all(axis=0).sum() >= 12
    # Cheating on any of the three is noticed.
    assert not dataclasses.replace(ledger, played=ledger.played + 0.2).tracks
    assert not dataclasses.replace(ledger, noise=ledger.noise + 0.2).knows_the_noise
    assert not dataclasses.replace(ledger, price=0.01 * ledger.price).outliers_cost_no_more


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_ledger_predicts_the_weights(loss):
    """g_t(i) and Z_t are those of the learner: they give its next weights."""
    learner, stream = rd.SelfTuning(3, loss=loss), stream_for(loss, 90, seed=4)
    ledger = follow(rd.SelfTuning(3, loss=loss), stream)
    for row in range(90):
        before = learner.state()["weights"]
        learner.update(stream.X[row], stream.y[row])
        if row not in ledger.rows:
            continue
        t = np.searchsorted(ledger.rows, row)
        after = learner.state()["weights"]
        if np.count_nonzero(after) == np.count_nonzero(before):
            bayes = before * np.exp(ledger.played[t] - np.where(before > 0, ledger.members[t], np.inf))
            expected = np.where(before > 0, (1 - SHARE) * bayes + SHARE / np.count_nonzero(before), 0.0)
            np.testing.assert_allclose(after, expected, rtol=1e-6, atol=1e-12)
    assert ledger.active[-1] > ledger.active[0]


def test_the_best_sequence_is_the_best_of_all():
    rng = np.random.default_rng(0)
    ledger = follow(rd.SelfTuning(3, loss=losses.Squared()), stream_for(losses.Squared(), 5, seed=0))
    small = dataclasses.replace(ledger, members=rng.exponential(20, size=(5, 3)), active=np.full(5, 3))
    every = []
    for sequence in itertools.product(range(3), repeat=5):
        switches = sum(left != right for left, right in itertools.pairwise(sequence))
        every.append(small.members[np.arange(5), sequence].sum() + tracking(5, 3, switches))
    assert small.best_sequence == pytest.approx(min(every), rel=1e-12)


def test_formulas():
    # Of the docs, written again.
    expected = math.log(9) + 3 * math.log(9 / 1e-3) + (100 - 1 - 3) * math.log(1 / (1 - 1e-3))
    assert tracking(100, 9, switches=3) == pytest.approx(expected)
    assert noise(50, prior=0.02) == pytest.approx(math.log(50) + 50 * math.log(1 / (1 - 1e-4)))
    labels = math.log(50) + 50 * math.log(1 / (1 - 1e-5))
    assert noise(50, prior=0.02, labels=True) == pytest.approx(labels)
    assert noise(50, prior=0.02, moves=3) == pytest.approx(noise(50, prior=0.02) + 3 * math.log(1 + 1e-4))
    assert outlier_price(3.0, narrowest=0.5, widest=8.0) == pytest.approx(math.log(200 * 8 / 0.5))
    assert outlier_price(labels=True) == pytest.approx(math.log(99))


def test_the_price_of_an_outlier_is_logarithmic_in_its_size():
    loss, paid = losses.Squared(), []
    for size in (1e3, 1e6, 1e9):
        stream = rd.adversaries.ShiftResponse(size).corrupt(
            rd.streams.ridge(200, seed=0, dim=3), k=1, seed=0, when="last"
        )
        ledger = follow(rd.SelfTuning(3, loss=loss), stream)
        assert ledger.outliers_cost_no_more
        paid.append(ledger.price[-1])
    first, second = np.diff(paid)
    assert 0.0 < first <= math.log(1e3)
    assert second == pytest.approx(first, rel=0.01)


@pytest.mark.parametrize("flipped", [0, 40])
def test_the_mixture_of_predictions_is_covered_by_the_bound(flipped):
    """For the logistic loss, LEARN's loss of p̂ is at most −ln Z_t: what is proved holds for what is played."""
    loss = losses.Logistic()
    stream = rd.adversaries.LabelFlip().corrupt(rd.streams.svm(200, seed=1), k=flipped, seed=2)
    learner = rd.SelfTuning(2, loss=loss)
    ledger = follow(rd.SelfTuning(2, loss=loss), stream)
    for t in range(200):
        state = learner.state()
        rate = state["cells"] @ np.array([0.01, 0.05, 0.1, 0.17, 0.25, 0.33])
        p = state["scalars"][5] * state["thetas"] @ stream.X[t]
        chance = state["weights"] @ (1 / (1 + np.exp(-stream.y[t] * p)))
        assert ledger.mixed[t] == pytest.approx(-math.log(chance), rel=1e-9, abs=1e-12)
        robust = -math.log(rate.sum() + (1 - 2 * rate.sum()) * chance)
        learner.update(stream.X[t], stream.y[t])
        norms = learner.state()["norms"]
        typical = np.quantile(norms[norms > 0], 0.5, method="inverted_cdf")
        assert min(1.0, typical / (stream.X[t] @ stream.X[t])) * robust <= ledger.played[t] + 1e-9


def test_a_stream_that_teaches_nothing_has_empty_books():
    ledger = follow(rd.SelfTuning(2, loss=losses.Squared()), rd.Stream(np.ones((5, 2)), np.zeros(5)))
    assert len(ledger.rows) == 0
    assert ledger.tracks
    assert ledger.knows_the_noise
    assert ledger.outliers_cost_no_more


def test_the_books_begin_with_the_learner():
    learner = rd.SelfTuning(2, loss=losses.Squared())
    rd.play(learner, rd.streams.ridge(5, seed=0, dim=2))
    with pytest.raises(rd.errors.DataError, match="has played 5 rounds"):
        follow(learner, rd.streams.ridge(5, seed=0, dim=2))


def test_only_a_self_tuning_learner_has_books():
    with pytest.raises(rd.errors.ParameterError, match="must be a SelfTuning learner"):
        follow(rd.OGD(2, loss=losses.Squared(), step=rd.steps.Anytime()), rd.streams.ridge(5, seed=0, dim=2))
