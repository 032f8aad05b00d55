"""Of a file that is damaged, all that can be read is read, and what is lost is said."""

from __future__ import annotations

import io
import json
import random
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redescend.errors import DataError
from redescend.sources import open_source
from redescend.sources.columnar import format_error
from tests.sources.outcomes import of_batch, outcomes
from tests.sources.written import COMPRESS, WRITE, as_arrow, as_parquet, sample_table

LINES = [b"%.17g,%d" % (random.Random(7).random() * i, i) for i in range(14_000)]
TEXT = b"x,i\n" + b"\n".join(LINES)


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_compressed_file_that_is_cut_short_gives_what_is_there_and_one_bad_record(tmp_path, ending):
    whole = COMPRESS[ending](TEXT)
    path = tmp_path / f"cut.csv.{ending}"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    batches = list(open_source(path).batches(["x", "i"], most=900))
    found = [record for batch in batches for record in of_batch(batch)]
    *good, last = found
    assert len(good) > 3_500
    assert [raw for *_, raw in good] == LINES[: len(good)]
    assert all(verdict == "good" for _, verdict, *_ in good)
    assert "the file is incomplete" in last[2]
    assert LINES[len(good)].startswith(last[3])
    for end in (batches[0].end, batches[-1].end):
        piped = open_source(io.BytesIO(path.read_bytes()), block=30_011)
        assert outcomes(piped, ["x", "i"], start=end, most=2000) == found[end.row :]


def test_a_line_without_end_or_an_open_quote_swallows_no_more_than_itself(tmp_path):
    lines = [
        b'1,"open',
        *[b"%d,%s" % (i, b"a" * 200) for i in range(12_000)],
        b"x" * 3_000_000,
        b'2,"c\nd"',
        b'3,"' + b"y" * 2_000_000,
    ]
    path = tmp_path / "long.csv"
    path.write_bytes(b"x,t\n" + b"\n".join(lines))
    found = outcomes(open_source(path, kinds={"x": "number", "t": "text"}), ["x", "t"])
    assert len(found) == len(lines)
    assert found[0] == (1, "bad", "an unclosed quote", b'1,"open')
    assert [record[1] for record in found].count("bad") == 3
    assert found[-3] == (len(lines) - 2, "bad", "longer than the longest record, 1,048,576 bytes", b"x" * 2**20)
    assert found[-2][2] == (2.0, "c\nd")
    assert found[-1][3] == (b'3,"' + b"y" * 2**20)[: 2**20]


def test_what_an_error_quotes_of_a_damaged_file_can_be_printed():
    assert (
        format_error(OSError("don't know what type: \x0e.\nAnd more"))
        == "don't know what type: \N{REPLACEMENT CHARACTER}"
    )


def test_a_million_digits_are_looked_at_once():
    """Were the time to grow with the square of their number, this would take hours."""
    digits = b"9" * 1_000_000
    text = b"x,t\n1,a\n2," + digits + b"\n" + digits + b"x,c\n" + digits + b",d\n"
    found = outcomes(open_source(io.BytesIO(text), format="csv", kinds={"x": "number", "t": "text"}), ["x", "t"])
    assert [record[1] for record in found] == ["good", "good", "bad", "good"]
    assert found[2][2].endswith("9…' is not a number")
    assert found[3][2] == (float("inf"), "d")


def test_what_is_damaged_in_a_file_of_columns_is_one_bad_record(tmp_path):
    table = sample_table(900)
    parquet = bytearray(as_parquet(table, group=300))
    arrow = bytearray(as_arrow(table, stream=False, group=300))
    lengths = [len((name or "").encode()) for name in table["name"][300:600].to_pylist()]
    offsets = np.cumsum([0, *lengths], dtype=np.int32).tobytes()
    # All groups have the same ones: the second are the second group's.
    ends = arrow.index(offsets, arrow.index(offsets) + 1)
    page = pq.ParquetFile(io.BytesIO(parquet)).metadata.row_group(1).column(0).data_page_offset
    parquet[page : page + 40] = b"\x99" * 40
    arrow[ends + 40 : ends + 80] = b"\x99" * 40
    for name, data in {"a.parquet": parquet, "a.arrow": arrow}.items():
        path = tmp_path / name
        path.write_bytes(data)
        source = open_source(path)
        batches = list(source.batches(source.columns, most=100))
        found = [record for batch in batches for record in of_batch(batch)]
        assert [record[1] for record in found] == ["good"] * 300 + ["bad"] + ["good"] * 300
        assert "damaged here" in found[300][2]
        assert found[301][2][0] == 600 / 7
        for end in (batches[2].end, batches[3].end, batches[4].end):
            assert outcomes(open_source(path), source.columns, start=end) == found[end.row :]


@pytest.mark.parametrize("form", ["parquet", "feather", "arrow"])
def test_columns_that_were_compressed_and_are_cut_short_are_not_taken_for_whole(tmp_path, form):
    random = np.random.default_rng(3)
    whole = WRITE[form](pa.table({"x": random.random(3000)}))
    path = tmp_path / f"cut.{form}.gz"
    stored = COMPRESS["gz"](whole)
    # Without its checksum nothing is lost, but nobody can know that.
    path.write_bytes(stored[:-8])
    batches = list(open_source(path).batches(["x"], most=1000))
    found = [record for batch in batches for record in of_batch(batch)]
    assert [record[1] for record in found] == ["good"] * 3000 + ["bad"]
    assert found[-1][2].endswith("the file is incomplete: the gzip data are cut short")
    for batch in batches[-2:]:
        assert outcomes(open_source(path), ["x"], start=batch.end) == found[batch.end.row :]
    path.write_bytes(stored[: len(stored) // 2])
    if form == "parquet":
        with pytest.raises(DataError, match=r"gz cannot be read: .* incomplete: the gzip data are cut short\.$"):
            open_source(path)
    else:
        *good, last = outcomes(open_source(path), ["x"])
        assert good == found[: len(good)]
        assert len(good) >= 700
        assert last[2] == found[-1][2]


@pytest.mark.parametrize("form", ["parquet", "feather", "arrow"])
def test_a_bad_record_comes_back_as_it_was_where_a_column_that_is_not_read_is_damaged(form):
    texts = pa.array([b"fine"] * 3 + [b"\xff"] + [b"fine"] * 5, pa.binary()).view(pa.string())
    table = pa.table({"x": [str(row) for row in range(9)], "t": texts})
    write = {"parquet": as_parquet, "feather": partial(as_arrow, stream=False), "arrow": partial(as_arrow, stream=True)}
    source = open_source(io.BytesIO(write[form](table, group=3)), kinds={"x": "date"})
    found = outcomes(source, ["x"])
    assert [reason for _, _, reason, _ in found] == [f"column 'x': '{row}' is not a date" for row in range(9)]
    assert [json.loads(raw)["x"] for *_, raw in found] == [str(row) for row in range(9)]


form_and_wounds = given(
    st.sampled_from([*WRITE, "gz", "xz", "zst", "lz4"]),
    st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4), st.integers(0, 60)), min_size=1, max_size=4),
)


@settings(max_examples=60, deadline=None, derandomize=True)
@form_and_wounds
def test_no_damage_is_a_surprise(form, wounds):
    check_damage(form, wounds)


@pytest.mark.soak
@settings(max_examples=5000, deadline=None)
@form_and_wounds
def test_no_damage_of_thousands_is_a_surprise(form, wounds):
    check_damage(form, wounds)


def check_damage(form, wounds) -> None:
    table = sample_table(60)
    data = WRITE[form](table) if form in WRITE else COMPRESS[form](WRITE["csv"](table))
    for place, patch, gone in wounds:
        at = int(place * len(data))
        data = data[:at] + patch + data[at + gone :]
    try:
        source = open_source(io.BytesIO(data), format=form if form in WRITE else "csv")
        found = outcomes(source, source.columns)
    except DataError as error:
        sentence = str(error)
    else:
        sentence = "one sentence."
        assert [row for row, *_ in found] == list(range(1, len(found) + 1))
    assert sentence.endswith(".")
    assert "\n" not in sentence
