"""Views of arrays in compiled code, and rows of numbers that are read as NamedTuples."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import TypingError, UnsupportedError

from redescend.kernels.compiler import compiled, kernel, part
from redescend.kernels.views import splitter, view, window
from redescend.numeric import Array

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

for number in map(int, sys.argv[2:]):
    print(item(np.ones((2, 1)), number) if sys.argv[1] == "item" else last(np.ones(3), number), flush=True)
"""


class Pair(NamedTuple):
    floats: Array
    places: Array


class Fields(NamedTuple):
    table: Array
    weights: Array
    last: Array


split = splitter(Fields, [(2, "dim"), (3,), ("dim", "wide")], ("dim", "wide"))


@compiled
def read_and_write(pair: Pair, flags: Array) -> tuple[float, int, int, float]:
    (floats, places), flags = view((pair, flags))
    cell, row = floats[1], floats[1, 2]
    cell[0, 1] = 7.0
    row[0] += 1.0
    floats[0, 0, places[1]] = -1.0
    flags[1] = True
    return window(floats, 1, (2, 3))[1, 0], len(row), floats.size + floats.shape[2], row[0]


@compiled
def read_fields(memory: Array, dim: int, wide: int) -> tuple[int, int, int, float, float, float]:
    fields = split(view(memory), 4, (dim, wide))
    sizes = fields.table.size, len(fields.weights), fields.last.size
    return *sizes, fields.table[1, 0], fields.weights[2], fields.last[dim - 1, wide - 1]


def test_views_read_and_write_the_numbers_of_arrays():
    floats, flags = np.arange(24.0).reshape(2, 3, 4), np.zeros(3, np.bool_)
    found = read_and_write(Pair(floats, np.array([3, 2])), flags)
    assert found == (4.0, 4, 28, 21.0)
    assert (floats[1, 0, 1], floats[1, 2, 0], floats[0, 0, 2]) == (7.0, 21.0, -1.0)
    assert flags.tolist() == [False, True, False]


@pytest.mark.parametrize(("dim", "wide"), [(1, 1), (2, 5), (7, 3)])
def test_a_row_is_split_into_fields_one_behind_the_other(dim: int, wide: int):
    memory = np.arange(4.0 + 2 * dim + 3 + dim * wide)
    assert read_fields(memory, dim, wide) == (2 * dim, 3, dim * wide, 4.0 + dim, 6.0 + 2 * dim, memory[-1])


def test_arrays_that_are_not_contiguous_have_no_view():
    with pytest.raises(TypingError, match="C-contiguous"):
        read_fields(np.arange(40.0)[::2], 2, 3)


@pytest.mark.parametrize(("what", "within", "outside"), [("item", 1, 2), ("item", 1, -1), ("last", 2, 3)])
def test_bounds_are_checked_if_numba_checks_them(what, within, outside):
    command = [sys.executable, "-c", PROGRAM, what, str(within), str(outside)]
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=Path(__file__).parents[1])
    assert done.returncode == -signal.SIGILL, done.stderr
    assert done.stdout == "1.0\n"


PARTS = """
import sys
import numpy as np
from redescend.kernels.compiler import kernel, part

@part
def read(values, i):
    return values[i]

@part
def read_and_write(values, i):
    values[0] = 2.0 * read(values, i)

@kernel
def double(values, i):
    read_and_write(values, i)
    return values[0]

for number in map(int, sys.argv[1:]):
    print(double(np.ones(3), number), flush=True)
"""


@pytest.mark.parametrize("outside", [3, -4])
def test_parts_with_arrays_raise_an_error_if_numba_checks_bounds(tmp_path, outside):
    file = tmp_path / "parts.py"
    file.write_text(PARTS)
    command = [sys.executable, str(file), "2", str(outside)]
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 1, done.stderr
    assert done.stdout == "2.0\n"
    assert "IndexError" in done.stderr


@part
def add_up(values: Array, first: int, last: int) -> float:
    total = 0.0
    for i in range(first, last):
        if i == 3:
            continue
        total += values[i]
    for i in range(last, first, -2):
        total += 100.0 * i
    return total


@kernel
def add_all(values: Array, ends: tuple[int, int]) -> tuple[float, float]:
    values, (first, last) = view((values, ends))
    outer = 0.0
    for i in range(2):
        for j in range(i, 3):
            outer += 10.0 * i + j
    return add_up(values, first, last), outer


@kernel
def refuse(value: float) -> float:
    if value < 0.0:
        raise ValueError("below 0")
    return value


@pytest.mark.parametrize(("first", "last"), [(0, 6), (2, 5), (4, 4), (5, 1)])
def test_loops_of_kernels_are_those_of_python(first: int, last: int):
    values = np.arange(6.0) ** 2
    expected = add_up.py_func(values, first, last), 0.0 + 1 + 2 + 11 + 12
    assert add_all(values, (first, last)) == expected


def test_a_kernel_that_raises_is_not_compiled():
    with pytest.raises(UnsupportedError, match="raise no exceptions"):
        refuse(1.0)
