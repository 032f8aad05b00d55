"""Lagged features: exact at every cut and for every key, and an error does not mislead the records behind it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import redescend as rd
from redescend.belief import to_probability
from redescend.errors import DataError, ParameterError
from redescend.sources import open_source
from redescend.streaming import ModelStore, StreamModel, fit_stream, lags
from redescend.streaming.belief import learn_chunk
from redescend.streaming.encoding.encoder import EncodedBatch, EncodedChunk
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.explanation import explain_record, find_record
from tests.streaming.tables import batch_with

ROWS = 260


def series(rows=ROWS, seed=3, share=0.08):
    """A series with errors in its values, and gaps in a column."""
    random = np.random.default_rng(seed)
    noise, y = random.normal(size=rows), np.zeros(rows)
    for t in range(1, rows):
        y[t] = 0.9 * y[t - 1] + noise[t]
    x = random.normal(size=rows)
    y += x
    bad = random.random(rows) < share
    bad[:20] = False
    y[bad] += random.choice([-25.0, 25.0], bad.sum())
    shown = np.where(random.random(rows) < 0.05, np.nan, x)
    return pa.table({"x": pa.array(shown, from_pandas=True), "y": y, "up": np.where(y > 0, "yes", "no")}), bad


def make(table, **settings):
    source = open_source(table)
    settings = {"lags": [1, 5], "lag_columns": ["x"], "ignore": ["up"]} | settings
    schema = Schema.infer(source.sample, source.kinds, settings.pop("target", "y"), **settings)
    return (StreamModel if schema.by is None else ModelStore)(schema)


def learn_one_by_one(table, back):
    """The statement: look back, predict, judge, learn, and remember a value that errors do not move."""
    model = make(table, lags=back)
    [chunk] = EncodedBatch(
        model.schema, batch_with(table.to_batches()[0]).table.select(model.schema.columns), True
    ).chunks()
    spans = {name: place for place, name in enumerate(model.schema.encoded)}
    engine, belief, past, run, rows = model.engine, model.belief, [], 0, []
    for index, target in enumerate(chunk.targets):
        X = chunk.X[index : index + 1].copy()
        for lag in back:
            known = past[-lag] if lag <= len(past) else {"y": np.nan, "x": np.nan}
            for name, value in known.items():
                X[0, spans[f"{name}, lag {lag}"]] = value
                X[0, -1] = max(X[0, -1], np.isnan(value))
        scores, _ = engine.learn_rounds(X, np.array([[target]]))
        judged = learn_chunk(belief, EncodedChunk(X, np.array([target]), np.array([0])), scores)
        rows.append((scores[0, 0], judged.clean_log_odds[0]))
        x = X[0, spans["x"]]
        run = run + 1 if to_probability(judged.clean_log_odds)[0] < 0.5 else 0
        if 0 < run <= lags.PATIENCE:
            before = past[-1]
            target = sorted((target, scores[0, 0], before["y"]))[1]
            x = x if np.isnan(before["x"]) else before["x"]
        past.append({"y": target, "x": x})
    return np.array(rows)


@pytest.mark.parametrize("back", [[1], [1, 5], [3]])
def test_records_are_played_as_if_one_by_one(back):
    table, bad = series()
    model = make(table, lags=back)
    rounds = model.learn(batch_with(table.to_batches()[0])).rounds
    expected = learn_one_by_one(table, back)
    np.testing.assert_array_equal(rounds.predictions, expected[:, 0])
    np.testing.assert_array_equal(rounds.judged.clean_log_odds, expected[:, 1])
    assert (rounds.clean_probability[bad] < 0.5).mean() > 0.5


@pytest.mark.parametrize("target", ["y", "up"])
def test_every_cut_of_a_stream_gives_the_same_bits(target):
    table = series(60)[0]
    settings = {"target": target, "ignore": [] if target == "up" else ["up"], "lags": [1, 7]}
    whole = make(table, **settings)
    expected = whole.learn(batch_with(table.to_batches()[0])).rounds
    for cut in range(1, 60):
        model = make(table, **settings)
        first = model.learn(batch_with(table.to_batches()[0].slice(0, cut))).rounds
        resumed = make(table, **settings)
        resumed.restore(model.state())
        rest = resumed.learn(batch_with(table.to_batches()[0].slice(cut), cut + 1)).rounds
        together = type(first).concatenate([first, rest])
        np.testing.assert_array_equal(together.predictions, expected.predictions)
        np.testing.assert_array_equal(together.clean_probability, expected.clean_probability)
        np.testing.assert_array_equal(resumed.history.state()["values"], whole.history.state()["values"])


def test_a_run_that_was_stopped_anywhere_is_resumed(tmp_path):
    table = series(120)[0]
    lines = [f"{x},{y}\n" for x, y in zip(table["x"].to_pylist(), table["y"].to_pylist(), strict=True)]
    path = tmp_path / "a.csv"
    path.write_text("".join(["x,y\n", *lines]).replace("None", ""))
    settings = {"lags": [1, 24], "lag_columns": ["x"], "every": 10}
    expected, run = fit_stream(path, "y", rounds=tmp_path / "whole", checkpoint=tmp_path / "w", **settings)
    run.run()
    rd.save(expected, tmp_path / "whole.model")
    for stop in range(1, 13, 3):
        options = settings | {"checkpoint": tmp_path / f"c{stop}", "rounds": tmp_path / f"r{stop}"}
        with fit_stream(path, "y", **options)[1] as run:
            for _ in zip(range(stop), run.batches(), strict=False):
                pass
        model, run = fit_stream(path, "y", resume=True, **options)
        run.run()
        rd.save(model, tmp_path / "again.model")
        assert (tmp_path / "again.model").read_bytes() == (tmp_path / "whole.model").read_bytes()
        assert (tmp_path / f"r{stop}").read_bytes() == (tmp_path / "whole").read_bytes()
    with pytest.raises(ParameterError, match=r"was started with lags = \[1, 24\]"):
        fit_stream(path, "y", resume=True, **(options | {"lags": [1]}))


@pytest.mark.parametrize("transform", [None, rd.transforms.Huber(1.0)])
def test_with_keys_each_looks_back_at_its_own_records(transform):
    random, both = np.random.default_rng(0), pa.concat_tables([series(90, 1)[0], series(90, 2)[0]]).drop(["up"])
    keys = np.array(["one", "other"])[np.sort(random.permutation(180) % 2)]
    order = np.argsort(np.argsort(random.random(180) + 0.01 * (keys == "one")), kind="stable")
    order[np.argsort(keys[order], kind="stable")] = np.arange(180)  # records of a key stay in their order
    table = both.append_column("key", pa.array(keys)).take(pa.array(order)).combine_chunks()
    schema = make(table, by="key", ignore=[]).schema
    store, parts, again = (ModelStore(schema, transform=transform) for _ in range(3))
    rounds = store.learn(batch_with(table.to_batches()[0])).rounds
    for start, stop in ((0, 37), (37, 38), (38, 180)):
        parts.learn(batch_with(table.to_batches()[0].slice(start, stop - start), start + 1))
    again.restore(parts.state())
    np.testing.assert_array_equal(again.predict(table), store.predict(table))
    for key in ("one", "other"):
        model, part = (
            StreamModel(replace(schema, by=None), transform=transform),
            table.filter(pc.equal(table["key"], key)),
        )
        own = model.learn(batch_with(part.combine_chunks().to_batches()[0])).rounds
        mine = rounds[np.array(table["key"].to_pylist()) == key]
        # What is believed is shared by all keys: without a belief, all records are the same.
        count = 5 if transform is None else len(own)
        np.testing.assert_array_equal(mine.predictions[:count], own.predictions[:count])
        if transform is not None:
            np.testing.assert_array_equal(store[key].history.state()["values"], model.history.state()["values"])


def test_a_forecast_continues_with_its_own_predictions():
    table = series(400, share=0.0)[0]
    model, run = fit_stream(table.slice(0, 380), "y", lags=[1], ignore=["up"])
    run.run()
    future = table.slice(380)
    known, ahead = model.predict(future), model.predict(future.drop(["y"]))
    assert known[0] == ahead[0]
    assert np.std(known - future["y"].to_numpy()) < np.std(ahead - future["y"].to_numpy())
    # One at a time, each prediction is the target that the next record looks back at.
    history, told = model.start_history(), []
    for row in range(20):
        batch = batch_with(future.drop(["y", "up"]).slice(row, 1).combine_chunks().to_batches()[0])
        told.append(model.review(batch, history=history).rounds.predictions[0])
    np.testing.assert_array_equal(told, ahead)
    assert not np.array_equal(model.review(batch, history=model.start_history(fresh=True)).rounds.predictions, told[:1])


def test_a_long_forecast_does_not_look_through_all_that_is_left_for_every_record(monkeypatch):
    table, sizes, make_groups = series(200)[0], [], lags.Groups.make
    model, run = fit_stream(table, "y", lags=[1], ignore=["up"])
    run.run()
    expected = model.predict(table)
    monkeypatch.setattr(lags, "LARGEST", 16)
    monkeypatch.setattr(lags.Groups, "make", lambda keys: sizes.append(len(keys)) or make_groups(keys))
    np.testing.assert_array_equal(model.predict(table), expected)
    assert max(sizes) == 16


def test_in_the_final_look_the_first_record_follows_no_other(tmp_path):
    """Also after two passes, when tables whose order says nothing are judged by the final model."""
    table, told = series(600, share=0.0)[0], []
    for last in (0.0, 9.0):
        changed = table.set_column(1, "y", pa.array([*table["y"].to_pylist()[:-1], last]))
        settings = {"lags": [1], "ignore": ["up"], "passes": 2, "linear": True}
        _, run = fit_stream(changed, "y", final_look=True, rounds=tmp_path / "r.parquet", **settings)
        run.run()
        told.append(pq.read_table(tmp_path / "r.parquet")["final_prediction"][0].as_py())
    assert told[0] == pytest.approx(told[1], abs=0.5)


def test_a_saved_model_looks_back_at_the_same(tmp_path):
    table = series()[0]
    model, run = fit_stream(table, "y", lags=[1, 24], ignore=["up"])
    run.run()
    rd.save(model, tmp_path / "model")
    loaded = rd.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    damaged = model.state() | {"history": {"values": np.zeros((1, 3, 1)), "suspects": np.zeros(1, np.int64)}}
    with pytest.raises(DataError, match="StreamModel"):
        loaded.restore(damaged)
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))


def test_an_explanation_has_the_values_that_were_looked_back_at():
    table = series()[0]
    model, run = fit_stream(table, "y", lags=[1], ignore=["up"])
    run.run()
    found = explain_record(model, *find_record(open_source(table), model, 101))
    values = {one.column: one.value for one in found.contributions}
    before = table["y"].to_numpy()[99]
    assert values["y, lag 1"] == before or abs(values["y, lag 1"] - before) > 5.0
    assert found.total == pytest.approx(found.typical + sum(one.contribution for one in found.contributions))


def test_lags_that_cannot_be_are_refused():
    table = series(50)[0]
    for settings, message in (
        ({"lags": [0]}, r"'lags' parameter of fit_stream must be a list of whole numbers from 1 to 10,000"),
        ({"lags": [1], "shuffle": True}, "Lags need the order of the stream"),
        ({"lag_columns": ["x"]}, "'lag_columns' needs 'lags'"),
    ):
        with pytest.raises(ParameterError, match=message):
            fit_stream(table, "y", **settings)
    for columns, message in ((["up"], "is not a number"), (["z"], "no column 'z' that can be lagged")):
        with pytest.raises(DataError, match=message):
            fit_stream(table, "y", lags=[1], lag_columns=columns)
    with pytest.raises(DataError, match="is ignored, as requested"):
        fit_stream(table, "y", lags=[1], lag_columns=["x"], ignore=["x"])
    plain = make(table).schema.to_dict()
    plain["features"][-1]["lag"] = 10_001
    with pytest.raises(DataError, match="contradicts itself"):
        Schema.from_dict(plain)
