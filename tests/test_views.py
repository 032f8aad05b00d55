"""Views of arrays in compiled code read and write what arrays do, and check bounds if Numba does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from redescend.kernels.views import view

PROGRAM = """
import sys
import numpy as np
from numba import njit
from redescend.kernels.views import view, window

@njit
def item(array, i):
    return view(array)[i, 0]

@njit
def last(array, size):
    return window(view(array), 1, size)[0]

what, number = sys.argv[1], int(sys.argv[2])
print(item(np.ones((2, 1)), number) if what == "item" else last(np.ones(3), number))
"""


@njit
def exchange(array, i, j):
    table = view(array)
    row = table[i]
    row[j], table[j, i] = table[j, i], row[j]
    return len(table), table.shape, row.size


def test_views_write_to_their_arrays():
    array = np.arange(9.0).reshape(3, 3)
    assert exchange(array, 0, 2) == (3, (3, 3), 3)
    assert array.tolist() == [[0.0, 1.0, 6.0], [3.0, 4.0, 5.0], [2.0, 7.0, 8.0]]


@pytest.mark.parametrize(
    ("what", "number", "within"),
    [("item", 1, True), ("item", 2, False), ("item", -1, False), ("last", 2, True), ("last", 3, False)],
)
def test_bounds_are_checked_if_numba_checks_them(what, number, within):
    command = [sys.executable, "-c", PROGRAM, what, str(number)]
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=Path(__file__).parents[1])
    assert done.returncode == (0 if within else -signal.SIGILL), done.stderr
    assert done.stdout == ("1.0\n" if within else "")
