"""The server over HTTP: every path, late labels, clients that others wrote, and clients that mean no good."""

import http.client
import io
import json
import random
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import redescend as rd
from redescend.client import Client, ServerError
from redescend.errors import DataError
from redescend.serve.openapi import OPERATIONS, make_document
from tests.serve.servers import make_records

NEW = {"area": 70.0, "age": 10, "town": "Rome"}


def send(server, method, path, body=None, **headers):
    """The status, the headers and the JSON of an answer, without the client of this package."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, answer.headers, json.loads(content)
    finally:
        connection.close()


def column(name, datatype, *data):
    return {"name": name, "datatype": datatype, "shape": [len(data)], "data": list(data)}


def test_predictions_are_those_of_the_downloaded_model(server, client, tmp_path):
    records = [record for record in make_records(30, seed=5) if isinstance(record["area"], float)]
    served = client.predict("price", records)
    (tmp_path / "m.safetensors").write_bytes(client.download("price"))
    model = rd.load(tmp_path / "m.safetensors")
    expected = model.predict(pa.Table.from_pylist(records))
    np.testing.assert_array_equal(served["prediction"], expected)
    low, high = model.predict_interval(pa.Table.from_pylist(records))
    np.testing.assert_array_equal([served["low"], served["high"]], [low, high])


def test_score_learns_nothing_and_learn_says_what_score_said(client):
    records, before = make_records(20, seed=6), client.download("price")
    scored = client.score("price", records[:1])
    assert client.download("price") == before
    learned = client.learn("price", records)
    assert learned["records"]["prediction"][0] == pytest.approx(scored["prediction"][0], rel=1e-12)
    assert client.download("price") != before
    assert learned["learned"] + learned["rejected"] == 20
    assert {"low", "high", "clean_probability", "suspect"} <= learned["records"].keys()


def test_suspects_are_those_of_the_answers(client):
    records = make_records(40, seed=7)
    answers = client.learn("price", records)["records"]
    suspects = [row for row, suspect in zip(answers["row"], answers["suspect"], strict=True) if suspect]
    assert suspects
    assert [each["row"] for each in client.suspects("price")][: len(suspects)] == suspects[::-1]
    assert client.suspects("price")[0]["values"].keys() == {"area", "age", "town"}


@pytest.mark.parametrize("kind", ["object", "list", "lines", "stream", "file"])
def test_bodies(server, client, kind):
    records = [NEW | {"price": 200.0}, NEW | {"price": 210.0}]
    table, sink = pa.Table.from_pylist(records), io.BytesIO()
    if kind in ("stream", "file"):
        with (pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file)(sink, table.schema) as writer:
            writer.write_table(table)
    body, content_type = {
        "object": (json.dumps(records[0], indent=1).encode(), "application/json"),
        "list": (json.dumps(records).encode(), "application/json; charset=utf-8"),
        "lines": (b"\r\n".join(json.dumps(record).encode() for record in records), "application/x-ndjson"),
        "stream": (sink.getvalue(), "application/vnd.apache.arrow.stream"),
        "file": (sink.getvalue(), "application/vnd.apache.arrow.file"),
    }[kind]
    status, _, answer = send(server, "POST", "/v2/models/price/learn", body, Content_Type=content_type)
    assert (status, answer["learned"]) == (200, 1 if kind == "object" else 2)


def test_late_labels(server, client):
    predicted = client.predict("price", [NEW, NEW | {"age": None}, NEW])
    first, second, third = predicted["id"]
    before = client.summary("price")
    answer = client.learn(
        "price", [{"id": first, "target": 215.0}, {"id": "unknown", "target": 1.0}, NEW | {"price": 210.0}]
    )
    assert answer["records"]["status"] == ["learned", "rejected", "learned"]
    assert answer["records"]["target"] == [215.0, None, 210.0]
    first_reason, reason, last_reason = answer["records"]["reason"]
    assert first_reason is None is last_reason
    assert "unknown, used or expired" in reason
    assert client.learn("price", {"id": first, "target": 215.0})["rejected"] == 1
    again = client.learn("price", {"id": second, "target": 1.0}, key="late")
    assert client.learn("price", {"id": second, "target": 1.0}, key="late") == again | {
        "duplicate": True,
        "records": {},
        "learned": 0,
    }
    after = client.summary("price")
    assert after["records"] == before["records"] + 3
    assert after["waiting_for_labels"] == before["waiting_for_labels"] - 2
    assert client.learn("price", {"id": third, "target": 2.0})["learned"] == 1
    now = client.predict("price", NEW)
    answer = client.learn("price", [{"id": now["id"][0], "price": 220.0}, {"id": "unknown", "price": 1.0}])
    assert answer["records"]["prediction"][0] == pytest.approx(now["prediction"][0])
    assert answer["records"]["status"] == ["learned", "rejected"]


def test_the_client_sends_numbers_of_numpy_and_dates(client, request):
    request.addfinalizer(lambda: client.delete("days"))
    client.create("days", target="y", first=20)
    day = np.datetime64("2020-01-01", "D")
    dates = [(day + place).item() for place in range(40)]
    records = [{"day": date, "x": np.int64(place), "y": np.float32(place)} for place, date in enumerate(dates)]
    assert client.learn("days", records)["learned"] == 40
    assert client.schema("days")["schema"]["features"][0]["kind"] == "date"
    found = client.predict("days", [records[-1], {"day": np.datetime64("NaT"), "x": np.float64(3.0)}])
    assert found["prediction"][0] == pytest.approx(39.0, abs=3.0)
    for wrong in (pd.DataFrame(records), {"day": {1}}):
        for ask in (client.predict, client.learn):
            with pytest.raises(DataError, match="Records are dicts of"):
                ask("days", wrong)


def test_models_come_and_go(client):
    client.create("other", target="y", first=1)
    assert [each["name"] for each in client.models()] == ["other", "price"]
    with pytest.raises(ServerError, match="already"):
        client.create("other", target="y")
    assert client.schema("other")["decided"] is False
    client.create("copy", file=client.download("price"))
    assert client.download("copy") == client.download("price")
    client.create("given", schema=client.schema("price")["schema"])
    assert client.learn("given", make_records(3))["learned"] == 3
    for name in ("other", "copy", "given"):
        client.delete(name)
    with pytest.raises(ServerError, match="There is no model 'other'"):
        client.summary("other")


def test_labels_and_keys(client):
    client.create("town", target="town", by="area", first=6)
    records = [
        {"area": area, "age": age, "town": town}
        for area in "ab"
        for age, town in ((1, "Rome"), (9, "Oslo"), (2, "Rome"))
    ]
    assert client.learn("town", records)["learned"] == 6
    predicted = client.predict("town", [{"area": "a", "age": 1}])
    assert predicted["prediction"] in (["Rome"], ["Oslo"])
    assert 0.5 <= predicted["probability"][0] <= 1.0
    with pytest.raises(ServerError, match="there is no model of 'c'"):
        client.predict("town", [{"area": "c", "age": 1}])
    client.delete("town")


def test_one_tensor_has_all_columns(client, server):
    client.create("numbers", target="y", first=3)
    client.learn("numbers", [{"a": a, "b": a * a, "y": a + 1} for a in range(10)])
    whole = {"name": "input-0", "datatype": "INT64", "shape": [2, 2], "data": [[1, 1], [2, 4]]}
    _, _, one = send(server, "POST", "/v2/models/numbers/versions/1/infer", json.dumps({"inputs": [whole]}))
    each = [column("a", "FP32", 1.0, 2.0), column("b", "FP32", 1.0, 4.0)]
    _, _, many = send(server, "POST", "/v2/models/numbers/infer", json.dumps({"inputs": each}))
    assert one["outputs"][0] == many["outputs"][0]
    client.delete("numbers")


def test_openapi_document_lists_every_path(server):
    status, _, document = send(server, "GET", "/openapi.json")
    assert (status, document) == (200, make_document())
    for path, method, name, _, _, answer in OPERATIONS:
        if method != "get":
            continue
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", path.replace("{name}", "price"))
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        assert reply.status == 200, name
        schema = document["components"]["schemas"].get(answer, {})
        if answer not in ("file", "text"):
            assert set(schema.get("required", [])) <= json.loads(content).keys()


def test_content_types(server):
    for kind, status in (("text/csv", 415), ("application/vnd.apache.arrow.stream", 400)):
        assert send(server, "POST", "/v2/models/price/learn", b"a,b", Content_Type=kind)[0] == status
    assert send(server, "POST", "/v2/models/price/learn", b"{}", Content_Encoding="gzip")[0] == 400
    assert send(server, "POST", "/v2/models/price/learn", b"{}", Idempotency_Key="k" * 201)[0] == 400


def test_the_client_predicts_one_record_or_several(client):
    record = {"area": 70.0, "age": 3, "town": "Rome"}
    one, several = client.predict("price", record), client.predict("price", [record, record])
    assert one["prediction"] * 2 == several["prediction"]


def test_a_file_that_is_no_model_is_refused_without_a_path_of_the_server(server):
    kind = "application/octet-stream"
    status, _, answer = send(server, "POST", "/v2/models/x", b"no model", Content_Type=kind)
    assert (status, answer["error"][:33]) == (400, "The model file cannot be loaded: ")
    assert "start" not in answer["error"]
    refused = send(server, "POST", "/v2/models/price/learn", b"{}", Content_Type="text/csv")[2]["error"]
    assert refused.startswith("Records cannot be sent as 'text/csv': set Content-Type to application/json")


def test_a_thousand_mutilated_bodies_do_no_harm(server, client):
    choose = random.Random(0)
    table, sink = pa.Table.from_pylist(make_records(3)[:2]), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    inputs = json.dumps(
        {"inputs": [column("area", "FP64", 1.0), column("age", "INT64", 1), column("town", "BYTES", "x")]}
    )
    seeds = [
        ("learn", "application/json", json.dumps(make_records(3)).encode()),
        ("score", "application/x-ndjson", b"\n".join(json.dumps(record).encode() for record in make_records(3))),
        ("learn", "application/vnd.apache.arrow.stream", sink.getvalue()),
        ("infer", "application/json", inputs.encode()),
    ]
    connection, statuses = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30), set()
    before = client.summary("price")["records"]
    added = 0
    for _ in range(1000):
        path, kind, body = choose.choice(seeds)
        data = bytearray(body)
        for _ in range(choose.randint(1, 4)):
            place = choose.randrange(len(data))
            match choose.randrange(4):
                case 0:
                    data[place] = choose.randrange(256)
                case 1:
                    del data[place : place + choose.randint(1, 20)]
                case 2:
                    data[place:place] = choose.choice([b"{", b"]", b"1e999", b"null", b"\0", b'"', b"\\u", b"-" * 50])
                case 3:
                    data = data[:place] or bytearray(b"x")
        connection.request("POST", f"/v2/models/price/{path}", bytes(data), {"Content-Type": kind})
        answer = connection.getresponse()
        content = json.loads(answer.read())
        statuses.add(answer.status)
        assert answer.status in (200, 400, 413), content
        added += content["count"] if path == "learn" and answer.status == 200 else 0
    connection.close()
    assert statuses == {200, 400, 413}  # a header of Arrow may say that there are too many records
    assert client.summary("price")["records"] == before + added


def test_slow_and_silent_clients_are_closed_and_others_served(server, client):
    head = b"POST /v2/models/price/learn HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
    answers = {}

    def connect(name, data):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(data)
            received = b""
            while part := connection.recv(4096):
                received += part
            answers[name] = received

    beginnings = {"silent": b"", "head": head[:20], "body": head + b"\r\n{", "garbage": b"\0\1\2\r\n\r\n"}
    threads = [threading.Thread(target=connect, args=each) for each in beginnings.items()]
    for thread in threads:
        thread.start()
    assert client.learn("price", NEW | {"price": 210.0})["learned"] == 1
    with socket.create_connection(("127.0.0.1", server.port)) as cut:
        cut.sendall(head + b"\r\n{")
    for thread in threads:
        thread.join(20)
    assert answers["silent"] == answers["head"] == b""
    assert b" 408 " in answers["body"]
    assert b"did not come within 2 seconds" in answers["body"]
    assert b" 400 " in answers["garbage"]
    assert client.learn("price", NEW | {"price": 210.0})["learned"] == 1


def test_the_example_of_the_page(server, capsys):
    page = (Path(rd.__file__).parents[2] / "docs" / "serve.md").read_text()
    (example,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    namespace = {}
    exec(example.replace("http://127.0.0.1:8080", server.address), namespace)
    namespace["client"].delete("flats")
    namespace["client"].close()
    assert capsys.readouterr().out.split() == re.findall(r"# (\w+)$", example, re.MULTILINE)


def test_more_connections_than_threads_and_saving_in_between(server):
    """Many clients learn and predict at once; the model is whole, and saving it changes no prediction."""
    records = [record for record in make_records(200, seed=9) if isinstance(record["area"], float)]
    with server.client() as client:
        client.create("busy", target="price", first=10)
        client.learn("busy", records[:50])
        before = client.summary("busy")["records"]

    def work(number):
        with server.client() as client:
            for place in range(5):
                assert client.learn("busy", records[(number + place) % 150])["learned"] == 1
                assert len(client.predict("busy", records[:2])["prediction"]) == 2

    with ThreadPoolExecutor(40) as pool:
        list(pool.map(work, range(40)))
    with server.client() as client:
        assert client.summary("busy")["records"] == before + 200
        first = client.predict("busy", records[:20])["prediction"]
        for _ in range(3):
            client.download("busy")
        assert client.predict("busy", records[:20])["prediction"] == first
        client.delete("busy")


def test_the_address_of_a_server():
    with pytest.raises(rd.errors.DataError, match="looks like"):
        Client("127.0.0.1:8080")
    with pytest.raises(ServerError, match="does not answer"):
        Client("http://127.0.0.1:1", attempts=1).models()
