"""`redescend fit`: the same model as the library's, the least believed records, and nothing lost."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import redescend as rd
from redescend.cli import app
from redescend.streaming import StreamModel, fit_stream
from tests.cli.commands import BAD, RUNNER, prices, refused, run

FIT = ("fit", "prices.csv", "--target", "price")


@pytest.fixture
def records(in_a_folder):
    return prices(in_a_folder / "prices.csv")


def names(folder: Path = Path()) -> list[str]:
    return sorted(os.listdir(folder))


def test_the_model_of_the_library_and_the_least_believed_records(records):
    done = run(*FIT, "--model", "m.safetensors", "--rounds", "r.parquet")
    model, rounds = fit_stream(records, "price", passes=2, final_look=True)
    played = list(rounds.run().final.rounds.records(model.schema))
    clean = rounds.final.clean_probability
    rd.save(model, "expected")
    assert Path("m.safetensors").read_bytes() == Path("expected").read_bytes()
    assert pq.read_table("r.parquet").num_rows == 2000
    assert names() == ["expected", "m.report.html", "m.safetensors", "prices.csv", "r.parquet"]

    shown = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(shown[0]) == ["row", "file", "clean_probability", "prediction", "target", "loss", "size", "town"]
    assert [int(one["row"]) for one in shown] == [one.row for one in played[:10]]
    given = list(csv.DictReader(io.StringIO(records.read_text())))
    for one, expected, probability in zip(shown, played, clean, strict=False):
        assert float(one["clean_probability"]) == probability
        assert float(one["prediction"]) == expected.prediction
        record = given[expected.row - 1]
        assert float(one["target"]) == float(record["price"])
        assert (float(one["size"]), one["town"]) == (float(record["size"]), record["town"])
    for words in ("'town': text with 3 values", "Learned from 2,000 of 2,000 records.", "Report: m.report.html"):
        assert words in done.stderr


def test_a_quiet_run_without_a_model_leaves_nothing_and_says_nothing(records):
    assert run(*FIT, "--quiet").stderr == ""
    assert names() == ["prices.csv"]
    assert "--model" in run(*FIT).stderr


@pytest.mark.parametrize(
    ("how", "code", "said"), [("quarantine", 3, "3 records rejected"), ("skip", 3, "skipped"), ("fail", 4, "Row 7 of")]
)
def test_what_cannot_be_used_is_set_aside_counted_or_the_end(in_a_folder, how, code, said):
    prices(in_a_folder / "prices.csv", bad=BAD)
    done = run(*FIT, "--model", "m", "--on-bad", how, code=code)
    assert said in done.stderr
    assert Path("m").exists() == (how != "fail")
    assert Path("m.quarantine.jsonl").exists() == (how == "quarantine")
    if how == "quarantine":
        aside = [json.loads(line) for line in Path("m.quarantine.jsonl").read_text().splitlines()]
        assert {one["row"]: one["record"] for one in aside} == BAD
        assert "1 × column 'size': 'x' is not a number (such as row 1500 of prices.csv)" in done.stderr
    if how == "fail":
        assert done.stdout == ""
        assert "--on-bad quarantine" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "no.csv", "--target", "price"], "no file no.csv"),
        (["fit", "no*.csv", "--target", "price"], "No file matches no*.csv"),
        (["fit", "prices.csv", "--target", "Prize"], "did you mean 'price'?"),
        (["fit", "prices.csv", "--target", "weather"], "there are 'size', 'town', 'price'"),
        ([*FIT, "--features", "size,price"], "'price' cannot be"),
        ([*FIT, "--features", "size", "--features", "twon"], "did you mean 'town'?"),
        ([*FIT, "--ignore", "size,town"], "No column is left"),
        ([*FIT, "--transform", "hubert:1"], "--transform must be one of identity, learn, huber, "),
        ([*FIT, "--transform", "huber"], "write it as huber:1.0, for example."),
        ([*FIT, "--transform", "learn:a,b"], "write it as learn:0.1,0.01, for example."),
        ([*FIT, "--transform", "huber:-1"], "Got -1.0"),
        ([*FIT, "--transform", "huber:1", "--order", "2"], "order"),
        ([*FIT, "--loss", "hinge"], "Hinge"),
        ([*FIT, "--loss", "pinball:0.5,0,0"], "write it as pinball:0.9, for example."),
        ([*FIT, "--model", "prices.csv"], "'prices.csv' cannot be both the model and the input"),
        ([*FIT, "--model", "a", "--rounds", "./a"], "cannot be both the rounds and the model"),
        ([*FIT, "--model", "a", "--checkpoint", ".", "--report", "lock"], "the report and a file of the checkpoint"),
        (["fit", ".", "--target", "price", "--on-bad", "skip", "--model", "a"], "every file in the folder '.' is read"),
        (["fit", ".", "--target", "price"], "cannot be the quarantine because every file in"),
        ([*FIT, "--model", "nowhere/a"], "no folder"),
        ([*FIT, "--model", "."], "it is a folder"),
        ([*FIT, "--report", "a", "--no-report"], "--no-report"),
        ([*FIT, "--quarantine", "a", "--on-bad", "skip"], "leave --quarantine out"),
        ([*FIT, "--resume"], "name the folder of its checkpoint"),
        ([*FIT, "--format", "word"], "--format must be one of csv"),
        ([*FIT, "--decimal", "x"], "--decimal must be '.' or ','. Got 'x'"),
        ([*FIT, "--lag-columns", "size"], "--lag-columns needs --lags"),
        (["fit", "empty.csv", "--target", "price"], "empty.csv"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_a_mistake_gets_a_sentence_and_writes_nothing(records, arguments, words):
    Path("empty.csv").write_text("")
    before = {name: Path(name).read_bytes() for name in names()}
    assert words in refused(*arguments)
    assert {name: Path(name).read_bytes() for name in names()} == before


def test_the_quarantine_is_called_after_the_source_and_that_of_another_run_stays(in_a_folder):
    prices(in_a_folder / "q1.csv", bad=BAD)
    prices(in_a_folder / "prices.csv")
    assert "Quarantine: q1.quarantine.jsonl" in run("fit", "q1.csv", "--target", "price", code=3).stderr
    aside = Path("q1.quarantine.jsonl").read_bytes()
    prices(in_a_folder / "q1.csv")
    for source in ("q1.csv", "prices.csv"):
        assert "Quarantine:" not in run("fit", source, "--target", "price").stderr
    assert names() == ["prices.csv", "q1.csv", "q1.quarantine.jsonl"]
    assert Path("q1.quarantine.jsonl").read_bytes() == aside
    text = Path("q1.csv").read_text() + "1,2\n"
    done = RUNNER.invoke(app, ["fit", "-", "--target", "price", "--quiet"], input=text)
    assert done.exit_code == 3
    assert json.loads(Path("stdin.quarantine.jsonl").read_text())["record"] == "1,2"


@pytest.mark.parametrize("command", [("fit", "prices.csv", "--target", "price"), ("score", "m", "prices.csv")])
def test_in_a_folder_that_cannot_be_written_rejected_records_need_another_place(in_a_folder, monkeypatch, command):
    prices(in_a_folder / "prices.csv", bad=BAD)
    run("fit", "prices.csv", "--target", "price", "--model", "m", "--no-report", code=3)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert "name a file elsewhere with --quarantine, or use --on-bad skip" in refused(*command)
    run(*command, "--on-bad", "skip", code=3)


def test_a_file_whose_name_is_not_utf_8_is_a_file_like_others(in_a_folder):
    file = os.fsdecode(b"a\xff.csv")
    prices(in_a_folder / file, 300, bad={7: "1,2"})
    kept = ("--model", "m", "--checkpoint", "run", "--report", "r.html")
    done = run("fit", file, "--target", "price", *kept, code=3)
    assert {one["file"] for one in csv.DictReader(io.StringIO(done.stdout))} == {r"a\udcff.csv"}
    assert "such as row 7 of a\N{REPLACEMENT CHARACTER}.csv" in done.stderr
    assert r"a\udcff.csv" in Path("r.html").read_text(encoding="utf-8")
    assert json.loads(Path("m.quarantine.jsonl").read_text())["file"] == file
    assert run("fit", file, "--target", "price", *kept, "--resume", code=3).stdout == done.stdout


def test_a_terminal_is_not_moved_by_what_the_data_hold(in_a_folder, monkeypatch, capsys):
    odd = "\x1b]0;moved\x07"
    text = prices(in_a_folder / "prices.csv", 300, bad={7: f"1,2,{odd}"}).read_text()
    Path(f"o{odd}.csv").write_text(text.replace("size", f"si{odd}ze").replace("Rome", f"Ro\x9b{odd}me"))
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    arguments = ["fit", f"o{odd}.csv", "--target", "price", "--model", f"m{odd}", "--no-report"]
    assert app(arguments, standalone_mode=False) == 3
    shown = capsys.readouterr()
    for said in (shown.out, shown.err):
        assert not {"\x1b", "\x07", "\x9b"} & set(said)
        assert "]0;moved" in said


def test_a_narrow_terminal_shows_fewer_columns_but_whole_numbers(in_a_folder, monkeypatch, capsys):
    names = [f"a_long_name_{place}" for place in range(5)]
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 5)).round(3)
    y = (1234567 + 1000 * X.sum(axis=1)).round(3)
    y[7] = 98765432.0
    lines = [",".join([*names, "price"]), *(",".join(map(str, [*x, t])) for x, t in zip(X, y, strict=True))]
    Path("long.csv").write_text("\n".join(lines))
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    app(["fit", "long.csv", "--target", "price", "--model", "m", "--no-report"], standalone_mode=False)
    table = capsys.readouterr().out
    first = next(line for line in table.splitlines() if "98765432" in line)
    assert first.split()[1] == "8"  # the row, behind the frame
    assert "< 0.001" in first  # as in the report, not 3.36e-08
    assert "\N{HORIZONTAL ELLIPSIS}" not in table
    assert 1 <= sum(name in table for name in names) < 5


def test_what_should_not_happen_is_one_sentence_too(records, monkeypatch):
    def broken(*arguments, **settings):
        raise ZeroDivisionError("no such luck")

    monkeypatch.setattr("redescend.streaming.fit.start_run", broken)
    said = refused(*FIT, code=1)
    assert "ZeroDivisionError: no such luck" in said
    assert "--debug" in said
    assert "Traceback" in run(*FIT, "--debug", code=1).stderr


def test_a_run_that_stopped_goes_on_and_a_finished_one_does_nothing(in_a_folder):
    prices(in_a_folder / "prices.csv", bad={1500: "x,Rome,3"})
    kept = ("--on-bad", "fail", "--checkpoint", "run", "--every", "400")
    assert "Row 1500" in run(*FIT, *kept, "--model", "m", "--rounds", "r", code=4).stderr
    assert names() == ["prices.csv", "run"]
    assert "contains a checkpoint" in refused(*FIT, *kept, "--model", "m", "--rounds", "r")
    prices(in_a_folder / "prices.csv")
    done = run(*FIT, *kept, "--model", "m", "--rounds", "r", "--resume")
    assert "Resumed after row 1,200." in done.stderr
    run(*FIT, "--on-bad", "fail", "--model", "alone", "--rounds", "alone_r")
    for one, other in (("m", "alone"), ("r", "alone_r"), ("m.report.html", "alone.report.html")):
        assert Path(one).read_bytes() == Path(other).read_bytes()

    Path("m").unlink()
    again = run(*FIT, *kept, "--model", "m", "--rounds", "r", "--resume")
    assert "was already finished" in again.stderr
    assert again.stdout == done.stdout
    assert not Path("m").exists()


def test_columns_labels_losses_and_formats_are_as_asked(in_a_folder):
    prices(in_a_folder / "prices.csv")
    lines = (in_a_folder / "prices.csv").read_text().splitlines()
    (in_a_folder / "bare").write_text("\n".join(lines[1:]))
    run("fit", "bare", "--no-header", "--format", "csv", "--target", "column3", "--features", "column1", "--model", "a")
    schema = rd.load("a").schema
    assert (schema.target, schema.inputs) == ("column3", ["column1"])
    settings = ("--labels", "Oslo, Rome", "--labels", "Bonn,Bern", "--loss", "hinge", "--transform", "learn:0.1,0.01")
    run("fit", "prices.csv", "--target", "town", "--ignore", "size", *settings, "--model", "b", "--no-report")
    model = rd.load("b")
    assert isinstance(model, StreamModel)
    assert model.schema.labels == ["Oslo", "Rome", "Bonn", "Bern"]
    assert model.schema.inputs == ["price"]
    assert model.config.transform == rd.transforms.Learn(0.1, 0.01)
    assert model.config.loss == rd.losses.Hinge()
    assert not Path("b.report.html").exists()


def test_many_models_in_one_pass_on_any_number_of_threads(records):
    stdout = run(*FIT, "--by", "town", "--model", "one").stdout
    assert run(*FIT, "--by", "town", "--model", "two", "--jobs", "2", "--quiet").stdout == stdout
    assert Path("one").read_bytes() == Path("two").read_bytes()
    assert Path("one.report.html").read_bytes() == Path("two.report.html").read_bytes()
    assert sorted(rd.load("one").keys) == ["Bonn", "Oslo", "Rome"]
    assert next(csv.DictReader(io.StringIO(stdout)))["town"] in rd.load("one")
    assert "name the column of keys with --by" in refused(*FIT, "--jobs", "2")


def test_several_files_are_one_stream(in_a_folder):
    lines = prices(in_a_folder / "prices.csv").read_text().splitlines()
    for name, part in (("a.csv", lines[1:900]), ("b.csv", lines[900:])):
        (in_a_folder / name).write_text("\n".join([lines[0], *part]))
    whole = run(*FIT, "--model", "whole", "--quiet").stdout
    parts = run("fit", "a.csv", "b.csv", "--target", "price", "--model", "parts", "--quiet").stdout
    assert Path("whole").read_bytes() == Path("parts").read_bytes()
    rows, files = zip(*((int(one["row"]), one["file"]) for one in csv.DictReader(io.StringIO(parts))), strict=True)
    assert list(rows) == [int(one["row"]) for one in csv.DictReader(io.StringIO(whole))]
    assert list(files) == ["a.csv" if row < 900 else "b.csv" for row in rows]


def test_later_labels_of_a_pipe_are_added_unless_labels_are_given(in_a_folder):
    labels = ["yes, please" if row % 2 else "no" for row in range(1200)] + ["maybe"] * 3 + ["mybe"]
    text = "x,y\n" + "".join(f'{row % 7},"{label}"\n' for row, label in enumerate(labels))
    done = run("fit", "-", "--target", "y", "--model", "m", input=text)
    added = "'mybe' (from row 1,204 on; 1 record, perhaps mistyped), 'maybe' (from row 1,201 on; 3 records)"
    assert f"Labels added after the first records, the rarest first: {added}.\n" in done.stderr
    assert "Labels added later: 'maybe' (row 1,201), 'mybe' (row 1,204)\n" in run("inspect", "m").stdout
    done = run("fit", "-", "--target", "y", "--labels", 'no,"yes, please",mybe', input=text, code=3)
    assert "3 × the target 'y': 'maybe' is none of the 3 labels (such as row 1201 of standard input)" in done.stderr
    assert 'To use other labels, too, add them to --labels no,"yes, please",mybe\n' in done.stderr
    Path("late.csv").write_text(text)
    run("fit", "late.csv", "--target", "y")


def test_a_terminal_shows_life_at_once_and_whole_lines(records, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    app([*map(str, FIT), "--no-report"], standalone_mode=False)
    shown = capsys.readouterr().err
    assert shown.startswith("Starting …\r")
    lines = shown.splitlines()
    columns = lines[lines.index("Columns:") + 1 :][:2]
    assert all(len(line) <= 40 for line in columns)
    assert any(line.endswith("…") for line in columns)


def test_rejected_records_are_followed_by_their_reasons(in_a_folder):
    prices(in_a_folder / "prices.csv", 300, bad={7: "1,Rome,a lot"})
    lines = run(*FIT, "--no-report", code=3).stderr.splitlines()
    place = lines.index("1 record rejected and quarantined.")
    assert lines[place + 1].startswith("  1 × column 'price': 'a lot' is not a number")
