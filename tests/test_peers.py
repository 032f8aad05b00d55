"""The contest with other packages: what is counted, who wins, and what a diverging contestant gets."""

from __future__ import annotations

import io

import numpy as np
import pytest
from benchmarks.peers import contest
from benchmarks.peers.__main__ import table
from benchmarks.peers.contestants import Batches, Refitted, RiverRows
from rich.console import Console
from river import linear_model
from sklearn.linear_model import LinearRegression, SGDClassifier

import redescend as rd
from redescend.sklearn import RedescendingRegressor

STREAMS = {share: stream for share, stream in contest.regression_streams(600, 3).items() if share in (0.0, 0.25)}


class Constant:
    def __init__(self, value: float) -> None:
        self.value = value

    def predict(self, X):
        return np.full(len(X), self.value)

    def learn(self, X, y):
        if self.value < 0.0:
            raise ValueError("lost")


def test_clean_records_alone_count():
    stream = STREAMS[0.25]
    paid, seconds = contest.play(Constant(0.5), stream, contest.squared)
    assert paid == pytest.approx(np.mean((0.5 - stream.y[stream.clean]) ** 2))
    assert seconds > 0.0


def test_the_best_step_counts_and_who_fails_has_lost():
    entries = [contest.Entry("constant", Constant, (3.0, 0.0, -1.0)), contest.Entry("lost", Constant, (-1.0,))]
    found = list(contest.compete(entries, STREAMS, contest.squared))
    assert [(one.name, one.step) for one in found] == [("constant", 0.0), ("lost", -1.0)] * 2
    assert [one.loss < np.inf for one in found] == [True, False] * 2


def test_a_block_is_predicted_before_it_is_learned():
    seen = []

    class Watcher(Constant):
        def predict(self, X):
            seen.append(("predict", len(X)))
            return super().predict(X)

        def learn(self, X, y):
            seen.append(("learn", len(X)))

    contest.play(Watcher(0.0), rd.Stream(np.ones((250, 1)), np.ones(250)), contest.squared)
    assert seen == [("predict", 100), ("learn", 100)] * 2 + [("predict", 50), ("learn", 50)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Batches(RedescendingRegressor(), labels=False),
        lambda: RiverRows(linear_model.LinearRegression(), labels=False),
        lambda: Refitted(LinearRegression),
    ],
)
def test_contestants_learn(make, monkeypatch):
    monkeypatch.setattr("benchmarks.peers.contestants.EVERY", 200)
    paid, _ = contest.play(make(), STREAMS[0.0], contest.squared)
    nothing, _ = contest.play(Constant(0.0), STREAMS[0.0], contest.squared)
    assert paid < 0.7 * nothing


def test_labels_are_learned():
    stream = contest.classification_streams(600, 3)[0.1]
    paid, _ = contest.play(Batches(SGDClassifier(random_state=0), labels=True), stream, contest.mistaken)
    assert paid < 0.35


def test_the_table_marks_the_best_of_each_share():
    found = [
        contest.Result(name, share, loss, 0.1, 1e5, ours=False)
        for share in contest.SHARES
        for name, loss in (("a", 1.0), ("b", 2.0 - 4.0 * share))
    ]
    console = Console(width=120, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(table("who", found))
    shown = console.file.getvalue()
    assert shown.count("\x1b[1m1\x1b") >= 3
    assert "100,000" in shown
