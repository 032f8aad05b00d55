"""`redescend tail`: a file that grows is learned from as it does, and goes on after the last whole record."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

import pytest

import redescend as rd
from redescend.sources.following import FollowedFile
from redescend.streaming import fit_stream
from tests.cli.commands import BAD, prices, refused, run, started

TAIL = ("tail", "growing.csv", "--target", "price")


@pytest.fixture
def lines(in_a_folder):
    return prices(in_a_folder / "prices.csv", 1000).read_text().splitlines(keepends=True)


def test_what_is_there_once_and_later_what_has_come(lines):
    growing = Path("growing.csv")
    growing.write_text("".join(lines[:400]) + lines[400][:5])
    kept = ("--once", "--model", "m", "--rounds", "r", "--checkpoint", "run", "--no-report")
    first = run(*TAIL, *kept)
    assert "Ignored an incomplete last line after row 399 of growing.csv.\n" in first.stderr
    assert rd.load("m").records == 399
    growing.write_text("".join(lines))
    second = run(*TAIL, *kept, "--resume")
    assert "after row 399" in second.stderr
    assert "incomplete" not in second.stderr
    # The columns were decided from what was there then: the same three towns, so the same model.
    alone, rounds = fit_stream("prices.csv", "price")
    doubted = [
        one for batch in rounds.batches() for one in batch[rounds.summary.are_suspects(batch)].records(alone.schema)
    ]
    rd.save(alone, "alone")
    assert Path("m").read_bytes() == Path("alone").read_bytes()
    told = [json.loads(line) for line in (first.stdout + second.stdout).splitlines()]
    assert [(one["row"], one["clean_probability"]) for one in told] == [
        (one.row, one.clean_probability) for one in doubted
    ]
    row = told[-1]["row"]
    assert list(told[-1]["values"]) == ["size", "town"]
    assert f"{told[-1]['values']['size']},{told[-1]['values']['town']},{told[-1]['target']}\n" == lines[row]
    third = run(*TAIL, *kept, "--resume", "--threshold", "0")
    assert third.stdout == ""
    assert rd.load("m").records == 1000


def test_lags_look_back_over_the_end_of_a_run(lines):
    growing, settings = Path("growing.csv"), ("--lags", "1,3", "--lag-columns", "size", "--once", "--no-report")
    for count, more in ((400, ()), (401, ("--resume",)), (len(lines), ("--resume",))):
        growing.write_text("".join(lines[:count]))
        run(*TAIL, *settings, "--model", "m", "--checkpoint", "run", *more)
    alone, rounds = fit_stream("prices.csv", "price", lags=[1, 3], lag_columns=["size"])
    rounds.run()
    rd.save(alone, "alone")
    assert Path("m").read_bytes() == Path("alone").read_bytes()


@pytest.mark.parametrize("stop", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)])
def test_it_waits_tells_at_once_and_ends_when_asked_to(lines, stop):
    growing = Path("growing.csv")
    process = started(*TAIL, "--model", "m", "--interval", "0.02", "--no-report", "--threshold", "0.5", cwd=".")
    # Nobody waits for ever for a record that is not told of.
    limit = threading.Timer(300, process.kill)
    limit.start()
    with open(growing, "a", buffering=1) as file:
        file.writelines(lines[:301])
        told = [json.loads(process.stdout.readline())["row"] for _ in range(5)]
        # In one piece, so that the batch that tells of the first has the second too.
        file.write("0.1,Rome,9999\n" + BAD[7] + "\n0.1,Ro")
        while told[-1] < 301:
            told.append(json.loads(process.stdout.readline())["row"])
    process.send_signal(stop)
    rest, said = process.communicate()
    limit.cancel()
    assert process.returncode == 3, said
    assert rest == b""
    assert b"Rejected row 302 of growing.csv: 2 values where the header has 3" in said
    assert b"Learned from 301 of 302 records." in said
    assert rd.load("m").records == 301
    assert json.loads(Path("m.quarantine.jsonl").read_text())["row"] == 302


def test_a_finished_run_cannot_be_followed(lines):
    growing = Path("growing.csv")
    growing.write_text("".join(lines[:400]))
    kept = ("--target", "price", "--checkpoint", "run")
    run("fit", "growing.csv", *kept, "--quiet")
    growing.write_text("".join(lines))
    said = refused("tail", "growing.csv", *kept, "--once", "--resume")
    assert said == ("The run in 'run' has reached its end and cannot follow a file; name another folder.")


def test_what_cannot_be_followed_gets_a_sentence(lines):
    assert "no file growing.csv" in refused(*TAIL, "--once")
    run("fit", "prices.csv", "--target", "price", "--model", "m", "--rounds", "r.parquet", "--quiet", "--no-report")
    said = run("tail", "r.parquet", "--target", "target", "--once", "--quiet", code=2).stderr
    assert "r.parquet cannot be followed: only an uncompressed text file" in said


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), MemoryError()])
def test_the_model_is_written_whatever_ends_it(lines, monkeypatch, error):
    growing = Path("growing.csv")
    growing.write_text("".join(lines))
    read, reads = FollowedFile.read, []

    def fail_later(file):
        reads.append(file)
        if len(reads) > 1:
            raise error
        return read(file)

    kept = ("--model", "m", "--checkpoint", "run", "--once", "--no-report", "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr(FollowedFile, "read", fail_later)
        run(*TAIL, *kept, code=2 if isinstance(error, OSError) else 1)
    assert rd.load("m").records == 1000
    growing.write_text("".join([*lines, *lines[1:]]))
    run(*TAIL, *kept, "--resume")
    assert rd.load("m").records == 2000


def test_the_model_is_written_where_a_bad_record_ends_it(lines):
    Path("growing.csv").write_text("".join(lines) + BAD[7] + "\n")
    run(*TAIL, "--model", "m", "--once", "--no-report", "--quiet", "--on-bad", "fail", code=4)
    assert rd.load("m").records == 1000
