"""Small files that would take much memory or time are read in little, or refused in one sentence."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
from inspect import signature

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from redescend.errors import DataError
from redescend.sources import columnar, open_source
from redescend.sources.arrow import BODY, END, _read_messages
from redescend.sources.columnar import SLICE, SLICE_BYTES, cut_rows
from redescend.sources.splitter import LONGEST, UNCLOSED, Grammar
from tests.sources.outcomes import outcomes
from tests.sources.written import as_arrow

MEMORY = 500 << 20

READ = """
import json, resource, sys
from redescend.errors import DataError
from redescend.sources import columnar, open_source

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
counts, message = [0, 0], None
try:
    source = open_source(sys.argv[1])
    for batch in source.batches(source.columns):
        counts = [counts[0] + len(batch.rows), counts[1] + len(batch.bad)]
except DataError as error:
    message = str(error)
print(json.dumps([*counts, message, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10]))
"""


def read(path, most=MEMORY):
    """Good records, bad ones, and what was message: in a process of its own, whose memory is measured."""
    done = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True, timeout=100, check=True)
    *outcome, memory = json.loads(done.stdout)
    assert memory < most
    return outcome


def test_a_text_that_is_repeated_in_every_row(tmp_path):
    path, rows = tmp_path / "bomb.parquet", 20_000
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["a" * 90_000]))
    table = pa.table({"x": pa.array(range(rows), pa.float64()), "t": text})
    pq.write_table(table.cast(pa.schema([("x", pa.float64()), ("t", text.type)])), path, compression="zstd")
    assert os.path.getsize(path) < 1_000_000
    assert read(path) == [rows, 0, None]


def test_texts_are_cut_by_rows_and_by_bytes():
    words = ["", "a" * (SLICE_BYTES // 2), "b" * 2 * SLICE_BYTES]
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, None, 1, 2, 0, 0], pa.int8()), pa.array(words))
    rows = pa.RecordBatch.from_arrays([column], names=["t"])
    assert list(cut_rows(rows, 0)) == [(0, 4), (4, 5), (5, 6), (6, 8)]
    assert list(cut_rows(rows, 3)) == [(3, 5), (5, 6), (6, 8)]
    plain = pa.RecordBatch.from_pydict({"x": range(SLICE + 5)})
    assert list(cut_rows(plain, 2)) == [(2, SLICE + 2), (SLICE + 2, SLICE + 5)]


@pytest.mark.soak
def test_many_columns_with_one_bad_value(tmp_path):
    """PyArrow takes some 30 kB for each column; the memory must not grow with the square of their number."""
    path, columns = tmp_path / "wide.csv", 15_000
    lines = [",".join(f"c{number}" for number in range(columns)), *[",".join(["1.5"] * columns)] * 12]
    lines.append(",".join(["1.5"] * (columns - 1) + ["one"]))
    path.write_text("\n".join(lines) + "\n")
    assert read(path, most=2 * MEMORY) == [12, 1, None]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_too_many_columns(tmp_path, form):
    path, columns = tmp_path / f"wider.{form}", 60_000
    names = [f"c{number}" for number in range(columns)]
    if form == "csv":
        path.write_text(",".join(names) + "\n" + ",".join(["1"] * columns) + "\n")
    else:
        # Ever new keys.
        parts = (names[at : at + 100] for at in range(0, columns, 100))
        path.write_text("".join(json.dumps(dict.fromkeys(part, 1)) + "\n" for part in parts))
    with pytest.raises(DataError, match=r"has more than 50,000 columns; write those that matter to another file\.$"):
        open_source(path)


def test_megabytes_of_empty_lines(tmp_path):
    for form in ("csv", "jsonl", "unknown"):
        path = tmp_path / f"empty.{form}"
        path.write_bytes(b"\n" * 40_000_000 + b'{"x": 1}\n')
        with pytest.raises(DataError, match="begins with more than 4,194,304 blanks or empty lines"):
            open_source(path)
    path = tmp_path / "empty.csv"
    path.write_bytes(b"\r\n" * 1_000_000 + b"x,y\n1,2\n")
    assert outcomes(open_source(path), ["x"]) == [(1, "good", (1.0,), b"1,2")]


def test_quotes_that_never_close():
    """Were every line to be searched up to the longest record, this would take minutes."""
    line, count = b'a"b,"c\n', 300_000
    data = line * count
    found = list(Grammar(ord(","), ord('"'), ord("\r")).cut(data, final=True))
    assert len(found) > count - LONGEST // len(line) - 2
    assert b"".join(data[low:high] for low, high, _ in found) == data
    assert {reason for *_, reason in found} <= {None, UNCLOSED, Grammar().too_long}


def write_zeros(path, rows, group=None):
    """A column of zeros, which is stored in few bytes: as one page or batch, or in groups of rows."""
    table = pa.table({"x": np.zeros(rows), "y": np.zeros(rows)})
    if path.suffix == ".parquet":
        sizes = {"data_page_size": 2**30, "row_group_size": group or rows}
        if "max_rows_per_page" in signature(pq.write_table).parameters:  # of newer versions of PyArrow
            sizes["max_rows_per_page"] = 2**30
        pq.write_table(table, path, compression="zstd", use_dictionary=False, **sizes)
        return
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    write = pa.ipc.new_stream if path.suffix == ".arrows" else pa.ipc.new_file
    with write(path, table.schema, options=options) as file:
        file.write_table(table, max_chunksize=group)


@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows"])
def test_pages_and_batches_that_expand_enormously_are_refused(tmp_path, monkeypatch, form):
    monkeypatch.setattr(columnar, "EXPANDED", 2**20)
    path, rows = tmp_path / f"zeros.{form}", 200_000
    write_zeros(path, rows)
    with pytest.raises(
        DataError, match=r"zeros.* takes 0\.0 GiB of memory, though [\d,]+ bytes are stored\. Write the"
    ):
        list(open_source(path).batches(["x"]))
    write_zeros(path, rows, group=20_000)
    assert sum(len(batch.rows) for batch in open_source(path).batches(["x"])) == rows


def write_hidden(path):
    """A batch of zeros behind the end of the messages, or with a header of the first versions of Arrow."""
    write_zeros(path, 200_000)
    data = path.read_bytes()
    (_, before), (message, _) = _read_messages(io.BytesIO(data), len(data), BODY if path.suffix == ".arrow" else 0)
    if path.suffix == ".arrow":
        index = len(data) - 10 - int.from_bytes(data[-10:-6], "little")
        moved = data[index:].replace(struct.pack("<q", before), struct.pack("<q", before + len(END)))
        path.write_bytes(data[:before] + END + data[before:index] + moved)
    else:
        path.write_bytes(data[:before] + data[before + 4 :])
    assert message.rows == 200_000


@pytest.mark.parametrize("write", [pa.ipc.new_file, pa.ipc.new_stream])
def test_the_first_version_of_arrow_is_read(tmp_path, write):
    path, table = tmp_path / "old.arrow", pa.table({"x": np.arange(50.0)})
    with write(path, table.schema, options=pa.ipc.IpcWriteOptions(use_legacy_format=True)) as file:
        file.write_table(table, max_chunksize=20)
    source = open_source(path)
    assert [(len(batch.rows), len(batch.bad)) for batch in source.batches(["x"])] == [(20, 0), (20, 0), (10, 0)]


@pytest.mark.parametrize("form", ["arrow", "arrows"])
def test_batches_that_are_hidden_are_measured_too(tmp_path, monkeypatch, form):
    path = tmp_path / f"zeros.{form}"
    write_hidden(path)
    assert sum(len(batch.rows) for batch in open_source(path).batches(["x"])) == 200_000
    monkeypatch.setattr(columnar, "EXPANDED", 2**20)
    with pytest.raises(DataError, match=r"batch 1 takes 0\.0 GiB of memory"):
        list(open_source(path).batches(["x"]))


@pytest.mark.parametrize("stream", [False, True])
def test_a_batch_that_does_not_fit_in_memory_is_refused(tmp_path, monkeypatch, stream):
    path, table = tmp_path / "large.arrow", pa.table({"x": np.arange(50_000.0)})
    path.write_bytes(as_arrow(table, stream=stream, group=50_000))
    source = open_source(path)
    monkeypatch.setattr(columnar, "MOST_MEMORY", 2**18)
    with pytest.raises(DataError, match=r"batch 1 takes 0\.0 GiB of memory"):
        list(source.batches(["x"]))


@pytest.mark.soak
@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows"])
def test_a_small_file_that_expands_to_a_gigabyte_takes_little_memory(tmp_path, form, record_property):
    path = tmp_path / f"zeros.{form}"
    write_zeros(path, 60_000_000)
    good, bad, message = read(path, most=MEMORY)
    assert (good, bad) == (0, 0)
    assert "GiB of memory, though" in message
    record_property("tried", {"small files that expand to a gigabyte": 1})
    record_property("lost", "less than 500 MiB of memory")
