"""No kernel reads a variable that may not be assigned yet."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import redescend
from redescend.kernels import compiler
from tests.assignment import find_unassigned

DECORATORS = {"brief", "compiled", "inlined", "kernel", "part", "rare", "seldom", "shared", "summing"}
FORMULAS = [Path(str(module.__file__)) for module in compiler.MODULES]
KERNELS = sorted((Path(redescend.__file__).parent / "kernels").rglob("*.py"))


def is_compiled(function: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id in DECORATORS for each in function.decorator_list)


def list_functions(file: Path) -> list[ast.FunctionDef]:
    """The functions of a file that are compiled: of formulas all that are not methods."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    return [each for each in functions if file in FORMULAS or is_compiled(each)]


@pytest.mark.parametrize("file", [*FORMULAS, *KERNELS], ids=lambda file: file.stem)
def test_every_variable_is_assigned_before_it_is_read(file: Path):
    assert {each.name: found for each in list_functions(file) if (found := find_unassigned(each))} == {}


def test_all_decorators_of_the_compiler_are_known():
    """And most functions of kernels have one of them."""
    functions = ast.parse(Path(str(compiler.__file__)).read_text(encoding="utf-8")).body
    assert {
        each.name for each in functions if isinstance(each, ast.FunctionDef) and "njit(" in ast.unparse(each)
    } == DECORATORS
    assert sum(len(list_functions(file)) for file in KERNELS) > 300


REFUSED = """
def too_late(n: int) -> int:
    for i in range(n):
        if i > 0:
            n += before
        before = i
    return n


def global_at_first(n: int) -> int:
    '''A local variable, though a global one has its name.'''
    total = 0
    for i in range(n):
        if i > 0:
            total += sumx
        sumx = 10
    return total


def add_at_first(n: int) -> int:
    for _ in range(n):
        sumx += n
    return n


def builtin_at_first(n: int) -> int:
    total = 0
    while max(total, 0) < n:
        max = n
        total += max
    return total


def only_declared(n: int) -> int:
    sumx: int
    return n + sumx


def assigned_in_loop(n: int) -> int:
    '''A loop may have no rounds.'''
    for i in range(n):
        last = i
    return last


def assigned_while(n: int) -> int:
    while n > 0:
        last, n = n, n - 1
    return last


def assigned_on_one_path(n: int) -> int:
    if n > 3:
        last = n
    return last + 1


def assigned_before_one_break(n: int) -> int:
    while True:
        n += 1
        if n % 5 == 0:
            break
        last = n
        if n % 3 == 0:
            break
    return last


def changed_on_one_path(values: Array, n: int) -> int:
    values = view(values)
    if n > 0:
        place = 0
    values[place] += 1
    return n
"""

ALLOWED = """
def assigned_on_all_paths(n):
    if n < 0:
        return 0
    if n > 3:
        y = n
    else:
        y = 3
    return y


def assigned_before_every_break(n):
    while True:
        last = n
        n -= 1
        if n < 0:
            break
    return last


def declared(n):
    total: int
    total = 0
    for _ in range(n):
        total += 1
    return total
"""


@pytest.mark.parametrize("function", ast.parse(REFUSED).body, ids=lambda function: function.name)
def test_what_may_be_read_too_early_is_found(function: ast.FunctionDef):
    assert len(find_unassigned(function)) == 1


@pytest.mark.parametrize("function", ast.parse(ALLOWED).body, ids=lambda function: function.name)
def test_what_is_assigned_on_every_path_is_not(function: ast.FunctionDef):
    assert find_unassigned(function) == set()
