"""`redescend predict`, `score` and `inspect`: what the model says, of every record or in words."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import redescend as rd
from redescend.cli import app
from redescend.streaming.report import describe
from tests.cli.commands import BAD, prices, refused, run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model of numbers, one of labels, and one for each town."""
    folder = tmp_path_factory.mktemp("models")
    source = prices(folder / "prices.csv")
    for name, settings in {"m": ["price"], "labels": ["town"], "many": ["price", "--by", "town"]}.items():
        run("fit", source, "--model", folder / name, "--no-report", "--quiet", "--target", *settings)
    return folder


@pytest.fixture
def models(made, in_a_folder):
    """These models, and new records."""
    shutil.copytree(made, in_a_folder, dirs_exist_ok=True)
    return prices(in_a_folder / "new.csv", 300)


def read_exactly(path: Path) -> pd.DataFrame:
    """A table with the numbers of the file: by default, older versions of pandas read some with another last bit."""
    exact = {"float_precision": "round_trip"} if int(pd.__version__.split(".")[0]) < 3 else {}  # the default since 3.0
    return pd.read_csv(path, **exact)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_predictions_are_those_of_the_model(models):
    table = read_exactly(models)
    shown = rows_of(run("predict", "m", "new.csv").stdout)
    assert [int(one["row"]) for one in shown] == list(range(1, 301))
    assert [float(one["prediction"]) for one in shown] == rd.load("m").predict(table).tolist()
    labels = rd.load("labels")
    shown = rows_of(run("predict", "labels", "new.csv").stdout)
    assert [one["prediction"] for one in shown] == labels.predict(table).tolist()
    assert [float(one["probability"]) for one in shown] == labels.predict_proba(table).max(axis=1).tolist()


def test_scores_are_those_of_the_model_and_can_be_cut(models):
    table = read_exactly(models)
    expected = rd.load("m").clean_probability(table).tolist()
    done = run("score", "m", "new.csv")
    shown = rows_of(done.stdout)
    assert done.stderr == ""
    assert list(shown[0]) == ["row", "clean_probability", "target", "prediction", "loss"]
    assert [float(one["clean_probability"]) for one in shown] == expected
    assert [float(one["loss"]) for one in shown] == pytest.approx(
        [(float(one["target"]) - float(one["prediction"])) ** 2 for one in shown]
    )
    few = rows_of(run("score", "m", "new.csv", "--threshold", "0.5").stdout)
    assert [int(one["row"]) for one in few] == [row for row, weight in enumerate(expected, 1) if weight < 0.5]
    assert {20 * place for place in range(1, 16)} <= {int(one["row"]) for one in few}


def test_every_form_of_output_says_the_same(models):
    shown = rows_of(run("score", "labels", "new.csv").stdout)
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        assert run("score", "labels", "new.csv", "--out", name).stdout == ""
    assert rows_of(Path("out.csv").read_text()) == shown
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert lines == pq.read_table("out.parquet").to_pylist()
    # Small numbers are written in several ways.
    numbers = {"row": int, "clean_probability": float, "loss": float}
    assert lines == [{name: numbers.get(name, str)(value) for name, value in line.items()} for line in shown]


@pytest.mark.parametrize("command", ["predict", "score"])
def test_a_record_that_cannot_be_used_is_reported(models, in_a_folder, command):
    prices(in_a_folder / "new.csv", bad=BAD)
    # The last of them has no target, which a prediction does not need.
    bad = {row: record for row, record in BAD.items() if command == "score" or row != 1501}
    done = run(command, "m", "new.csv", code=3)
    assert len(rows_of(done.stdout)) == 2000 - len(bad)
    assert f"{len(bad)} records of 2,000 could not be used, quarantined in new.quarantine.jsonl" in done.stderr
    aside = [json.loads(line) for line in Path("new.quarantine.jsonl").read_text().splitlines()]
    assert {one["row"]: one["record"] for one in aside} == bad
    skipped = run(command, "m", "new.csv", "--on-bad", "skip", "--out", "out.csv", code=3)
    assert "skipped" in skipped.stderr
    assert not Path("out.quarantine.jsonl").exists()
    Path("out.csv").unlink()
    assert "Row 7 of 'new.csv'" in refused(command, "m", "new.csv", "--on-bad", "fail", "--out", "out.csv", code=4)
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["predict", "nothing", "new.csv"], "no model file nothing"),
        (["predict", "new.csv", "new.csv"], "'new.csv' cannot be loaded"),
        (["predict", ".", "new.csv"], "it is a folder"),
        (["predict", "learner", "new.csv"], "contains a OGD, not a model of a stream"),
        (["predict", "m", "no.csv"], "no file no.csv"),
        (["predict", "m", "other.csv"], "'town'"),
        (["score", "m", "other.csv"], "'town'"),
        (["predict", "m", "new.csv", "--out", "out.xls"], ".parquet"),
        (["predict", "m", "new.csv", "--out", "no/out.csv"], "no folder"),
        (["predict", "m", "new.csv", "--out", "new.csv"], "cannot be both the output and the input"),
        (["predict", "m", ".", "--out", "out.csv", "--on-bad", "skip"], "every file in the folder '.' is read"),
        (["score", "m", "new.csv", "--quarantine", "m"], "cannot be both the quarantine and the input"),
        (["score", "m", "new.csv", "--quarantine", "a", "--on-bad", "skip"], "leave --quarantine out"),
        (["predict", "many", "other.csv"], "'town'"),
        (["inspect", "m", "--key", "Rome"], "leave --key out"),
        (["inspect", "many", "--key", "Paris"], "no model of 'Paris'"),
        (["inspect", "nothing"], "no model file nothing"),
        (["inspect", "new.csv"], "'new.csv' cannot be loaded"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_a_mistake_gets_a_sentence(models, arguments, words):
    rd.save(rd.OGD(2, loss=rd.losses.Squared(), step=rd.steps.Constant(0.1)), "learner")
    Path("other.csv").write_text("size,price\n1,2\n")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert words in refused(*arguments)
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize("command", ["predict", "inspect"])
def test_a_terminal_is_not_moved_by_labels(in_a_folder, monkeypatch, capsys, command):
    lines = prices(in_a_folder / "new.csv", 300).read_text().replace("Rome", "Ro\x1b]0;me")
    Path("new.csv").write_text(lines)
    run("fit", "new.csv", "--target", "town", "--model", "m", "--no-report", "--quiet")
    assert "Ro\x1b]0;me" in run("predict", "m", "new.csv").stdout
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert app([command, "m", *(["new.csv"] if command == "predict" else [])], standalone_mode=False) in (None, 0)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "Ro\N{REPLACEMENT CHARACTER}]0;me" in out or r"Ro\x1b]0;me" in out


def test_a_model_in_words(models):
    facts = describe.inspect("m")
    assert json.loads(run("inspect", "m", "--json").stdout) == describe.inspect_as_data("m")
    said = run("inspect", "m").stdout.splitlines()
    assert f"Task: {facts['Task']}" in said
    at = said.index("Columns:")
    assert said[at + 1 : at + 3] == [f"  {line}" for line in facts["Columns"]]


def test_the_models_of_many_keys_answer_together_and_one_by_one(models):
    table = read_exactly(models)
    store = rd.load("many")
    shown = rows_of(run("predict", "many", "new.csv").stdout)
    assert [float(one["prediction"]) for one in shown] == store.predict(table).tolist()
    shown = rows_of(run("score", "many", "new.csv").stdout)
    assert [float(one["clean_probability"]) for one in shown] == store.clean_probability(table).tolist()
    Path("paris.csv").write_text("size,town\n1,Rome\n1,Paris\n")
    done = run("predict", "many", "paris.csv", code=3)
    assert [one["row"] for one in rows_of(done.stdout)] == ["1"]
    assert json.loads(Path("paris.quarantine.jsonl").read_text())["record"] == "1,Paris"
    said = run("inspect", "many").stdout
    assert "3 models, one per 'town': " in said
    for town in ("Rome", "Oslo", "Bonn"):
        assert f"'{town}'" in said
        of_one = json.loads(run("inspect", "many", "--key", town, "--json").stdout)
        assert of_one["records"] == store[town].records


def test_intervals_are_those_of_the_model(models):
    table = read_exactly(models)
    shown = rows_of(run("predict", "m", "new.csv", "--interval", "0.8").stdout)
    assert list(shown[0]) == ["row", "prediction", "low", "high"]
    low, high = rd.load("m").predict_interval(table, level=0.8)
    assert [float(one["low"]) for one in shown] == low.tolist()
    assert [float(one["high"]) for one in shown] == high.tolist()
    assert "Intervals need a model of numbers" in refused("predict", "labels", "new.csv", "--interval", "0.8")
    assert "--interval must be a number between 0 and 1" in refused("predict", "m", "new.csv", "--interval", "1")


@pytest.mark.parametrize("drifts", [False, True])
def test_score_judges_by_the_final_model_and_says_so_where_that_matters(tmp_path, monkeypatch, drifts):
    monkeypatch.chdir(tmp_path)
    random, rows = np.random.default_rng(4), 3000
    x = random.normal(size=rows)
    level = np.linspace(0.0, 60.0, rows) if drifts else 0.0
    y = level + 2.0 * x + 0.5 * random.normal(size=rows)
    wrong = np.arange(70, rows, 100)
    y[wrong] += 30.0
    pq.write_table(pa.table({"x": x, "y": y}), "t.parquet")
    run("fit", "t.parquet", "--target", "y", "--passes", 1, "--model", "m", "--rounds", "r.parquet", "--quiet")
    scored = run("score", "m", "t.parquet", "--out", "s.parquet")
    final = pq.read_table("r.parquet")["final_probability"].to_numpy() < 0.5
    score = pq.read_table("s.parquet")["clean_probability"].to_numpy() < 0.5
    np.testing.assert_array_equal(np.flatnonzero(final), wrong)
    if drifts:
        assert score.mean() > 0.2
        assert f"{score.sum():,} of 3,000 records are less likely clean than not" in scored.stderr
    else:
        np.testing.assert_array_equal(score, final)
        assert "less likely" not in scored.stderr
