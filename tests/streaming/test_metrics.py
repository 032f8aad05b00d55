"""Metrics beside naive predictions: against a loop over the records, whatever the batches."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from redescend.streaming.rounds import Rounds
from redescend.streaming.summary.metrics import REFRESH, LabelMetrics, NumberMetrics

COUNT = 700
CUTS = [1, 2, 5, 255, 300, 301]


def make_rounds(targets, predictions, probabilities):
    return Rounds(np.arange(1, len(targets) + 1), targets, predictions, probabilities, *np.zeros((2, len(targets))))


def add_in_parts(metrics, rounds, clean, cuts):
    for low, high in itertools.pairwise([0, *cuts, len(rounds)]):
        metrics.add(rounds[low:high], clean[low:high])
        again = type(metrics)(*([len(metrics.frequencies)] if isinstance(metrics, LabelMetrics) else []))
        again.restore(metrics.state())
        metrics = again
    return metrics


def test_errors_of_numbers_are_those_of_a_loop():
    random = np.random.default_rng(4)
    targets = 1e4 + random.standard_t(2, COUNT).round(1)
    predictions, clean = targets + random.normal(size=COUNT), random.random(COUNT) < 0.8
    rounds = make_rounds(targets, predictions, np.full(COUNT, np.nan))
    whole = add_in_parts(NumberMetrics(), rounds, clean, [])
    parts = add_in_parts(NumberMetrics(), rounds, clean, CUTS)
    naive = []
    for place in range(1, COUNT):
        last = 1 << (place.bit_length() - 1) if place < REFRESH else place - place % REFRESH
        naive.append((predictions[place], targets[place - 1], np.median(targets[:last])))
    for column, (score, other) in enumerate(zip(whole.scores(), parts.scores(), strict=True)):
        assert repr(score) == repr(other)
        errors = np.array([target - said[column] for target, said in zip(targets[1:], naive, strict=True)])
        # Beyond 128 values the running median is approximate.
        close = {"rel": 0.01 if column == 2 else 1e-9}
        for side, chosen in enumerate((np.full(COUNT - 1, True), clean[1:])):
            some, there = errors[chosen], targets[1:][chosen]
            found = {name: pair[side] for name, pair in score.values.items()}
            assert found["mean absolute error"] == pytest.approx(np.abs(some).mean(), **close)
            assert found["root mean squared error"] == pytest.approx(math.sqrt((some**2).mean()), **close)
            explained = 1.0 - (some**2).sum() / ((there - there.mean()) ** 2).sum()
            assert found["R²"] == pytest.approx(explained, abs=0.01 if column == 2 else 1e-6)
        assert score.values["median error"][0] == pytest.approx(np.median(np.abs(errors)), rel=0.1)


@pytest.mark.parametrize("labels", [2, 3])
def test_correct_labels_are_those_of_a_loop(labels):
    random = np.random.default_rng(5)
    targets, predictions = random.integers(0, labels, (2, COUNT)).astype(float)
    probabilities, clean = random.uniform(0.5, 1.0, COUNT), random.random(COUNT) < 0.8
    rounds = make_rounds(targets, predictions, probabilities)
    whole = add_in_parts(LabelMetrics(labels), rounds, clean, [])
    parts = add_in_parts(LabelMetrics(labels), rounds, clean, CUTS)
    assert repr(whole.scores()) == repr(parts.scores())
    counts, best, said, losses = [0] * labels, int(targets[0]), [], []
    for place, label in enumerate(targets.astype(int).tolist()):
        if place:
            said.append([label == predictions[place], label == targets[place - 1], label == best])
            sure = probabilities[place]
            share = (counts[label] + 1) / (place + labels)
            losses.append([-math.log(sure if said[-1][0] else 1.0 - sure), -math.log(share)])
        counts[label] += 1
        if counts[label] > counts[best]:
            best = label
    for side, chosen in enumerate((np.full(COUNT - 1, True), clean[1:])):
        correct = np.mean(np.array(said)[chosen], axis=0)
        assert [score.values["correct"][side] for score in whole.scores()] == pytest.approx(correct)
        if labels == 2:
            model, before, most = (score.values["log loss"][side] for score in whole.scores())
            assert (model, most) == pytest.approx(np.mean(np.array(losses)[chosen], axis=0))
            assert np.isnan(before)
    assert ("log loss" in whole.scores()[0].values) == (labels == 2)
