"""Belief in labels: against the slow reference, under any cut, and on records with flipped labels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from redescend.belief import LabelBelief, select_suspects
from tests import reference_belief_labels
from tests.belief_games import labelled


@pytest.mark.parametrize("classes", [2, 3])
def test_labels_are_judged_as_by_the_slow_reference(classes: int) -> None:
    margins, labels, _ = labelled(600, classes)
    belief = LabelBelief(classes)
    online = belief.update(margins, labels)
    expected, final, positive = reference_belief_labels.judge_labels(margins, labels)
    np.testing.assert_allclose(online.clean_log_odds, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(belief.judge_log(margins, labels).clean_log_odds, final, rtol=1e-8, atol=1e-8)
    if classes == 2:
        calibrated = np.array([np.interp(reference_belief_labels.place(m), range(112), positive) for m in margins])
        calibrated = np.where(margins > 0.0, np.maximum(calibrated, 0.5), np.minimum(calibrated, 0.5))
        calibrated += 1e-6 * np.clip(64.0 * margins, -1.0, 1.0)
        np.testing.assert_allclose(belief.predict_proba(margins)[:, 1], calibrated, rtol=1e-8)


@pytest.mark.parametrize("classes", [20, 90])
def test_no_label_is_called_wrong_that_the_model_cannot_predict(classes: int) -> None:
    random = np.random.default_rng(0)
    margins, labels = random.normal(size=(2000, classes)), random.integers(0, classes, 2000)
    belief, table = LabelBelief(classes), LabelBelief(classes)
    belief.update(margins, labels)
    table.learn_table(margins, labels)
    for model in (belief, table):
        verdict = model.judge_log(margins, labels)
        assert len(verdict.suspects(0.1)) == 0
        assert len(np.unique(verdict.clean_log_odds)) == 2000
    _, final, _ = reference_belief_labels.judge_labels(margins[:300], labels[:300])
    short = LabelBelief(classes)
    short.update(margins[:300], labels[:300])
    np.testing.assert_allclose(short.judge_log(margins[:300], labels[:300]).clean_log_odds, final, rtol=1e-8, atol=1e-8)


def test_labels_are_called_wrong_where_predictions_with_large_margins_are_right() -> None:
    random = np.random.default_rng(1)
    margins, labels = random.normal(size=(3000, 20)), random.integers(0, 20, 3000)
    margins[np.arange(1000), labels[:1000]] += 30.0
    wrong = np.arange(0, 1000, 10)
    labels[wrong] = (labels[wrong] + random.integers(1, 20, 100)) % 20
    belief = LabelBelief(20)
    belief.learn_table(margins, labels)
    np.testing.assert_array_equal(np.sort(belief.judge_log(margins, labels).suspects(0.1)), wrong)


@pytest.mark.parametrize("classes", [2, 5])
def test_suspect_labels_are_mostly_flipped_and_probabilities_are_calibrated(classes: int) -> None:
    margins, labels, flipped = labelled(8000, classes)
    scores = np.column_stack([np.zeros(8000), margins]) if classes == 2 else margins
    right = np.exp(scores[np.arange(8000), labels]) / np.exp(scores).sum(axis=1)
    oracle = 0.85 * right / (0.85 * right + 0.15 * (1.0 - right) / (classes - 1))
    findable = np.count_nonzero(flipped[select_suspects(oracle, 0.1)])
    belief = LabelBelief(classes)
    probability = belief.update(margins, labels).clean_probability
    verdict = belief.judge_log(margins, labels)
    suspects = verdict.suspects(0.1)
    assert np.mean(~flipped[suspects]) < 0.15
    assert np.count_nonzero(flipped[suspects]) > 0.6 * findable
    assert abs(probability[1000:].mean() - np.mean(~flipped[1000:])) < 0.03
    shares = belief.predict_proba(margins)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert len(np.unique(verdict.clean_log_odds)) == 8000


def test_beliefs_in_labels_have_equal_bits_wherever_they_are_cut_and_saved() -> None:
    margins, labels, _ = labelled(1000, 3)
    whole = LabelBelief(3).update(margins, labels).clean_log_odds
    belief, parts = LabelBelief(3), []
    for first, last in itertools.pairwise([0, 1, 15, 16, 333, 1000]):
        parts.append(belief.update(margins[first:last], labels[first:last]).clean_log_odds)
        saved, belief = belief.state(), LabelBelief(3)
        belief.restore(saved)
    np.testing.assert_array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("classes", [2, 4])
def test_a_table_of_labels_has_no_order(classes: int) -> None:
    margins, labels, flipped = labelled(3000, classes)
    order = np.argsort(labels, kind="stable")
    one, other = LabelBelief(classes), LabelBelief(classes)
    one.learn_table(margins, labels)
    other.learn_table(margins[order], labels[order])
    assert one.rounds == 3000
    np.testing.assert_array_equal(one.predict_proba(margins), other.predict_proba(margins))
    np.testing.assert_array_equal(one.judge(margins, labels), other.judge(margins, labels))
    suspects = one.judge_log(margins, labels).suspects(0.1)
    assert np.mean(~flipped[suspects]) < 0.2
    one.update(margins, labels)
    assert one.rounds == 6000
