"""The same records come out of every format, from files, pipes and memory, from wherever one begins."""

from __future__ import annotations

import datetime
import io

import pandas
import polars
import pyarrow as pa
import pytest

from redescend.errors import DataError
from redescend.sources import Kind, open_source
from tests.sources.outcomes import of_batch, outcomes
from tests.sources.written import COMPRESS, WRITE, sample_table

TABLE = sample_table(1800)
KINDS = dict(zip(TABLE.column_names, (Kind.NUMBER, Kind.BOOLEAN, Kind.DATE, Kind.TEXT), strict=True))
RECORDS = [tuple(record.values()) for record in TABLE.to_pylist()]
STORED = [(name, "") for name in WRITE] + [("csv", ending) for ending in COMPRESS] + [("parquet", "gz")]


@pytest.mark.parametrize(("form", "ending"), STORED)
def test_files_and_pipes_of_every_format_hold_the_same(tmp_path, form, ending):
    data = WRITE[form](TABLE)
    path = tmp_path / f"data.{form}"
    if ending:
        path, data = path.with_suffix(f".{form}.{ending}"), COMPRESS[ending](data)
    path.write_bytes(data)
    source = open_source(path)
    assert (source.kinds, source.size, source.sample.count) == (KINDS, len(data), 1000)
    batches = list(source.batches(source.columns, most=333))
    assert source.progress() >= source.size * (not ending)
    found = [record for batch in batches for record in of_batch(batch)]
    assert found == [(row, "good", held, found[row - 1][3]) for row, held in enumerate(RECORDS, 1)]
    assert of_batch(source.sample) == found[:1000]
    end = batches[4].end
    assert outcomes(open_source(path), source.columns, start=end) == found[end.row :]
    pipe = open_source(io.BytesIO(data), format=form if form == "tsv" else None)
    assert outcomes(pipe, source.columns, start=end) == found[end.row :]
    if form in ("csv", "tsv", "jsonl"):
        with pytest.raises(DataError, match="only once"):
            list(pipe.batches(["x"]))


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        TABLE.to_reader(max_chunksize=300),
        TABLE.to_pandas(),
        TABLE.set_column(3, "name", TABLE["name"].dictionary_encode()).to_pandas().set_index("x", drop=False),
        polars.from_arrow(TABLE),
        TABLE.set_column(0, "x", TABLE["x"].cast("float32").cast("float64")).to_batches()[0],
    ],
    ids=["table", "reader", "pandas", "indexed", "polars", "batch"],
)
def test_tables_in_memory_are_read_like_files(table):
    source = open_source(table)
    assert (source.columns, source.kinds, source.format) == (TABLE.column_names, KINDS, "memory")
    found = outcomes(source, ["name", "when"], most=100)
    assert [held for _, _, held, _ in found] == [(name, when) for _, _, when, name in RECORDS]


def test_columns_of_many_types_become_the_four_kinds():
    table = pa.table(
        {
            "decimal": pa.array(["1.50", None]).cast(pa.decimal128(9, 2)),
            "whole": pa.array([2**63, 1], pa.uint64()),
            "day": pa.array([1, None], pa.date32()),
            "zone": pa.array([3_600_000_000_000, 1], pa.timestamp("ns", tz="Europe/Paris")),
            "word": pa.array(["a", "b"]).dictionary_encode(),
            "none": pa.nulls(2),
            "list": [[1], [2]],
        }
    )
    source = open_source(table)
    first, _ = outcomes(source, source.columns)
    assert [str(value) for value in first[2]] == [
        "1.5",
        "9.223372036854776e+18",
        "1970-01-02 00:00:00",
        "1970-01-01 01:00:00",
        "a",
        "None",
    ]
    assert first[3].startswith(b'{"decimal": "1.50", "whole": 9223372036854775808, "day": "1970-01-02"')
    with pytest.raises(DataError, match=r"'list' of the Table is list<item: int64>"):
        source.batches(["list"])
    frame = pandas.DataFrame({"x": [1, "a", b"c"]})
    with pytest.raises(DataError, match="several types"):
        open_source(frame)


def test_days_that_are_in_no_calendar_are_bad_and_the_others_are_not():
    days = pa.array([1, 2**31 - 1, None, -(2**31)], pa.int32()).view(pa.date32())
    found = outcomes(open_source(pa.table({"day": days})), ["day"])
    assert [record[2] for record in found] == [
        (datetime.datetime(1970, 1, 2),),
        "column 'day': '2147483647' is not a date",
        (None,),
        "column 'day': '-2147483648' is not a date",
    ]


def test_kinds_that_are_known_make_other_values_bad():
    source = open_source(
        pandas.DataFrame({"x": ["1", "?", "a"], "b": [0, 1, 2]}), kinds={"x": "number", "b": "boolean"}
    )
    assert [record[:3] for record in outcomes(source, ["x", "b"])] == [
        (1, "good", (1.0, False)),
        (2, "good", (None, True)),
        (3, "bad", "column 'x': 'a' is not a number"),
    ]
