"""A server in a process of its own, on a free port of this machine, and records to send to it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from redescend.client import Client, ServerError
from redescend.serve.records import Records
from redescend.serve.requests import LearnRequest

COMMAND = [sys.executable, "-c", "from redescend.cli import app; app()"]


class ServerProcess:
    """`redescend serve` with a data folder; stopped by its id, whatever happens."""

    def __init__(self, data: Path, *arguments: str, token: str | None = None):
        environment = dict(os.environ, OPENBLAS_NUM_THREADS="1") | ({} if token is None else {"REDESCEND_TOKEN": token})
        command = [*COMMAND, "serve", *arguments, "--data", str(data), "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self.lines: list[str] = []
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"http://\S+:(\d+)", line):
                self.address, self.port = found[0], int(found[1])
                break
        else:
            raise AssertionError("".join(self.lines))
        self._rest = threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True)
        self._rest.start()
        self.token = token
        self._wait()

    def _wait(self) -> None:
        """Until it answers: the socket listens a moment before."""
        with self.client() as client:
            client.models()

    def client(self, **settings) -> Client:
        return Client(self.address, self.token, **settings)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        code = self.process.wait(60)
        self._rest.join(10)
        self.process.stderr.close()
        return code

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()


def make_records(count: int, seed: int = 0) -> list[dict]:
    """Records with numbers, a text, missing values, outliers and one in thirty that cannot be used."""
    random = np.random.default_rng(seed)
    records = []
    for number in range(count):
        area, age, town = random.normal(80, 20), random.integers(0, 90), random.choice(["Rome", "Oslo", "Lima"])
        price = 3.0 * area - 0.5 * age + (40.0 if town == "Rome" else 0.0) + random.normal()
        record = {"area": float(area), "age": int(age), "town": str(town), "price": float(price)}
        if number % 10 == 7:
            record["price"] = 1e5
        if number % 11 == 5:
            record["age"] = None
        if number % 30 == 29:
            record["area"] = "large"
        records.append(record)
    return records


def make_request(lines: list[bytes], key: str | None = None, digest: int = 0) -> LearnRequest:
    return LearnRequest(Records(lines), key, digest)


def write_settings(folder: Path, name: str = "price", **settings) -> str:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"target": "price", **settings}))
    return str(path)


def fit(journal: Path, model: Path, *options: str) -> bytes:
    """The file that `redescend fit` makes of a journal."""
    command = [*COMMAND, "fit", str(journal), "--target", "price", "--model", str(model), "--no-report", "--quiet"]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    return model.read_bytes()


def wait_for(condition, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


__all__ = ["ServerError", "ServerProcess", "fit", "make_records", "make_request", "wait_for", "write_settings"]
