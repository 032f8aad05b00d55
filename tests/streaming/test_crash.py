"""A run that is killed at any moment and resumed leaves the files of an uninterrupted one, byte for byte."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("kills", "stride"), [(4, 13), pytest.param(1000, 1, marks=pytest.mark.soak)])
def test_kills_at_random_and_at_calls_that_touch_a_file(kills, stride, record_property):
    # A process of its own: this one may have threads, and must not be forked.
    root = Path(__file__).parents[2]
    command = [sys.executable, "-W", "error", "-m", "tests.streaming.crash", str(kills), str(stride)]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=3600, check=False)
    assert run.returncode == 0, run.stderr
    counts = {what: int(count) for count, what in (line.split(" ", 1) for line in run.stdout.splitlines())}
    at_calls = counts.pop("kills at calls that touch files")
    assert at_calls > 30 // stride
    assert sum(counts.values()) >= kills
    record_property("tried", {"kills of a run": sum(counts.values()), "kills at calls that touch files": at_calls})
    record_property("lost", "no byte of any output")
