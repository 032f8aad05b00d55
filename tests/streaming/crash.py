"""A run that is killed again and again, and resumed each time, until it is finished.

``python -m tests.streaming.crash 1000`` kills one run a thousand times and compares its files with those of an
uninterrupted run. A second number, the stride, makes it kill only at every so many-th call that touches a file.

Restarts are cheap: this process imports everything and plays the stream once, so that all is compiled, and then forks a
child for each attempt. It must be a process of its own, because one with other threads should not be forked.
"""

from __future__ import annotations

import gzip
import itertools
import math
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from redescend.checkpoint import load
from redescend.streaming.config import FitConfig, Outputs
from redescend.streaming.fit import start_run
from redescend.streaming.io.checkpoints import FILE
from redescend.streaming.run import Run

OUTPUTS = ("model.safetensors", "rounds.parquet", "quarantine.jsonl", "report.html")
TARGET = "price"

CALLS_OF_CHECKPOINT = 5
"""Two logs are synced, and a file is synced, put in its place, and its folder synced."""


def write_stream(folder: Path, rows: int, seed: int) -> list[Path]:
    """Three files, the second compressed, with texts, dates, truths, missing values, outliers and all sorts of dirt."""
    random = np.random.default_rng(seed)
    lines = [_record(random, row) for row in range(rows)]
    parts = [lines[: rows // 3], lines[rows // 3 : rows // 2], lines[rows // 2 :]]
    header = b"area,age,town,sold,garden,price\n"
    paths = [folder / name for name in ("1.csv", "2.csv.gz", "3.csv")]
    for path, part in zip(paths, parts, strict=True):
        content = header + b"".join(part)
        path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return paths


def _record(random: np.random.Generator, row: int) -> bytes:
    area, age = random.uniform(20, 200), random.integers(0, 99)
    town = random.choice(["Ayr", "Bute", '"Clun, Salop"', f"hamlet {random.integers(1000)}"])
    price = 3000 * area - 500 * age + random.normal(0, 1e4)
    if random.random() < 0.05:
        price *= 100
    day = np.datetime64("2020-01-01") + row // 50
    values = [f"{area:.2f}", str(age), town, str(day), random.choice(["true", "false"]), f"{price:.2f}"]
    if random.random() < 0.1:
        values[random.integers(5)] = ""
    dirt = random.random() if row > 1 else 1.0
    if dirt < 0.006:
        worst = [b"1,2,3", b"a,b,c,d,e,f", b"1,2,\xff,2020-01-01,true,1", b"1,2,Ayr,2020-01-01,true,inf", b",,,,,1e308"]
        return worst[random.integers(len(worst))] + b"\n"
    return ",".join(values).encode() + b"\n"


def opened(sources: list[Path], folder: Path, every: int | None, halt: float = math.inf) -> Run:
    """The run of the test, from its checkpoint if there is one; without `every` there is none.

    It waits, for ever, once it has read as many records as `halt`.
    """
    kept = {} if every is None else {"checkpoint": folder / "checkpoint", "every": every, "resume": True}
    names = {"model": "model.safetensors", "rounds": "rounds.parquet", "report": "report.html"}
    names |= {"quarantine": "quarantine.jsonl"}
    outputs = Outputs(**{content: folder / name for content, name in names.items()})
    config = FitConfig(target=TARGET, outputs=outputs, **kept)
    return start_run(sources, config, watch=lambda run, _: _wait(run.counts.records >= halt))


def _wait(needed: bool) -> None:
    while needed:
        time.sleep(1.0)


def attempt(work: Callable[[], object], delay: float | None = None) -> bool:
    """Whether a child process comes to the end of its work before it is killed after a delay."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    if os.WEXITSTATUS(status):
        raise RuntimeError("A run failed, and was not killed.")
    return True


def killed_at_call(number: int, work: Callable[[], object], *, after: bool = False) -> Callable[[], object]:
    """Work that kills itself just before, or after, so many calls that settle, replace or remove a file."""

    def killing() -> object:
        calls, unlink = itertools.count(1), os.unlink

        def watched(function: Callable[..., object]) -> Callable[..., object]:
            def called(*arguments: Any, **options: Any) -> object:
                removed = function is unlink and not os.path.exists(arguments[0])
                mine = not removed and next(calls) == number
                if mine and not after:
                    os.kill(os.getpid(), signal.SIGKILL)
                result = function(*arguments, **options)
                if mine:
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            return called

        for name in ("fsync", "replace", "unlink"):
            setattr(os, name, watched(getattr(os, name)))
        return work()

    return killing


class Trial:
    """A stream, and what a run leaves that nobody interrupts."""

    def __init__(self, folder: Path, rows: int, every: int, seed: int) -> None:
        self.folder, self.rows, self.every = folder, rows, every
        self.random = np.random.default_rng(seed)
        (folder / "source").mkdir()
        self.sources = write_stream(folder / "source", rows, seed)
        self.alone = self.new()
        rounds = opened(self.sources, self.alone, every=None)
        for _ in rounds.batches():
            read = time.perf_counter()
        self.finishing = time.perf_counter() - read
        records, learned, quarantined, skipped = rounds.counts
        if records != rows or records != learned + quarantined + skipped or not quarantined:
            raise RuntimeError(f"Of {rows} records {learned} were learned from and {quarantined + skipped} were not.")

    def new(self) -> Path:
        """A folder for the files of a run."""
        return Path(tempfile.mkdtemp(dir=self.folder))

    def work(self, folder: Path, halt: float = math.inf) -> Callable[[], object]:
        return lambda: opened(self.sources, folder, self.every, halt).run()

    def compare(self, folder: Path, what: str) -> None:
        """Raise an error unless the files are those of the run that nobody interrupted, byte for byte."""
        for name in OUTPUTS:
            if (folder / name).read_bytes() != (self.alone / name).read_bytes():
                raise RuntimeError(f"{what}: {name} is not what it should be.")

    def kill_at_calls(self, stride: int) -> int:
        """Kill a run before calls that touch a file, and again when it is resumed; how many were killed."""
        for killed in itertools.count():
            folder, number = self.new(), 1 + stride * killed
            if attempt(killed_at_call(number, self.work(folder))):
                return killed
            attempt(killed_at_call(CALLS_OF_CHECKPOINT, self.work(folder), after=True))
            attempt(self.work(folder))
            self.compare(folder, f"Killed before call {number}, and when it had been resumed")
        raise AssertionError

    def kill_at_random(self, kills: int) -> Counter[str]:
        """Kill one run so often before all records are read, and then while it writes its files; where it was killed.

        The delays are such that the records read between two kills are about as many as are left for each.
        """
        whole, start = math.inf, math.inf
        for _ in range(2):
            folder = self.new()
            whole = min(whole, _seconds(lambda: attempt(self.work(folder))))  # noqa: B023
            start = min(start, _seconds(lambda: attempt(self.work(folder))))  # noqa: B023
        reading = max(0.0, whole - start - self.finishing)

        folder, stages, nearly = self.new(), Counter[str](), 0.95
        while (left := kills - stages.total()) > 0:
            share = max(0.0, (nearly - self._done(folder)) * reading / left)
            # Uniform delays up to here get on, beyond the start, by this share on average.
            longest = start + share + math.sqrt((start + share) ** 2 - start**2)
            attempt(self.work(folder, halt=nearly * self.rows), self.random.uniform(0.0, longest))
            stages[self._stage(folder)] += 1
        for patience in itertools.count(1):
            rest = (1.0 - self._done(folder)) * reading + self.finishing
            # Ever longer: a machine that is busier now than before must not keep it from its end.
            longest = start + 0.2 * patience * (start + rest)
            if attempt(self.work(folder), self.random.uniform(0.5 * start, longest)):
                break
            stages[self._stage(folder)] += 1
        self.compare(folder, f"Killed {stages.total()} times")
        return stages

    def _done(self, folder: Path) -> float:
        path = folder / "checkpoint" / FILE
        return load(path)["counts"][0] / self.rows if path.exists() else 0.0

    def _stage(self, folder: Path) -> str:
        path = folder / "checkpoint" / FILE
        if not path.exists():
            return "before the first checkpoint"
        ended = load(path)["ended"]
        return "while files were written" if ended else "while records were read"


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(kills: int, stride: int = 1, seed: int = 0) -> None:
    """Kill one run at random times, and a short one at calls that touch a file."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "random").mkdir()
        stages = Trial(
            Path(folder) / "random", rows=1000 + 20 * min(kills, 150) + 8 * kills, every=80, seed=seed
        ).kill_at_random(kills)
        for stage, count in stages.items():
            print(f"{count} kills {stage}")
        (Path(folder) / "calls").mkdir()
        calls = Trial(Path(folder) / "calls", rows=300, every=200, seed=seed).kill_at_calls(stride)
        print(f"{calls} kills at calls that touch files")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
