"""Forged files of every class that can be saved are refused, or learn like any other: nothing crashes (`forging`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from redescend.checkpoint.serialization import CLASSES
from redescend.parameters import Component
from tests.forging import SUBJECTS

ROOT = Path(__file__).parents[1]

PARTS = 12
"""Processes for the models of the long test: starting one for each model takes longer than most of the trials."""

QUICK = ("clipped anywhere", "oracle", "top-k")
"""Models whose kernels compile in seconds, even with bounds checks."""


def forge(trials: int, names: tuple[str, ...] = (), **environment: str) -> dict[str, dict[str, int]]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.forging", str(trials), *names]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line.pop("model"): line for line in lines}


def test_every_class_that_can_be_saved_is_forged():
    made = {type(make(name)) for name, (make, _) in SUBJECTS.items()}
    classes = {getattr(import_module(module), name) for module, names in CLASSES.items() for name in names}
    assert made == {kind for kind in classes if not issubclass(kind, Component)}


def test_forged_files_crash_nothing():
    counts = forge(24)
    assert counts.keys() == SUBJECTS.keys()
    assert all(count["refused"] for count in counts.values())
    assert sum(count["accepted"] for count in counts.values()) > 50
    assert sum(sum(count.values()) for count in counts.values()) >= 1000


def test_no_index_of_a_forged_file_is_out_of_bounds():
    counts = forge(100, QUICK, NUMBA_BOUNDSCHECK="1")
    assert all(count["refused"] and count["accepted"] for count in counts.values())


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_a_hundred_thousand_forged_files_with_bounds_checks(part, record_property):
    names = tuple(SUBJECTS)[part::PARTS]
    counts = forge(100_000 // len(SUBJECTS) + 1, names, NUMBA_BOUNDSCHECK="1")
    accepted, refused = (sum(count[kind] for count in counts.values()) for kind in ("accepted", "refused"))
    assert counts.keys() == set(names)
    record_property("tried", {"forged files": refused + accepted, "accepted": accepted})
    record_property("lost", "no index out of bounds, no crash, no memory beyond the file")
