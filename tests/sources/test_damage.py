"""Of a file that is damaged, all that can be read is read, and what is lost is said."""

from __future__ import annotations

import errno
import io
import json
import random
from contextlib import suppress
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redescend.errors import DataError
from redescend.sources import open_source
from redescend.sources.arrow import MOST_ROWS, count_batch_rows
from redescend.sources.batch import count_bad
from redescend.sources.columnar import SLICE, format_error
from redescend.streaming import fit_stream
from redescend.streaming.io.writers import format_rejected, parse_rejected
from tests.sources.outcomes import of_batch, outcomes
from tests.sources.written import COMPRESS, WRITE, as_arrow, as_parquet, sample_table
from tests.streaming.fuzzing.verdicts import check_readable

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


def test_what_is_damaged_in_a_file_of_columns_counts_as_the_rows_that_it_declares(tmp_path):
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
    stream = bytearray(as_arrow(table, stream=True, group=300))
    ends = stream.index(offsets, stream.index(offsets) + 1)
    stream[ends + 40 : ends + 80] = b"\x99" * 40
    for name, data in {"a.parquet": parquet, "a.arrow": arrow, "b.arrow": stream}.items():
        path = tmp_path / name
        path.write_bytes(data)
        source = open_source(path)
        batches = list(source.batches(source.columns, most=100))
        found = [record for batch in batches for record in of_batch(batch)]
        assert [record[1] for record in found] == ["good"] * 300 + ["bad"] + ["good"] * 300
        assert "damaged here, and 300 rows are lost" in found[300][2]
        assert found[301][2][0] == 600 / 7
        assert [batch.count for batch in batches] == [100, 100, 100, 300, 100, 100, 100]
        assert [record[0] for record in found[299:302]] == [300, 301, 601]
        for end in (batches[2].end, batches[3].end, batches[4].end):
            assert outcomes(open_source(path), source.columns, start=end) == [row for row in found if row[0] > end.row]
        _, rounds = fit_stream(path, "x")
        counts = rounds.run().counts
        lost = next(bad for bad in rounds.bad if bad.rows > 1)
        assert (lost.row, lost.rows) == (301, 300)
        assert counts.records == counts.learned + counts.quarantined == 900
        assert counts.quarantined == count_bad(rounds.bad) == sum(rounds.summary.rejections.counts.values())
        assert parse_rejected(format_rejected(lost)) == lost


def test_texts_that_are_not_in_their_dictionary_are_damaged(tmp_path, monkeypatch):
    """Pages need not have a checksum, and PyArrow does not check the indices that it reads from them."""
    path, count = tmp_path / "a.parquet", 3 * SLICE
    pq.write_table(pa.table({"x": np.arange(float(count)), "name": ["a", "b", "c"] * SLICE}), path)
    read = pq.ParquetFile.iter_batches

    def read_damaged(file, *arguments, **settings):
        for number, batch in enumerate(read(file, *arguments, **settings)):
            texts = batch.column("name")
            indices = texts.indices.to_numpy().copy()
            indices[7] = 10**8 if number == 1 else indices[7]
            forged = pa.DictionaryArray.from_arrays(pa.array(indices), texts.dictionary, safe=False)
            yield pa.RecordBatch.from_arrays([batch.column("x"), forged], names=["x", "name"])

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", read_damaged)
    batches = list(open_source(path).batches(["x", "name"]))
    (bad,) = [record for batch in batches for record in batch.bad]
    assert f"the file is damaged here, and {SLICE:,} rows are lost: Indices of column 'name' are out of" in bad.reason
    assert sum(batch.table.num_rows for batch in batches) == count - SLICE


def test_a_text_that_is_no_text_is_one_bad_record(tmp_path):
    texts = pa.array([b"caf\xe9" if row == 70_000 else b"word %d" % (row % 9) for row in range(100_000)])
    for column in (texts.cast(pa.string(), safe=False), pa.array(texts).view(pa.string()).dictionary_encode()):
        pq.write_table(pa.table({"x": np.arange(100_000.0), "t": column}), tmp_path / "a.parquet")
        batches = list(open_source(tmp_path / "a.parquet").batches(["x", "t"]))
        (bad,) = [record for batch in batches for record in batch.bad]
        assert (bad.row, bad.rows) == (70_001, 1)
        assert "is not text" in bad.reason


def test_a_batch_that_is_cut_short_counts_as_the_rows_that_it_declares(tmp_path):
    """The rows of batches that are missing altogether are not known: they are one record."""
    whole = as_arrow(sample_table(900), stream=True, group=300)
    path = tmp_path / "cut.arrow"
    path.write_bytes(whole[: len(whole) - len(whole) // 8])
    found = outcomes(open_source(path), ["x"])
    assert [record[1] for record in found] == ["good"] * 600 + ["bad"] * 2
    assert "300 rows are lost" in found[600][2]
    assert found[601][0] == 901


@pytest.mark.parametrize("stream", [True, False])
def test_batches_declare_their_rows(stream):
    sizes = [7, 0, 100, 1]
    table, out = sample_table(100), io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(out, table.schema) as writer:
        for size in sizes:
            writer.write_batch(table.slice(0, size).combine_chunks().to_batches()[0] if size else empty(table))
    data = out.getvalue()
    assert count_batch_rows(io.BytesIO(data), len(data), 0 if stream else 8) == sizes
    for place in range(0, len(data), 3):
        wounded = data[:place] + b"\xff\x7f\x80" + data[place + 3 :]
        counts = count_batch_rows(io.BytesIO(wounded), len(wounded), 0 if stream else 8)
        assert all(0 <= count <= MOST_ROWS for count in counts)


@pytest.mark.parametrize("stream", [True, False])
def test_an_empty_batch_is_no_row(stream):
    table, out = sample_table(4), io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(out, table.schema) as writer:
        for start, size in [(0, 2), (2, 0), (2, 0), (2, 2), (4, 0)]:
            writer.write_batch(table.slice(start, size).to_batches()[0] if size else empty(table))
    source = open_source(io.BytesIO(out.getvalue()))
    batches = list(source.batches(["x"]))
    assert batches[-1].end.offset == 4
    found = [record for batch in batches for record in of_batch(batch)]
    assert [json.loads(raw)["x"] for *_, raw in found] == table["x"].to_pylist()
    assert outcomes(source, ["x"], start=batches[0].end) == found[2:]


def empty(table):
    return pa.RecordBatch.from_pylist([], table.schema)


def test_pages_with_a_wrong_checksum_are_damaged(tmp_path):
    """A flipped bit in a number changes nothing that a reader without checksums would notice."""
    table = pa.table({"x": np.arange(600.0), "y": np.arange(600.0)})
    path = tmp_path / "a.parquet"
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(table, path, row_group_size=200, **options)
    data = bytearray(path.read_bytes())
    data[data.index(np.arange(200.0, 400.0).tobytes()) + 100] ^= 1
    path.write_bytes(data)
    found = outcomes(open_source(path), ["x"])
    assert [record[1] for record in found] == ["good"] * 200 + ["bad"] + ["good"] * 200
    assert "200 rows are lost" in found[200][2]


@pytest.mark.parametrize("ending", ["zst", "lz4"])
def test_all_records_before_a_bad_tail_are_read(tmp_path, ending):
    """The slow way: as much as the decompressor returns if it is asked for one byte at a time."""
    # Two frames, the second damaged from its first block on.
    whole = COMPRESS[ending](TEXT[:200_001]) + COMPRESS[ending](TEXT[200_001:])[:40] + b"\xff" * 200
    path = tmp_path / f"bad.csv.{ending}"
    path.write_bytes(whole)
    stream = pa.CompressedInputStream(pa.BufferReader(whole), {"zst": "zstd", "lz4": "lz4"}[ending])
    text = bytearray()
    with suppress(OSError):
        while byte := stream.read(1):
            text += byte
    assert 1000 < len(text) < len(TEXT)
    good = bytes(text).splitlines()[1:]
    *found, last = outcomes(open_source(path), ["x", "i"])
    assert [raw for *_, raw in found] + [last[3]] == (good if last[3] else [*good, b""])
    assert "is incomplete" in last[2]


class FailingFile(io.RawIOBase):
    """A file whose disk fails after some bytes."""

    def __init__(self, data, good):
        self._file, self._left = io.BytesIO(data), good

    def read(self, size=-1):
        if self._left <= 0:
            raise OSError(errno.EIO, "Input/output error")
        self._left -= size
        return self._file.read(size)


@pytest.mark.parametrize("ending", ["", *COMPRESS])
def test_a_disk_that_fails_ends_the_run_and_is_no_bad_record(ending):
    whole = COMPRESS[ending](TEXT) if ending else TEXT
    with pytest.raises(OSError, match="Input/output error"):
        list(open_source(FailingFile(whole, len(whole) // 2), block=4096, format="csv").batches(["x"]))


@pytest.mark.parametrize("form", ["parquet", "feather", "arrow", "csv"])
def test_a_part_that_vanishes_ends_the_run(tmp_path, form):
    for name in "ab":
        (tmp_path / f"{name}.{form}").write_bytes(WRITE[form](sample_table(900)))
    source = open_source(tmp_path)
    (tmp_path / f"b.{form}").unlink()
    with pytest.raises(FileNotFoundError):
        list(source.batches(["x"]))


@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_memory_that_runs_out_ends_the_run(tmp_path, form, monkeypatch):
    path = tmp_path / f"a.{form}"
    path.write_bytes(WRITE[form](sample_table(900)))
    source = open_source(path)

    def fail(*_, **__):
        raise pa.ArrowMemoryError(f"malloc of size {size} failed")

    target = "pyarrow.parquet.ParquetFile.iter_batches" if form == "parquet" else "redescend.sources.arrow.partial"
    monkeypatch.setattr(target, fail if form == "parquet" else lambda *_: fail)
    size = 1_000_000
    with pytest.raises(MemoryError, match="1000000"):
        list(source.batches(["x"]))
    # A damaged file may ask for any amount.
    size = 10**15
    assert sum(bad.rows for batch in source.batches(["x"]) for bad in batch.bad) == 900


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
        *good, lost = good
        assert good == found[: len(good)]
        assert len(good) >= 700
        assert "rows are lost" in lost[2]
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
    check_readable(data, form if form in WRITE else "csv")


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("encoding", ["windows-1252", "utf-16"])
def test_a_text_in_another_encoding_that_is_cut_short_is_incomplete(tmp_path, ending, encoding):
    whole = COMPRESS[ending](TEXT.decode().encode(encoding))
    path = tmp_path / f"cut.csv.{ending}"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    # With some of the blocks, nothing is pending where the data end.
    for block in (61, 4096, 2**16):
        *good, last = outcomes(open_source(path, encoding=encoding, block=block), ["x", "i"])
        assert [raw for *_, raw in good] == LINES[: len(good)]
        assert len(good) > 3_500
        assert "the file is incomplete" in last[2]


@pytest.mark.parametrize("size", [12, 20])
def test_a_compressed_text_of_which_nothing_is_left_is_incomplete_in_any_encoding(tmp_path, size):
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(COMPRESS["gz"](TEXT)[:size])
    refusals = []
    for encoding in (None, "windows-1252"):
        with pytest.raises(DataError) as refusal:
            open_source(path, encoding=encoding)
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]
    assert "cut short" in refusals[0]
