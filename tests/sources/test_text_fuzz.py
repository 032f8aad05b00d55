"""What becomes of a record does not depend on how the text is read, and it is what a slow reading says."""

from __future__ import annotations

import io
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redescend.errors import DataError
from redescend.sources import Kind, open_source
from tests.sources.outcomes import as_number, of_batch, outcomes, read_slowly

NUMBERS = b"1 2.5 -1e3 inf NA".split()
STRUCTURE = [b",", b",", b"\n", b"\n", b"\r\n", b"\r", b'"', b'""', b" ", b"a"]
TROUBLE = [b"\xff", b"\0", b"\xc3\xa9", b"\xef\xbb\xbf"]
RECORDS = [b"1,a\n", b'2,"b\nc"\n', b"x,d\n", b"3\n", b'4,"e""\n', b"5,\xff\n", b'"6","f"\r\n', b"\n", b"7,NA\r"]
OBJECTS = [
    b'{"x":1,"t":"a"}\n',
    b'{"t":"b"}\n',
    b'{"x":"2","t":3}\r\n',
    b'{"x":true}\n',
    b' {"x":NaN,"t":null}\n',
    b'{"x":1}{"x":2}\n',
    b'{"x":1,"x":2}\n',
    b'{"t":"\\ud800"}\n',
    b'{"t":"\xff"}\n',
    b'{"x":[1]}\n',
    b'{"x":1\n',
    b"}\n",
    b'{"t":"a\0b"}\n',
    b'{"x":1}\0}\n',
    b'{"x":1e400,"z":{"y":{}}}\n',
    b"[1]\n",
    b"\n",
    b"  \n",
]

noise = st.lists(st.sampled_from(NUMBERS + STRUCTURE + TROUBLE) | st.binary(max_size=3), max_size=40).map(b"".join)


def mutated(records: list[bytes]) -> st.SearchStrategy[bytes]:
    """Whole records, into which something was thrown."""
    whole = st.lists(st.sampled_from(records), max_size=12).map(b"".join)
    return st.tuples(whole, st.just(b"") | noise, st.integers(0, 80)).map(lambda p: p[0][: p[2]] + p[1] + p[0][p[2] :])


def opened(text: bytes, form: str, block: int, longest: int):
    kinds = {"x": Kind.NUMBER, "t": Kind.TEXT}
    return open_source(io.BytesIO(text), format=form, kinds=kinds, block=block, longest=longest)


delimited = given(noise | mutated(RECORDS), st.integers(1, 40), st.integers(1, 4), st.sampled_from([5, 12, 1000]))


@settings(max_examples=80, deadline=None, derandomize=True)
@delimited
def test_delimited_text_is_read_as_a_slow_reading_says(text, block, most, longest):
    check_slow_reading(text, block, most, longest)


@pytest.mark.soak
@settings(max_examples=5000, deadline=None)
@delimited
def test_thousands_of_delimited_texts_are_read_as_a_slow_reading_says(text, block, most, longest):
    check_slow_reading(text, block, most, longest)


def check_slow_reading(text, block, most, longest) -> None:
    slow = read_slowly(text, longest)
    if not slow:
        with pytest.raises(DataError, match="has no records"):
            opened(b"x,t\n" + text, "csv", block, longest)
        return
    found = outcomes(opened(b"x,t\n" + text, "csv", block, longest), ["x", "t"], most=most)
    assert [row for row, *_ in found] == list(range(1, len(slow) + 1))
    for (_, verdict, held, raw), (record, fields) in zip(found, slow, strict=True):
        assert raw == record
        wanted = values_of(fields)
        assert (held if verdict == "good" else None) == wanted


def values_of(fields: list[bytes] | None) -> tuple | None:
    """The number and the text that a record should become; None if it should be bad."""
    if fields is None or len(fields) != 2:
        return None
    try:
        text = fields[1].decode()
        return as_number(fields[0]), None if text.strip(" ") in ("", "NA", "-") else text
    except ValueError:
        return None


any_text = given(
    st.tuples(st.just("csv"), noise | mutated(RECORDS)) | st.tuples(st.just("jsonl"), noise | mutated(OBJECTS)),
    st.integers(1, 60),
    st.integers(1, 4),
    st.sampled_from([16, 1000]),
    st.randoms(use_true_random=False),
)


@settings(max_examples=60, deadline=None, derandomize=True)
@any_text
@example(("jsonl", b'{"x":2}\n{"x":1}\0}\n{"x":3}\n'), 16, 1, 1000, Random(0))
@example(("jsonl", b"\xef\xbb\xbf1"), 1, 1, 1000, Random(0))
@example(("csv", b"1,a\n2,b\n3,c\n4,d\n5,e\n"), 60, 3, 1000, Random(2))
def test_a_record_is_the_same_however_the_text_is_read_and_from_wherever(case, block, most, longest, random):
    check_any_reading(case, block, most, longest, random)


@pytest.mark.soak
@settings(max_examples=5000, deadline=None)
@any_text
def test_a_record_of_thousands_is_the_same_however_it_is_read(case, block, most, longest, random):
    check_any_reading(case, block, most, longest, random)


def check_any_reading(case, block, most, longest, random) -> None:
    form, text = case
    text = b"x,t\n" + text if form == "csv" else text
    try:
        whole = outcomes(opened(text, form, 2**20, longest), ["x", "t"])
    except DataError:
        with pytest.raises(DataError):
            opened(text, form, block, longest)
        return
    batches = list(opened(text, form, block, longest).batches(["x", "t"], most=most))
    assert repr([record for batch in batches for record in of_batch(batch)]) == repr(whole)
    end = random.choice(batches).end
    rest = outcomes(opened(text, form, random.randint(1, 60), longest), ["x", "t"], start=end, most=most + 1)
    assert repr(rest) == repr(whole[end.row :])
    _, verdict, held, raw = random.choice(whole)
    if verdict == "good":
        alone = opened(b"x,t\n" + raw if form == "csv" else raw, form, block, longest)
        assert repr(outcomes(alone, ["x", "t"])[0][2]) == repr(held)
