"""Tables of databases and sheets of Excel files, like any other source."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from redescend.errors import DataError
from redescend.sources import Kind, open_source
from redescend.streaming import fit_stream

RECORDS = [
    (float(row % 11), "Rome" if row % 2 else "Oslo", f"2024-01-{1 + row % 28:02}", 3.0 * (row % 11))
    for row in range(300)
]
NAMES = ("size", "town", "day", "price")


@pytest.fixture
def database(tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.execute("CREATE TABLE sales (size REAL, town TEXT, day TEXT, price REAL)")
        database.executemany("INSERT INTO sales VALUES (?, ?, ?, ?)", RECORDS)
        database.commit()
    return tmp_path / "shop.db"


def check(source):
    opened = open_source(source)
    assert opened.kinds == dict(zip(NAMES, (Kind.NUMBER, Kind.TEXT, Kind.DATE, Kind.NUMBER), strict=True))
    model, run = fit_stream(source, "price")
    assert run.run().counts == (300, 300, 0, 0)
    assert model.schema.inputs == ["size", "town", "day"]


def test_the_only_table_of_a_database_or_the_one_that_is_named(database):
    check(database)
    check(f"sqlite:///{database}?table=sales")
    with closing(sqlite3.connect(database)) as other:
        other.execute("CREATE VIEW large AS SELECT * FROM sales WHERE size > 5")
    with pytest.raises(DataError, match=r"has 2 tables: 'large', 'sales'. Name one of them: sqlite:///.*\?table=large"):
        open_source(database)
    with pytest.raises(DataError, match=r"has no table 'sale'; did you mean 'sales'\?"):
        open_source(f"sqlite:///{database}?table=sale")
    assert all(value > 5 for value in open_source(f"sqlite:///{database}?table=large").sample.table["size"].to_pylist())


def test_an_empty_table_is_one_sentence(database):
    with closing(sqlite3.connect(database)) as other:
        other.execute("DELETE FROM sales")
        other.commit()
    with pytest.raises(DataError, match=r"shop\.db has no records\."):
        open_source(database)


def test_a_damaged_database_is_one_sentence(database):
    database.write_bytes(database.read_bytes()[:100] + b"x" * 5000)
    with pytest.raises(DataError, match="cannot be read"):
        open_source(database)


def test_a_value_of_another_type_is_a_bad_record(database):
    with closing(sqlite3.connect(database)) as other:
        other.execute("INSERT INTO sales VALUES ('many', 'Rome', '2024-01-01', 1.0)")
        other.commit()
    _, run = fit_stream(database, "price")
    assert run.run().counts == (301, 300, 1, 0)
    assert run.bad[0].reason == "column 'size': 'many' is not a number"


def test_a_table_of_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with closing(duckdb.connect(str(tmp_path / "shop.duckdb"))) as database:
        database.execute("CREATE TABLE sales (size DOUBLE, town VARCHAR, day DATE, price DOUBLE)")
        database.executemany("INSERT INTO sales VALUES (?, ?, ?, ?)", RECORDS)
    check(tmp_path / "shop.duckdb")


def test_integers_of_more_than_64_bits_are_numbers(tmp_path):
    duckdb, path = pytest.importorskip("duckdb"), tmp_path / "sums.duckdb"
    with closing(duckdb.connect(str(path))) as database:
        database.execute(f"CREATE TABLE t AS SELECT x::HUGEINT AS x, 0.5 AS y FROM (VALUES (1), ({2**70})) AS v(x)")
    source = open_source(path)
    assert source.kinds["x"] is Kind.NUMBER
    assert [batch.table.column("x").to_pylist() for batch in source.batches(["x"])] == [[1.0, float(2**70)]]


def test_a_view_of_duckdb_reads_no_other_file(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    (tmp_path / "secret.csv").write_text("x,y\n1,2\n")
    with closing(duckdb.connect(str(tmp_path / "shop.duckdb"))) as database:
        database.execute(f"CREATE VIEW sales AS SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')")
        assert database.execute("SELECT * FROM sales").fetchall() == [(1, 2)]
    with pytest.raises(DataError, match=r"shop\.duckdb cannot be read: Permission Error: [^\n]*\.$"):
        open_source(tmp_path / "shop.duckdb")


def test_a_sheet_of_excel(tmp_path):
    pytest.importorskip("python_calamine")
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.title = "sales"
    for record in (NAMES, *RECORDS):
        book.active.append(record)
    book.save(tmp_path / "shop.xlsx")
    check(tmp_path / "shop.xlsx")
    check(f"excel:///{tmp_path / 'shop.xlsx'}?table=sales")
    (tmp_path / "broken.xlsx").write_bytes(b"PK no")
    with pytest.raises(DataError, match="cannot be read"):
        open_source(tmp_path / "broken.xlsx")
