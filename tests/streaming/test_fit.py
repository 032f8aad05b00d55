"""A run: every record is learned from, quarantined or skipped, and an interrupted run resumes where it stopped."""

import io
import itertools
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import redescend as rd
from redescend.errors import DataError, ParameterError
from redescend.sources import open_source
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.fit import fit_stream
from redescend.streaming.model import StreamModel

BAD = {5: "1,2", 700: "1,b,3", 701: ",,", 1203: "1,inf,2", 2999: "1,1,1e308"}
"""By row: too few values, no number, no target, not finite, too large."""

ROWS = 3000


def lines():
    random = np.random.default_rng(11)
    for row in range(1, ROWS + 1):
        a, b = random.normal(size=2)
        yield BAD.get(row, f"{a},{b},{2 * a - b + 0.1 * random.normal() + 50 * (row % 20 == 0)}")


TEXT = "a,b,y\n" + "\n".join(lines()) + "\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "stream.csv"
    path.write_text(TEXT)
    return path


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".parquet", ".jsonl")}


def outputs(folder):
    folder.mkdir(exist_ok=True)
    return {"rounds": folder / "rounds.parquet", "quarantine": folder / "bad.jsonl"}


def test_every_record_is_learned_from_or_set_aside_with_row_and_reason(source, tmp_path):
    watched = []
    model, rounds = fit_stream(
        source, "y", **outputs(tmp_path), watch=lambda one, batch: watched.append((one, len(batch)))
    )
    assert model.records == 0
    played = list(rounds)
    assert rounds.counts == (ROWS, ROWS - len(BAD), len(BAD), 0)
    assert rounds.finished
    assert {one for one, _ in watched} == {rounds}
    assert sum(count for _, count in watched) == len(played)

    alone = open_source(source)
    expected = StreamModel(Schema.infer(alone.sample, alone.kinds, "y"), features="auto")
    one_by_one = [expected.learn(batch) for batch in alone.batches(expected.schema.columns, most=1)]
    expected_rounds = [learned.rounds.record(0, expected.schema) for learned in one_by_one if len(learned.rounds)]
    assert played == expected_rounds
    assert [one.row for one in played] == [row for row in range(1, ROWS + 1) if row not in BAD]
    columns = parquet.read_table(tmp_path / "rounds.parquet").to_pylist()
    names = ["row", "target", "prediction", "loss", "weight", "clean_probability", "low", "high"]
    assert list(columns[0]) == [*names[:6], "clean_log_odds", *names[6:], "scale", "stuck", "suspect"]
    assert [{name: row[name] for name in names} for row in columns] == [
        {name: getattr(one, name) for name in names} for one in played
    ]
    quarantined = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert {bad["row"]: bad["record"] for bad in quarantined} == BAD
    assert {bad["file"] for bad in quarantined} == {str(source)}
    assert "2 values where the header has 3" in quarantined[0]["reason"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.jsonl", "rounds.parquet", "stream.csv"]
    rd.save(model, tmp_path / "a")
    rd.save(expected, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_rounds_one_by_one_and_in_batches_are_parts_of_one_pass(source):
    _, rounds = fit_stream(source, "y")
    first = [one.row for one in itertools.islice(rounds, 10)]
    rest = [row for batch in rounds.batches() for row in batch.rows.tolist()]
    assert first + rest == [row for row in range(1, ROWS + 1) if row not in BAD]
    assert list(rounds) == []


@pytest.mark.parametrize("on_bad", ["skip", "quarantine"])
def test_without_a_file_bad_records_are_counted_or_kept(on_bad):
    _, rounds = fit_stream(io.BytesIO(TEXT.encode()), "y", on_bad=on_bad)
    rounds.run()
    assert [bad.row for bad in rounds.bad] == ([] if on_bad == "skip" else list(BAD))
    others = (0, len(BAD)) if on_bad == "skip" else (len(BAD), 0)
    assert rounds.counts == (ROWS, ROWS - len(BAD), *others)


def test_the_first_bad_record_can_end_the_run_and_the_checkpoint_stays(source, tmp_path):
    folder, text = tmp_path / "run", TEXT.replace("\n1,2\n", "\n1,2,3\n")
    source.write_text(text)
    files_of_run = {"rounds": tmp_path / "rounds.parquet", "checkpoint": folder, "every": 100, "on_bad": "fail"}
    _, rounds = fit_stream(source, "y", **files_of_run)
    with pytest.raises(
        DataError, match=r"^Row 700 of '.*stream\.csv' cannot be learned from: column 'b': 'b' is not a"
    ):
        rounds.run()
    assert not (tmp_path / "rounds.parquet").exists()
    # It can be mended and resumed, because the records before are as they were.
    for bad in BAD.values():
        text = text.replace(f"\n{bad}\n", "\n1,2,3\n")
    source.write_text(text)
    _, rounds = fit_stream(source, "y", **files_of_run, resume=True)
    assert 500 <= rounds.resumed <= 600
    assert rounds.run().counts == (ROWS, ROWS, 0, 0)


@pytest.mark.parametrize("stop", [0, 1, 4, 9])
def test_a_run_that_stopped_goes_on_to_the_same_files_and_summary(source, tmp_path, stop):
    alone, alone_rounds = fit_stream(source, "y", **outputs(tmp_path / "alone"))
    alone_rounds.run()
    kept = {"checkpoint": tmp_path / "run", **outputs(tmp_path / "resumed")}
    _, first = fit_stream(source, "y", every=200, **kept)
    with first:
        before = list(itertools.islice(first.batches(), stop))
    assert list((tmp_path / "resumed").iterdir()) == []
    model, second = fit_stream(source, "y", every=333, resume=True, **kept)
    # The checkpoint is written when the next batch is asked for: nobody misses a round.
    assert second.resumed == 200 * max(0, stop - 1)
    rows = [rounds.rows for rounds in (*before[: max(0, stop - 1)], *second.batches())]
    assert np.concatenate(rows).tolist() == [row for row in range(1, ROWS + 1) if row not in BAD]
    assert files(tmp_path / "resumed") == files(tmp_path / "alone")
    assert second.counts == alone_rounds.counts
    rd.save({"model": model, "summary": second.summary.state()}, tmp_path / "a")
    rd.save({"model": alone, "summary": alone_rounds.summary.state()}, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_bad_records_in_memory_survive(source, tmp_path):
    kept = {"checkpoint": tmp_path / "run", "every": 500}
    _, first = fit_stream(source, "y", **kept)
    with first:
        next(itertools.islice(first.batches(), 4, None))
    _, second = fit_stream(source, "y", resume=True, **kept)
    assert [bad.row for bad in second.bad] == [5, 700, 701, 1203]
    assert [bad.row for bad in second.run().bad] == list(BAD)
    second.finish()
    _, finished = fit_stream(source, "y", resume=True, **kept)
    assert [bad.row for bad in finished.bad] == list(BAD)


def test_a_finished_run_stays_as_it_is(source, tmp_path):
    kept = {"checkpoint": tmp_path / "run", **outputs(tmp_path)}
    _, rounds = fit_stream(source, "y", **kept)
    with pytest.raises(DataError, match=r"has not been read to its end, so the run cannot be finished"):
        rounds.finish()
    rounds.run().finish()
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["checkpoint.safetensors", "lock"]
    (tmp_path / "rounds.parquet").unlink()
    model, again = fit_stream(source, "y", resume=True, **kept)
    assert again.finished
    assert list(again) == []
    assert again.run().counts == rounds.counts
    assert model.records == ROWS - len(BAD)
    assert again.summary.least == rounds.summary.least
    assert not (tmp_path / "rounds.parquet").exists()


def test_another_run_is_not_resumed(source, tmp_path):
    kept = {"checkpoint": tmp_path / "run"}
    fit_stream(source, "y", **kept)[1].run()
    with pytest.raises(ParameterError, match=r"contains a checkpoint; resume from it, or name an empty folder"):
        fit_stream(source, "y", **kept)
    with pytest.raises(ParameterError, match=r"was started with target = 'y' and cannot be resumed with target = 'a'"):
        fit_stream(source, "a", resume=True, **kept)
    with pytest.raises(ParameterError, match=r"was started with rounds = None and cannot be resumed with"):
        fit_stream(source, "y", resume=True, rounds=tmp_path / "rounds.parquet", **kept)
    source.write_text(TEXT.replace("\n", "\n0,0,0\n", 2))
    with pytest.raises(ParameterError, match=r"does not begin with the records, or the files, that the run"):
        fit_stream(source, "y", resume=True, **kept)


def test_a_file_that_is_put_before_those_that_were_read_is_noticed(source, tmp_path):
    parts, kept = tmp_path / "parts", {"checkpoint": tmp_path / "run", "every": 1000}
    parts.mkdir()
    for name in ("2.csv", "3.csv", "9.csv"):
        (parts / name).write_text(TEXT)
    _, rounds = fit_stream(parts, "y", **kept)
    with rounds:
        next(itertools.islice(rounds.batches(), 4, None))
    (parts / "1.csv").write_text(TEXT)
    with pytest.raises(ParameterError, match=r"does not begin with the records, or the files, that the run"):
        fit_stream(parts, "y", resume=True, **kept)
    (parts / "1.csv").rename(parts / "8.csv")
    _, rounds = fit_stream(parts, "y", resume=True, **kept)
    assert rounds.resumed == 4 * 1000
    assert rounds.run().counts.records == 4 * ROWS


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"on_bad": "shrug"}, r"'on_bad' parameter of fit_stream must be 'quarantine', 'skip' or 'fail'\. Got 'shrug'"),
        ({"every": 0}, r"'every' parameter of fit_stream must be a whole number in \[1, inf\)"),
        ({"resume": True}, r"^To resume a run, name the folder of its checkpoint\.$"),
        ({"on_bad": "skip", "quarantine": "bad.jsonl"}, r"^on_bad='skip' does not quarantine records"),
    ],
)
def test_settings_are_checked_before_anything_is_read(settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        fit_stream("no such file.csv", "y", **settings)


def test_nothing_is_written_over_the_records_or_over_another_file(source, tmp_path):
    with pytest.raises(
        ParameterError, match=r"stream\.csv' cannot be both the rounds and the input; name another file\.$"
    ):
        fit_stream(source, "y", rounds=tmp_path / "." / "stream.csv")
    with pytest.raises(ParameterError, match=r"both' cannot be both the quarantine and the rounds"):
        fit_stream(source, "y", rounds=tmp_path / "both", quarantine=tmp_path / "both")
    with pytest.raises(ParameterError, match=r"stream\.csv' cannot be both the quarantine and the input"):
        fit_stream([[source]], "y", quarantine=source)
    assert source.read_text() == TEXT


@pytest.mark.parametrize("name", ["checkpoint.safetensors", "lock", "rounds.log", "quarantine.log"])
def test_nothing_is_written_over_the_files_of_the_checkpoint(source, tmp_path, name):
    with pytest.raises(ParameterError, match=f"{name}' cannot be both the rounds and a file of the checkpoint"):
        fit_stream(source, "y", rounds=tmp_path / "run" / name, checkpoint=tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["stream.csv"]


def test_nothing_is_written_to_a_folder_that_is_read(source, tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    source.rename(parts / "a.csv")
    for sources in (parts, [parts / "a.csv", parts], str(tmp_path / "p*")):
        with pytest.raises(ParameterError, match=r"run' cannot be the folder of checkpoints because every file in"):
            fit_stream(sources, "y", checkpoint=parts / "run")
        with pytest.raises(ParameterError, match=r"r' cannot be the rounds .* is read; name a path outside it\.$"):
            fit_stream(sources, "y", rounds=parts / "r")
    assert [path.name for path in parts.iterdir()] == ["a.csv"]
    # What begins with an underscore is not read, and neither are other files beside one that is named.
    kept = {"checkpoint": parts / "_run", "rounds": parts / "_r", "every": 1000}
    with fit_stream(parts, "y", **kept)[1] as rounds:
        next(itertools.islice(rounds.batches(), 1, None))
    assert fit_stream(parts, "y", resume=True, **kept)[1].run().counts.records == ROWS
    fit_stream(parts / "a.csv", "y", rounds=parts / "r")[1].run()


def test_a_run_that_has_come_to_its_end_is_not_followed(source, tmp_path):
    kept = {"checkpoint": tmp_path / "run"}
    fit_stream(source, "y", **kept)[1].run()
    with open(source, "a") as more:
        more.write("1,2,3\n")
    with pytest.raises(ParameterError, match=r"has reached its end and cannot follow a file; name another"):
        fit_stream(source, "y", resume=True, follow=lambda: False, **kept)


def test_a_pass_that_nobody_holds_lets_go_of_its_folder(source, tmp_path):
    kept = {"checkpoint": tmp_path / "run", "every": 1000, "resume": True}
    for expected in (0, 1000):
        rounds = None
        rounds = fit_stream(source, "y", **kept)[1]
        assert rounds.resumed == expected
        while next(rounds).row <= expected + 1000:
            pass
    rounds.close()
    with pytest.raises(DataError, match=r"was stopped before its end; resume it from its checkpoint, or start again"):
        rounds.run()


def test_a_start_that_fails_leaves_the_folder_free(source, tmp_path):
    for _ in range(2):
        with pytest.raises(DataError, match="nothing"):
            fit_stream(source, "nothing", checkpoint=tmp_path / "run")


def test_what_cannot_be_saved_is_told_before_anything_is_learned(source, tmp_path, monkeypatch):
    model, rounds = fit_stream(source, "y", checkpoint=tmp_path / "run")
    monkeypatch.setattr(model, "state", lambda: {"part": object()})
    with pytest.raises(ParameterError, match="cannot be saved"):
        rounds.run()
    assert rounds.counts.records == 0


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.soak)])
def test_an_interrupt_leaves_files_whole_or_absent_and_a_checkpoint(source, tmp_path, monkeypatch, stride):
    source.write_text("\n".join(TEXT.splitlines()[:400]))
    _, alone = fit_stream(source, "y", **outputs(tmp_path / "alone"))
    alone.run()
    expected = files(tmp_path / "alone")
    for number in itertools.count(1, stride):
        folder = tmp_path / str(number)
        kept = {"checkpoint": folder / "run", "every": 150, "resume": True, **outputs(folder)}
        with monkeypatch.context() as patch:
            calls = itertools.count(1)
            patch.setattr(os, "fsync", interrupting(lambda _: None, calls, number))
            patch.setattr(os, "replace", interrupting(os.replace, calls, number))
            _, rounds = fit_stream(source, "y", **kept)
            try:
                rounds.run()
            except KeyboardInterrupt:
                pass
            else:
                break
        found = files(folder)
        assert found.items() <= expected.items()
        assert {path.suffix for path in folder.iterdir() if path.is_file()} <= {".parquet", ".jsonl"}
        fit_stream(source, "y", **kept)[1].run()
        assert files(folder) == expected
    assert number > 20


def interrupting(function, calls, number):
    def called(*arguments):
        if next(calls) == number:
            raise KeyboardInterrupt
        return function(*arguments)

    return called


def test_tables_in_memory_can_be_resumed_too(tmp_path):
    random = np.random.default_rng(5)
    X = random.normal(size=(1000, 2))
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": np.where(X[:, 0] > 0, "up", "down")})
    kept = {"checkpoint": tmp_path / "run", "every": 100, "rounds": tmp_path / "rounds.parquet"}
    _, rounds = fit_stream(table, "y", **kept)
    with rounds:
        next(itertools.islice(rounds.batches(), 3, None))
    _, rounds = fit_stream(table, "y", resume=True, **kept)
    assert rounds.resumed == 300
    rounds.run()
    _, alone = fit_stream(table, "y", rounds=tmp_path / "alone.parquet")
    alone.run()
    assert (tmp_path / "rounds.parquet").read_bytes() == (tmp_path / "alone.parquet").read_bytes()
