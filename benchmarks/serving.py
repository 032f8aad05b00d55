"""Serving a model that learns, against a Starlette application that only echoes the body.

Both run in processes of their own with the same server, uvicorn, and get the same bodies from the same clients, in
turns. The benchmark measures the processor time of the server per request, over all threads, whose inverse is the
throughput of one core, and the requests per second of wall time, which other programs disturb more: the median over
turns, and those of the fastest turn of each. Commits are synchronized (``--fsync always``).

``python -m benchmarks.serving --minutes 10`` watches a server under load, and ``--models 1000`` measures the memory of
many models; see `benchmarks.serving_load`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from benchmarks.report import Goal, Row, compare
from benchmarks.timing import Effort

ROOT = Path(__file__).resolve().parents[1]
CLIENTS, COLUMNS, REQUESTS, TURNS = 32, 20, 2, 5
"""Connections; features; requests of a turn, in units of the effort's calls; and turns, of which the median counts."""

GOALS = {"predict": 0.6, "predict columns": 0.6, "learn": 0.3}
"""The goal: this share of the requests per second of the echo application."""

ECHO = """
import socket, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def echo(request):
    return Response(await request.body(), media_type="application/json")

listener = socket.create_server(("127.0.0.1", 0))
import sys
print(f"http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
routes = [Route("/v2/models/m/{what}", echo, methods=["POST"])]
config = uvicorn.Config(Starlette(routes=routes), log_config=None, access_log=False, server_header=False, ws="none")
uvicorn.Server(config).run(sockets=[listener])
"""
SERVE = "from redescend.cli import app; app()"


class Measured(NamedTuple):
    """Of a request: seconds of processor time of the server, seconds on the wall, and until the answer (p99)."""

    processor: float
    wall: float
    slowest: float


@contextmanager
def start(program: str, *arguments: str) -> Iterator[tuple[int, int]]:
    """A server, by its process id and its port; stopped at the end."""
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            found = next(match for line in process.stderr if (match := re.search(r"http://\S+:(\d+)", line)))
            yield process.pid, int(found[1])
        finally:
            process.terminate()
            process.communicate()


def processor_time(pid: int) -> float:
    """Seconds of processor time of the threads of a process so far; the times of a process are too coarse."""
    return 1e-9 * sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def send(port: int, path: str, body: bytes, count: int, clients: int = CLIENTS) -> list[float]:
    """Send a body many times over some connections; seconds until each answer."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    seconds: list[float] = []

    async def client(requests: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        loop = asyncio.get_running_loop()
        for _ in range(requests):
            began = loop.time()
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            found = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
            content = await reader.readexactly(0 if found is None else int(found[1]))
            if not answer.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(content[:300].decode())
            seconds.append(loop.time() - began)
        writer.close()

    async def run() -> None:
        await asyncio.gather(*(client(max(1, count // clients)) for _ in range(clients)))

    asyncio.run(run())
    return seconds


def measure(pid: int, port: int, what: str, body: bytes, count: int) -> Measured:
    """The times of a request, after some that are not counted."""
    send(port, f"/v2/models/m/{what}", body, max(1, count // 8))
    before, began = processor_time(pid), perf_counter()
    seconds = send(port, f"/v2/models/m/{what}", body, count)
    # The system counts processor time now and then, so that a few requests may seem to take none.
    wall, used = perf_counter() - began, max(processor_time(pid) - before, 1e-6)
    return Measured(used / len(seconds), wall / len(seconds), float(np.quantile(seconds, 0.99)))


def make_bodies(records: int) -> dict[str, bytes]:
    """Bodies of this many records: to predict, one tensor, or one for each column; to learn, a list of records."""
    random = np.random.default_rng(0)
    X = random.normal(size=(records, COLUMNS)).round(6)
    names = [f"x{j}" for j in range(COLUMNS)]
    tensors = [
        {"name": name, "shape": [records], "datatype": "FP64", "data": column.tolist()}
        for name, column in zip(names, X.T, strict=True)
    ]
    y = X.sum(axis=1).tolist()
    listed = [dict(zip(names, row, strict=True)) | {"y": target} for row, target in zip(X.tolist(), y, strict=True)]
    whole = {"name": "records", "shape": [records, COLUMNS], "datatype": "FP64", "data": X.ravel().tolist()}
    outputs = [{"name": "prediction"}]
    bodies = {
        "predict": {"inputs": [whole], "outputs": outputs},
        "predict columns": {"inputs": tensors, "outputs": outputs},
        "learn": listed[0] if records == 1 else listed,
    }
    return {name: json.dumps(content).encode() for name, content in bodies.items()}


@contextmanager
def start_served(*options: str) -> Iterator[tuple[int, int]]:
    """A server with the model 'm', which learns from its first requests."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "m.json")
        settings.write_text(json.dumps({"target": "y"}))
        with start(
            SERVE, "serve", str(settings), "--data", str(Path(folder, "data")), "--port", "0", *options
        ) as served:
            send(served[1], "/v2/models/m/learn", make_bodies(200)["learn"], 5, clients=1)
            yield served


def serving_rows(effort: Effort) -> Iterator[Row]:
    """Processor time of requests to predict and to learn, with 1 and with 100 records."""
    with start_served() as served, start(ECHO) as echo:
        for what, goal in GOALS.items():
            path = "learn" if what == "learn" else "infer"
            for records in (1, 100):
                body, requests = make_bodies(records)[what], REQUESTS * effort.calls // (1 if records == 1 else 4)
                turns = [[measure(*each, path, body, requests) for each in (echo, served)] for _ in range(TURNS)]
                theirs, ours = (Measured(*np.median(each, axis=0)) for each in zip(*turns, strict=True))
                ratio = np.median([mine.processor / other.processor for other, mine in turns])
                per_second = np.median([other.wall / mine.wall for other, mine in turns])
                fastest = min(other.wall for other, _ in turns) / min(mine.wall for _, mine in turns)
                name = f"{what} {records}, {CLIENTS} clients, p99 {1000 * ours.slowest:.0f} ms"
                relative = f"{per_second:.2f} × its requests per second, {fastest:.2f} × in the fastest turns"
                against = f"echo, p99 {1000 * theirs.slowest:.0f} ms, {relative}"
                yield compare(
                    name, ratio * theirs.processor, against, theirs.processor, Goal(1.0 / goal), per="request"
                )


if __name__ == "__main__":
    import argparse

    from benchmarks.serving_load import measure_memory, watch_load
    from benchmarks.timing import FULL

    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--models", type=int)
    asked = parser.parse_args()
    if asked.minutes is not None:
        watch_load(asked.minutes)
    elif asked.models is not None:
        measure_memory(asked.models)
    else:
        for row in serving_rows(FULL):
            print(
                f"{row.what}: {row.measured} against {row.against}: {row.ratio:.2f} {row.goal} {row.verdict}",
                flush=True,
            )
