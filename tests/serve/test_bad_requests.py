"""Bad requests to the server get one sentence that says what is wrong."""

import json

import pytest

from tests.serve.test_http import column, send

BAD = {
    "no path": ("GET", "/v2/nothing", None, 404, "There is no path"),
    "no model": ("GET", "/v2/models/none", None, 404, "There is no model 'none'"),
    "no version": ("GET", "/v2/models/price/versions/2", None, 404, "only '1'"),
    "method": ("PUT", "/v2/models/price", None, 405, "PUT cannot be used here"),
    "name": ("POST", "/v2/models/..%2Fx", b"{}", 404, ""),
    "long name": ("POST", f"/v2/models/{'x' * 65}", b'{"target": "y"}', 400, "cannot be the name"),
    "hidden name": ("POST", "/v2/models/.x", b'{"target": "y"}', 400, "cannot be the name"),
    "setting": ("POST", "/v2/models/x", b'{"targte": "y"}', 400, "did you mean 'target'"),
    "no target": ("POST", "/v2/models/x", b"{}", 400, "'target' is missing"),
    "setting type": ("POST", "/v2/models/x", b'{"target": 5}', 400, "must be a text"),
    "bad loss": ("POST", "/v2/models/x", b'{"target": "y", "loss": "none"}', 400, "Unknown loss"),
    "bad order": ("POST", "/v2/models/x", b'{"target": "y", "order": 3}', 400, "'auto', 1 or 2. Got 3"),
    "bad task": ("POST", "/v2/models/x", b'{"target": "y", "task": "rank"}', 400, "'regression'"),
    "both": ("POST", "/v2/models/x", b'{"target": "y", "order": 2, "transform": "huber(1)"}', 400, "'auto' or 1"),
    "no json": ("POST", "/v2/models/price/learn", b"{", 400, "The body is not JSON: Expecting property name"),
    "empty": ("POST", "/v2/models/price/learn", b"", 400, "Expecting value"),
    "no records": ("POST", "/v2/models/price/learn", b"[]", 400, "no record"),
    "numbers": ("POST", "/v2/models/price/learn", b"[1]", 400, "Record 1 is not a JSON object"),
    "twice": ("POST", "/v2/models/price/learn", b'[{"a": 1, "a": 2}]', 400, "'a' is there twice"),
    "deep": ("POST", "/v2/models/price/learn", b"[" * 100_000, 400, "nested too deeply"),
    "long digits": ("POST", "/v2/models/price/learn", b"[" + b"9" * 10_000 + b"]", 400, ""),
    "utf-8": ("POST", "/v2/models/price/learn", b'[{"\xff": 1}]', 400, "not UTF-8"),
    "large": ("POST", "/v2/models/price/learn", b" " * (1 << 20) + b"x", 413, "more than 1048576 bytes"),
    "no inputs": ("POST", "/v2/models/price/infer", b"{}", 400, 'Send one input for each column: {"inputs"'),
    "infer list": ("POST", "/v2/models/price/infer", b"[]", 400, "no list of inputs"),
    "input": ("POST", "/v2/models/price/infer", b'{"inputs": [5]}', 400, "Each input is an object"),
    "binary size": (
        *("POST", "/v2/models/price/infer"),
        b'{"inputs": [{"name": "area", "datatype": "FP64", "shape": [1], "parameters": {"binary_data_size": 99}}]}',
        *(400, "fewer bytes"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status", "sentence"), BAD.values(), ids=BAD)
def test_bad_requests_get_one_sentence(server, method, path, body, status, sentence):
    found, _, answer = send(server, method, path, body)
    assert found == status
    assert answer.keys() == {"error"}
    assert sentence in answer["error"]
    assert "\n" not in answer["error"]
    assert "Traceback" not in answer["error"]


@pytest.mark.parametrize("body", ["%s", "[%s]", '[{"area": 1}, %s]'], ids=["object", "list", "second"])
@pytest.mark.parametrize("name", ["area", "price"])
def test_a_number_beyond_all_doubles_is_no_missing_value(server, body, name):
    record = '{"area": 7, "age": 1, "town": "Rome", "price": 5}'.replace(f'"{name}": ', f'"{name}": 1e400, "old": ')
    status, _, answer = send(server, "POST", "/v2/models/price/learn", body % record)
    assert status == 200
    assert answer["records"]["reason"][-1] == f"column '{name}': inf is not finite"


@pytest.mark.parametrize(
    ("tensor", "sentence"),
    [
        ({"datatype": "FP99"}, "must be one of"),
        ({"shape": [2]}, "1 values, but the shape [2]"),
        ({"shape": [-1]}, "list of sizes"),
        ({"shape": [1, 1, 1]}, "must be [records]"),
        ({"name": "aera"}, "did you mean 'area'"),
        ({"data": [{}]}, "neither a number nor a text"),
        ({"data": 5}, "no list of data"),
        ({"data": ["x"]}, "Record 1: column 'area': 'x' is not a number"),
        ({"data": [1e300]}, "Record 1"),
        ({"data": [float("inf")]}, "Record 1: column 'area': inf is not finite"),
    ],
)
def test_bad_tensors(server, tensor, sentence):
    inputs = [column("area", "FP64", 1.0) | tensor, column("age", "FP64", 1.0), column("town", "BYTES", "Rome")]
    status, _, answer = send(server, "POST", "/v2/models/price/infer", json.dumps({"inputs": inputs}))
    assert status == 400
    assert sentence in answer["error"]
