"""Kernels are translated to what Python would do, and whatever cannot be translated is refused."""

from __future__ import annotations

import importlib.util
import random
from math import inf, nan, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core.errors import TypingError, UnsupportedError

from redescend.kernels.compilation import names
from redescend.kernels.compiler import kernel, part
from redescend.kernels.views import view
from redescend.numeric import Array
from tests.games import sample

PRIMES = np.array([2, 3, 5, 7])
LIMITS = (3, 20)


class Pair(NamedTuple):
    low: float
    high: float


@part
def sort_pair(pair: Pair) -> Pair:
    return Pair(pair.high, pair.low) if pair.low > pair.high else pair


@kernel
def widen(n: int) -> float:
    """A number that begins as an integer."""
    total = 0
    for i in range(n):
        total += i / 2
    return total


@kernel
def reuse(n: int) -> float:
    """One name for numbers of several types."""
    x = n // 2
    places = x + 1
    x = x / 4
    for i in range(places):
        step = i + 1
        x += step
    for _ in range(2):
        step = 0.25
        x += step
    return x


@kernel
def outlast(n: int) -> float:
    """Variables that are read after the block in which they were assigned."""
    if n > 3:
        y = 1
    elif n > 1:
        y = 2.5
    else:
        return -1.0
    i = 0
    while True:
        last = i * y
        i += 1
        if i >= n:
            break
    return last + y


@kernel
def count_booleans(n: int) -> int:
    """A declared variable, and a range of a boolean."""
    total: int
    total = 0
    for _ in range(n > 2):
        total += 1
    return total


@kernel
def raise_power(x: float, n: int) -> tuple[float, float, float, int]:
    """Powers, of which squares are products, and integers of numbers."""
    return x**2, x**n, x + 2.0**-3, int(x) + int(n > 2) + int(n)


@kernel
def search(values: Array, wanted: float) -> tuple[int, bool]:
    """Loops that end early."""
    values = view(values)
    at, found = 0, False
    while True:
        if at == len(values):
            break
        if not values[at] < wanted:
            found = values[at] == wanted
            break
        at += 1
    while at > 0 and values[at - 1] == wanted:
        at -= 1
    return at, found


@kernel
def judge(a: float, b: float, n: int) -> tuple[float, float, int, bool, bool]:
    """Comparisons, conditions and functions."""
    chain = 0.0 < a <= b < 10.0
    either = a > b or (n % 2 == 0 and not chain)
    kind = 1 if n in (1, 4, LIMITS[0]) else 2 if n not in (2, LIMITS[-1]) else 3
    pair = sort_pair(Pair(a, b))
    return max(a, b, 1.5), sqrt(abs(pair.low)) + pair.high, kind + PRIMES[n % 4], chain, either


@kernel
def write(values: Array, n: int) -> None:
    values = view(values)
    for i in range(0, len(values), n):
        values[i] += 1
        values[i], values[len(values) - 1 - i] = values[len(values) - 1 - i], values[i]
    for i in range(len(values) - 1, 0, -n):
        values[i] = values[i] * 2 - values[i - 1] ** 2


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 20])
@pytest.mark.parametrize("function", [widen, reuse, outlast, count_booleans])
def test_variables_are_those_of_python(function: Any, n: int):
    assert function(n) == function.py_func(n)


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize("x", [1.5, -2.75])
def test_powers_and_integers_are_those_of_python(x: float, n: int):
    assert raise_power(x, n) == raise_power.py_func(x, n)


@pytest.mark.parametrize("values", [[], [2.0], [1.0, 2.0, 2.0, 3.0], [4.0, 5.0]])
def test_loops_end_as_in_python(values: list[float]):
    # `view` is for compiled code, so that the expected answer is NumPy's.
    expected = int(np.searchsorted(values, 2.0)), 2.0 in values
    assert search(np.array(values), 2.0) == expected


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 20])
@pytest.mark.parametrize(("a", "b"), [(1.0, 2.0), (2.0, 1.0), (-1.0, 5.0), (5.0, inf), (nan, 1.0)])
def test_conditions_are_those_of_python(a: float, b: float, n: int):
    pair = (b, a) if a > b else (a, b)
    kind = 1 if n in (1, 4, 3) else 2 if n not in (2, 20) else 3
    chain = 0.0 < a <= b < 10.0
    expected = (max(a, b, 1.5), sqrt(abs(pair[0])) + pair[1], kind + PRIMES[n % 4], chain)
    expected += (a > b or (n % 2 == 0 and not chain),)
    np.testing.assert_equal(judge(a, b, n), expected)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_items_are_assigned_as_in_python(n: int):
    values = np.arange(7)
    write(values, n)
    expected = list(range(7))
    for i in range(0, 7, n):
        expected[i] += 1
        expected[i], expected[6 - i] = expected[6 - i], expected[i]
    for i in range(6, 0, -n):
        expected[i] = expected[i] * 2 - expected[i - 1] ** 2
    assert values.tolist() == expected


def test_a_step_of_0_is_no_loop():
    values = np.arange(3)
    write(values, 0)
    assert values.tolist() == [0, 1, 2]


# --- what is refused ---


@kernel
def catch(x: float) -> float:
    try:
        return 1.0 / x
    except ZeroDivisionError:
        return 0.0


@kernel
def loop_over(x: float) -> float:
    total = 0.0
    for each in (x, 1.0):
        total += each
    return total


@kernel
def either_number(n: int, m: int) -> int:
    return n or m


@kernel
def both(n: int, values: Array) -> int:
    out = n
    if n > 0:
        out = view(values)
    return out


@kernel
def count_to_float(n: int) -> int:
    total = 0
    for i in range(n * 0.9):
        total += i
    return total


@kernel
def count_with_four(n: int) -> int:
    total = 0
    for i in range(0, n, 1, 5):
        total += i
    return total


@kernel
def same(n: int) -> bool:
    return n is None


@kernel
def matrix_product(a: float, b: float) -> float:
    return a @ b


@kernel
def matrix_product_in_place(a: float, b: float) -> float:
    a @= b
    return a


@kernel
def less_and_in(a: int, b: int) -> bool:
    return a < b in (1, 2)


@kernel
def set_attribute(a: float) -> float:
    a.real = 1.0
    return a


@kernel
def add_to_attribute(a: float) -> float:
    a.real += 1.0
    return a


@kernel
def else_of_loop(n: int) -> int:
    for i in range(n):
        n += i
    else:
        n = 0
    return n


@pytest.mark.parametrize(
    ("function", "arguments", "error"),
    [
        (catch, (1.0,), UnsupportedError),
        (loop_over, (1.0,), UnsupportedError),
        (either_number, (1, 2), UnsupportedError),
        (else_of_loop, (3,), UnsupportedError),
        (both, (1, np.ones(2)), TypingError),
        (count_to_float, (3,), UnsupportedError),
        (count_with_four, (3,), UnsupportedError),
        (same, (1,), UnsupportedError),
        (matrix_product, (1.0, 2.0), UnsupportedError),
        (matrix_product_in_place, (1.0, 2.0), UnsupportedError),
        (less_and_in, (1, 2), UnsupportedError),
        (set_attribute, (1.0,), UnsupportedError),
        (add_to_attribute, (1.0,), UnsupportedError),
    ],
)
def test_what_cannot_be_translated_is_refused(function: Any, arguments: Any, error: type[Exception]):
    with pytest.raises(error, match="test_translation"):
        function(*arguments)


# --- functions that were made at random ---


def load_function(file: Path, text: str) -> Any:
    file.write_text(f"from redescend.kernels.compiler import kernel\n\n\n@kernel\n{text}")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.function


def make_expression(draw: random.Random, known: list[str], depth: int) -> str:
    if depth == 0 or draw.random() < 0.2:
        return draw.choice([*known, str(draw.randrange(-3, 9))])
    a, b = (make_expression(draw, known, depth - 1) for _ in range(2))
    forms = [f"({a} + {b})", f"({a} * {b}) % 97", f"({a} - {b})", f"max({a}, {b})", f"({a} // 3)", f"abs({a})"]
    return draw.choice([*forms, f"({a} if {make_test(draw, known, depth - 1)} else {b})"])


def make_test(draw: random.Random, known: list[str], depth: int = 1) -> str:
    a, b, c = (make_expression(draw, known, depth) for _ in range(3))
    forms = [f"{a} < {b}", f"{a} != {b}", f"{a} <= {b} < {c}", f"{a} in ({b}, {c})", f"not {a} > {b}"]
    first, second = draw.choice(forms), draw.choice(forms)
    return draw.choice([first, f"({first} and {second})", f"({first} or {second})"])


def make_block(draw: random.Random, known: list[str], indent: str, depth: int, in_loop: bool) -> list[str]:
    """Statements; names that a block begins are known until its end, and those that all know may change."""
    known, lines = list(known), []
    for _ in range(draw.randrange(2, 5)):
        kind = draw.random()
        value = f"({make_expression(draw, known, 2)}) % 1009"
        if depth > 0 and kind < 0.2:
            lines += [f"{indent}if {make_test(draw, known)}:"]
            lines += make_block(draw, known, indent + "    ", depth - 1, in_loop)
            if draw.random() < 0.6:
                lines += [f"{indent}else:", *make_block(draw, known, indent + "    ", depth - 1, in_loop)]
        elif depth > 0 and kind < 0.45:
            name, step = f"i{depth}", draw.choice(["", ", 2", ", -1"])
            ends = "6, 0" if step == ", -1" else "0, 5"
            lines += [f"{indent}for {name} in range({ends}{step}):"]
            lines += make_block(draw, [*known, name], indent + "    ", depth - 1, True)
        elif in_loop and kind < 0.55:
            lines += [f"{indent}if {make_test(draw, known)}:", f"{indent}    {draw.choice(['break', 'continue'])}"]
        elif kind < 0.65:
            lines += [f"{indent}if {make_test(draw, known)}:", f"{indent}    return {value}"]
        elif kind < 0.8:
            name = draw.choice(known)
            lines += [f"{indent}{name} {draw.choice(['=', '+=', '-='])} {value}"]
        else:
            name = f"v{draw.randrange(4)}"
            lines += [f"{indent}{name} = {value}"]
            known += [name]
    return lines


@pytest.mark.parametrize("seed", sample(range(25), every=2))
def test_random_functions_of_integers_are_those_of_python(tmp_path: Path, seed: int):
    draw = random.Random(seed)
    known = ["a", "b"]
    lines = ["def function(a: int, b: int) -> int:", *make_block(draw, known, "    ", 3, False), "    return a * 3 + b"]
    function = load_function(tmp_path / f"random_function_{seed}.py", "\n".join(lines) + "\n")
    for a, b in [(0, 0), (1, 5), (-4, 3), (17, -2)]:
        assert function(a, b) == function.py_func(a, b), "\n".join(lines)


def test_a_function_whose_file_has_changed_is_not_translated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "changing.py"
    function = load_function(file, "def function(a: int) -> int:\n    return a + 1\n")
    names._read_file.cache_clear()
    file.write_text(file.read_text().replace("a + 1", "a + 2"))
    with pytest.raises(UnsupportedError, match=r"changing\.py is not what"):
        function(1)
