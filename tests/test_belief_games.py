"""Games of self-tuning learners: every record is judged, and the belief is part of the learner's state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import redescend as rd
from redescend.belief import LabelBelief, ResidualBelief
from redescend.errors import DataError

PARTS = ("clean_log_odds", "low", "high")


def wrong_targets(rounds: int = 3000) -> rd.Stream:
    return rd.adversaries.UniformResponse(0, 20).corrupt(
        rd.streams.ridge(rounds, seed=0, dim=4), k=rounds // 10, seed=1
    )


def test_a_game_says_of_every_record_what_its_belief_said() -> None:
    stream = wrong_targets()
    trace = rd.play(rd.SelfTuning(4, loss=rd.losses.Squared()), stream)
    expected = ResidualBelief(4).update(trace.predictions, stream.y, stream.X)
    for name in PARTS:
        np.testing.assert_array_equal(getattr(trace, name), getattr(expected, name))
    assert trace.clean_probability is not None
    assert np.median(trace.clean_probability[stream.clean]) > 0.9
    assert np.median(trace.clean_probability[~stream.clean][100:]) < 0.1


def test_games_in_parts_with_saved_learners_and_beliefs_give_equal_bits(tmp_path: Path) -> None:
    stream = wrong_targets(1000)
    whole = rd.play(rd.SelfTuning(4, loss=rd.losses.Squared()), stream)
    learner, belief, parts = rd.SelfTuning(4, loss=rd.losses.Squared()), None, []
    for first, last in ((0, 1), (1, 250), (250, 1000)):
        part = rd.play(learner, rd.Stream(stream.X[first:last], stream.y[first:last]), belief=belief)
        assert part.belief is not None
        rd.save(learner, tmp_path / "learner")
        rd.save(part.belief, tmp_path / "belief")
        learner, belief = rd.load(tmp_path / "learner"), rd.load(tmp_path / "belief")
        parts.append(part)
    for name in PARTS:
        np.testing.assert_array_equal(getattr(whole, name), np.concatenate([getattr(part, name) for part in parts]))
    assert belief is not None
    assert belief.rounds == 1000


def test_a_belief_that_is_continued_stays_as_it_is_and_must_fit_the_learner() -> None:
    stream = wrong_targets(200)
    learner = rd.SelfTuning(4, loss=rd.losses.Squared())
    first = rd.play(learner, stream)
    assert first.belief is not None
    rd.play(learner, stream, belief=first.belief)
    assert first.belief.rounds == 200
    with pytest.raises(DataError, match=r"belief must be a ResidualBelief\(4\) for this learner"):
        rd.play(learner, stream, belief=ResidualBelief(3))
    with pytest.raises(DataError, match="OGD has no belief"):
        rd.play(rd.OGD(4, loss=rd.losses.Squared(), step=rd.steps.Anytime()), stream, belief=first.belief)


def test_labels_are_judged_and_skipped_rows_are_not() -> None:
    stream = rd.streams.svm(2000, seed=0)
    y = stream.y.copy()
    y[::20] *= -1.0
    y[7] = np.nan
    trace = rd.play(rd.SelfTuning(2, loss=rd.losses.Logistic()), rd.Stream(stream.X, y), bad_rows="skip")
    judged = np.arange(2000) != 7
    labels = LabelBelief().update(trace.predictions[judged], y[judged] > 0)
    assert trace.clean_log_odds is not None
    np.testing.assert_array_equal(trace.clean_log_odds[judged], labels.clean_log_odds)
    assert np.isnan(trace.clean_log_odds[7])
    assert np.isnan(trace.low).all()


def test_other_learners_judge_nothing() -> None:
    other = rd.play(rd.OGD(4, loss=rd.losses.Squared(), step=rd.steps.Anytime()), wrong_targets(200))
    assert other.clean_log_odds is other.clean_probability is other.low is other.belief is None
