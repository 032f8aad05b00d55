"""Files as people have them: columns without a name, blanks in headers, other encodings, targets that are constant."""

import datetime
import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import prices, refused, run
from tests.pages import Page


def write_table(path: Path, header: str, make, rows: int = 400) -> None:
    random = np.random.default_rng(2)
    lines = [make(row, random) for row in range(rows)]
    path.write_text("\n".join([header, *lines, ""]), encoding="utf-8")


def test_columns_without_a_name_get_one(in_a_folder):
    write_table(Path("a.csv"), ",size , price,", lambda row, random: f"{row},{random.normal()},{random.normal()},")
    done = run("fit", "a.csv", "--target", "price", "--no-report")
    assert "  'size': number\n" in done.stderr
    assert "  'unnamed 1': counts the records\n" in done.stderr
    assert "  'unnamed 4': has no value in the first 400 records\n" in done.stderr


def test_a_file_in_another_encoding_is_refused_with_what_to_do(in_a_folder):
    lines = [f"{row},{'Köln' if row % 3 else 'Bonn'},{row % 7}" for row in range(300)]
    Path("a.csv").write_bytes("\n".join(["n,town,y", *lines, ""]).encode("latin-1"))
    words = "a.csv is not UTF-8: 200 of the first 300 records have other bytes, such as row 2. "
    assert words in refused("fit", "a.csv", "--target", "y")
    told = run("fit", "a.csv", "--target", "y", "--no-report", "--encoding", "windows-1252").stderr
    assert "'town': text with 2 values: 'Bonn', 'Köln'" in told
    assert "No rejected records." in told
    # A few wrong bytes are a few bad records.
    text = "\n".join(["n,town,y", *lines, ""]).encode()
    Path("a.csv").write_bytes(text.replace("Köln".encode(), "Köln".encode("latin-1"), 5))
    assert "5 × column 'town': invalid UTF-8" in run("fit", "a.csv", "--target", "y", "--no-report", code=3).stderr


def test_reasons_that_differ_in_the_value_are_counted_as_such(in_a_folder):
    write_table(Path("a.csv"), "x,y", lambda row, random: f"{['nil', row][row > 8]},{['n.k.', row, row][row % 50 > 0]}")
    done = run("fit", "a.csv", "--target", "y", "--no-report", code=3)
    assert "9 × column 'x': 'nil' is not a number (such as row 1 of a.csv)\n" in done.stderr
    assert "7 × column 'y': 'n.k.' is not a number (such as row 51 of a.csv)\n" in done.stderr
    Path("b.csv").write_text(Path("a.csv").read_text().replace("nil", "> 5", 1))
    done = run("fit", "b.csv", "--target", "y", "--no-report", code=3)
    assert "9 × column 'x': '> 5' is not a number (such as row 1 of b.csv; values differ)\n" in done.stderr


def test_a_constant_target_has_no_suspects(in_a_folder):
    write_table(Path("a.csv"), "x,z,y", lambda row, random: f"{random.normal()},{random.normal()},5")
    done = run("fit", "a.csv", "--target", "y", "--suspects", "s.csv")
    assert "'y': is always 5 in the first 400 records, so that there is nothing to predict" in done.stderr
    assert "0 suspects (0 %)." in done.stderr
    assert "order of the records matters" not in done.stderr
    assert len(Path("s.csv").read_text().splitlines()) == 1
    assert len(done.stdout.splitlines()) == 1


def test_a_number_with_few_values_may_be_a_label(in_a_folder):
    write_table(Path("a.csv"), "x,y", lambda row, random: f"{random.normal()},{row % 3}")
    words = "'y': has only the values 0, 1 and 2 in the first 400 records; if they are labels, try classification"
    assert words in run("fit", "a.csv", "--target", "y", "--no-report").stderr
    assert words not in run("fit", "a.csv", "--target", "y", "--task", "classification", "--no-report").stderr


def test_a_file_in_time_order_gives_the_model_of_its_last_records_and_says_so(in_a_folder):
    start = datetime.date(2020, 1, 1)
    days = [start + datetime.timedelta(days=row) for row in range(400)]
    write_table(Path("a.csv"), "day,x,y", lambda row, random: f"{days[row]},{random.normal()},{row + random.normal()}")
    words = "The records are in time order, so the final model is that of the last ones"
    assert words in run("fit", "a.csv", "--target", "y", "--no-report").stderr
    for option in (["--shuffle"], ["--passes", "1"]):
        assert words not in run("fit", "a.csv", "--target", "y", "--no-report", *option).stderr


def test_a_pipe_that_is_sorted_by_its_label_is_learned_from(in_a_folder):
    random = np.random.default_rng(7)
    kinds = ["ham"] * 1500 + ["spam"] * 900
    lines = [f"{random.normal() + 3 * (kind == 'spam')},{random.normal()},{kind}" for kind in kinds]
    text = "\n".join(["x,z,kind", *lines, ""])
    done = run("fit", "-", "--target", "kind", "--model", "m", input=text)
    assert "Task: classification of 'kind' with 1 label\n" in done.stderr
    assert "'kind': is always 'ham' in the first 1,000 records; other labels are added when they appear" in done.stderr
    assert "'spam' (from row 1,501 on; 900 records)." in done.stderr
    only = "\n".join(text.split("\n")[:1400]) + "\n"
    run("fit", "-", "--target", "kind", "--linear", "--model", "one", input=only)
    run("fit", "-", "--target", "kind", "--model", "trees", input=only)
    Path("some.csv").write_text(only)
    for command in (["inspect", "one"], ["predict", "one", "some.csv"], ["score", "one", "some.csv"]):
        run(*command)
    run("explain", "one", "some.csv", "--row", "5")
    assert "needs at least two labels" in refused("fit", "some.csv", "--target", "kind")
    pytest.importorskip("onnx")
    assert "it has seen only one label" in refused("export", "one", "--onnx", "one.onnx")


@pytest.mark.parametrize("missing", ["n/a", "#N/A", "<NA>", ".", "--"])
def test_usual_marks_of_missing_values_leave_a_column_a_number(in_a_folder, missing):
    def make(row, random):
        return f"{missing if row % 9 == 4 else random.normal()},{random.normal()}"

    write_table(Path("a.csv"), "x,y", make)
    done = run("fit", "a.csv", "--target", "y", "--no-report")
    assert "'x': number; with a missing-value indicator" in done.stderr


def test_whole_numbers_are_printed_as_such(in_a_folder):
    write_table(Path("a.csv"), "year,y", lambda row, random: f"{1990 + row % 30},{row % 4}")
    header, *lines = run("fit", "a.csv", "--target", "y", "--task", "regression", "--quiet").stdout.splitlines()
    columns = header.split(",")
    for line in lines:
        values = dict(zip(columns, line.split(","), strict=True))
        assert values["year"].isdigit()
        assert values["target"].isdigit()


def test_the_chart_of_the_report_shows_the_suspects_of_the_list(in_a_folder):
    def make(row, random):
        return f"{(x := random.normal())},{3 * x + 0.1 * random.standard_t(2) + 40 * (row in (100, 300))}"

    write_table(Path("a.csv"), "x,y", make, rows=1024)
    done = run("fit", "a.csv", "--target", "y", "--model", "m", "--suspects", "s.csv")
    listed = [int(line.split(",")[0]) for line in Path("s.csv").read_text().splitlines()[1:]]
    assert {101, 301} <= set(listed)
    assert f"{len(listed)} suspects" in done.stderr
    page = Path("m.report.html").read_text(encoding="utf-8")
    chart = page[page.index('id="weights"') : page.index('id="losses"')]
    # A bar has 8 rows, and a tip for each that has suspects.
    bins = {(row - 1) // 8 for row in listed}
    assert chart.count("<title>rows ") == len(bins)
    assert "suspects in the list" in Page(page).words
    prices(Path("p.csv"))
    run("fit", "p.csv", "--target", "price", "--model", "g", "--transform", "huber:1.0")
    assert "all doubtful records are suspects" in Page(Path("g.report.html").read_text(encoding="utf-8")).words


def test_a_model_does_not_read_numbers_in_another_unit(in_a_folder):
    write_table(Path("a.csv"), "load,time", lambda row, random: f"{row % 50 + 1} kg,{3 * (row % 50) + random.normal()}")
    assert "  'load': number, in kg\n" in run("fit", "a.csv", "--target", "time", "--model", "m", "--no-report").stderr
    assert "'load': number, in kg" in run("inspect", "m").stdout
    columns = json.loads(run("inspect", "m", "--json").stdout)["columns"]
    assert columns[0]["unit"] == "kg"
    said = "The column 'load' of b.csv is in g, but the model has learned from numbers in kg; convert them."
    Path("b.csv").write_text("load,time\n2000 g,6\n3000 g,9\n", encoding="utf-8")
    assert refused("predict", "m", "b.csv") == said
    assert refused("score", "m", "b.csv") == said
    assert refused("explain", "m", "b.csv", "--row", "1") == said
    for same in ("2 KG", "2kg", "2"):
        Path("b.csv").write_text(f"load\n{same}\n", encoding="utf-8")
        assert run("predict", "m", "b.csv").stdout.count("\n") == 2
    assert "regression of the number 'load', in kg" in run("fit", "a.csv", "--target", "load", "--no-report").stderr


def test_a_model_reads_the_notations_that_it_has_learned_from(in_a_folder):
    """A short file may not show whether 01/02/2020 is in January, or what the comma in 1,234 means."""
    days = [f"{row % 28 + 1:02}/{row // 28 % 12 + 1:02}/20{row // 336 + 10}" for row in range(400)]
    sizes = [f"{(row * 37) % 900 + 100}.{row % 1000:03},5" for row in range(400)]
    lines = [f"{day};{size};{row}" for row, (day, size) in enumerate(zip(days, sizes, strict=True))]
    Path("a.csv").write_text("\n".join(["day;size;y", *lines, ""]))
    told = run("fit", "a.csv", "--target", "y", "--model", "m", "--no-report").stderr
    assert "'day': date, read as day/month/year, in days since 1970-01-01" in told
    whole = run("predict", "m", "a.csv").stdout.splitlines()
    short = [line.rpartition(";")[0] for line in lines[29:35]]  # days and months of at most 12
    Path("b.csv").write_text("\n".join(["day;size", *short, ""]))
    found = run("predict", "m", "b.csv").stdout.splitlines()
    assert [line.split(",")[1] for line in found[1:]] == [line.split(",")[1] for line in whole[30:36]]


def test_a_model_keeps_its_notations_if_the_first_records_leave_them_open(in_a_folder):
    def make(row, random):
        return f"{row % 28 + 1:02}/{row // 28 % 12 + 1:02}/2020\t{row % 9 + 1},{row % 900 + 100}.50\t{row % 7}"

    write_table(Path("a.tsv"), "when\tprice\ty", make)
    told = run("fit", "a.tsv", "--target", "y", "--model", "m", "--no-report", "--task", "regression").stderr
    assert "'when': date, read as day/month/year" in told
    lines = ["when\tprice", *["\t12"] * 1500, *["02/03/2020\t1,234.50"] * 50]
    Path("b.tsv").write_text("\n".join([*lines, ""]))
    found = run("predict", "m", "b.tsv").stdout.splitlines()
    Path("c.tsv").write_text("when\tprice\n2020-03-02\t1234.5\n")
    # The number of the row differs.
    assert found[-1].split(",")[1:] == run("predict", "m", "c.tsv").stdout.splitlines()[1].split(",")[1:]


def test_a_column_with_several_units_is_named(in_a_folder):
    loads = ("{0} kg", "{0}500 g")
    write_table(Path("a.csv"), "load,y", lambda row, random: f"{loads[row % 3 > 1].format(row % 50)},{random.normal()}")
    said = "'load': has numbers with different units, such as 'kg' and 'g', which are read as text; convert them"
    assert said in run("fit", "a.csv", "--target", "y", "--no-report").stderr


def test_records_in_another_unit_do_not_hide_those_in_the_unit_of_the_model(in_a_folder):
    write_table(Path("a.csv"), "load,time", lambda row, random: f"{row % 50 + 1} kg,{3 * (row % 50) + random.normal()}")
    run("fit", "a.csv", "--target", "time", "--model", "m", "--no-report", "--quiet")
    Path("b.csv").write_text("load\n2 kg\n3 kg\n")
    Path("c.csv").write_text("load\n4000 g\n5000 g\n")
    done = run("predict", "m", "b.csv", "c.csv", code=3)
    assert done.stdout == run("predict", "m", "b.csv").stdout
    assert "2 × column 'load': '4000 g' is not a number in kg (such as row 3 of c.csv; values differ)" in done.stderr
