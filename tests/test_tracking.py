"""The self-tuning learner's own guarantee: its formula, a ledger that agrees with the reference, games that obey."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

import redescend as rd
from redescend import losses
from redescend.bounds import Ledger, follow, tracking
from tests.reference_selftuning import MEMBERS, ORIGIN, SNAPSHOT, Reference

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
    ledger = follow(rd.SelfTuning(3, loss=loss, order=order), stream_for(loss, 600, seed=order))
    assert ledger.tracks
    # Not for want of meaning: some sequence comes close to its bound, and cheating is noticed.
    assert ledger.margin < 0.2 * tracking(600, MEMBERS, switches=5)
    assert not dataclasses.replace(ledger, lags=ledger.lags - 0.2).tracks


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_ledger_has_the_likelihoods_of_the_reference(loss):
    """ln Z_t − ln L_t(i), with the likelihoods that the reference multiplies its weights by."""
    stream, learner = stream_for(loss, 200, seed=4), Reference(3, loss, order=1)
    ledger = follow(rd.SelfTuning(3, loss=loss, order=1), stream)
    compared = 0
    for row, (x, y) in enumerate(zip(stream.X, stream.y, strict=True)):
        before = learner.W / learner.W.sum()
        learner.likelihood = None
        learner.play(x, y)
        if row in ledger.rows:
            t = int(np.searchsorted(ledger.rows, row))
            active = before > 0
            expected = np.log(before @ learner.likelihood) - np.log(learner.likelihood[active])
            kept = np.arange(MEMBERS)[active] != (SNAPSHOT if ledger.replaced[t] else -1)
            np.testing.assert_allclose(ledger.lags[t, active][kept], expected[kept], rtol=1e-6, atol=1e-7)
            compared += 1
    assert compared > 100


def test_the_margin_is_that_of_the_best_sequence():
    rng, share = np.random.default_rng(0), 1 / (1000 + np.arange(1, 5))
    lags, prior = np.full((4, MEMBERS), np.inf), np.full((4, MEMBERS), np.inf)
    some = [0, 1, ORIGIN, SNAPSHOT]
    lags[:, some], prior[:, some] = rng.normal(0, 20, size=(4, 4)), math.log(4)
    replaced = np.array([False, True, False, False])
    parts = np.where(np.arange(MEMBERS) == ORIGIN, 0.1, 1.0)
    ledger = Ledger(np.arange(4), lags, prior, np.arange(1.0, 5.0), np.arange(4) == 0, replaced, parts)
    every = []
    for sequence in itertools.product(some, repeat=4):
        cost = math.log(4) + lags[np.arange(4), sequence].sum()
        for t, (left, right) in enumerate(itertools.pairwise(sequence)):
            stays = left == right and not (replaced[t] and right == SNAPSHOT)
            cost += -math.log(1 - share[t]) if stays else math.log(4 / share[t] * (10 if right == ORIGIN else 1))
        every.append(cost)
    assert ledger.margin == pytest.approx(min(every), rel=1e-12)


def test_a_sequence_costs_at_most_the_bound():
    """The shares of a round, added up, are within the formula of the docs."""
    rounds, members = 400, 7
    shares = 1 / (1000 + np.arange(1, rounds))
    for switches in (0, 1, 7):
        most = math.log(10) + np.sort(np.log(10 * members / shares))[rounds - 1 - switches :].sum()
        most += np.sort(-np.log1p(-shares))[switches:].sum()
        assert most <= tracking(rounds, members, switches) + 1e-12
        assert most >= 0.99 * tracking(rounds, members, switches) - 0.1
    assert tracking(rounds, members, prior=0.01) - tracking(rounds, members) == pytest.approx(math.log(10))


def test_a_stream_that_teaches_nothing_has_an_empty_ledger():
    ledger = follow(rd.SelfTuning(2, loss=losses.Squared()), rd.Stream(np.ones((5, 2)), np.zeros(5)))
    assert len(ledger.rows) == 0
    assert ledger.tracks


def test_the_ledger_begins_with_the_learner():
    learner = rd.SelfTuning(2, loss=losses.Squared())
    rd.play(learner, rd.streams.ridge(5, seed=0, dim=2))
    with pytest.raises(rd.errors.DataError, match="has played 5 rounds"):
        follow(learner, rd.streams.ridge(5, seed=0, dim=2))


def test_only_a_self_tuning_learner_has_a_ledger():
    with pytest.raises(rd.errors.ParameterError, match="must be a SelfTuning learner"):
        follow(rd.OGD(2, loss=losses.Squared(), step=rd.steps.Anytime()), rd.streams.ridge(5, seed=0, dim=2))
