"""What a source is taken for, and what is refused, in one sentence."""

from __future__ import annotations

import gzip
import io
import tempfile

import pyarrow as pa
import pyarrow.parquet
import pytest

from redescend.errors import DataError, ParameterError
from redescend.sources import Kind, Position, open_source
from redescend.sources.formats import check_names
from tests.sources.outcomes import outcomes
from tests.sources.written import COMPRESS

N, B, D, T = Kind.NUMBER, Kind.BOOLEAN, Kind.DATE, Kind.TEXT


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ("1 -2.5 +3e8 .5 inf", N),
        ("? NA - N/A None", N),
        ("1 " * 9 + "x", N),
        ("1 " * 8 + "x y", T),
        ("1 0 1", N),
        ("true False TRUE ?", B),
        ("2024-02-29 2024-01-01T10:00 2024-01-01T10:00:00.123456", D),
        ("2024-01-01T10:00:00Z 2024-01-01T10:00+02:00", D),
        ("2024-01 yesterday", T),
        ("a b 1", T),
    ],
)
def test_a_column_is_of_the_kind_that_nine_values_in_ten_are(values, kind):
    text = "\n".join(["z,x", *(f"0,{value}" for value in values.split())])
    lines = "\n".join(f'{{"x":"{value}"}}' for value in values.split())
    assert open_source(io.BytesIO(text.encode())).kinds["x"] is kind
    assert open_source(io.BytesIO(lines.encode())).kinds["x"] is kind


def test_json_has_the_columns_of_its_first_records_and_theirs_are_the_kinds():
    lines = [
        b'\xef\xbb\xbf{"n": 1, "o": {"p": 1}, "b": true}',
        b'{"n": "2", "t": "x", "b": false}',
        b'{"n": NaN, "t": 5, "b": 0, "d": "2024-01-01"}',
        b'{"n": true, "t": "NA"}',
        b'{"o": [1]}',
    ]
    source = open_source(io.BytesIO(b"\n".join(lines)), kinds={"n": N, "t": T, "b": B, "later": N})
    assert source.kinds == {"n": N, "b": B, "t": T, "d": D, "later": N}
    found = outcomes(source, ["n", "t", "b", "later"])
    assert repr([record[2] for record in found]) == repr(
        [
            (1.0, None, True, None),
            (2.0, "x", False, None),
            (float("nan"), "5", False, None),
            "column 'n': True is not a number",
            (None, None, None, None),
        ]
    )
    with pytest.raises(DataError, match="Column 'o' of the file object is nested"):
        source.batches(["o"])


def test_dates_with_a_zone_and_without_are_moments_and_there_are_none_before_year_one():
    zoned = [b"2024-01-01T10:00:00Z", b"2024-01-01T10:00:00+02:00"]
    lines = [b"x", *zoned, b"2024-01-01", b"0001-01-01T00:00:00+01:00", *zoned * 15]
    found = outcomes(open_source(io.BytesIO(b"\n".join(lines))), ["x"])[:4]
    assert [str(held[0]) for *_, held, _ in found[:2]] == ["2024-01-01 10:00:00", "2024-01-01 08:00:00"]
    assert str(found[2][2][0]) == "2024-01-01 00:00:00"
    assert found[3][2] == "column 'x': '0001-01-01T00:00:00+01:00' is not a date"


@pytest.mark.parametrize(
    ("text", "form", "columns", "first"),
    [
        (b"a;b\n1;x,y\n", None, ["a", "b"], (1.0, "x,y")),
        (b"a|b\r1|x\r", None, ["a", "b"], (1.0, "x")),
        (b"\xef\xbb\xbfa\tb\r\n\r\n1\tx\r\n", None, ["a", "b"], (1.0, "x")),
        (b'"a,\n1",b\n1,x\n', "csv", ["a,\n1", "b"], (1.0, "x")),
        (b'\n{"a": 1}\n', None, ["a"], (1.0,)),
        (b"BZh,b\n1,x\n", None, ["BZh", "b"], (1.0, "x")),
    ],
)
def test_text_says_what_it_is(text, form, columns, first):
    source = open_source(io.BytesIO(text), format=form)
    assert source.columns == columns
    assert outcomes(source, columns)[0][2] == first


def test_without_a_header_columns_are_numbered():
    source = open_source(io.BytesIO(b"1,x\n2,y\n"), header=False)
    assert outcomes(source, ["column2"]) == [(1, "good", ("x",), b"1,x"), (2, "good", ("y",), b"2,y")]


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("encoding", ["windows-1252", "utf-16", "utf-32", "cp858"])
def test_text_in_another_encoding(tmp_path, encoding, compress):
    records = "größe;wert\n" + "".join(f"Köln €{row};{row},5\n" for row in range(5000))
    data, name = records.encode(encoding), "a.csv.gz" if compress else "a.csv"
    (tmp_path / name).write_bytes(gzip.compress(data) if compress else data)
    marked = encoding.startswith("utf")
    source = open_source(tmp_path / name, encoding=None if marked else encoding, block=1000)
    assert source.kinds == {"größe": Kind.TEXT, "wert": Kind.NUMBER}
    table = pa.Table.from_batches([batch.table for batch in source.batches(["größe", "wert"], in_order=True)])
    assert table.column("größe").to_pylist() == [f"Köln €{row}" for row in range(5000)]
    assert table.column("wert").to_pylist() == [row + 0.5 for row in range(5000)]
    # From the middle of the file, as after a checkpoint.
    first, *_ = source.batches(["wert"], in_order=True)
    rest = open_source(tmp_path / name, encoding=None if marked else encoding, block=3000)
    values = [
        value
        for batch in rest.batches(["wert"], start=first.end, in_order=True)
        for value in batch.table.column(0).to_pylist()
    ]
    assert values == [row + 0.5 for row in range(first.end.row, 5000)]


def test_an_encoding_is_checked(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    for wrong in ("klingon", "base64", "bz2", "idna", "punycode", 7):
        with pytest.raises(ParameterError, match="must be the name of an encoding, such as 'windows-1252'"):
            open_source(tmp_path / "a.csv", encoding=wrong)
    pa.parquet.write_table(pa.table({"a": [1.0]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet is parquet, which has no encoding; it is for text files"):
        open_source(tmp_path / "a.parquet", encoding="latin-1")


@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize("compress", [False, True])
def test_an_encoding_whose_mark_is_missing_is_refused_with_what_to_do(tmp_path, size, compress):
    data, name = "a,b\n1,2\n".encode(f"utf-{size}-le"), "a.csv.gz" if compress else "a.csv"
    (tmp_path / name).write_bytes(gzip.compress(data) if compress else data)
    with pytest.raises(DataError, match=f"does not begin with the mark of utf-{size}; .* utf-{size}-le or"):
        open_source(tmp_path / name, encoding=f"UTF{size}")
    source = open_source(tmp_path / name, encoding=f"utf-{size}-le")
    assert outcomes(source, ["a", "b"]) == [(1, "good", (1.0, 2.0), b"1,2")]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n\r\n", "is empty"),
        ("a.csv", b"a,b\n", "has no records"),
        ("a.jsonl", b"\n", "has no records"),
        ("a.jsonl", b'{"x": 1, "x": 2}\n', "has no record that can be read; the first: the name 'x' is there twice"),
        ("a.csv", b"a,b,a\n1,2,3\n", "has two columns 'a'"),
        ("a.csv", b'a,"b\n1,2\n', "header of .* cannot be read: an unclosed quote"),
        ("a.csv", "größe\n1\n".encode("latin-1"), "header of .* is not UTF-8"),
        ("a.csv", b"Sales 2020\n\na,b\n1,2\n3,4\n", "'Sales 2020', but 3 of the first 3 records have 2"),
        ("a.csv", b"Sales\nall shops\na;b\n1;2,5\n3;4,5\n", "'Sales', but 3 of the first 4 records have 2"),
        ("a.json", b'[{"a": 1}]', "one JSON array"),
        ("a.csv", b"\x89PNG\r\n\x1a\n", "is a PNG image"),
        ("report.data", b"%PDF-1.7\n1 0 obj\n", "is a PDF document"),
        ("a.jsonl", b"1\n2\n", "has no record that can be read; the first: not a JSON object"),
        ("a.jsonl", b'{"x": [1]}\n', "has no columns of numbers"),
        ("a.csv.gz", b"a\n1\n", "is not gzip data"),
        ("a.parquet", b"PAR1", "cannot be read"),
        ("a.arrow", b"ARROW1\0\0", "cannot be read"),
    ],
)
def test_a_file_of_which_nothing_can_be_made_is_refused_in_a_sentence(tmp_path, name, data, words):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataError, match=words) as refusal:
        open_source(path)
    assert name in str(refusal.value)
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.csv", "Sales 2020\n\na,b\n1,2\n3,4\n", "must be first."),
        ("a.csv", "Sales\nall shops\na;b\n1;2,5\n3;4,5\n", "must be first."),
        ("a.csv", "Sales\nshop;2019;2020\n" + "x;1,5;2\n" * 30, "must be first."),
        ("a.csv", "Sales\nday|\n" + "2020-01-01|x\n" * 30, "must be first."),
        ("a.csv", "Sales\n,a\n" + "1,x\n" * 30 + "the end\n", "must be first."),
        ("a.tsv", "Sales, 2020\na\tb\n" + "1,5\tx\n" * 30, "must be first."),
        ("a.csv", "sep=;\nSales, 2020\na;b\n" + "1,5;x\n" * 30, "must be first."),
        ("a.csv", 'Sales\n"a";"b;c"\n' + '"1,5";"x;y"\n' * 30, "must be first."),
        # Without numbers, the first line may be a header of one column as well.
        (
            "a.csv",
            "Staff\nname,city\n" + "Ann,Rome\n" * 30,
            "must be first, or write values that contain ',' in quotes.",
        ),
    ],
)
def test_lines_above_a_header_are_refused_with_what_to_do(tmp_path, name, data, words):
    (tmp_path / name).write_text(data)
    with pytest.raises(DataError, match="Remove the lines above the header") as refusal:
        open_source(tmp_path / name)
    assert str(refusal.value).endswith(words)


@pytest.mark.parametrize(
    ("name", "values", "decimal", "read"),
    [
        ("s.tsv", "1,25 3,5 -0,75", ",", [1.25, 3.5, -0.75]),
        ("s.tsv", "1,25 3,5 -0,75", None, [1.25, 3.5, -0.75]),
        ("names.tsv", "Smith,_John Doe,_Jane", None, ["Smith, John", "Doe, Jane"]),
        ("pairs.tsv", "a;1 b;2", None, ["a;1", "b;2"]),
        ("notes.csv", "a;_b c;_d", None, ["a; b", "c; d"]),
        ("notes.csv", "red|5 blue|3", None, ["red|5", "blue|3"]),
        ("notes.csv", "n/a;_NA x;_3 y;_5", None, ["n/a; NA", "x; 3", "y; 5"]),
        ("notes.csv", '"a,_b" "c,_d"', None, ["a, b", "c, d"]),
    ],
)
def test_a_column_of_texts_or_numbers_that_contain_delimiters_is_read(tmp_path, name, values, decimal, read):
    values = values.replace("_", "\0").split()
    (tmp_path / name).write_text("\n".join(["value", *values * 40, ""]).replace("\0", " "))
    source = open_source(tmp_path / name, decimal=decimal)
    [batch] = source.batches(["value"])
    assert batch.table.column("value").to_pylist() == read * 40
    assert not batch.bad


@pytest.mark.parametrize("decimal", [None, ","])
def test_a_column_of_decimal_commas_has_no_title(tmp_path, decimal):
    (tmp_path / "a.csv").write_text("\n".join(["price", *["1,25", "3,5"] * 40, ""]))
    [batch] = open_source(tmp_path / "a.csv", decimal=decimal).batches(["price"])
    assert {bad.reason for bad in batch.bad} == {"2 values where the header has 1"}


def test_a_file_without_the_header_of_its_model_has_no_title(tmp_path):
    (tmp_path / "a.csv").write_text("x\na;1\n" + "b;2\n" * 40)
    assert open_source(tmp_path / "a.csv", columns=["note"]).columns == ["note"]


def test_what_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"x\n1\n")
    (tmp_path / "b.jsonl").write_bytes(b'{"x": 1}\n')
    (tmp_path / "none").mkdir()
    for source, words in {
        tmp_path / "nowhere.csv": "There is no file",
        str(tmp_path / "*.tsv"): "No file matches",
        tmp_path / "none": "contains no files with data",
        tmp_path: "one format at a time",
        (): "list of sources is empty",
    }.items():
        with pytest.raises(DataError, match=words):
            open_source(source)
    with pytest.raises(DataError, match="binary mode"):
        open_source(io.StringIO("x\n1\n"))
    with pytest.raises(ParameterError, match="'source' parameter"):
        open_source(5)
    with pytest.raises(ParameterError, match="'format' parameter"):
        open_source(tmp_path / "a.csv", format="doc")
    source = open_source(tmp_path / "a.csv")
    with pytest.raises(DataError, match=r"a\.csv has no column 'y'; the only column is 'x'\.$"):
        source.batches(["y"])
    with pytest.raises(ParameterError, match="'most' parameter"):
        source.batches(["x"], most=0)
    with pytest.raises(DataError, match="has no position"):
        source.batches(["x"], start=Position(7, 0, 0, 0))


def test_one_who_asks_for_a_column_that_is_not_there_is_told_few_of_those_that_are():
    names = [f"feature {number}" for number in range(5000)] + ["n" * 1000]
    source = open_source(pa.table({name: [1.0] for name in names}))
    for wanted, words in {
        "Feature  4321": "; did you mean 'feature 4321'?",
        "z": "; there are 'feature 0', 'feature 1', .* 'feature 9' and 4991 more.",
        "n" * 999: "no column 'n{40}…'; did you mean 'n{40}…'?",
    }.items():
        with pytest.raises(DataError, match=words.replace("?", r"\?$")) as refusal:
            source.batches([wanted])
        assert len(str(refusal.value)) < 300


class Counted(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


def test_a_name_is_not_compared_with_every_other(monkeypatch):
    monkeypatch.setattr(Counted, "compared", 0)
    names = [Counted(number) for number in range(1000)]
    source = open_source(pa.table({str(number): [1.0] for number in range(1000)}))
    source.batches(names)
    check_names("wide.csv", names)
    assert 0 < Counted.compared < 10 * len(names)


def test_a_source_names_its_files(tmp_path):
    for name in ("b.csv", "a.csv"):
        (tmp_path / name).write_bytes(b"x\n1\n")
    assert open_source(tmp_path).files == [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    assert open_source(io.BytesIO(b"x\n1\n")).files == ["the file object"]
    assert open_source(pa.table({"x": [1.0]})).files == ["the Table"]


def test_a_pipe_that_fails_leaves_no_temporary_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    class Failing:
        answers = iter([b"PAR1" + bytes(4000)])

        def read(self, size):
            for data in self.answers:
                return data
            raise OSError("the other side is gone")

    with pytest.raises(OSError, match="the other side is gone"):
        open_source(Failing())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_compressed_pipe_is_recognized_by_the_mark_of_its_text(ending, encoding):
    text = '{"a": 1, "b": "é"}\n{"a": 2, "b": "ü"}\n'
    source = open_source(io.BytesIO(COMPRESS[ending](text.encode(encoding))))
    assert source.format == "jsonl"
    assert [record[2] for record in outcomes(source, ["a", "b"])] == [(1.0, "é"), (2.0, "ü")]


def test_a_file_of_another_format_than_its_name_says_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    pa.parquet.write_table(pa.table({"x": [1.0, 2.0]}), path)
    with pytest.raises(DataError, match=r"table\.csv contains parquet data, despite its name; rename it to end in"):
        open_source(path)
