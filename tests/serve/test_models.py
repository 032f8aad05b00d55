"""A served model without HTTP: it equals `fit_stream` on its journal to the last bit, through restarts and failures."""

import json

import numpy as np
import pyarrow as pa
import pytest

from redescend.checkpoint import dump_model, load
from redescend.errors import DivergenceError
from redescend.serve import replicas
from redescend.serve.calls import infer
from redescend.serve.folder import ModelFolder, begin_snapshot
from redescend.serve.outcomes import outcome_at
from redescend.serve.replies import Conflict
from redescend.serve.settings import Limits
from redescend.streaming import fit_stream
from redescend.streaming.encoding.schema import Schema
from tests.serve.models import LIMITS, POISON, diverge_at_poison, fit, make_model, reopen, send, to_lines
from tests.serve.servers import make_records, make_request


def test_a_request_to_predict_while_the_schema_is_inferred_says_so(tmp_path, monkeypatch):
    model, said, infer_schema = make_model(tmp_path), [], Schema.infer

    def predict_meanwhile(*arguments, **settings):
        with pytest.raises(Conflict) as error:
            model.require_schema()
        said.append(str(error.value))
        return infer_schema(*arguments, **settings)

    monkeypatch.setattr(Schema, "infer", staticmethod(predict_meanwhile))
    send(model, make_records(60))
    assert said == ["The model 'm' has no schema yet: it is being inferred; try again soon."]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"order": 2},
        {"by": "town"},
        {"transform": "huber:1.0"},
        {"features": ["area", "age"]},
        {"lags": [1, 3], "lag_columns": ["area"]},
        {"lags": [2], "by": "town"},
    ],
    ids=["plain", "order", "by", "transform", "features", "lags", "lags by"],
)
def test_model_is_what_fit_makes_of_the_journal(tmp_path, settings):
    model = make_model(tmp_path, **settings)
    send(model, make_records(300))
    options = {name: settings[name] for name in settings if name in ("order", "by")}
    if "transform" in settings:
        options["transform"] = model.config.transform
    assert fit(model, **options) == model.dump()
    assert reopen(model).dump() == model.dump()


def make_forecast_request(schema, count):
    inputs = [{"name": name, "shape": [count], "datatype": "FP64", "data": [None] * count} for name in schema]
    return json.dumps({"inputs": inputs, "outputs": [{"name": "prediction"}]}).encode()


@pytest.mark.parametrize("inputs", [["area"], ["price"]], ids=["a column", "the target alone"])
def test_predictions_with_lags_follow_the_last_record(tmp_path, inputs):
    settings = {"lags": [1], "task": "regression", "features": ["area"] if inputs == ["area"] else []}
    model = make_model(tmp_path, **settings)
    send(model, [{"area": 1.0 * place, "price": float(place % 2)} for place in range(200)])
    (answer,) = infer(model, make_forecast_request(inputs, 3), b"")[0]["outputs"]
    first, second, third = answer["data"]
    # 0, 1, 0, 1, ...: the last one was 1, and each prediction looks back at the one before.
    assert max(abs(first), abs(second - 1.0), abs(third)) < 0.3
    with model.read() as learned:
        table = pa.table({name: pa.nulls(3, pa.float64()) for name in inputs})
        assert learned.predict(table).tolist() == answer["data"]
    send(model, [{"area": 0.0, "price": 0.0}])
    assert infer(model, make_forecast_request(inputs, 1), b"")[0]["outputs"][0]["data"][0] > 0.7
    assert reopen(model).dump() == model.dump()


def test_labels_given_and_a_schema_given(tmp_path):
    records = make_records(200)
    model = make_model(tmp_path)
    send(model, records)
    given = ModelFolder(tmp_path / "other", LIMITS).create("m", {"schema": model.schema.to_dict()})
    send(given, records, sizes=3)
    assert given.dump() == model.dump() == fit(given)
    assert reopen(given).dump() == given.dump()


@pytest.mark.parametrize("settings", [{}, {"by": "town"}, {"linear": False}], ids=["plain", "by", "trees"])
def test_labels_that_appear_later_are_added(tmp_path, settings):
    model = ModelFolder(tmp_path, LIMITS).create("m", {"target": "kind", "first": 40, "ignore": ["price"], **settings})
    random = np.random.default_rng(4)
    kinds = {"large": 90.0, "small": 30.0, "old": 60.0}
    drawn = [list(kinds)[number] for number in np.append(random.integers(0, 2, 200), random.integers(0, 3, 200))]
    records = [
        {"area": kinds[kind] + random.normal(), "town": "Rome" if row % 3 else "Oslo", "kind": kind, "price": row}
        for row, kind in enumerate(drawn)
    ]
    send(model, records[:200])
    assert model.schema.labels == ["large", "small"]
    answers = send(model, records[200:])
    assert model.schema.labels == ["large", "small", "old"]
    told = [outcome_at(answer.outcomes, place) for answer in answers for place in range(answer.records)]
    assert {outcome["target"] for outcome in told if outcome["status"] == "learned"} == {"large", "small", "old"}
    with model.read() as learned:
        assert learned.schema.labels == ["large", "small", "old"]
    assert reopen(model).dump() == model.dump()
    begin_snapshot(model)()
    assert reopen(model).dump() == model.dump()
    assert reopen(model).schema.labels == ["large", "small", "old"]
    options = {"by": "town"} if "by" in settings else {"linear": False} if "linear" in settings else {}
    fitted, run = fit_stream(str(model.journal.folder), "kind", **options)
    run.run()
    assert dump_model(fitted) == model.dump()


def test_rounds_are_those_of_fit(tmp_path):
    model = make_model(tmp_path)
    send(model, make_records(50))
    answers = send(model, make_records(200, 1))
    after = [outcome_at(answer.outcomes, place) for answer in answers for place in range(answer.records)]
    _, run = fit_stream(str(model.journal.folder), "price")
    expected = {played.row: played for played in run}
    assert len(after) == 200
    for outcome in after:
        if outcome["status"] == "rejected":
            assert outcome["row"] not in expected
        else:
            played = expected[outcome["row"]]
            assert (outcome["prediction"], outcome["loss"]) == (played.prediction, played.loss)
    losses = [played.loss for played in expected.values()]
    assert model.summarize()["median_loss"] == pytest.approx(np.median(losses), rel=0.1)
    assert model.counts.records == 250
    assert model.counts.learned == len(expected)


@pytest.mark.parametrize("keep", [True, False])
def test_snapshots_and_segments(tmp_path, keep):
    records, model = make_records(400), make_model(tmp_path)
    send(model, records[:200])
    model.commit([make_request(to_lines(records[200:250]), "k", 9)])
    begin_snapshot(model, keep=keep, segment=1)()
    send(model, records[250:300])
    begin_snapshot(model, keep=keep)()
    send(model, records[300:])
    again = reopen(model)
    assert again.dump() == model.dump()
    assert again.counts == model.counts
    assert again.summarize() == model.summarize()
    assert repr(again.list_suspects()) == repr(model.list_suspects())
    assert min(suspect["row"] for suspect in again.list_suspects()) < 250
    np.testing.assert_array_equal(again.read_recent(), model.read_recent())
    assert again.commit([make_request([], "k", 9)])[0].duplicate
    assert len(list(model.journal.folder.iterdir())) == (2 if keep else 1)
    if keep:
        assert fit(model) == model.dump()


@pytest.mark.parametrize("settings", [{}, {"by": "town"}], ids=["one", "keys"])
def test_a_snapshot_is_of_the_moment_at_which_it_began(tmp_path, settings):
    records, model = make_records(400), make_model(tmp_path, **settings)
    send(model, records[:200])
    before = model.counts
    write = begin_snapshot(model, keep=True, segment=1)
    model.commit([make_request(to_lines(records[200:300]), "k", 9)])
    write()
    send(model, records[300:])
    again = reopen(model)
    assert load(model.folder / "snapshot.safetensors")["counts"] == list(vars(before).values())
    assert again.dump() == model.dump() == fit(model, **settings)
    assert (again.counts, again.summarize()) == (model.counts, model.summarize())
    assert repr(again.list_suspects()) == repr(model.list_suspects())
    assert again.commit([make_request([], "k", 9)])[0].duplicate


def test_a_start_from_a_model_file(tmp_path):
    first = make_model(tmp_path / "a")
    send(first, make_records(300))
    second = ModelFolder(tmp_path / "b", LIMITS).create("m", start=first.dump())
    for model in (first, second):
        send(model, make_records(100, seed=1))
    assert second.dump() == first.dump() == reopen(second).dump()


def test_no_request_is_learned_twice(tmp_path):
    model, lines = make_model(tmp_path), to_lines(make_records(100))
    model.commit([make_request(lines[:60], "a", 1)])
    first, second, third = model.commit(
        [make_request(lines[60:], "b", 2), make_request(lines[60:], "b", 2), make_request([b"{}"])]
    )
    assert (first.duplicate, second.duplicate, third.duplicate) == (False, True, False)
    assert (second.row, second.records) == (first.row, first.records) == (61, 40)
    for opened in (model, reopen(model)):
        assert opened.commit([make_request(lines[:60], "a", 1)])[0].duplicate
        assert isinstance(opened.commit([make_request(lines[:10], "a", 5)])[0], Conflict)
        assert opened.counts.records == 101


def test_keys_are_forgotten_in_their_order(tmp_path):
    model = make_model(tmp_path, Limits(keys=2))
    for key in "abc":
        model.commit([make_request([b"{}"], key)])
    assert list(model.keys) == ["b", "c"] == list(reopen(model, Limits(keys=2)).keys)


def test_a_commit_that_fails_changes_nothing(tmp_path, monkeypatch):
    model = make_model(tmp_path)
    send(model, make_records(100))
    before, lines = model.dump(), to_lines(make_records(10, 1))

    def fail(parts):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(model.journal, "_append", fail)
        (answer,) = model.commit([make_request(lines, "k")])
    assert isinstance(answer, OSError)
    assert model.dump() == before
    assert not model.commit([make_request(lines, "k")])[0].duplicate
    assert model.dump() == fit(model) != before


def test_a_request_that_diverges_fails_alone(tmp_path, monkeypatch):
    model = make_model(tmp_path)
    send(model, make_records(100))
    diverge_at_poison(monkeypatch)
    good = to_lines(make_records(20, 1))
    answers = model.commit([make_request(good[:10]), make_request([POISON]), make_request(good[10:])])
    assert [type(answer).__name__ for answer in answers] == ["Answer", "DivergenceError", "Answer"]
    (answer,) = model.commit([make_request([good[0], POISON], "key")])
    assert isinstance(answer, DivergenceError)
    again = reopen(model)
    assert again.dump() == model.dump()
    assert "key" not in again.keys
    monkeypatch.undo()
    assert model.dump() == fit(model)
    send(again, make_records(20, 2))
    assert reopen(again).dump() == again.dump() == fit(again)


def test_a_model_waits_for_records_that_tell_its_schema(tmp_path):
    model = make_model(tmp_path, first=5)
    (answer,) = model.commit([make_request([b'{"area": 1}'] * 6)])
    assert answer.outcomes["status"] == ["pending"] * 6
    assert "'price'" in answer.outcomes["reason"][0]
    with pytest.raises(Conflict, match="has no schema yet"):
        model.dump()
    send(reopen(model), make_records(50))
    assert reopen(model).dump() == fit(model)
    hopeless = ModelFolder(tmp_path / "b", LIMITS).create("m", {"target": "none", "first": 5})
    hopeless.commit([make_request([b'{"area": 1}'] * 1000)])
    (refused,) = hopeless.commit([make_request([b'{"area": 1}'])])
    assert isinstance(refused, Conflict)
    assert "cannot start" in str(refused)


@pytest.mark.parametrize("count", [50, 1000])
def test_a_schema_that_cannot_be_written_is_written_later(tmp_path, count, monkeypatch):
    """Then the first records are pending, and if they are sent again, they are duplicates."""
    model, lines = make_model(tmp_path), to_lines(make_records(count))

    def fail(declared):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(model.journal, "declare", fail)
        (answer,) = model.commit([make_request(lines, "a", 1)])
    assert answer.outcomes["status"] == ["pending"] * count
    assert "No space" in answer.outcomes["reason"][0]
    (again,) = model.commit([make_request(lines, "a", 1)])
    assert (again.row, again.records, again.duplicate) == (1, count, True)
    opened = reopen(model)
    assert (opened.counts.records, opened.keys) == (count, model.keys)
    model = make_model(tmp_path / "b")
    with monkeypatch.context() as patch:
        patch.setattr(model.journal, "declare", fail)
        model.commit([make_request(lines, "a", 1)])
    (more,) = model.commit([make_request(to_lines(make_records(9, 1)), "b", 2)])
    assert (more.row, more.outcomes["status"].count("pending")) == (count + 1, 0)
    assert model.counts.records == count + 9
    assert model.dump() == reopen(model).dump() == fit(model)


@pytest.mark.parametrize("settings", [{}, {"by": "age"}], ids=["one", "keys"])
def test_labels_that_are_not_in_the_journal_are_not_seen(tmp_path, settings, monkeypatch):
    model = make_model(tmp_path, target="town", **settings)
    send(model, [{**record, "age": number % 2} for number, record in enumerate(make_records(100))])
    known = model.schema.labels
    request = make_request([b'{"area": 1, "age": 1, "town": "Bonn", "price": 1}'])

    def fail(descriptor, view):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("redescend.serve.journal.os.write", fail)
        model.begin([request])
        assert model.schema.labels == known
        assert isinstance(model.finish()[0], OSError)
    assert model.schema.labels == known
    model.commit([request])
    assert model.schema.labels == [*known, "Bonn"] == reopen(model).schema.labels


def test_no_record_is_lost_when_there_is_no_memory_for_a_copy(tmp_path, monkeypatch):
    model, records = make_model(tmp_path), to_lines(make_records(260))
    model.commit([make_request(records[:100])])
    model.commit([make_request(records[100:200])])

    def fail(model):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(replicas, "copy_model", fail)
        with pytest.raises(MemoryError):
            model.commit([make_request(records[200:210])])
    model.commit([make_request(records[210:])])
    assert model.dump() == fit(model)
