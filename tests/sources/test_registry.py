"""A format from outside: one class and one registration, and every function and command reads it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import redescend as rd
from redescend.errors import DataError, ParameterError
from redescend.sources import ColumnarFile, formats, open_source, register_format
from tests.cli.commands import run


class KeyValueFile(ColumnarFile):
    """Lines such as ``x=1.5;town=Rome``, after a line that says what they are."""

    format = "keyvalue"
    suffixes = ("kv",)
    magic = (b"#keyvalue\n",)

    def read_batches(self):
        lines = self.path.read_text().splitlines()[1:]
        for at in range(0, len(lines), 300):
            records = [dict(pair.split("=") for pair in line.split(";")) for line in lines[at : at + 300]]
            yield pa.RecordBatch.from_pylist([{**record, "x": float(record["x"])} for record in records])


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(formats, "FORMATS", dict(formats.FORMATS))
    assert register_format(KeyValueFile) is KeyValueFile


def lines(count: int = 1200) -> str:
    random = np.random.default_rng(5)
    records = [(x, random.choice(["Rome", "Oslo"])) for x in random.normal(size=count)]
    prices = [f"x={x};town={town};price={2.0 + 3.0 * x + (town == 'Rome')}" for x, town in records]
    prices[700] = prices[700].rpartition("=")[0] + "=a lot"
    return "#keyvalue\n" + "\n".join(prices) + "\n"


def test_a_format_from_outside_is_fitted_by_the_library_and_by_the_command(registered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("prices.kv").write_text(lines())
    # By its suffix, by its first bytes, and by its name; from a file, compressed, and in memory.
    Path("copy.gz").write_bytes(gzip.compress(lines().encode()))
    with open("prices.kv", "rb") as file:
        opened = [open_source("prices.kv"), open_source("copy.gz"), open_source(file, format="keyvalue")]
    for source in opened:
        assert (source.format, source.columns) == ("keyvalue", ["x", "town", "price"])
        assert source.sample.count == 1000
    # Text is read as the kind that it is known to be.
    known = open_source("prices.kv", kinds={"price": "number"})
    rows = [row for batch in known.batches(["price"], most=100) for row in batch.rows]
    assert rows == [row for row in range(1, 1201) if row != 701]
    _, rounds = rd.fit_stream("prices.kv", "town", features=["x"])
    assert rounds.run().counts.learned == 1200
    done = run(
        "fit", "prices.kv", "--target", "x", "--features", "town", "--model", "m", "--checkpoint", "c", "--quiet"
    )
    assert done.stdout.startswith("row,file,clean_probability")
    assert rd.load("m").records == 2 * 1200  # in two passes
    assert len(run("predict", "m", "prices.kv", "--format", "kv").stdout.splitlines()) == 1201


def test_a_damaged_file_of_a_format_from_outside_is_an_error_or_a_bad_record(registered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("none.kv").write_text("#keyvalue\nx\n")
    with pytest.raises(DataError, match=r"none\.kv cannot be read: "):
        open_source("none.kv")
    broken = lines().splitlines()
    broken[900] = "x"
    Path("half.kv").write_text("\n".join(broken))
    batches = list(open_source("half.kv").batches(["x"]))
    assert sum(len(batch.rows) for batch in batches) == 600
    (bad,) = [bad for batch in batches for bad in batch.bad]
    assert (bad.row, bad.file) == (601, "half.kv")
    assert "the file is damaged here" in bad.reason
    fourth = dict(pair.split("=") for pair in broken[4].split(";"))
    assert json.loads(batches[0].raw(3)) == {**fourth, "x": float(fourth["x"])}


def test_a_suffix_belongs_to_one_format(registered):
    class Other(KeyValueFile):
        format = "other"

    with pytest.raises(ParameterError, match="'kv' of Other belongs to the format 'keyvalue'"):
        register_format(Other)
    with pytest.raises(ParameterError, match=r"csv, tsv, tab, .*keyvalue, kv\. Got 'other'"):
        open_source("-", format="other")
