"""A server under load for minutes, and the memory of many models."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from threading import Thread
from time import monotonic

import numpy as np

from benchmarks.serving import COLUMNS, SERVE, make_bodies, send, start, start_served
from redescend.client import Client

PARTS = 10
"""Number of intervals; figures are printed for each."""

WORKERS, BATCH = 16, 200
"""Connections for each kind of request; requests between two looks at the clock."""


def resident_memory(pid: int) -> float:
    """Resident memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def watch_load(minutes: float) -> None:
    """Predict and learn at the same time, one record a request; print p99 and memory of each tenth of the time."""
    bodies = make_bodies(1)
    with start_served() as (pid, port):
        seconds: dict[str, list[float]] = {"infer": [], "learn": []}
        end = monotonic() + 60.0 * minutes

        def work(what: str) -> None:
            body = bodies["predict" if what == "infer" else what]
            while monotonic() < end:
                seconds[what] += send(port, f"/v2/models/m/{what}", body, BATCH, clients=WORKERS)

        threads = [Thread(target=work, args=(what,)) for what in seconds]
        for thread in threads:
            thread.start()
        seen = dict.fromkeys(seconds, 0)
        for part in range(1, PARTS + 1):
            threads[0].join(max(0.0, end - 60.0 * minutes * (1 - part / PARTS) - monotonic()))
            texts = []
            for what, times in seconds.items():
                taken, first = np.array(times[seen[what] :]), seen[what]
                seen[what] = first + len(taken)
                p50, p99 = np.quantile(taken, [0.5, 0.99]) if len(taken) else (np.nan, np.nan)
                texts.append(f"{what} {len(taken):,} requests, median {1000 * p50:.1f} ms, p99 {1000 * p99:.1f} ms")
            passed = minutes * part / PARTS
            print(f"{passed:.1f} min: {'; '.join(texts)}; {resident_memory(pid):.1f} MiB", flush=True)
        for thread in threads:
            thread.join()


def measure_memory(models: int, records: int = 200) -> None:
    """Print the memory of a server with this many models of 20 numbers, by the order of their learner."""
    body = json.loads(make_bodies(records)["learn"])
    for order in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            arguments = ("serve", "--data", folder, "--port", "0", "--fsync", "never")
            with start(SERVE, *arguments) as (pid, port), Client(f"http://127.0.0.1:{port}") as client:
                before = resident_memory(pid)
                for number in range(models):
                    client.create(f"m{number}", target="y", order=order)
                    client.learn(f"m{number}", body)
                    client.predict(f"m{number}", body[:1])
                after = resident_memory(pid)
        each = 1024 * (after - before) / models
        print(
            f"order {order}: {models:,} models of {COLUMNS} numbers, {after:.0f} MiB in all, {each:.0f} KiB each",
            flush=True,
        )
