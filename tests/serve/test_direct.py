"""Short requests, which are answered without the application, have the answers that it gives."""

import json
import re
import socket
import time

import pytest

from tests.serve.servers import make_records, wait_for

RECORD = {"area": 70.0, "age": 10, "town": "Rome", "price": 200.0}
TENSORS = [
    {"name": "area", "datatype": "FP64", "shape": [1], "data": [70.0]},
    {"name": "age", "datatype": "FP64", "shape": [1], "data": [10]},
    {"name": "town", "datatype": "BYTES", "shape": [1], "data": ["Rome"]},
]
PREDICT = json.dumps({"inputs": TENSORS, "outputs": [{"name": "prediction"}]})
BODIES = {
    "infer": ("infer", PREDICT),
    "score": ("score", json.dumps([RECORD, {}])),
    "rejected": ("learn", json.dumps({"area": 1})),
    "bad": ("infer", '{"inputs": 5}'),
    "empty": ("learn", ""),
    "deep": ("learn", "[" * 10_000 + "]" * 10_000),
    "deep tensor": ("infer", PREDICT.replace("[70.0]", "[" * 5000 + "]" * 5000)),
    "huge": ("infer", PREDICT.replace("70.0", "9" * 400)),
    "huge power": ("score", json.dumps(RECORD).replace("70.0", "1e999999999")),
    "unknown": ("../none/learn", "{}"),
}


def make_request(operation: str, body: str, version: str = "1.1", headers: str = "") -> bytes:
    """A request as bytes; those of HTTP/1.0 go to the application."""
    path = f"/v2/models/none/{operation[8:]}" if operation.startswith("../") else f"/v2/models/price/{operation}"
    return f"POST {path} HTTP/{version}\r\nHost: x\r\n{headers}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def read_answer(connection) -> tuple[int, dict[str, str], dict]:
    """The status, the headers and the content of one answer."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(1)
        assert part, data
        data += part
    lines = data.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
    content = b""
    while len(content) < int(headers["content-length"]):
        content += connection.recv(int(headers["content-length"]) - len(content))
    return int(lines[0].split()[1]), headers, json.loads(content)


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def ask(server, request: bytes) -> tuple[int, dict[str, str], dict]:
    with connect(server) as connection:
        connection.sendall(request)
        return read_answer(connection)


@pytest.mark.parametrize(("operation", "body"), BODIES.values(), ids=BODIES)
def test_both_ways_give_the_same_answer(server, operation, body):
    (status, headers, content), (other, others, expected) = (
        ask(server, make_request(operation, body, version)) for version in ("1.1", "1.0")
    )
    for answer in (content, expected):
        answer.pop("first_row", None)
        answer.get("records", {}).pop("row", None)
    assert (status, content) == (other, expected)
    assert headers["content-type"] == others["content-type"] == "application/json"
    assert "connection" not in headers
    assert others["connection"] == "close"
    assert headers.keys() == others.keys() - {"connection"}
    if status != 200:
        assert content.keys() == {"error"}
        assert "\n" not in content["error"]


def test_many_requests_at_once_are_answered_in_their_order(server):
    bodies = [("learn", json.dumps(RECORD)), ("infer", PREDICT), ("learn", "[]"), ("infer", PREDICT), ("score", "[")]
    slow = b"GET /v2/models/price/summary HTTP/1.1\r\nHost: x\r\n\r\n"
    with connect(server) as connection:
        connection.sendall(b"".join(make_request(*each) for each in bodies) + slow + make_request("infer", PREDICT))
        answers = [read_answer(connection) for _ in range(len(bodies) + 2)]
    assert [status for status, _, _ in answers] == [200, 200, 400, 200, 400, 200, 200]
    names = ["records", "outputs", "error", "outputs", "error", "median_loss", "outputs"]
    assert all(name in content for name, (_, _, content) in zip(names, answers, strict=True))


@pytest.mark.parametrize("headers", ["Expect: 100-continue\r\n", "Content-Encoding: gzip\r\n", "Connection: close\r\n"])
def test_unusual_headers_take_the_way_of_the_application(server, headers):
    with connect(server) as connection:
        connection.sendall(make_request("infer", PREDICT, headers=headers))
        if "Expect" in headers:
            assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        status, _, content = read_answer(connection)
    assert status == (400 if "gzip" in headers else 200), content


def test_a_body_that_comes_in_pieces(server):
    request = make_request("learn", json.dumps(make_records(40)))
    with connect(server) as connection:
        for first in range(0, len(request), 1000):
            connection.sendall(request[first : first + 1000])
            time.sleep(0.001)
        status, _, content = read_answer(connection)
    assert (status, content["count"]) == (200, 40)


def test_clients_that_leave_are_not_counted_as_open(server, client):
    for cut in (30, -1):
        with connect(server) as connection:
            connection.sendall(make_request("learn", json.dumps(RECORD))[:cut])
    with connect(server) as connection:
        connection.sendall(make_request("learn", json.dumps(RECORD)))
    found = re.compile(rb"^redescend_open_requests (\d+)", re.MULTILINE)

    def count_open() -> int:
        with connect(server) as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = b""
            while part := connection.recv(1 << 16):
                text += part
        return int(found.search(text)[1])

    wait_for(lambda: count_open() == 1)
    assert client.predict("price", [{"area": 1.0, "age": 1, "town": "Rome"}])
