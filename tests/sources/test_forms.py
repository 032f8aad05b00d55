"""Numbers and dates as people write them, against Python's own reading of them."""

from __future__ import annotations

import io
from datetime import datetime

import pytest

from redescend.errors import ParameterError
from redescend.sources import Kind, open_source
from redescend.sources.notations import notation_by_name


def read(text: str, **options):
    source = open_source(io.BytesIO(text.encode()), **options)
    [batch] = source.batches(source.columns)
    return source, batch


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1,5", "-2,25", "1.234,5", "3"], [1.5, -2.25, 1234.5, 3.0]),
        (["1,234.5", "0.5", "2,000"], [1234.5, 0.5, 2000.0]),
        (["$1,200.50", "-$3", "($4.25)", "$ 7"], [1200.5, -3.0, -4.25, 7.0]),
        (["12 %", "0.5%", "100%"], [12.0, 0.5, 100.0]),
        (["1 234,50 €", "2,00 €"], [1234.5, 2.0]),
        (["1'234.5", "7"], [1234.5, 7.0]),
        (["1.234.567", "12"], [1234567.0, 12.0]),
    ],
)
def test_numbers(texts, numbers):
    source, batch = read("x;y\n" + "".join(f"{text};1\n" for text in texts))
    assert source.kinds["x"] is Kind.NUMBER
    assert batch.table.column("x").to_pylist() == numbers


@pytest.mark.parametrize("unit", ["kg", " °C", " km/h", "m²", " m3", " years", " kWh", "s"])
@pytest.mark.parametrize("mark", [".", ","])
def test_numbers_with_a_unit(unit, mark):
    numbers = [-1234.5, 0.25, 7.0, *(n + 0.5 for n in range(60))]
    texts = [f"{number}".replace(".", mark) + unit for number in numbers]
    texts[5], texts[6] = "5" + unit.upper(), "6"  # in capitals, and without it
    source, batch = read("x;y\n" + "".join(f"{text};1\n" for text in [*texts, "7 pieces", ""]))
    assert source.kinds["x"] is Kind.NUMBER
    assert batch.table.column("x").to_pylist() == [*numbers[:5], 5.0, 6.0, *numbers[7:], None]
    assert [bad.reason for bad in batch.bad] == [f"column 'x': '7 pieces' is not a number in {source.units['x']}"]
    # A few values may be names, unless it is known that they are numbers.
    few = "x;y\n" + "".join(f"{text};1\n" for text in texts[:3])
    assert read(few)[0].kinds["x"] is Kind.TEXT
    assert read(few, kinds={"x": Kind.NUMBER})[1].table.column("x").to_pylist() == numbers[:3]
    assert read(few, kinds={"x": Kind.TEXT})[1].table.column("x").to_pylist() == texts[:3]


@pytest.mark.parametrize("code", ["{}AB", "0{}A", "{}th", "20{}Q1", "{} pm", "{} Jan", "{}e5kg", "{} Main", "{}A"])
def test_codes_and_ordinals_are_not_numbers_with_a_unit(code):
    rows = "".join(f"{code.format(number)};1\n" for number in range(11, 28))
    assert read("x;y\n" + rows)[0].kinds["x"] is Kind.TEXT


def test_a_unit_in_other_capitals_may_be_another_unit():
    _, batch = read("x;y\n" + "".join(f"{number} mW;1\n" for number in range(40)) + "5 MW;1\n")
    assert batch.table.column("x").to_pylist() == list(range(40))
    assert [bad.reason for bad in batch.bad] == ["column 'x': '5 MW' is not a number in mW"]


@pytest.mark.parametrize(("unit", "other"), [("kg", "KG"), ("Hz", "hz"), ("kWh", "kwh"), ("years", "Year")])
def test_spellings_of_a_unit_are_one_unit(unit, other):
    texts = [f"{number} {other if number % 3 else unit}" for number in range(1, 41)]
    source, batch = read("x;y\n" + "".join(f"{text};1\n" for text in texts))
    assert source.kinds["x"] is Kind.NUMBER
    assert batch.table.column("x").to_pylist() == list(range(1, 41))
    texts = [f"{number} {'mW' if number % 3 else 'MW'}" for number in range(1, 41)]
    assert read("x;y\n" + "".join(f"{text};1\n" for text in texts))[0].kinds["x"] is Kind.TEXT


def test_what_is_ambiguous_is_decided_by_others_or_stays_text():
    assert read("a\tb\n1,234\tx\n2,345\ty\n")[0].kinds["a"] is Kind.TEXT
    # Plain numbers of other columns decide, too.
    assert read("a\tb\n1,234\t1.5\n2,345\t2\n")[1].table.column("a").to_pylist() == [1234.0, 2345.0]
    assert read("a\tb\n1,234\t1.500\n2,345\t2\n")[0].kinds["a"] is Kind.TEXT
    assert read("a;b\n1,234;x\n2,345;y\n")[1].table.column("a").to_pylist() == [1.234, 2.345]  # as semicolons suggest
    assert read("a;b\n1,234;1.5\n2,345;2.25\n")[0].kinds["b"] is Kind.NUMBER
    assert read("a;b\n1,234;0,5\n2,345;1,25\n")[1].table.column("a").to_pylist() == [1.234, 2.345]
    assert read("a;b\n1,234;x\n2,345;y\n", decimal=",")[1].table.column("a").to_pylist() == [1.234, 2.345]
    assert read("a;b\n1,234;x\n2,345;y\n", decimal=".")[1].table.column("a").to_pylist() == [1234.0, 2345.0]
    assert read("a;b\n1.234;x\n2.345;y\n", decimal=",")[1].table.column("a").to_pylist() == [1234.0, 2345.0]
    with pytest.raises(ParameterError, match="'decimal' parameter of open_source"):
        read("a\n1\n", decimal=";")


def test_known_notations_decide_what_a_file_leaves_open():
    known = read("n;day;u;\n1,5;31/01/2020;3 kg;\n1.234,5;01/02/2020;4 kg;\n")[0].forms
    assert {name: form.name for name, form in known.items()} == {"n": "1.234,5", "day": "day/month/year"}

    def columns(text, **settings):
        table = read(text, forms=known, **settings)[1].table
        return [table.column(name).to_pylist() for name in table.schema.names]

    assert columns("n\tday\n1.234\t02/03/2020\n") == [[1234.0], [datetime(2020, 3, 2)]]
    assert columns("n\tday\n1.234\t02/13/2020\n") == [[1234.0], [datetime(2020, 2, 13)]]  # the file shows it
    assert columns("n\tday\n1.25\t02/03/2020\n")[0] == [1.25]
    assert columns("n\tday\n1.234\t2020-03-02\n", decimal=".") == [[1.234], [datetime(2020, 3, 2)]]
    # A notation is known, but most values have another, or none.
    _, batch = read("n\tday\n1,5\tsoon\n2,5\t02/03/2020\n3,5\tlater\n", forms=known, kinds={"day": Kind.DATE})
    assert batch.table.column("day").to_pylist() == [datetime(2020, 3, 2)]
    assert [bad.row for bad in batch.bad] == [1, 3]


@pytest.mark.parametrize(
    ("known", "first", "then", "value"),
    [
        (["day/month/year"], "", "02/03/2020", datetime(2020, 3, 2)),
        (["1,234.5"], "", "1,234.50", 1234.5),
        (["1,234.5"], "12", "1,234.50", 1234.5),
        (["1,234.5"], "12.25", "1,234.50", 1234.5),
        (["1.234,5"], "12", "1.234,50", 1234.5),
        (["1.234,5"], "12", "1,250", 1.25),
        (["1.234,5", "kg"], "12", "2,5 kg", 2.5),
        (["1,234.5", "kg"], "12", "2.5 kg", 2.5),
        (["1,234.5", "kg"], "", "2.5 kg", 2.5),
    ],
)
def test_known_notations_are_kept_if_the_first_records_have_none(known, first, then, value):
    forms = {"x": notation_by_name(*known)}
    lines = [f"{first}\t1"] * 1500 + [f"{then}\t1"] * 50
    source = open_source(io.BytesIO("\n".join(["x\ty", *lines, ""]).encode()), forms=forms)
    batches = list(source.batches(["x", "y"], in_order=True))
    assert not any(batch.bad for batch in batches)
    assert [x for batch in batches for x in batch.table.column("x").to_pylist()][-50:] == [value] * 50


def test_a_known_notation_is_left_where_only_plain_numbers_are_read():
    forms = read("x\ty\n1,234.50\t1\n2,345.25\t1\n")[0].forms
    assert list(forms) == ["x"]
    _, batch = read("x\ty\n" + "1.5\t1\n" * 19 + "inf\t1\n", forms=forms)
    assert not batch.bad
    _, batch = read("x\ty\n2020-01-01\t1\n", forms=read("x\ty\n31/01/2020\t1\n")[0].forms)
    assert batch.table.column("x").to_pylist() == [datetime(2020, 1, 1)]


@pytest.mark.parametrize(
    ("texts", "format"),
    [
        (["31.01.2020 00:00", "01.02.2020 13:45"], "%d.%m.%Y %H:%M"),
        (["01/31/2020", "02/01/2020"], "%m/%d/%Y"),
        (["31/01/2020", "02/01/2020"], "%d/%m/%Y"),
        (["02/01/2020", "03/04/2021"], "%m/%d/%Y"),
        (["31-01-2020 10:00:05", "02-01-2020 11:00:00"], "%d-%m-%Y %H:%M:%S"),
        (["2020/01/31", "2020/02/01"], "%Y/%m/%d"),
        (["31 Jan 2020 10:00", "1 sep 2020 09:30"], "%d %b %Y %H:%M"),
        (["31-JAN-2020", "01-Dec-2020"], "%d-%b-%Y"),
        (["31May2020", "01Jun2020"], "%d%b%Y"),
        (['"January 31, 2020"', '"July 4, 2020"'], '"%B %d, %Y"'),
    ],
)
def test_dates(texts, format):
    source, batch = read("x,y\n" + "".join(f"{text},1\n" for text in texts))
    assert source.kinds["x"] is Kind.DATE
    assert batch.table.column("x").to_pylist() == [datetime.strptime(text, format) for text in texts]


def test_a_value_that_has_not_the_form_of_its_column_is_bad_and_a_missing_one_is_missing():
    lines = [f"{day}.01.2020;{day},5" for day in range(1, 29)]
    lines[4], lines[9], lines[12] = "30.02.2020;1,5", "5.01.2020;one", ";NA"
    _, batch = read("day;x\n" + "\n".join(lines) + "\n")
    assert [(bad.row, bad.reason) for bad in batch.bad] == [
        (5, "column 'day': '30.02.2020' is not a date"),
        (10, "column 'x': 'one' is not a number"),
    ]
    assert (
        batch.table.slice(11, 1).to_pylist()[0] == {"day": None, "x": None} or batch.table.column("x").null_count == 1
    )
    assert batch.table.column("day").null_count == 1


def test_the_year_0_is_no_date_and_stops_nothing():
    days = [f"{day}.01.2020" for day in range(1, 29)] + ["01.01.0000"]
    _, batch = read("day,x\n" + "".join(f"{day},1\n" for day in days))
    assert [(bad.row, bad.reason) for bad in batch.bad] == [(29, "column 'day': '01.01.0000' is not a date")]
    assert len(batch.rows) == 28


@pytest.mark.parametrize("line", ["sep=;\r\n", '"sep=;"\n', "\ufeffsep=;\n"])
def test_a_line_that_tells_excel_the_delimiter_is_not_the_header(line):
    for block in (1, 6, 1 << 20):
        text = line + "x;y\r\n1,5;2\r\n2,5;3\r\n"
        source = open_source(io.BytesIO(text.encode()), format="csv", block=block)
        assert source.columns == ["x", "y"]
        batches = list(source.batches(["x"]))
        assert [x for batch in batches for x in batch.table.column("x").to_pylist()] == [1.5, 2.5]
        assert [row for batch in batches for row in batch.rows.tolist()] == [1, 2]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("header", ["city,mood", '"city","mood"', "2019,2020"])
def test_a_header_in_the_middle_is_a_bad_record_and_a_value_like_a_name_is_not(header, mark, end):
    names = header.replace('"', "").split(",")
    rows = ["1,2"] * 50 if names[0] == "2019" else ["Rome,good", f"Rome,{names[1]}", f"{names[0]},bad"] * 20
    text = end.join([mark + header, *rows, mark + header, *rows, ""])
    for block in (50, 1 << 20):
        for columns in (names, names[1:]):
            source = open_source(io.BytesIO(text.encode()), format="csv", block=block)
            batches = list(source.batches(columns))
            bad = [(one.row, one.reason) for batch in batches for one in batch.bad]
            assert bad == [(len(rows) + 1, "the header is repeated here")]
            assert sum(len(batch.rows) for batch in batches) == 2 * len(rows)
