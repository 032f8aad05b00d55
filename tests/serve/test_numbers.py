"""Records of numbers take a short way to the model, which must end where the long way does, to the last bit."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redescend.serve.calls import infer
from redescend.serve.folder import ModelFolder
from redescend.serve.numbers import NumericBatch, NumericRecords
from redescend.serve.records import RecordParser, Records, read_records
from redescend.serve.replies import UnsupportedMediaType, encode, encode_in_parts
from redescend.serve.requests import LearnRequest
from redescend.serve.settings import Limits
from redescend.sources.splitter import LONGEST
from redescend.streaming.encoding.encoder import EncodedBatch
from redescend.streaming.encoding.schema import Schema
from tests.serve.servers import make_request

JSON = "application/json"
NUMBERS = [
    "0",
    "-0",
    "-0.0",
    "-0e0",
    "1",
    "-7",
    "0.1",
    "1e-310",
    "5e-324",
    "1E5",
    "123456789012345678",
    "9007199254740993",
]
NUMBERS += ["1e99", "1e101", "18446744073709551616", "0.30000000000000004", "2.2250738585072011e-308", "1.0e+2"]
OTHERS = ["null", "true", '"3"', '"x"', "[1]", "{}", '{"a": 1}', "NaN", "Infinity", "1e999"]


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    random = np.random.default_rng(0)
    records = [{"a": x, "b": z, "y": x - z} for x, z in random.normal(size=(30, 2)).tolist()]
    folder = ModelFolder(tmp_path_factory.mktemp("models") / "data", Limits())
    model = folder.create("m", {"target": "y", "first": 20})
    model.commit([make_request([json.dumps(record).encode() for record in records])])
    return model.schema


def read_both_ways(schema: Schema, body: bytes):
    """The batch of the short way, or None, and what the long way makes of the same lines."""
    records = read_records(body, JSON, NumericRecords(schema))
    lines, numbers = records.split(), records.numbers
    short = None if numbers is None else NumericBatch.from_requests([numbers], 5)
    batch = RecordParser({name: schema.kinds[name] for name in schema.columns}, "m").parse(lines, 5)
    return short, batch, EncodedBatch(schema, batch.table, target=True)


def check(schema: Schema, body: bytes) -> NumericBatch | None:
    short, batch, encoded = read_both_ways(schema, body)
    if short is not None:
        assert not batch.bad
        assert not encoded.rejected
        (chunk,) = encoded.chunks()
        for mine, theirs in ((short.X, chunk.X), (short.targets, chunk.targets), (short.rows, batch.rows)):
            assert mine.tobytes() == np.ascontiguousarray(theirs).tobytes()
        assert (short.count, short.end.row) == (batch.count, batch.end.row)
    return short


values = st.sampled_from(NUMBERS) | st.floats(-1e50, 1e50).map(json.dumps) | st.integers(-(2**70), 2**70).map(str)


@given(st.lists(st.tuples(values, values, values), min_size=1, max_size=6), st.sampled_from(["", " ", "  "]))
@settings(max_examples=300, deadline=None)
def test_all_numbers_have_the_same_bits(schema, rows, space):
    records = [f'{{{space}"a":{a},{space}"y": {y}, "b":{b}{space}}}' for a, b, y in rows]
    check(schema, f"[{', '.join(records)}]".encode())
    if len(records) == 1:
        check(schema, records[0].encode())


def test_plain_numbers_do_take_the_short_way(schema):
    for body in (b'{"a":1,"b":2.5,"y":-3}', b'[{"a": 1, "b": 0, "y": -0.5}, {"a": 1, "b": 2, "y": 3}]'):
        assert check(schema, body) is not None
    assert check(schema, b'[{"a": 1, "b": 0, "y": 5}, {"y": 1, "b": 2, "a": 3}]') is None


@pytest.mark.parametrize("other", OTHERS)
def test_anything_else_does_not(schema, other):
    good = '{"a": 1, "b": 2, "y": 3}'
    for record in (f'{{"a": 1, "b": {other}, "y": 3}}', f'{{"a": 1, "b": 2, "y": {other}}}'):
        for body in (record, f"[{good}, {record}]"):
            assert check_or_refuse(schema, body.encode()) is None


def check_or_refuse(schema: Schema, body: bytes) -> NumericBatch | None:
    try:
        return check(schema, body)
    except ValueError:
        return None


@pytest.mark.parametrize(
    "body",
    [
        '{"a": 1, "b": 2, "a": 5, "y": 3}',
        '{"a" : 1, "b": 2, "a": 5, "y": 3}',
        '[{"a": 1, "b": 2, "a"\t: 5, "y": 3}]',
        '[\n{"a" \n: 1, "b": 2, "a": 5, "y": 3}]',
        '{"a": 1, "b": 2}',
        '[{"a": 1, "b": 2, "y": 3},]',
        '[{"a": 1, "b": 2, "y": 3} {"a": 1, "b": 2, "y": 3}]',
        '[{"a": 1, "b": 2, "y": -0}]',
        '[{"a": 1, "b": 2, "y": 3, "c": "},{"}, {"a": 1, "b": 2, "y": "3"}]',
        '[[{"a": 1, "b": 2, "y": 3}]]',
    ],
)
def test_unusual_texts_do_not(schema, body):
    assert check_or_refuse(schema, body.encode()) is None


def test_other_columns_may_be_there(schema):
    body = rb'[{"\u0061": 1, "b": 2, "y": 3, "c": "text, with }"}]'
    assert check(schema, body) is None
    assert check(schema, rb'[{"b": 2, "c": 7e3, "a": 1, "y": 3}]') is not None


def test_long_bodies_are_read_the_short_way_but_for_long_records(schema):
    records = [b'{"a": %d, "b": 2.5, "y": 1}' % number for number in range(50_000)]
    body = b"[" + b", ".join(records) + b"]"
    assert len(body) > LONGEST
    whole = read_records(body, JSON, NumericRecords(schema)).numbers
    assert [line.strip() for line in whole.lines.tobytes().split(b"\n")] == [*records, b""]
    np.testing.assert_array_equal(whole.rows[:, NumericRecords(schema).inputs.columns[0]], range(50_000))
    longest = b'{"a": 1, "b": 2, "y": 3' + b" " * (LONGEST - 24) + b"}"
    for blanks, refused in ((b"", False), (b" ", True)):
        record = longest.replace(b"}", blanks + b"}")
        body = b"[" + b",".join([*records[:1000], record, records[0]]) + b"]"
        found = NumericRecords(schema).read(body)
        assert (found is None) == refused
        if found is not None:
            assert found.lines.tobytes().split(b"\n")[1000] == record


def test_long_answers_are_encoded_in_parts():
    content = {"rows": np.arange(12_345), "why": [None, "é"] * 6000, "loss": np.full(10_001, np.nan), "few": {"a": 1}}
    assert encode_in_parts(content) == encode(content)
    large = {"row": [2**70] * 6000}
    assert json.loads(encode_in_parts(large)) == large


def test_models_are_equal(tmp_path):
    random = np.random.default_rng(1)
    X = random.normal(size=(400, 3)).round(3)
    y = np.where(random.random(400) < 0.1, 50.0, X.sum(axis=1))
    records = [
        dict(zip("abc", row, strict=True)) | {"y": target} for row, target in zip(X.tolist(), y.tolist(), strict=True)
    ]
    models = []
    for name, plain in (("short", True), ("long", False)):
        model = ModelFolder(tmp_path / name, Limits()).create("m", {"target": "y", "first": 50})
        outcomes = []
        for start in range(0, 400, 40):
            read = read_records(json.dumps(records[start : start + 40]).encode(), JSON, model.numeric)
            assert (read.numbers is None) == (start < 80)
            (answer,) = model.commit([LearnRequest(read if plain else Records(read.split()))])
            outcomes.append(encode(answer.outcomes))
        models.append((model.dump(), outcomes, model.list_suspects(), model.counts))
    short, long = models
    assert short[0] == long[0]
    assert short[3] == long[3]
    assert short[1] == long[1]
    assert json.dumps(short[2]) == json.dumps(long[2])
    assert short[3].suspects > 10


def test_only_json_is_read(schema):
    """A web page may send text/plain to any server without asking."""
    with pytest.raises(UnsupportedMediaType, match="text/plain"):
        read_records(b'{"a": 1.5, "b": 2.5, "y": 1}', "text/plain", NumericRecords(schema))


@pytest.mark.parametrize("seed", range(4))
def test_infer_score_and_learn_predict_the_same(tmp_path, seed):
    """`infer` and `score` to the last bit; `learn` but for rounding.

    A prediction is a sum of products with the mean of some models. `learn` sums over each of these models before it
    takes the mean, so two of three predictions differ in their last bits.
    """
    random = np.random.default_rng(seed)
    names = [f"x{j}" for j in range(random.integers(2, 12))]
    scales = 10.0 ** random.integers(-6, 7, size=len(names))
    X = (random.normal(size=(160, len(names))) + random.normal(size=len(names))) * scales
    y = (X / scales) @ random.normal(size=len(names)) + random.normal(size=160)
    y = np.where(random.random(160) < 0.1, 1e6, y)
    records = [dict(zip(names, row, strict=True)) | {"y": t} for row, t in zip(X.tolist(), y.tolist(), strict=True)]
    settings = {"target": "y", "first": 50, "features": names, "order": 1 + seed % 2}
    model = ModelFolder(tmp_path / "data", Limits()).create("m", settings)
    model.commit([make_request([json.dumps(record).encode() for record in records[:100]])])
    for record in records[100:]:
        line = json.dumps(record).encode()
        tensors = [{"name": name, "shape": [1], "datatype": "FP64", "data": [record[name]]} for name in names]
        whole = {"name": "all", "shape": [1, len(names)], "datatype": "FP64", "data": [record[name] for name in names]}
        found = [_infer(model, {"inputs": inputs}) for inputs in (tensors, [whole])]
        # A null in a request, here a column that is not used, takes the long way.
        found.append(_infer(model, {"inputs": [*tensors, tensors[0] | {"name": "y", "data": [None]}]}))
        scored = model.score([line])
        assert found == [{name: scored[name][0] for name in ("prediction", "low", "high")}] * 3
        with model.read() as served:
            coefficients, intercepts = served.coefficients()
        terms = coefficients[0][model.numeric.inputs.columns] * [record[name] for name in names]
        size = np.abs(terms).sum() + abs(intercepts[0])
        (answer,) = model.commit([LearnRequest(read_records(line, JSON, model.numeric))])
        assert abs(answer.outcomes["prediction"][0] - found[0]["prediction"]) <= 16 * np.finfo(float).eps * size


def _infer(model, request: dict) -> dict[str, float]:
    answer, _ = infer(model, json.dumps(request).encode(), b"")
    return {output["name"]: output["data"][0] for output in answer["outputs"] if output["name"] != "id"}


@pytest.mark.parametrize("space", ["", " ", "\t "])
def test_what_is_between_records_does_not_reach_the_journal(schema, space):
    """The text of a request becomes the lines of the journal in its place."""
    records = [f'{{{space}"a": {number}, "b":{space}2.5{space},"y": 1e3}}' for number in range(4)]
    for mark in ("\n", "\r\n", "\r", "\n\n", f"\n{space}\r\n{space}"):
        for end in ("", mark, f"{mark}{space}{mark}"):
            body = (space + f"{space}{mark}{space}".join(records) + space + end).encode()
            check_lines(schema, NumericRecords(schema).read(body, lined=True), records)
    for body in (f"{space}[{space}{f'{space},{space}'.join(records)}{space}]{space}", f"[{','.join(records)}]"):
        check_lines(schema, NumericRecords(schema).read(body.encode()), records)
    check_lines(schema, NumericRecords(schema).read(f"{space}{records[0]}{space}".encode()), records[:1])


def check_lines(schema, found, records):
    *lines, rest = found.lines.tobytes().split(b"\n")
    assert rest == b""
    assert [line.strip().decode() for line in lines] == records
    assert len(found.rows) == len(records)
    columns = NumericRecords(schema).inputs.columns
    np.testing.assert_array_equal(found.rows[:, columns[0]], range(len(records)))
    unused = np.setdiff1d(np.arange(schema.dim), columns)
    assert not found.rows[:, unused].any()


@pytest.mark.parametrize(
    "body", [b'[{"a": 1, "b": 2, "y": 3}', b'[{"a": 1, "b": 2, "y": 3},', b'{"a": 1, "b": 2, "y": 3', b"[", b"{", b""]
)
def test_texts_that_are_cut_off_are_not_read_beyond_their_end(schema, body):
    reader = NumericRecords(schema)
    assert reader.read(b'{"a": 1, "b": 2, "y": 3}') is not None
    for lined in (False, True):
        assert reader.read(body, lined=lined) is None


@pytest.mark.parametrize("length", range(1, 19))
def test_every_byte_of_a_name_is_compared(tmp_path, length):
    name = "abcdefghijklmnopqrstuvwxyz"[:length]
    folder = ModelFolder(tmp_path / "data", Limits())
    model = folder.create("m", {"target": "Y", "first": 3})
    records = [f'{{"{name}": {number}.5, "Y": {number}}}' for number in range(3)]
    model.commit([make_request([record.encode() for record in records])])
    assert check(model.schema, f"[{','.join(records)}]".encode()) is not None
    for place in range(length):
        other = records[1].replace(name, f"{name[:place]}Z{name[place + 1 :]}")
        assert NumericRecords(model.schema).read(f"[{records[0]},{other}]".encode()) is None
