"""A server that is killed at random moments: no acknowledged record is lost, none is learned from twice."""

import random
import signal
import threading
from pathlib import Path

import pytest

from redescend.checkpoint import dump_model
from redescend.client import Client, ServerError
from redescend.sources import open_source
from redescend.streaming import fit_stream
from tests.serve.servers import ServerProcess, fit, make_records, wait_for, write_settings

SIZES = [1, 1, 3, 10]
"""Numbers of records in a request."""


class Sender(threading.Thread):
    """Sends its own records one after the other, some at a time, until each is acknowledged.

    It sends at least `count`, and goes on until `enough` is set, so that no kill comes too late. While no server is
    `up`, it waits.
    """

    def __init__(self, number: int, count: int, up: threading.Event, enough: threading.Event, sizes: list[int]) -> None:
        super().__init__(daemon=True)
        self.number, self.count, self.up, self.enough, self.sizes = number, count, up, enough, sizes
        self.records, self.errors = make_records(count, number), []
        self.sent = 0
        self.address: str | None = None

    def run(self) -> None:
        choose = random.Random(self.number)
        while self.sent < self.count or not self.enough.is_set():
            places = range(self.sent, self.sent + choose.choice(self.sizes))
            part = [self.records[place % self.count] | {"sender": self.number, "place": place} for place in places]
            self._learn(part, f"{self.number}:{self.sent}")
            self.sent = places.stop
            if choose.random() < 0.3:
                self._predict(part)

    def _learn(self, part, key) -> None:
        while True:
            try:
                with Client(str(self.address), attempts=1, timeout=30) as client:
                    answer = client.learn("price", part, key=key)
                    assert answer["count"] == len(part)
                    return
            except ServerError as error:
                if error.status:
                    self.errors.append(error)
                self.up.wait()
                threading.Event().wait(0.02)

    def _predict(self, part) -> None:
        try:
            with Client(str(self.address), attempts=1, timeout=30) as client:
                client.predict("price", [record for record in part if isinstance(record["area"], float)])
        except ServerError as error:
            if error.status not in (0, 400, 409):  # no records, or no schema yet
                self.errors.append(error)


def play(
    tmp_path, clients: int, count: int, kills: int, seed: int, sizes: list[int] = SIZES, every: int = 150
) -> tuple[Path, bytes]:
    settings = write_settings(tmp_path, first=50, features=["area", "age", "town"])
    choose, data = random.Random(seed), tmp_path / "data"
    up, enough = threading.Event(), threading.Event()
    senders = [Sender(number, count, up, enough, sizes) for number in range(clients)]
    server = ServerProcess(data, settings, "--keep-journal", "--every", str(every))
    for sender in senders:
        sender.address = server.address
        sender.start()
    up.set()
    try:
        for _ in range(kills):
            wait = choose.random() * 0.4
            threading.Event().wait(wait)
            server.kill()
            up.clear()
            server = ServerProcess(data, "--keep-journal", "--every", str(every))
            for sender in senders:
                sender.address = server.address
            up.set()
        enough.set()
        wait_for(lambda: not any(sender.is_alive() for sender in senders), 300)
        with server.client() as client:
            summary, model = client.summary("price"), client.download("price")
        assert server.stop() == 0
    finally:
        enough.set()
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGKILL)
    assert [error for sender in senders for error in sender.errors] == []
    journal = data / "models" / "price" / "journal"
    total = sum(sender.sent for sender in senders)
    assert summary["records"] == total >= clients * count
    source = open_source(str(journal))
    found = []
    for batch in source.batches(["sender", "place"]):
        assert not batch.bad
        found += zip(*(batch.table.column(name).to_pylist() for name in ("sender", "place")), strict=True)
    # All of them, each once, and those of a client in its order.
    assert len(found) == total
    for sender in senders:
        assert [place for number, place in found if number == sender.number] == list(range(sender.sent))
    fitted, run = fit_stream(str(journal), "price")
    run.run()
    assert dump_model(fitted) == model
    return journal, model


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_killed_a_hundred_times_by_64_clients(tmp_path, seed, record_property):
    journal, model = play(tmp_path, clients=64, count=50, kills=20, seed=seed)
    assert fit(journal, tmp_path / "fitted.safetensors") == model
    with ServerProcess(tmp_path / "data") as again, again.client() as client:
        assert client.download("price") == model
    record_property("tried", {"kills of a server with 64 clients": 20})
    record_property("lost", "no acknowledged record")
