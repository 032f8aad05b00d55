"""Labels that appear later in a stream: an output from that record on, the same in any cut of the stream."""

import io
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from dask.distributed import LocalCluster

import redescend as rd
from redescend.engines.config import ModelConfig
from redescend.engines.growing import add_label
from redescend.errors import DataError
from redescend.kernels.link import read_link
from redescend.kernels.selftuning import layout
from redescend.streaming import ModelStore, StreamModel
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.target import MAX_LABELS
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary import Summary
from tests.streaming.tables import batch_of, decided, kinds_of

LABELS = ["ash", "beech", "cedar", "durian"]
STARTS = [0, 0, 350, 470]
ROWS = 700


def columns(rows: int = ROWS, starts: list[int] = STARTS, seed: int = 3) -> dict[str, list[Any]]:
    """Records of groups that begin at these rows; a mistyped label, and bad records with labels of their own."""
    random = np.random.default_rng(seed)
    centres = 2.0 * random.normal(size=(len(starts), 3))
    groups = [random.choice([group for group, start in enumerate(starts) if start <= row]) for row in range(rows)]
    X = centres[groups] + random.normal(size=(rows, 3))
    y = [LABELS[group] for group in groups]
    y[rows * 3 // 4], y[200] = "ceddar", None
    a = [None if row % 30 == 4 else value for row, value in enumerate(X[:, 0].tolist())]
    a[320], y[320] = 1e200, "fir"
    site = ["north" if row % 3 else "south" for row in range(rows)]
    return {"a": a, "b": X[:, 1].tolist(), "c": X[:, 2].tolist(), "site": site, "y": y}


def part(table: dict[str, list[Any]], start: int, stop: int) -> Any:
    return batch_of({name: values[start:stop] for name, values in table.items()}, kinds_of(table), start + 1)


def growing(table: dict[str, list[Any]], **settings: Any) -> Schema:
    sample = {name: values[:300] for name, values in table.items()}
    return decided(sample, "y", grows=True, **settings)


MODELS = {
    "order 2": (StreamModel, {}, {}),
    "order 1": (StreamModel, {"order": 1}, {}),
    "hinge": (StreamModel, {"loss": "hinge"}, {}),
    "trees": (StreamModel, {"features": "auto"}, {}),
    "keys": (ModelStore, {}, {"by": "site"}),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_stream_and_any_cuts_of_it_give_the_same_model_rounds_and_summary(name, tmp_path):
    make, settings, schema = MODELS[name]
    table, found = columns(), {}
    decided_at_first = growing(table, **schema)
    for cuts in ([0, ROWS], [0, 1, 2, 320, 321, 349, 350, 351, 352, 460, 699, ROWS], [*range(0, ROWS, 50), ROWS]):
        model = make(decided_at_first, **settings)
        summary, played = Summary(decided_at_first), []
        for start, stop in pairwise(cuts):
            batch = part(table, start, stop)
            learned = model.learn(batch)
            summary.grow(model.schema)
            summary.add(learned.rounds, batch, learned.indices)
            summary.add_rejected(learned.rejected)
            played.append(learned.rounds)
            if start == cuts[1]:  # saved, loaded and continued
                rd.save(model, tmp_path / "model")
                model = rd.load(tmp_path / "model")
                again, state = Summary(model.schema), summary.state()
                again.restore(state)
                summary = again
        rd.save(model, tmp_path / "model")
        rd.save(summary.state(), tmp_path / "summary")
        rounds = [array.tobytes() for array in Rounds.concatenate(played).arrays()]
        found[len(cuts)] = (tmp_path / "model").read_bytes(), (tmp_path / "summary").read_bytes(), rounds
    first, *others = found.values()
    assert all(other == first for other in others)
    assert model.schema.labels == [*LABELS[:2], "cedar", "durian", "ceddar"]
    assert [row for _, row in model.schema.added] == [1 + table["y"].index(label) for label in model.schema.labels[2:]]
    assert summary.confusion.shape == (5, 5, 2)
    assert int(summary.confusion.sum()) == ROWS - 2


@pytest.mark.parametrize("name", MODELS)
def test_a_stream_may_begin_with_one_label(name, tmp_path):
    make, settings, schema = MODELS[name]
    table = columns(ROWS, [0, 310, 400])
    first, found = growing(table, **schema), []
    assert first.labels == ["ash"]
    assert [note.column for note in first.notes] == ["y"]
    for cuts in ([0, ROWS], [0, 300, 310, 311, 312, 400, 401, ROWS]):
        model = make(first, **settings)
        for start, stop in pairwise(cuts):
            model.learn(part(table, start, stop))
            rd.save(model, tmp_path / "model")
            model = rd.load(tmp_path / "model")
            if stop == 300:
                batch = part(table, 0, 40).table
                assert set(model.predict(batch).tolist()) == {"ash"}
                assert model.predict_proba(batch).shape == (40, 1)
                assert repr(model)
        found.append((tmp_path / "model").read_bytes())
    assert found[0] == found[1]
    assert model.schema.labels == ["ash", "beech", "cedar", "ceddar"]
    late = part(table, 550, ROWS)
    correct = model.predict(late.table) == np.array(table["y"][550:])
    assert correct.mean() > 0.8


def test_a_record_that_cannot_be_used_adds_no_label():
    table = columns()
    model = StreamModel(growing(table))
    rejected = model.learn(part(table, 0, ROWS)).rejected
    assert [(bad.row, bad.reason) for bad in rejected] == [
        (201, "the target 'y' is missing"),
        (321, "column 'a': 1e200 is too large to compute with (at most 1e100)"),
    ]
    assert "fir" not in model.schema.labels


def test_only_learning_adds_labels():
    table = columns()
    model = StreamModel(growing(table))
    model.learn(part(table, 0, 300))
    scored = model.review(part(table, 300, ROWS), target=True)
    assert {bad.reason for bad in scored.rejected} >= {"the target 'y': 'cedar' is none of the 2 labels"}
    assert model.schema.labels == LABELS[:2]
    closed = StreamModel(replace(model.schema, grows=False))
    assert len(closed.learn(part(table, 0, ROWS)).rejected) > 100


def test_no_more_labels_are_added_than_a_model_can_have():
    random, rows = np.random.default_rng(0), 400
    table = {"x": random.normal(size=rows).tolist(), "y": [f"l{row % 2 if row < 100 else row}" for row in range(rows)]}
    model = StreamModel(decided({name: values[:100] for name, values in table.items()}, "y", grows=True), order=1)
    learned = model.learn(part(table, 0, rows))
    assert len(model.schema.labels) == MAX_LABELS
    assert len(learned.rejected) == rows - 100 - (MAX_LABELS - 2)
    assert learned.rejected[0].reason == "the target 'y': 'l198' is none of the 100 labels, and more cannot be added"


def text_of(table: dict[str, list[Any]]) -> bytes:
    rows = zip(*table.values(), strict=True)
    lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
    return "\n".join([",".join(table), *lines, ""]).encode()


def test_a_resumed_run_over_a_pipe_writes_the_same_files(tmp_path):
    text = text_of(columns(2400, [0, 0, 1200, 1700]))
    files = {}
    for name in ("whole", "resumed"):
        paths = {"rounds": tmp_path / f"{name}.parquet", "checkpoint": tmp_path / name, "every": 300}
        if name == "resumed":
            with rd.fit_stream(io.BytesIO(text), "y", **paths)[1] as rounds:
                for _ in zip(range(6), rounds.batches(), strict=False):
                    pass
        model, rounds = rd.fit_stream(io.BytesIO(text), "y", **paths, resume=True)
        rounds.run()
        rd.save(model, tmp_path / f"{name}.model")
        files[name] = (tmp_path / f"{name}.parquet").read_bytes(), (tmp_path / f"{name}.model").read_bytes()
    assert files["whole"] == files["resumed"]
    assert model.schema.labels == [*LABELS[:2], "fir", "cedar", "durian", "ceddar"]
    assert rounds.counts.quarantined == 2
    assert 1000 < rounds.resumed < 2400


def test_threads_and_a_cluster_add_the_same_labels_to_the_models_of_all_keys(tmp_path):
    text = text_of(columns(1600, [0, 0, 1200]))
    options = {"host": "127.0.0.1", "dashboard_address": None, "local_directory": str(tmp_path)}
    with LocalCluster(1, threads_per_worker=1, processes=True, **options) as cluster:
        models = []
        for where in ({}, {"jobs": 2}, {"cluster": cluster.scheduler_address}):
            model, rounds = rd.fit_stream(io.BytesIO(text), "y", by="site", **where)
            rounds.run()
            models.append(model)
    for other in models[1:]:
        assert other.schema == models[0].schema
        np.testing.assert_equal(other.state(), models[0].state())
    assert models[0].schema.labels == [*LABELS[:2], "fir", "ceddar", "cedar"]


def test_later_labels_are_learned_as_well_as_if_they_had_been_given():
    text = text_of(columns(4000, [0, 0, 1500, 2000], seed=8))
    correct, labels = {}, [*LABELS, "ceddar"]
    for given in (None, labels):
        _, rounds = rd.fit_stream(io.BytesIO(text), "y", labels=given)
        played = [one for one in rounds if one.row > 2000]
        correct[given is None] = np.mean([one.target == one.prediction for one in played])
        assert sum(one.prediction == "ceddar" for one in played) <= 1  # it was seen once; of 2,000 records
    assert correct[True] > correct[False] - 0.01
    assert correct[True] > 0.8


def test_given_labels_do_not_grow_nor_do_lags_and_transforms():
    text = text_of(columns(1500, [0, 0, 1200]))
    _, rounds = rd.fit_stream(io.BytesIO(text), "y", labels=[*LABELS[:2], "fir"])
    assert rounds.run().counts.quarantined > 50
    for settings in ({"lags": [1]}, {"transform": rd.transforms.Huber(1.0)}):
        model, _ = rd.fit_stream(io.BytesIO(text), "y", **settings)
        assert not model.schema.grows


def test_a_file_knows_all_its_labels(tmp_path):
    (tmp_path / "a.csv").write_bytes(text_of(columns(1500, [0, 0, 1200])))
    model, _ = rd.fit_stream(tmp_path / "a.csv", "y")
    assert model.schema.labels == ["ash", "beech", "cedar", "ceddar", "fir"]
    assert not model.schema.grows


@pytest.mark.parametrize("order", [1, 2])
def test_one_output_for_two_labels_becomes_two_as_if_both_had_learned(order):
    random = np.random.default_rng(order)
    X = random.normal(size=(900, 3))
    X[random.random(X.shape) < 0.05] = np.nan
    y = np.where(np.nan_to_num(X) @ [1.0, -2.0, 0.5] + random.normal(size=900) > -0.7, 1.0, -1.0)
    config = ModelConfig.from_parameters("Model", "classification", order=order)
    engine, opposite = (config.make_engine(3, 1, missing=True) for _ in range(2))
    engine.learn_rounds(X, y[None].copy())
    opposite.learn_rounds(X, -y[None])
    grown = add_label(engine)
    assert (grown.outputs, grown.row_count) == (3, 900)
    np.testing.assert_array_equal(grown.models[1], engine.models[0])
    np.testing.assert_allclose(grown.models[0], opposite.models[0], rtol=1e-6, atol=1e-9)
    # The probabilities of the two labels, given that it is one of them, stay as they were.
    scores, logits = engine.predict(X), grown.predict(X)
    np.testing.assert_allclose(logits[1] - logits[0], scores[0], rtol=1e-9, atol=1e-9)
    assert (logits[2] < logits.max(axis=0)).all()
    restored = config.restore_engine(grown.state(), missing=True)
    np.testing.assert_array_equal(restored.predict(X), logits)


def test_the_new_output_has_learned_that_stored_records_lack_its_label():
    random = np.random.default_rng(5)
    X = random.normal(size=(100, 2))
    config = ModelConfig.from_parameters("Model", "classification", order=2)
    engine = config.make_engine(2, 1, missing=True)
    engine.learn_rounds(X, np.sign(X[:, :1]).T.copy())
    alone = config.make_engine(2, 1, missing=True)
    alone.learn_rounds(X[-layout.RING :].copy(), np.full((1, layout.RING), -1.0))
    counted = layout.ROUNDS - layout.SCALARS
    new = add_label(engine).models[2]
    assert new[counted] == 100
    new[counted] = layout.RING
    np.testing.assert_array_equal(new, alone.models[0])


def test_the_link_of_more_classes_stays_as_it_was():
    random = np.random.default_rng(6)
    X = random.normal(size=(600, 2))
    groups = np.digitize(X[:, 0], [-0.5, 0.5])
    config = ModelConfig.from_parameters("Model", "classification")
    engine = config.make_engine(2, 3, missing=True)
    engine.learn_rounds(X, np.where(np.arange(3)[:, None] == groups, 1.0, -1.0))
    grown = add_label(engine)
    old, new = read_link(engine.link, 3), read_link(grown.link, 4)
    np.testing.assert_array_equal(new["A"][:3, [0, 1, 2, 4]], old["A"])
    assert new["A"][3].tolist() == [0.0, 0.0, 0.0, np.trace(old["A"]) / 3, 0.0]
    known = [0, 1, 2, 4]
    triangle = np.zeros((5, 5))
    triangle[np.tril_indices(5)] = new["P"]
    np.testing.assert_array_equal(triangle[np.ix_(known, known)][np.tril_indices(4)], old["P"])
    assert np.mean(grown.predict(X)[:3].argmax(axis=0) == engine.predict(X).argmax(axis=0)) > 0.97


ODD = [{"grows": 1}, {"added": [["ash", 3]]}, {"added": [["beech", 3]]}, {"added": [["cedar", 2.5]]}, {"added": [1]}]


@pytest.mark.parametrize("odd", ODD)
def test_a_schema_with_other_added_labels_is_refused(odd):
    table = columns()
    schema = growing(table).add_label("cedar", 351)
    assert Schema.from_dict(schema.to_dict()) == schema
    with pytest.raises(DataError, match="corrupt"):
        Schema.from_dict(schema.to_dict() | odd)
