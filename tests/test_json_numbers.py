"""Numbers that are read from JSON by compiled code, against Python's `float` and `json`, to the last bit."""

import json
import random
import struct

import numpy as np
import pytest

from redescend.kernels.json_numbers import MARK, cut_lists


def cut(text: str):
    """What the lists named "data" contain, and the rest of the text; None if something of the name is no such list."""
    data = np.frombuffer(text.encode() + b"\0", np.uint8)
    numbers, ends, rest = np.empty(len(text)), np.empty(9, np.int64), np.empty(len(text) + 99, np.uint8)
    lists, used = cut_lists(data, numbers, numbers.view(np.uint64), ends, rest)
    if lists < 0:
        return None
    return [part.copy() for part in np.split(numbers[: ends[lists - 1]], ends[: lists - 1])], rest[:used].tobytes()


def make_numbers(count: int) -> list[str]:
    """Numbers as texts: short ones, all digits of a double, long ones, and those between two doubles."""
    choose, texts = random.Random(0), []
    for _ in range(count // 5):
        texts.append(repr(choose.gauss(0.0, 1.0) * 10.0 ** choose.randint(-12, 12)))
        texts.append(f"{choose.gauss(0.0, 100.0):.{choose.randint(0, 15)}f}")
        texts.append(f"{choose.getrandbits(choose.randint(1, 63))}e{choose.randint(-64, 64)}")
        texts.append(f"-{choose.randint(0, 10**12)}.{choose.randint(0, 10**6)}")
        middle, power = 2 * (choose.getrandbits(53) | 1 << 52) + 1, choose.randint(-4, 9)
        texts.append(str(middle << power) if power >= 0 else f"{middle * 5**-power}e{power}")
    return texts


def test_every_number_that_is_read_has_the_bits_of_float():
    read = 0
    for text in make_numbers(20_000):
        found = cut(f'{{"data": [{text}]}}')
        if found is not None:
            read += 1
            assert struct.pack("d", found[0][0][0]) == struct.pack("d", float(text)), text
    assert read > 18_000


@pytest.mark.parametrize(
    "text", ["-", "01", "1.", ".5", "1e", "1e+", "+1", "-0", "1e99999", "NaN", "null", "1 2", "1,"]
)
def test_what_is_no_plain_number_is_refused(text):
    assert cut(f'{{"data": [{text}]}}') is None
    assert cut(f'{{"data": [3.5, {text}]}}') is None


@pytest.mark.parametrize("text", ["-0.0", "0", "0.0e7", "1E5", "1.0e+2", "1e-22", "9007199254740993", "123456789e-30"])
def test_unusual_numbers(text):
    (numbers,), rest = cut(f'{{"data": [ {text}\t, 2 ]}}')
    assert struct.pack("dd", *numbers) == struct.pack("dd", float(text), 2.0)
    assert json.loads(rest) == {"data": MARK}


def test_lists_are_cut_out_of_the_rest():
    inputs = [{"name": "data", "shape": [2], "data": [1.5, -2]}, {"data": [], "x": "a [1] b"}, {"data": [7]}]
    text = json.dumps({"inputs": inputs, "outputs": [{"name": "data"}]})
    lists, rest = cut(text)
    assert [part.tolist() for part in lists] == [[1.5, -2.0], [], [7.0]]
    expected = [each | {"data": MARK + place} for place, each in enumerate(inputs)]
    assert json.loads(rest) == {"inputs": expected, "outputs": [{"name": "data"}]}


@pytest.mark.parametrize(
    "text", ['{"data": 5}', '{"data": [[1]]}', '{"data": ["1"]}', r'{"data": [1], "a\"b": 2}', '{"da']
)
def test_what_is_no_list_of_numbers_is_refused(text):
    assert cut(text) is None
