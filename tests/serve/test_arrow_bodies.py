"""Arrow bodies of few bytes that say they have many records, or long ones, are refused before they are expanded."""

import io
import struct

import pyarrow as pa
import pytest

from redescend.errors import DataError
from redescend.serve.records import ARROW, EXPANSION, read_records
from redescend.serve.replies import ContentTooLarge
from redescend.serve.settings import Limits

LIMITS = Limits(body=1 << 16, records=10_000)


def write(table: pa.Table, kind: str = "stream", **options) -> bytes:
    sink = io.BytesIO()
    make = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with make(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def read(body: bytes) -> list[bytes]:
    return read_records(body, ARROW[0], limits=LIMITS).lines


def repeat_text(count: int, size: int) -> pa.Table:
    """One text in every record, stored once."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int8()), pa.array(["x" * size]))
    return pa.table({"x": texts})


BOMBS = {
    "zeros": (pa.table({"x": pa.array([0.0] * 100_000)}), {"compression": "zstd"}, "has 100,000 records"),
    "nulls": (pa.table({"x": pa.nulls(77)}), {}, "has 1,000,000,000 records"),
    "long text": (pa.table({"x": ["x" * 10_000_000]}), {"compression": "lz4"}, "once they are read"),
    "dictionary": (repeat_text(1, 10_000_000), {"compression": "zstd"}, "once they are read"),
    "repeated text": (repeat_text(9_000, 1_000), {}, "once they are read"),
}


@pytest.mark.parametrize("kind", ["stream", "file"])
@pytest.mark.parametrize(("table", "options", "sentence"), BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused(monkeypatch, table, options, sentence, kind):
    body = write(table, kind, **options)
    # A column of nulls has no content, so it may say that it has any number of rows.
    body = body.replace(struct.pack("<q", 77), struct.pack("<q", 10**9))
    assert len(body) < LIMITS.body
    expanded = []
    monkeypatch.setattr("redescend.serve.records.format_json", lambda batch, row: expanded.append(row) or b"x" * 1_000)
    with pytest.raises(ContentTooLarge, match=sentence):
        read(body)
    assert 1_000 * len(expanded) <= EXPANSION * LIMITS.body + 1_000


@pytest.mark.parametrize("kind", ["stream", "file"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_all_records_are_read(kind, compression):
    parts = [pa.table({"x": [1.5, None], "t": ["a", "b"]}), pa.table({"x": [2.5], "t": ["c"]})]
    body = write(pa.concat_tables(parts), kind, compression=compression)
    assert read(body) == [b'{"x": 1.5, "t": "a"}', b'{"x": null, "t": "b"}', b'{"x": 2.5, "t": "c"}']


def test_no_batch_is_dropped():
    """What cannot be measured is not read, so it must be refused."""
    batches = [write(pa.table({"x": [number]})) for number in (1.0, 2.0)]
    (end,) = {len(body) - 8 for body in batches}
    head = len(write(pa.table({"x": pa.array([], pa.float64())}))) - 8
    whole = batches[0][:end] + batches[1][head:]
    assert len(read(whole)) == 2
    assert read(batches[0][:end]) == [b'{"x": 1.0}']
    old = write(pa.table({"x": [1.0]}), use_legacy_format=True)
    for body in (old, batches[0][:end] + old[head:], whole[:-12], whole[:end] + b"\0" + whole[end:]):
        with pytest.raises(DataError, match="not Arrow IPC data"):
            read(body)
