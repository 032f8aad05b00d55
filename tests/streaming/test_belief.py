"""What the model of a stream believes: rounds are judged, the belief is saved, and the final verdict is that of all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from scipy.special import softmax

import redescend as rd
from redescend.belief import LabelBelief, ResidualBelief
from redescend.errors import DataError
from redescend.streaming.rounds import Rounds

ROWS = 3000


def records(labels: int = 0) -> tuple[pa.Table, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, 2))
    wrong = random.random(ROWS) < 0.05
    if not labels:
        y = X @ [2.0, 1.0] + 0.3 * random.normal(size=ROWS) + 9.0 * wrong
    else:
        places = np.clip(np.floor(labels * 0.2 * (X @ [2.0, 1.0] + 2.5)), 0, labels - 1).astype(int)
        y = np.array([f"label {place}" for place in np.where(wrong, (places + 1) % labels, places)])
    missing = pa.array(X[:, 1], mask=random.random(ROWS) < 0.02)
    return pa.table({"a": X[:, 0], "b": missing, "y": y}), wrong


@pytest.mark.parametrize("labels", [0, 2, 4])
def test_every_round_is_judged_and_the_final_verdict_finds_the_wrong_records(labels, tmp_path):
    table, wrong = records(labels)
    model, run = rd.fit_stream(table, "y", rounds=tmp_path / "rounds.parquet")
    rounds = Rounds.concatenate(run.batches())
    assert isinstance(model.belief, LabelBelief if labels else ResidualBelief)
    assert model.belief.rounds == len(rounds) == ROWS
    log = parquet.read_table(tmp_path / "rounds.parquet")
    np.testing.assert_array_equal(log["clean_probability"], rounds.clean_probability)
    np.testing.assert_array_equal(log["suspect"], rounds.judged.suspect)
    verdict = model.give_verdict(rounds)
    late = slice(500, None)
    assert np.median(verdict.clean_probability[late][wrong[late]]) < np.quantile(verdict.clean_probability[late], 0.2)
    found = model.suspects(rounds, fdr=0.1)
    if labels > 2:
        found = found[found > 300]  # with several labels, the first records are judged by little
    assert np.mean(~wrong[found - 1]) < 0.2
    assert len(found) > 0.5 * np.count_nonzero(wrong)
    if not labels:
        np.testing.assert_array_equal(log["low"], rounds.low)
        inside = (rounds.low <= rounds.targets) & (rounds.targets <= rounds.high)
        assert abs(inside[~wrong][200:].mean() - 0.9) < 0.03
        low, high = model.predict_interval(table, level=0.5)
        wide_low, wide_high = model.predict_interval(table, level=0.99)
        assert ((wide_low < low) & (low < high) & (high < wide_high)).all()


@pytest.mark.parametrize("labels", [2, 3])
def test_probabilities_are_those_of_the_true_label_although_a_fifth_is_wrong(labels):
    ratios = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        X = random.normal(size=(6000, 3))
        logits = 4.0 * X[:, :labels]
        truth = (logits + random.gumbel(size=logits.shape)).argmax(axis=1)
        given = np.where(random.random(6000) < 0.2, (truth + random.integers(1, labels, 6000)) % labels, truth)
        names = np.array([f"label {place}" for place in range(labels)])
        table = pa.table({f"x{j}": X[:, j] for j in range(3)} | {"y": names[given]})
        model, run = rd.fit_stream(table.slice(0, 4000), "y", linear=True, final_look=False)
        run.run()
        shares = model.predict_proba(table.slice(4000))
        [chunk] = model.encode(table.slice(4000).combine_chunks().to_batches()[0])
        np.testing.assert_array_equal(shares, model.belief.predict_proba(model.engine.predict(chunk.X).T))
        rows = np.arange(2000)
        paid, best = (-np.log(told[rows, truth[4000:]]).mean() for told in (shares, softmax(logits[4000:], axis=1)))
        ratios.append(paid / best)
    assert np.mean(ratios) < 1.1


@pytest.mark.parametrize("labels", [0, 2])
def test_a_saved_model_continues_to_judge_with_equal_bits(labels, tmp_path):
    table, _ = records(labels)
    whole, run = rd.fit_stream(table, "y")
    expected = Rounds.concatenate(run.batches())
    rd.save(whole, tmp_path / "whole")
    half, run = rd.fit_stream(table, "y", checkpoint=tmp_path / "c", every=1000)
    parts = [next(run.batches())]
    run.close()
    half, run = rd.fit_stream(table, "y", checkpoint=tmp_path / "c", every=1000, resume=True)
    parts += [part[part.rows > len(parts[0])] for part in run.batches()]
    rounds = Rounds.concatenate(parts)
    np.testing.assert_array_equal(rounds.judged.clean_log_odds, expected.judged.clean_log_odds)
    rd.save(half, tmp_path / "half")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "half").read_bytes()
    again = rd.load(tmp_path / "whole")
    np.testing.assert_array_equal(again.clean_probability(table), whole.clean_probability(table))
    np.testing.assert_array_equal(
        again.give_verdict(expected).clean_log_odds, whole.give_verdict(expected).clean_log_odds
    )


def test_models_without_a_belief_say_so():
    table, _ = records()
    fixed, run = rd.fit_stream(table, "y", transform=rd.transforms.Huber(1.0))
    rounds = Rounds.concatenate(run.batches())
    assert fixed.belief is rounds.judged is None
    np.testing.assert_array_equal(rounds.clean_probability, rounds.weights)
    assert np.isnan(rounds.low).all()
    for ask in (lambda: fixed.give_verdict(rounds), lambda: fixed.predict_interval(table)):
        with pytest.raises(DataError, match="fixed transform"):
            ask()


def test_a_corrupt_belief_is_refused():
    table, _ = records()
    model, run = rd.fit_stream(table, "y")
    run.run()
    state = model.state()
    state["belief"]["scales"][0, 0] = 99.0
    with pytest.raises(DataError, match="ResidualBelief"):
        model.restore(state)
    state["belief"] = {}
    with pytest.raises(DataError, match="ResidualBelief"):
        model.restore(state)


def test_a_state_from_before_there_were_beliefs_still_predicts():
    table, _ = records()
    model, run = rd.fit_stream(table, "y")
    run.run()
    state = model.state()
    del state["belief"]
    old = rd.StreamModel(model.schema, features="auto")
    old.restore(state)
    assert old.belief is None
    np.testing.assert_array_equal(old.predict(table), model.predict(table))
    assert ((old.clean_probability(table) >= 0.0) & (old.clean_probability(table) <= 1.0)).all()


@pytest.mark.parametrize("long", [0, 1500])
def test_hours_without_rain_are_not_stuck_unless_they_are_far_more_than_ever(long):
    random = np.random.default_rng(5)
    rain, row = np.zeros(12_000), 0
    while row < len(rain):
        wet, dry = int(random.integers(1, 9)), int(60.0 * random.pareto(1.5)) + 1
        rain[row : row + wet] = np.exp(random.normal(size=len(rain[row : row + wet])))
        row += wet + min(dry, 400)
    rain[4000 : 4000 + long] = 0.0
    table = pa.table({"heat": random.normal(size=12_000) + 0.3 * (rain > 0.0), "rain": rain})
    run = rd.fit_stream(table, "rain", passes=1, final_look=True)[1]
    run.run()
    assert [(one.first > 3990, one.records >= long) for one in run.final.runs] == [(True, True)] * (long > 0)
