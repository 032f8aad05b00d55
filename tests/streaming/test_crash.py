"""A run that is killed at any moment and resumed leaves the files of one that was left alone, byte for byte."""

import subprocess
import sys
from pathlib import Path


def test_fifty_kills_at_random_and_one_at_every_call_that_touches_a_file():
    # A process of its own: this one may have threads, and must not be forked.
    root = Path(__file__).parents[2]
    command = [sys.executable, "-W", "error", "-m", "tests.streaming.crash", "50"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    kills = {what: int(count) for count, what in (line.split(" ", 1) for line in run.stdout.splitlines())}
    assert kills.pop("kills at calls that touch files") > 30
    assert sum(kills.values()) >= 50
