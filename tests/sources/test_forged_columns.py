"""Forged sizes and offsets in Parquet and Arrow files: such a file is damaged, and what is lost is counted or said."""

from __future__ import annotations

import io
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from redescend.sources import open_source
from redescend.sources.arrow import measure_indexed
from tests.cli.commands import run
from tests.streaming.fuzzing.verdicts import check_readable

ROWS, GROUP = 40, 20
FORGED = (-1, -(2**63), 2**62, 2**63 - 1)
"""Before the file, and far beyond its end."""


def make_table():
    return pa.table({"x": np.arange(ROWS) / 3.0, "y": np.arange(ROWS) / 7.0})


def write_arrow(stream):
    out, table = io.BytesIO(), make_table()
    write = pa.ipc.new_stream if stream else pa.ipc.new_file
    with write(out, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
        file.write_table(table, max_chunksize=GROUP)
    return out.getvalue()


def encode(number):
    """A signed number in Thrift's compact protocol."""
    number, data = (number << 1 ^ number >> 63) & (2**64 - 1), b""
    while number > 127:
        data, number = data + bytes([number & 127 | 128]), number >> 7
    return data + bytes([number])


def forge_parquet(offset):
    """A file in which the second column of the first row group begins at `offset`."""
    out = io.BytesIO()
    pq.write_table(make_table(), out, row_group_size=GROUP, use_dictionary=False, write_statistics=False)
    whole = out.getvalue()
    size = int.from_bytes(whole[-8:-4], "little")
    column = pq.ParquetFile(out).metadata.row_group(0).column(1)
    footer = whole[-8 - size : -8]
    forged = footer.replace(encode(column.data_page_offset), encode(offset), 2)
    assert forged != footer
    return whole[: -8 - size] + forged + struct.pack("<I", len(forged)) + b"PAR1"


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("stream", [False, True])
def test_numbers_of_an_arrow_file(stream, forged, stride):
    whole = write_arrow(stream)
    # With a stride, every place is forged with one of the numbers.
    for place in range(8 * (FORGED.index(forged) % stride), len(whole) - 8, 8 * stride):
        check_readable(whole[:place] + struct.pack("<q", forged) + whole[place + 8 :], "arrow")


@pytest.mark.parametrize("bit", range(0, 32, 7))
def test_a_damaged_first_marker_loses_nothing_that_the_index_has(tmp_path, bit):
    whole, path = bytearray(write_arrow(stream=False)), tmp_path / "a.arrow"
    whole[8 + bit // 8] ^= 1 << bit % 8
    path.write_bytes(whole)
    assert sum(len(batch.rows) for batch in open_source(path).batches(["x"])) == ROWS


@pytest.mark.parametrize("forged", FORGED)
def test_a_batch_with_a_buffer_outside_of_it_is_damaged(forged):
    whole = write_arrow(stream=False)
    data = [whole[:place] + struct.pack("<q", forged) + whole[place + 8 :] for place in range(0, len(whole) - 8, 8)]
    outside = [each for each in data if None in measure_indexed(io.BytesIO(each), len(each))]
    # Besides numbers of the index: places and sizes of two buffers of each of two columns in two batches.
    assert len(outside) >= 10 + 2 * 2 * 2 * 2
    for each in outside:
        check_readable(each, "arrow")


@pytest.mark.parametrize("forged", FORGED)
def test_offsets_of_a_parquet_file(forged):
    check_readable(forge_parquet(forged), "parquet")


def test_the_command_quarantines_what_is_lost(tmp_path):
    path = tmp_path / "forged.parquet"
    path.write_bytes(forge_parquet(2**62))
    done = run("fit", path, "--target", "y", "--model", tmp_path / "model", "--no-report", code=3)
    assert "Traceback" not in done.stderr
    assert f"{GROUP} rows are lost" in (tmp_path / "model.quarantine.jsonl").read_text()
