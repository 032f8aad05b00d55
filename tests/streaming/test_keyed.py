"""A model for each key: each is what it would be alone, on threads and on a cluster, and after a run was killed."""

import dataclasses
import io
import itertools
import json
import resource
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from dask.distributed import LocalCluster

import redescend as rd
from redescend.belief import ResidualBelief
from redescend.errors import DataError, DivergenceError, ParameterError
from redescend.sources import open_source
from redescend.state import CORRUPT
from redescend.streaming import ModelStore, StreamModel, fit_stream, keyed
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.keyed import shards
from redescend.streaming.rounds import Rounds

ROWS, SHOPS = 3000, 90


def stream(seed=1, rows=ROWS):
    """Shops with prices of their own; some records lack the shop, the price or a feature."""
    random = np.random.default_rng(seed)
    shop = (SHOPS * random.random(rows) ** 2).astype(int)
    area, color = random.normal(size=rows), random.integers(3, size=rows)
    price = shop * area + color + 0.1 * random.normal(size=rows)
    price[random.random(rows) < 0.1] = 400.0
    holes = random.random((4, rows)) < 0.02
    return pa.table(
        {
            "shop": pa.array([f"shop {number}" for number in shop], mask=holes[0]),
            "area": pa.array(area, mask=holes[1]),
            "color": pa.array(np.array(["red", "green", "blue"])[color], mask=holes[2]),
            "price": pa.array(price, mask=holes[3]),
            "size": np.array(["small", "middle", "large"])[np.digitize(price, [5.0, 30.0])],
            "dear": price > 20.0,
        }
    )


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def run(source, folder, **settings):
    """A pass, and the bytes of all that it writes."""
    folder.mkdir(exist_ok=True)
    outputs = {"rounds": folder / "rounds.parquet", "quarantine": folder / "bad.jsonl"}
    store, rounds = fit_stream(source, "price", by="shop", ignore=["size", "dear"], **outputs, **settings)
    rounds.run()
    rd.save({"store": store, "summary": rounds.summary.state()}, folder / "model")
    return store, rounds, files(folder)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return run(stream(), tmp_path_factory.mktemp("expected"))


@pytest.mark.parametrize("target", ["price", "dear", "size"])
@pytest.mark.parametrize("settings", [{}, {"order": 2}, {"transform": rd.transforms.Learn(1.0, 0.1)}], ids=repr)
def test_each_model_is_what_it_would_be_alone(target, settings):
    table, others = stream(), [name for name in ("price", "dear", "size") if name != target]
    store, rounds = fit_stream(table, target, by="shop", ignore=others, **settings)
    played = list(rounds)
    usable = table.filter(table["shop"].is_valid()).filter(table.filter(table["shop"].is_valid())[target].is_valid())
    assert store.keys == usable["shop"].unique().to_pylist()
    assert rounds.counts == (ROWS, usable.num_rows, ROWS - usable.num_rows, 0)
    assert store.records == usable.num_rows == sum(store[key].records for key in store)

    schema = dataclasses.replace(store.schema, by=None)
    for key in store.keys[::7]:
        alone = StreamModel(schema, features="linear", **settings)
        own = usable.filter(pa.compute.equal(usable["shop"], key))
        source = open_source(own, kinds=schema.kinds)
        learned = [alone.learn(batch).rounds for batch in source.batches(schema.columns, most=5)]
        whole = next(open_source(own, kinds=store.schema.kinds).batches(store.schema.columns))
        one_by_one = [one for part in learned for one in part.records(schema)]
        # NaN is no one's equal, and None is.
        assert [one[1:6] for one in played if one.key == key] == [one[1:6] for one in one_by_one]
        np.testing.assert_equal(store[key].state(), alone.state() | {"belief": None})
        np.testing.assert_array_equal(store.predict(own), alone.predict(own))
        found = [one.review(whole, target=True).rounds.weights for one in (store, alone)]
        np.testing.assert_array_equal(*found)
        assert store[key].explain() == alone.explain()
    if target != "price":
        assert store.predict_proba(usable).sum(axis=1) == pytest.approx(np.ones(usable.num_rows))


def test_rounds_and_bad_records_are_written_with_keys_and_reasons(expected, tmp_path):
    table, (_, rounds, found) = stream(), expected
    (tmp_path / "rounds.parquet").write_bytes(found["rounds.parquet"])
    log = parquet.read_table(tmp_path / "rounds.parquet")
    believed = ["clean_probability", "clean_log_odds", "low", "high", "scale", "stuck", "suspect"]
    assert log.column_names == ["row", "key", "target", "prediction", "loss", "weight", *believed]
    assert log["key"].to_pylist() == table["shop"].take(pa.compute.subtract(log["row"], 1)).to_pylist()
    reasons = {bad["row"]: bad["reason"] for bad in map(json.loads, found["bad.jsonl"].splitlines())}
    shops, prices = table["shop"].to_pylist(), table["price"].to_pylist()
    assert reasons == {
        row: "the key 'shop' is missing" if shops[row - 1] is None else "the target 'price' is missing"
        for row in range(1, ROWS + 1)
        if shops[row - 1] is None or prices[row - 1] is None
    }
    assert rounds.counts == (ROWS, ROWS - len(reasons), len(reasons), 0)
    assert all(doubted.values["shop"] == doubted.round.key for doubted in rounds.summary.least)


@pytest.mark.parametrize("settings", [{"jobs": 3, "every": 700}, {"every": 13}], ids=repr)
def test_threads_and_batches_change_nothing(expected, tmp_path, settings):
    assert run(stream(), tmp_path, **settings)[2] == expected[2]


@pytest.mark.parametrize("stop", [0, 1, 5])
def test_a_run_that_stopped_goes_on_to_the_same_files(expected, tmp_path, stop):
    kept = {"checkpoint": tmp_path / "run", "every": 400}
    outputs = {"rounds": tmp_path / "rounds.parquet", "quarantine": tmp_path / "bad.jsonl"}
    _, first = fit_stream(stream(), "price", by="shop", ignore=["size", "dear"], jobs=2, **outputs, **kept)
    with first:
        list(itertools.islice(first.batches(), stop))
    store, rounds, found = run(stream(), tmp_path, resume=True, **kept)
    assert rounds.resumed == 400 * max(0, stop - 1)
    assert found == expected[2]
    again, finished = fit_stream(
        stream(), "price", by="shop", ignore=["size", "dear"], cluster="tcp://nowhere", resume=True, **outputs, **kept
    )
    assert finished.finished
    with pytest.raises(ParameterError, match=r"was started with by = 'shop' and cannot be resumed with by = None"):
        fit_stream(stream(), "price", resume=True, ignore=["size", "dear"], **outputs, **kept)
    np.testing.assert_equal(again.state(), store.state())


def test_a_cluster_learns_the_same_and_says_when_it_lost_models(expected, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "MAX_CHAIN", 2)
    options = {"host": "127.0.0.1", "dashboard_address": None, "local_directory": str(tmp_path / "dask")}
    with LocalCluster(2, threads_per_worker=1, processes=True, **options) as cluster:
        address, kept = cluster.scheduler_address, {"checkpoint": tmp_path / "run", "every": 1500}
        with fit_stream(stream(), "price", by="shop", ignore=["size", "dear"], cluster=address)[1] as rounds:
            next(rounds.batches())
        np.testing.assert_equal(rounds.model["shop 3"].state(), expected[0]["shop 3"].state())
        assert run(stream(), tmp_path / "out", cluster=address, **kept)[2] == expected[2]
        lost = fit_stream(stream(), "price", by="shop", ignore=["size", "dear"], cluster=address, every=500)[1]
        next(lost.batches())
        cluster.scale(0)
        # It only begins to end them.
        while cluster.scheduler.workers:
            time.sleep(0.01)
        monkeypatch.setattr(shards, "WORKER_SECONDS", 1)
        with pytest.raises(DataError, match=r"^The Dask cluster at '.*' has lost models \(.*\); resume from the last"):
            lost.run()


def test_a_store_is_kept_in_one_file_and_goes_on(tmp_path):
    table = stream()
    store, rounds = fit_stream(table.slice(0, 2000), "price", by="shop", ignore=["size", "dear"])
    rounds.run()
    rd.save(store, tmp_path / "store")
    again = rd.load(tmp_path / "store")
    assert repr(again) == repr(store)
    assert again.keys == store.keys
    source = open_source(table.slice(2000), kinds=store.schema.kinds)
    for batch in source.batches(store.schema.columns, most=100):
        one, two = store.learn(batch), again.learn(batch)
        np.testing.assert_array_equal(list(one.rounds.arrays()), list(two.rounds.arrays()))
        assert one.rejected == two.rejected
    np.testing.assert_equal(again.state(), store.state())
    before = again.state()
    forged = [
        {"keys": before["keys"][1:], "shards": before["shards"]},
        {"keys": [*before["keys"][:-1], before["keys"][0]], "shards": before["shards"]},
        {"keys": before["keys"], "shards": before["shards"][1:]},
        {"keys": [*before["keys"][:-1], 5], "shards": before["shards"]},
        {"keys": before["keys"], "shards": [-part for part in before["shards"]]},
        {"keys": before["keys"]},
    ]
    for state in forged:
        with pytest.raises(DataError, match=rf"{CORRUPT}; fit the model again\.$"):
            again.restore(state)
    np.testing.assert_equal(again.state(), before)


def test_a_key_without_a_model_is_refused_record_by_record(expected):
    store = expected[0]
    table = pa.table({"area": [1.0, 2.0, 3.0], "color": ["red"] * 3, "shop": ["shop 3", "shop X", None]})
    batch = next(open_source(table, kinds=store.schema.kinds).batches([*store.schema.inputs, "shop"]))
    rounds, indices, bad = store.review(batch)
    assert indices.tolist() == [0]
    assert rounds.record(0, store.schema).key == "shop 3"
    assert [(one.row, one.reason) for one in bad] == [
        (2, "the key 'shop': there is no model of 'shop X'"),
        (3, "the key 'shop' is missing"),
    ]
    with pytest.raises(DataError, match=r"^Row 2: the key 'shop': there is no model of 'shop X'\.$"):
        store.predict(table)
    with pytest.raises(
        DataError, match=r"^There is no model of 'shop X', which is not one of the .* keys of 'shop'\.$"
    ):
        store["shop X"]
    with pytest.raises(DataError, match=r"^\[1\] cannot be a key"):
        store[[1]]
    assert "shop 3" in store
    assert "shop X" not in store
    assert len(store.predict(table.slice(0, 0))) == len(store.clean_probability(stream().slice(0, 0))) == 0


def test_keys_are_texts_whatever_they_look_like():
    text = "id,x,y\n" + "".join(f"{'07' if row % 3 else '7'},{row % 10},{row % 5}\n" for row in range(60))
    store, rounds = fit_stream(io.BytesIO(text.encode()), "y", by="id")
    rounds.run()
    assert store.keys == ["7", "07"]
    numbers = pa.table({"id": np.arange(60) % 2 + 2**60, "x": np.arange(60.0) % 10, "y": np.arange(60.0) % 7})
    store, rounds = fit_stream(numbers, "y", by="id")
    rounds.run()
    assert store[2**60].records == 30
    assert store.predict(numbers).shape == (60,)


def test_a_model_that_moves_beyond_all_numbers_is_named():
    settings = {"transform": rd.transforms.Identity(), "step": rd.steps.Constant(100.0)}
    _, rounds = fit_stream(stream(), "price", by="shop", ignore=["size", "dear"], **settings)
    with pytest.raises(DivergenceError, match=r"^Row \d+: the update of the model of 'shop \d+' overflowed"):
        rounds.run()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"by": "nothing"}, r"^There is no column 'nothing', named as the key"),
        ({"by": "price"}, r"^The column 'price' cannot be both the target and the key"),
        ({"by": "shop", "jobs": 0}, r"'jobs' parameter of fit_stream must be a whole number in \[1, inf\)"),
        ({"jobs": 2}, r"^'jobs' and 'cluster' train one model per key"),
        ({"cluster": "tcp://127.0.0.1:1"}, r"^'jobs' and 'cluster' train one model per key"),
        ({"by": "shop", "cluster": "nowhere"}, r"^No Dask cluster answers at 'nowhere'"),
    ],
)
def test_settings_are_checked_before_anything_is_learned(settings, sentence):
    with pytest.raises((DataError, ParameterError), match=sentence):
        fit_stream(stream(), "price", **settings)


def test_a_column_that_has_no_key_and_a_schema_without_keys_are_refused():
    with pytest.raises(DataError, match=r"^The column 'id' has no key in the first 3 records; name another\.$"):
        fit_stream(io.BytesIO(b'{"x": 1, "y": 2}\n{"x": 2, "y": 3}\n{"x": 3, "y": 5}\n'), "y", by="id")
    source = open_source(stream())
    with pytest.raises(ParameterError, match=r"'schema' parameter of ModelStore must be one with a column of keys"):
        ModelStore(Schema.infer(source.sample, source.kinds, "price"))


def test_more_keys_than_the_memory_has_room_for_end_the_run(monkeypatch):
    table = pa.table({"key": [str(row) for row in range(3000)], "x": np.arange(3000.0), "y": np.arange(3000.0)})
    store, rounds = fit_stream(table, "y", by="key")
    store.settle()
    monkeypatch.setattr(keyed, "MOST_MEMORY", 1000 * store._row_bytes)
    with pytest.raises(DataError, match=r"3,000 keys of 'key' so far, whose models take .* Name a column with fewer"):
        rounds.run()


def test_a_small_file_cannot_claim_models_of_many_columns(tmp_path):
    """Of order 2, the models of 20,000 columns would take 3 GiB, and more for each shard."""
    table = pa.table({name: [1.0, 2.0, 3.0] for name in ("x", "y")} | {"key": ["a", "b", "a"]})
    schema = fit_stream(table, "y", by="key", task="regression")[0].schema.to_dict()
    schema["features"] = [schema["features"][0] | {"name": f"c{number}"} for number in range(20_000)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wide = ModelStore(schema, order=2)
    state = {"keys": [], "shards": [np.empty((0, 5))] * keyed.SHARDS, "belief": None}
    wide.restore(state)
    assert len(wide) == 0
    state["shards"][keyed.Keys(["a"]).sizes.index(1)] = np.zeros((1, 20_001))
    with pytest.raises(DataError, match=r"models too small for 20,00[01] encoded columns"):
        wide.restore(state | {"keys": ["a"]})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_a_model_that_does_not_fit_in_memory_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(keyed, "MOST_MEMORY", 10)
    with pytest.raises(DataError, match="one for each key does not fit in the memory of this machine"):
        fit_stream(stream(), "price", by="shop")[1].run()


def test_records_are_judged_by_a_belief_with_scales_of_keys_in_the_order_of_the_stream():
    table = stream()
    store, rounds = fit_stream(table, "price", by="shop", ignore=["size", "dear"])
    said = Rounds.concatenate(list(rounds.batches()))
    schema = store.schema
    source = open_source(table, kinds=schema.kinds)
    chunks = [chunk for batch in source.batches(schema.columns) for chunk in store._encode(batch.table, True).chunks()]
    X = np.concatenate([chunk.X for chunk in chunks])
    judgements = ResidualBelief(schema.dim).update(said.predictions, said.targets, X, said.keys)
    for name, values in judgements._asdict().items():
        np.testing.assert_array_equal(getattr(said.judged, "margin" if name == "scale" else name), values)
    prices = dict(enumerate(table["price"].to_pylist(), 1))
    suspects = store.suspects(said, fdr=0.1)
    assert len(suspects) > 100
    assert np.mean([prices[row] == 400.0 for row in suspects.tolist()]) > 0.9
    low, high = store.predict_interval(table.filter(table["shop"].is_valid()))
    assert (low < high).all()
    assert store.belief.key_bytes <= 2000
    state = store.state()
    state["belief"]["numbers"] = state["belief"]["numbers"][:-1]
    with pytest.raises(DataError, match=CORRUPT):
        store.restore(state)


def test_the_final_verdict_on_records_of_keys_is_the_same_on_threads(tmp_path):
    found = []
    for jobs in (1, 2):
        path = tmp_path / f"rounds-{jobs}.parquet"
        settings = {"ignore": ["size", "dear"], "rounds": path, "final_look": True, "jobs": jobs}
        _, rounds = fit_stream(stream(), "price", by="shop", **settings)
        rounds.run()
        found.append(parquet.read_table(path))
        listed = rounds.final.rounds[: rounds.final.listed]
        assert listed.keys is not None
        assert np.mean(listed.targets == 400.0) > 0.9
        assert (rounds.final.q_value[: rounds.final.listed] <= 0.1).all()
    assert found[0].equals(found[1])
    assert {"final_probability", "final_low", "final_high"} <= set(found[0].column_names)
