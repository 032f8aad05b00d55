"""Streams of real servers: every record is learned from once, wherever a run was stopped or killed."""

import errno
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import redescend as rd
from redescend.cli.tail import open_spool
from redescend.errors import DataError
from redescend.sources import open_source
from redescend.sources.formats import ReadOptions
from redescend.sources.mqtt import Spool
from redescend.sources.streams import Entry, RecordStream, find_stream, hide_password, to_line
from redescend.streaming import fit_stream
from tests.cli.commands import run, started
from tests.sources.servers import start_mosquitto, start_redis


def make_records(count, seed=0):
    random = np.random.default_rng(seed)
    records = []
    for size in random.uniform(10, 100, count).round(2).tolist():
        price = round(3.0 * size + random.normal(), 3) if random.random() > 0.05 else 9999.0
        records.append({"size": size, "town": str(random.choice(["Rome", "Oslo"])), "price": price})
    records[count // 2]["size"] = "large"
    return records


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory):
    with start_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def stream(redis_server):
    """A client, and the address of a stream that is empty."""
    redis = pytest.importorskip("redis")
    with redis.Redis(port=redis_server.port) as client:
        client.flushall()
        yield client, f"redis://127.0.0.1:{redis_server.port}/prices"


def fitted(tmp_path, records):
    """The model of these records, read from a file of JSON lines."""
    path = tmp_path / "alone.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    model, rounds = fit_stream(str(path), "price")
    rounds.run()
    rd.save(model, tmp_path / "alone")
    return (tmp_path / "alone").read_bytes()


@pytest.mark.parametrize("as_json", [False, True])
def test_redis_stream_is_followed_exactly_once(stream, in_a_folder, as_json):
    client, address = stream
    records = make_records(600)
    sent = [{"json": json.dumps(record, indent=1)} if as_json else record for record in records]
    ids = [client.xadd("prices", each).decode() for each in sent[:250]]
    command = ("tail", address, "--target", "price", "--model", "m", "--checkpoint", "run", "--no-report", "--once")
    first = run(*command)
    assert f"Following {address}" in first.stderr
    assert rd.load("m").records == 250
    # Entries that were read may be deleted.
    client.xtrim("prices", minid=ids[-1])
    for each in sent[250:]:
        client.xadd("prices", each)
    second = run(*command, "--resume", code=3)
    assert "after row 250" in second.stderr
    assert rd.load("m").records == 599
    assert "'large' is not a number" in second.stderr
    third = run(*command, "--resume", code=3)
    assert rd.load("m").records == 599, third.stderr
    # Texts of numbers are read as the numbers, so that the model is that of a file.
    assert (in_a_folder / "m").read_bytes() == fitted(in_a_folder, records)


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_redis_stream_survives_kills(stream, in_a_folder, kills):
    client, address = stream
    count = 150 + 250 * kills
    records = make_records(count, seed=1)
    command = ("tail", address, "--target", "price", "--model", "m", "--checkpoint", "run", "--no-report")
    command = (*command, "--interval", "0.01", "--every", "50", "--resume", "--first", "100", "--quiet")
    for record in records[:150]:
        client.xadd("prices", record)
    places = iter(np.linspace(150, count, kills + 1, dtype=int).tolist())
    before = next(places)
    for after in places:
        process = started(*command, cwd=".")
        for record in records[before:after]:
            client.xadd("prices", record)
        wait_for_checkpoint(in_a_folder / "run", process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        before = after
    done = run(*command, "--once", code=3)
    assert rd.load("m").records == count - 1, done.stderr
    assert (in_a_folder / "m").read_bytes() == fitted(in_a_folder, records)


def wait_for_checkpoint(folder, process):
    known, end = None, time.monotonic() + 60
    while known is None or known == stamp(folder):
        known = stamp(folder) if known is None else known
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)


def stamp(folder):
    return max((path.stat().st_mtime_ns for path in folder.glob("*")), default=0)


def test_deleted_entries_are_noticed(stream, in_a_folder):
    client, address = stream
    for record in make_records(120):
        client.xadd("prices", record)
    command = ("tail", address, "--target", "price", "--model", "m", "--checkpoint", "run", "--no-report", "--once")
    run(*command, code=3)
    for record in make_records(20, seed=2):
        client.xadd("prices", record)
    client.xtrim("prices", maxlen=0)
    client.xadd("prices", make_records(9)[0])
    refused = run(*command, "--resume", code=2)
    assert "140 entries were removed from the stream, but only 120 were read" in refused.stderr


def test_redis_says_what_is_wrong(stream, tmp_path):
    client, address = stream
    with pytest.raises(DataError, match="has no records"):
        open_source(address)
    client.set("prices", "text")
    with pytest.raises(DataError, match="cannot be read: WRONGTYPE"):
        open_source(address)
    with pytest.raises(DataError, match=r"looks like redis://.* Got 'redis://me@localhost'\."):
        open_source("redis://me:secret@localhost")
    with pytest.raises(DataError, match=r"redis://me@localhost:99999/x is not an address: Port out of range"):
        open_source("redis://me:secret@localhost:99999/x")
    with pytest.raises(OSError, match=r"redis://me@127\.0\.0\.1:1/0/x does not answer"):
        open_source("redis://me:secret@127.0.0.1:1/0/x")
    client.delete("prices")
    for fields in ({"x": "1", "y": "2"}, {b"\xff": b"1"}, {"json": "[1]"}, {"json": ""}, {"x": "3", "y": "4"}):
        client.xadd("prices", fields)
    (batch,) = open_source(address).batches(["x", "y"])
    assert (batch.rows.tolist(), [bad.row for bad in batch.bad]) == ([1, 5], [2, 3, 4])
    assert batch.table.column("x").to_pylist() == [1.0, 3.0]


class Numbered(RecordStream):
    """A stream in memory."""

    format, schemes = "numbered", ("numbered",)
    lines: list[bytes] = []

    def read_entries(self, after, most):
        first = 0 if after is None else int(after) + 1
        return [Entry(str(place), self.lines[place]) for place in range(first, min(len(self.lines), first + most))]

    def count_entries(self):
        return len(self.lines)


def test_long_entries_are_bad_records():
    stream = Numbered("numbered://x/y", ReadOptions(longest=20))
    long = b'{"x": "%s"}' % (b"a" * 50)
    stream.lines = [long, b'{"x": 1}', b'{"x": 2}', long, b'{"x": 3}', long]
    kinds, _ = stream.infer_columns([stream])
    pieces = [job() for job in stream.jobs(kinds, 0)]
    assert [(piece.offset, piece.stop, piece.mark) for piece in pieces] == [
        (0, 1, "0"),
        (1, 3, "2"),
        (3, 4, "3"),
        (4, 5, "4"),
        (5, 6, "5"),
    ]
    assert [piece.bad[0].reason if piece.bad else piece.table.num_rows for piece in pieces] == [
        "longer than 20 bytes",
        2,
        "longer than 20 bytes",
        1,
        "longer than 20 bytes",
    ]
    again = [job() for job in stream.jobs(kinds, 3, mark="2")]
    assert [(piece.offset, piece.mark) for piece in again] == [(3, "3"), (4, "4"), (5, "5")]


def test_addresses():
    assert find_stream("redis://localhost/x").format == "redis"
    assert find_stream("REDISS://localhost/x").format == "redis"
    assert find_stream("prices.csv") is find_stream("http://a/b") is find_stream(None) is None
    assert hide_password("mqtt://:secret@host/a@b/c") == "mqtt://host/a@b/c"
    assert to_line(b"\n{}\n") == b"{}"


@pytest.fixture
def broker(tmp_path_factory):
    pytest.importorskip("paho.mqtt.client")
    with start_mosquitto(tmp_path_factory.mktemp("mosquitto")) as server:
        yield server


@pytest.fixture
def publish(broker):
    import paho.mqtt.client as paho

    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()

    def send(records, topic="prices", **options):
        for record in records:
            payload = record if isinstance(record, str) else json.dumps(record)
            client.publish(topic, payload, qos=1, **options).wait_for_publish(20)

    yield send
    client.disconnect()
    client.loop_stop()


def wait_until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_mqtt_topic_is_followed_through_stops_and_kills(broker, publish, in_a_folder):
    address, records = f"mqtt://127.0.0.1:{broker.port}/prices", make_records(400, seed=3)
    command = ("tail", address, "--target", "price", "--model", "m", "--checkpoint", "run", "--no-report", "--resume")
    command = (*command, "--interval", "0.01", "--every", "20", "--quiet")
    spool = in_a_folder / "run.messages.jsonl"
    process = started(*command, cwd=".")
    limit = threading.Timer(240, process.kill)
    limit.start()
    wait_until(spool.exists)
    time.sleep(0.5)  # until it has subscribed
    publish(records[:200])
    wait_until(lambda: stamp(in_a_folder / "run"))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    limit.cancel()
    # The broker keeps these, and the file the others.
    publish(records[200:400])
    process = started(*command, cwd=".")
    wait_until(lambda: spool.read_bytes().count(b"\n") >= 400)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    # Those whose acknowledgement the kill prevented are there twice.
    lines = spool.read_bytes().splitlines()
    assert [json.loads(line) for line in dict.fromkeys(lines)] == records
    assert (in_a_folder / "m").read_bytes() == fitted(in_a_folder, [json.loads(line) for line in lines])


def test_spool_of_messages(broker, publish, tmp_path):
    address, path = f"mqtt://127.0.0.1:{broker.port}/rooms/#", tmp_path / "messages.jsonl"
    path.write_bytes(b'{"x": 0}\n{"x"')
    publish(['{"x": -1}'], "rooms/old", retain=True)
    spool = Spool(address, path)
    try:
        sent = ['{"x": 1}', "{}", '{"topic": "own"}', '{"kind": "topic"}', "text\nmore"]
        publish(sent, "rooms/a")
        wait_until(lambda: path.read_bytes().count(b"\n") == 1 + len(sent))
    finally:
        spool.close()
    expected = [
        b'{"x": 0}',
        b'{"topic": "rooms/a", "x": 1}',
        b'{"topic": "rooms/a"}',
        b'{"topic": "own"}',
        b'{"topic": "rooms/a", "kind": "topic"}',
        b"text more",
    ]
    assert path.read_bytes().splitlines() == expected


class Message:
    topic, retain, qos = "prices", False, 1

    def __init__(self, mid, payload, dup=False):
        self.mid, self.payload, self.dup = mid, payload, dup


def test_only_the_same_message_is_ignored_if_it_comes_again(broker, tmp_path):
    address, path = f"mqtt://127.0.0.1:{broker.port}/prices", tmp_path / "messages.jsonl"
    path.write_bytes(b'{"x": 1}\n')
    spool = Spool(address, path)
    try:
        # Equal to one of before, to one with another id, and one with the id of another.
        spool._append_messages([(1, Message(1, b'{"x": 1}', dup=True)), (1, Message(2, b'{"x": 1}', dup=True))])
        spool._append_messages([(1, Message(2, b'{"x": 2}', dup=True))])
        assert path.read_bytes().splitlines() == [b'{"x": 1}'] * 3 + [b'{"x": 2}']
        # The same ones again: on this connection, and on the next, where ids may be used again.
        again = [Message(1, b'{"x": 1}', dup=True), Message(2, b'{"x": 2}', dup=True)]
        spool._append_messages([(1, message) for message in again])
        assert path.read_bytes().count(b"\n") == 4
        spool._append_messages([(2, message) for message in again])
        assert path.read_bytes().splitlines()[4:] == [b'{"x": 1}', b'{"x": 2}']
    finally:
        spool.close()


def test_tail_stops_if_messages_cannot_be_written(broker, publish, in_a_folder, monkeypatch):
    def fail(self, group):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # The queue is full at once: nobody may wait for a writer that has failed.
    monkeypatch.setattr("redescend.sources.mqtt.WAITING", 1)
    monkeypatch.setattr(Spool, "_append_messages", fail)
    address = f"mqtt://127.0.0.1:{broker.port}/prices"

    def follow():
        with open_spool(address, in_a_folder / "run") as (_, has_failed):
            assert not has_failed()
            publish(make_records(30))
            wait_until(has_failed)

    with pytest.raises(DataError, match=r"prices: .*messages\.jsonl cannot be written: No space left on device\."):
        follow()


@pytest.mark.parametrize("begins", [False, True])
def test_tail_stops_if_the_broker_refuses_it_later(broker, publish, in_a_folder, begins):
    address = f"mqtt://127.0.0.1:{broker.port}/prices"
    command = ("tail", address, "--target", "price", "--checkpoint", "run", "--no-report", "--model", "m")
    process = started(*command, "--every", "20", "--interval", "0.01", cwd=".")
    try:
        wait_until((in_a_folder / "run.messages.jsonl").exists)
        time.sleep(0.5)  # until it has subscribed
        publish(make_records(150 if begins else 10))
        if begins:
            wait_until(lambda: stamp(in_a_folder / "run"))
        broker.stop()
        settings = Path(broker.command[-1])
        settings.write_text(settings.read_text().replace("allow_anonymous true", "allow_anonymous false"))
        broker.start()
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 2, said
    assert f"{address}: Not authorized." in said.decode()
    assert (in_a_folder / "m").exists() == begins


def test_broker_keeps_messages_only_for_a_checkpoint(broker, publish, tmp_path):
    address, path = f"mqtt://127.0.0.1:{broker.port}/prices", tmp_path / "messages.jsonl"
    for durable, expected in ((True, [b'{"x": 1}', b'{"x": 2}']), (False, [b'{"x": 2}'])):
        path.unlink(missing_ok=True)
        Spool(address, path, durable=durable).close()
        publish(['{"x": 1}'])
        spool = Spool(address, path, durable=durable)
        try:
            publish(['{"x": 2}'])
            wait_until(lambda: b'{"x": 2}' in path.read_bytes())
        finally:
            spool.close()
        assert path.read_bytes().splitlines() == expected


def test_mqtt_says_what_is_wrong(in_a_folder, broker):
    with pytest.raises(OSError, match=r"mqtt://me@127\.0\.0\.1:1/x does not answer"):
        Spool("mqtt://me:secret@127.0.0.1:1/x", in_a_folder / "s")
    with pytest.raises(DataError, match="looks like mqtt://"):
        Spool("mqtt://localhost", in_a_folder / "s")
    with pytest.raises(DataError, match=r"mqtt://me@localhost:99999/x is not an address: Port out of range"):
        Spool("mqtt://me:secret@localhost:99999/x", in_a_folder / "s")
    refused = run("tail", f"mqtt://127.0.0.1:{broker.port}/x", "--target", "y", "--once", code=2)
    assert "--once needs a source that ends" in refused.stderr


def test_servers_are_stopped(tmp_path):
    with start_redis(tmp_path) as server:
        assert server.process.poll() is None
    assert isinstance(server.process, subprocess.Popen)
    assert server.process.poll() is not None
