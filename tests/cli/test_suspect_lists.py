"""What a person acts on: lists of suspects, formats of rounds, schemas, dry runs, and options from a file."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from redescend.streaming import fit_stream
from tests.cli.commands import prices, refused, run

FIT = ("fit", "prices.csv", "--target", "price")


@pytest.fixture
def records(in_a_folder):
    """Prices with an identifier that is no feature."""
    lines = prices(in_a_folder / "prices.csv").read_text().splitlines()
    named = [f"{line},{'house' if not row else f'h{row}'}" for row, line in enumerate(lines)]
    (in_a_folder / "prices.csv").write_text("\n".join(named) + "\n")
    return in_a_folder / "prices.csv"


def read(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(Path(name).read_text())))


@pytest.mark.parametrize("pipe", [False, True])
def test_all_suspects_with_identifiers_and_values_in_any_format(records, pipe):
    given = list(csv.DictReader(io.StringIO(records.read_text())))
    wrong = [row for row in range(1, 2001) if row % 20 == 0]
    for ending in ("csv", "jsonl", "parquet"):
        source, fed = ("-", records.read_text()) if pipe else ("prices.csv", None)
        arguments = ("--target", "price", "--suspects", f"s.{ending}", "--id", "house", "--top", "3")
        done = run("fit", source, *arguments, input=fed)
        assert len(done.stdout.splitlines()) == 4
    listed = read("s.csv")
    assert [json.loads(line) for line in Path("s.jsonl").read_text().splitlines()] == pq.read_table(
        "s.parquet"
    ).to_pylist()
    assert list(listed[0])[:4] == ["house", "row", "clean_probability", "q_value"]
    assert len(set(wrong) & {int(one["row"]) for one in listed}) >= 0.95 * len(wrong)
    for one in listed:
        record = given[int(one["row"]) - 1]
        assert (one["house"], one["town"]) == (record["house"], record["town"])
        assert float(one["target"]) == float(record["price"])
        assert float(one["q_value"]) <= 0.1
    assert f"{len(listed)} suspects" in done.stderr


def test_the_list_is_that_of_the_library_and_shrinks_with_its_share_of_false_alarms(records):
    run(*FIT, "--suspects", "s.csv", "--fdr", "0.3")
    _, rounds = fit_stream("prices.csv", "price", passes=None, final_look=True)
    final = rounds.run().final
    count = int(((final.q_value <= 0.3) & (final.clean_probability <= 0.5)).sum())
    assert [int(one["row"]) for one in read("s.csv")] == final.rounds.rows[:count].tolist()
    run(*FIT, "--suspects", "s.csv", "--fdr", "1e-12")
    assert len(read("s.csv")) < count


def test_rounds_are_written_in_the_format_of_their_name_with_both_looks(records):
    for name in ("r.csv", "r.jsonl", "r.parquet", "r"):
        run(*FIT, "--rounds", name, "--quiet")
    table = pq.read_table("r.parquet").to_pylist()
    assert pq.read_table("r").to_pylist() == table
    assert [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()] == table
    for one, expected in zip(read("r.csv"), table, strict=True):
        for name in ("prediction", "clean_probability", "final_prediction", "final_probability"):
            assert float(one[name]) == expected[name]


def test_score_and_predict_repeat_columns_of_the_records(records):
    run(*FIT, "--model", "m", "--quiet")
    for command in ("score", "predict"):
        shown = list(csv.DictReader(io.StringIO(run(command, "m", "prices.csv", "--keep", "house,town").stdout)))
        assert [(one["row"], one["house"]) for one in shown] == [(str(row), f"h{row}") for row in range(1, 2001)]
        assert {one["town"] for one in shown} == {"Rome", "Oslo", "Bonn"}
    few = run("score", "m", "prices.csv", "--keep", "house", "--threshold", "0.5").stdout
    assert all(one["house"] == f"h{one['row']}" for one in csv.DictReader(io.StringIO(few)))
    assert "did you mean 'house'" in refused("score", "m", "prices.csv", "--keep", "hose")


def test_types_are_shown_edited_and_enforced(records):
    assert '"size" = "number"' in run("schema", "prices.csv").stdout
    run("schema", "prices.csv", "--out", "types.toml")
    Path("nested.jsonl").write_text('{"x": 1, "tags": []}\n{"x": 2, "tags": [3]}\n')
    assert run("schema", "nested.jsonl").stdout.endswith('# "tags" is nested, and is not used.\n')
    text = Path("types.toml").read_text()
    Path("types.toml").write_text(text.replace('"size" = "number"', '"size" = "text"'))
    run(*FIT, "--schema", "types.toml", "--model", "m", "--quiet", "--features", "size")
    assert json.loads(run("inspect", "m", "--json").stdout)["columns"][0]["type"] == "text"
    Path("types.toml").write_text(text.replace('"town" = "text"', '"town" = "number"'))
    assert "'Bonn' is not a number" in refused(*FIT, "--schema", "types.toml")
    Path("types.toml").write_text(text.replace('"size" = "number"', '"size" = "real"'))
    assert "must be number, boolean, date, text. Got 'real'" in refused(*FIT, "--schema", "types.toml")
    Path("types.toml").write_text(text.replace('"size"', '"sise"'))
    assert "did you mean 'size'?" in refused(*FIT, "--schema", "types.toml")
    Path("types.toml").write_text("[columns")
    assert "is not a schema" in refused(*FIT, "--schema", "types.toml")


def test_a_dry_run_says_what_would_happen_and_writes_nothing(records):
    done = run(*FIT, "--model", "m", "--rounds", "r.csv", "--dry-run")
    assert done.stdout == ""
    for words in ("'size': number", "model: m", "rounds: r.csv", "2 times", "nothing was written"):
        assert words in done.stderr
    assert os.listdir() == ["prices.csv"]
    assert "did you mean 'price'" in refused("fit", "prices.csv", "--target", "prize", "--dry-run")


def test_options_come_from_a_file_and_the_command_line_goes_before_it(records):
    Path("redescend.toml").write_text('target = "price"\ntop = 2\nquiet = true\n[fit]\nignore = ["town"]\n')
    done = run("fit", "prices.csv", "--model", "m", "--no-report")
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 3
    assert [one["name"] for one in json.loads(run("inspect", "m", "--json").stdout)["columns"]] == ["size"]
    assert len(run("fit", "prices.csv", "--top", "4").stdout.splitlines()) == 5
    for text, words in (
        ("tpo = 2", "'tpo' in 'redescend.toml' is not an option of any command; did you mean 'top'?"),
        ("[fti]\ntop = 2", "'fti' in 'redescend.toml' is not a command; did you mean 'fit'?"),
        ("[fit]\nonce = true", "is not an option of redescend fit"),
        ("top = ", "is not TOML"),
    ):
        Path("redescend.toml").write_text(text)
        assert words in refused("fit", "prices.csv", "--target", "price")


def test_data_of_a_model_for_programs(records):
    run(*FIT, "--model", "m", "--quiet")
    data = json.loads(run("inspect", "m", "--json").stdout)
    assert (data["target"], data["task"], data["order"]) == ("price", "regression", 2)
    assert (data["records"], data["passes"]) == (2000, 2)
    assert "Learned from: 2,000 records, in 2 passes\n" in run("inspect", "m").stdout
    assert [one["name"] for one in data["columns"]] == ["size", "town"]
    assert sum(one["importance"] for one in data["columns"]) == pytest.approx(1.0)
    assert data["excluded"][0]["name"] == "house"
    run("fit", "prices.csv", "--target", "price", "--by", "town", "--model", "towns", "--quiet")
    assert json.loads(run("inspect", "towns", "--json").stdout)["keys"] == ["Bonn", "Rome", "Oslo"]
    assert json.loads(run("inspect", "towns", "--json", "--key", "Rome").stdout)["by"] is None
