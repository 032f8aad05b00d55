"""A learner that several threads play at once says so, instead of losing rounds."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import redescend as rd
from redescend import losses, steps
from redescend.errors import ConcurrentUseError

LEARNERS = {
    "descent": lambda: rd.OGD(50, loss=losses.Squared(), step=steps.Anytime(0.1)),
    "self-tuning": lambda: rd.SelfTuning(50, loss=losses.Squared()),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_rounds_are_played_or_refused(name):
    """The rounds of all games that were not refused, and no others."""
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 50))
    stream = rd.Stream(X, X[:, 0])
    learner, refused, played = LEARNERS[name](), [], []
    rd.play(learner, rd.Stream(X[:10], X[:10, 0]))  # compiles

    def play():
        barrier.wait()
        for _ in range(4):
            try:
                rd.play(learner, stream)
            except ConcurrentUseError as error:
                refused.append(str(error))
            else:
                played.append(len(stream))

    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=play) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) + len(played) == 8
    assert learner.rounds == 10 + sum(played)
    assert all("is played by another thread, and rounds would be lost" in sentence for sentence in refused)
    learner.update(X[0], 1.0)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_that_is_playing_takes_no_other_round(name):
    learner = LEARNERS[name]()
    learner._is_playing = True
    with pytest.raises(ConcurrentUseError, match="use one learner for each thread, or a lock"):
        learner.update(np.ones(50), 1.0)
    assert learner.rounds == 0
    learner._is_playing = False
    learner.update(np.ones(50), 1.0)
    with pytest.raises(rd.errors.DataError):
        learner.update(np.full(50, np.nan), 1.0)
    learner.update(np.ones(50), 1.0)
    assert learner.rounds == 2
