"""How a server is run: tokens, folders, limits, many connections at once, and what happens when it stops."""

import asyncio
import errno
import json
import os
import re
import shutil
import socket
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redescend.cli import app
from redescend.client import Client, ServerError
from redescend.errors import DataError, ParameterError
from redescend.serve.folder import ModelFolder
from redescend.serve.journal import Fsync
from redescend.serve.replies import TooManyRequests
from redescend.serve.server import check_host
from redescend.serve.settings import Limits
from redescend.serve.writer import Writer
from tests.serve.servers import ServerProcess, fit, make_records, make_request, write_settings


def to_lines(records):
    return [json.dumps(record).encode() for record in records]


def test_token_stop_and_start_again(tmp_path):
    data, settings = tmp_path / "data", write_settings(tmp_path, first=20)
    with ServerProcess(data, settings, "--fsync", "interval", token="sécret") as server:
        with server.client() as client:
            client.learn("price", make_records(100))
            model = client.download("price")
        for token, sentence in (
            (None, "needs a token"),
            ("", "needs a token"),
            ("wrong", "not the token of the server"),
        ):
            with (
                Client(server.address, token) as stranger,
                pytest.raises(ServerError, match=sentence) as refused,
            ):
                stranger.models()
            assert refused.value.status == 401
        with pytest.raises(DataError, match="in use by another server"):
            ModelFolder(data, Limits())
        assert server.stop() == 0
    assert (data / "models" / "price" / "snapshot.safetensors").exists()
    folder = ModelFolder(data, Limits())
    folder.open_all()
    assert folder.writer("price").model.dump() == model
    assert folder.writer("price").model.counts.records == 100


def test_models_on_a_file_system_without_locks_are_served(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    folder = ModelFolder(tmp_path / "data", Limits())
    assert folder.create("price", {"target": "price"}).name == "price"
    asyncio.run(folder.close())


def test_records_that_a_start_has_replayed_are_in_the_snapshot_of_the_next_stop(tmp_path):
    folder = ModelFolder(tmp_path, Limits())
    folder.create("price", {"target": "price", "first": 10}).commit([make_request(to_lines(make_records(50)))])
    os.close(folder._lock)  # killed: no snapshot
    for replayed in (50, 0):
        folder = ModelFolder(tmp_path, Limits())
        folder.open_all()
        assert folder.count_unsaved(folder.writer("price").model) == replayed
        asyncio.run(folder.close())
        assert (tmp_path / "models" / "price" / "snapshot.safetensors").exists()


def test_requests_without_a_token_are_not_counted_as_open(tmp_path):
    """Who has no token must not use up the requests of those who have."""
    head = b"POST /v2/models/%s HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nAuthorization: Bearer %s\r\n\r\n"
    with ServerProcess(tmp_path / "data", token="secret") as server, ExitStack() as stack:
        for path in (b"m/learn", b"m"):
            for token in (b"secret", b"wrong", b"wrong", b"wrong"):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
                connection.sendall(head % (path, token))
                if token == b"wrong":
                    # Nobody waits for the body.
                    answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))  # noqa: B023
                    assert answer.startswith(b"HTTP/1.1 401")
        request = urllib.request.Request(f"{server.address}/metrics", headers={"Authorization": "Bearer secret"})
        with urllib.request.urlopen(request) as metrics:
            counted = re.search(rb"^redescend_open_requests (\d+)$", metrics.read(), re.MULTILINE)
        assert int(counted[1]) == 3  # both with the token, and that for the metrics


def test_only_loopback_without_a_token(tmp_path):
    for host in ("127.0.0.1", "localhost", "::1"):
        check_host(host, None)
    for host in ("0.0.0.0", "::", "192.168.1.1", "example.org"):
        check_host(host, "token")
        with pytest.raises(ParameterError, match="set a token"):
            check_host(host, None)
    done = CliRunner().invoke(app, ["serve", "--data", str(tmp_path / "d"), "--host", "0.0.0.0"])
    assert (done.exit_code, "set a token" in done.stderr) == (2, True)
    done = CliRunner().invoke(app, ["serve", "--data", str(tmp_path / "d"), "--fsync", "often"])
    assert (done.exit_code, "--fsync must be" in done.stderr) == (2, True)


def test_a_damaged_model_is_named_and_the_others_are_served(tmp_path):
    folder = ModelFolder(tmp_path / "a", Limits())
    for name in ("good", "bad"):
        folder.create(name, {"target": "price", "first": 10}).commit([make_request(to_lines(make_records(20)))])
        folder.writer(name).model.commit([make_request(to_lines(make_records(5)))])
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    path = tmp_path / "b" / "models" / "bad" / "journal" / "00000001.journal"
    path.write_bytes(path.read_bytes().replace(b'"Rome"', b'"Roma"', 1))
    (tmp_path / "b" / "models" / ".half").mkdir()
    again = ModelFolder(tmp_path / "b", Limits())
    again.open_all()
    assert list(again.writers) == ["good"]
    assert "is damaged at byte" in again.broken["bad"]
    assert not (tmp_path / "b" / "models" / ".half").exists()
    asyncio.run(again.delete("bad"))
    assert again.broken == {}


def test_too_many_models_and_records(tmp_path):
    folder = ModelFolder(tmp_path, Limits(models=1))
    folder.create("a", {"target": "y"})
    with pytest.raises(Exception, match="as many as the server takes"):
        folder.create("b", {"target": "y"})


def test_back_pressure_and_groups(tmp_path):
    """While a commit is on its way to the disk, requests wait for one common commit; too many are refused."""
    folder = ModelFolder(tmp_path, Limits(queued=10))
    model, sizes, hold, begun = (
        folder.create("m", {"target": "price", "first": 5}),
        [],
        threading.Event(),
        threading.Event(),
    )
    real = model.journal.commit

    def commit(requests, records):
        begun.set()
        hold.wait(10)
        sizes.append(len(requests))
        real(requests, records)

    model.journal.commit = commit

    async def run():
        with ThreadPoolExecutor(1) as executor:
            writer = Writer(model, executor, lambda model: False, lambda model: None)
            lines = to_lines(make_records(12))
            first = writer.enqueue(make_request(lines[:1]))
            await asyncio.to_thread(begun.wait, 10)
            others = [writer.enqueue(make_request([line])) for line in lines[1:10]]
            await asyncio.sleep(0)
            with pytest.raises(TooManyRequests, match="10 records of 'm' wait"):
                await writer.enqueue(make_request(lines[10:]))
            hold.set()
            answers = await asyncio.gather(first, *others)
            await writer.close()
            return [answer.row for answer in answers]

    assert asyncio.run(run()) == list(range(1, 11))
    assert sizes == [1, 9]


@pytest.mark.parametrize("fsync", list(Fsync))
def test_readers_see_whole_models_while_a_writer_learns(tmp_path, fsync):
    """Each prediction is that of a model after some number of whole commits, and they never go back."""
    model = ModelFolder(tmp_path, Limits(), fsync).create("m", {"target": "price", "first": 50})
    records = [record | {"age": 1} for record in make_records(450) if isinstance(record["area"], float)]
    model.commit([make_request(to_lines(records[:60]))])
    seen, stop = [], threading.Event()
    probe = to_lines([{"area": 70.0, "age": 1, "town": "Rome"}])

    def read():
        mine = []
        while not stop.is_set():
            mine.append(float(model.review(probe, target=False)[1].rounds.predictions[0]))
        seen.append(mine)

    def predict():
        return float(model.review(probe, target=False)[1].rounds.predictions[0])

    states, threads = [predict()], [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for first in range(60, len(records), 10):
        model.commit([make_request(to_lines(records[first : first + 10]))])
        states.append(predict())
    stop.set()
    for thread in threads:
        thread.join()
    for mine in seen:
        assert len(mine) > 0
        places = [states.index(prediction) for prediction in mine]
        assert places == sorted(places)


def test_saving_changes_no_prediction(tmp_path):
    """Vowpal Wabbit's daemon predicts differently after it has saved its model (VowpalWabbit/vowpal_wabbit#641)."""
    records = make_records(240, seed=8)
    asked = [record for record in records[:30] if isinstance(record["area"], float)]
    served = []
    for name, every in (("never", "1000000"), ("often", "20")):
        settings = write_settings(tmp_path, first=20)
        with ServerProcess(tmp_path / name, settings, "--every", every) as server, server.client() as client:
            answers = []
            for start in range(0, 240, 20):
                client.learn("price", records[start : start + 20])
                before = client.predict("price", asked)["prediction"]
                if name == "often":
                    client.download("price")
                    assert client.predict("price", asked)["prediction"] == before
                answers.append(before)
            served.append((answers, client.download("price")))
            assert server.stop() == 0
        saved = sum("Snapshot" in line for line in server.lines)
        assert saved >= 3 if name == "often" else saved == 1  # none is begun while another is written
    # Nor does opening it again.
    with ServerProcess(tmp_path / name) as server, server.client() as client:
        assert client.predict("price", asked)["prediction"] == answers[-1]
    assert served[0] == served[1]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.json", b"x", "a.json' is not JSON"),
        ("a.json", b"\xff", "a.json' is not JSON"),
        ("a.json", b"{}", "a.json': The setting 'target' is missing"),
        ("a.csv", b"x", "a.csv': The model file cannot be loaded"),
    ],
)
def test_a_file_that_makes_no_model_is_named(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content)
    ended = CliRunner().invoke(app, ["serve", str(path), "--data", str(tmp_path / "data"), "--port", "0"])
    assert ended.exit_code == 2
    assert sentence in ended.stderr


def test_more_connections_than_workers(tmp_path):
    """A daemon of Vowpal Wabbit corrupts a model with more connections than workers (vowpal_wabbit#628)."""
    records, connections = make_records(240, seed=9), 24
    settings = write_settings(tmp_path, first=20)
    with ServerProcess(tmp_path / "data", settings, "--keep-journal") as server:
        with server.client() as client:
            client.learn("price", records[:20])

        def use(number):
            own = records[20 + number :: connections]
            with server.client() as client:
                for record in own:
                    client.learn("price", record)
                    (prediction,) = client.predict("price", [{"area": 80.0, "age": 3, "town": "Rome"}])["prediction"]
                    assert abs(prediction) < 1e4
            return len(own)

        with ThreadPoolExecutor(connections) as pool:
            assert sum(pool.map(use, range(connections))) == 220
        with server.client() as client:
            assert client.summary("price")["records"] == 240
            model = client.download("price")
        assert server.stop() == 0
    assert fit(tmp_path / "data" / "models" / "price" / "journal", tmp_path / "fitted.safetensors") == model


def test_the_unit_of_the_page_starts_a_command_that_exists(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
    (unit,) = re.findall(r"```ini\n(.*?)```", page, re.DOTALL)
    (command,) = re.findall(r"^ExecStart=/opt/redescend/bin/redescend (.*)$", unit, re.MULTILINE)
    (settings,) = re.findall(r"^echo '(.*)' > /etc/redescend/houses.json$", page, re.MULTILINE)
    path = tmp_path / "houses.json"
    path.write_text(settings)
    name, given, *options = command.split()
    assert (name, given, options[0]) == ("serve", "/etc/redescend/houses.json", "--data")
    with ServerProcess(tmp_path / "data", str(path), *options[2:], token="secret") as server, server.client() as client:
        assert [each["name"] for each in client.models()] == ["houses"]
        assert server.stop() == 0
