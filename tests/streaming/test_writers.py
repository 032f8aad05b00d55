"""Append logs, quarantine and round log: every record once, and the same files whatever the batches."""

import errno
import json
import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redescend.errors import DataError
from redescend.files import check_writable
from redescend.sources import Bad, Kind
from redescend.streaming import fit_stream
from redescend.streaming.config import Outputs
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.io.log import HEAD, AppendLog, read_blocks
from redescend.streaming.io.writers import GROUP, RejectedBuffer, RunWriters, format_rejected, parse_rejected
from redescend.streaming.rounds import Rounds

NUMBERS = Schema("y", Kind.NUMBER, "regression", [], [])
LABELS = Schema("y", Kind.TEXT, "classification", ["no", "yes", "per\u0127aps"], [])


def some_rounds(count, seed, labels=0):
    random = np.random.default_rng(seed)
    if not labels:
        return Rounds(
            np.arange(1, count + 1), *random.normal(size=(2, count)), np.full(count, np.nan), *random.random((2, count))
        )
    answers = random.integers(labels, size=(2, count)).astype(float)
    return Rounds(np.arange(1, count + 1) * 2, *answers, *random.random((3, count)))


def test_what_was_written_after_the_checkpoint_is_cut_off(tmp_path):
    path = tmp_path / "log"
    with closing(AppendLog(path)) as log:
        log.append(b"12345")
        size = log.sync()
        assert list(read_blocks(path)) == [b"12345"]
        log.append(b"6789")
    with closing(AppendLog(path, size)) as log:
        assert log.sync() == size == HEAD.size + 5
        log.append(b"x")
        assert log.sync() == 2 * HEAD.size + 6
    assert list(read_blocks(path)) == [b"12345", b"x"]
    with pytest.raises(DataError, match=r"is shorter than when the checkpoint was written \(22 of 23 bytes\)"):
        AppendLog(path, 23)
    assert list(read_blocks(path)) == [b"12345", b"x"]


def test_a_flipped_bit_in_a_log_is_found_and_named(tmp_path):
    path = tmp_path / "log"
    with closing(AppendLog(path)) as log:
        for block in (b"12345", b"6789"):
            log.append(block)
            size = log.sync()
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        place = 0 if bit // 8 < HEAD.size + 5 else HEAD.size + 5
        with pytest.raises(DataError, match=rf"log' is damaged: the checksum of its block at byte {place} is wrong\."):
            AppendLog(path, size)
    for end in range(size):
        path.write_bytes(whole[:end])
        if end not in (0, HEAD.size + 5):
            with pytest.raises(DataError, match="is damaged"):
                list(read_blocks(path))


def test_a_flipped_bit_of_the_rounds_ends_a_resumed_run(tmp_path):
    source = tmp_path / "a.csv"
    source.write_text("x,y\n" + "".join(f"{row % 7},{row % 3}\n" for row in range(100)))
    options = {"checkpoint": tmp_path / "run", "rounds": tmp_path / "r", "every": 25, "task": "regression"}
    with fit_stream(source, "y", **options)[1] as rounds:
        for _ in zip(range(3), rounds.batches(), strict=False):
            pass
    log = tmp_path / "run" / "rounds.log"
    content = bytearray(log.read_bytes())
    content[100] ^= 4
    log.write_bytes(content)
    with pytest.raises(DataError, match=r"rounds\.log' is damaged"):
        fit_stream(source, "y", **options, resume=True)


@given(st.integers(1), st.text(st.characters(codec=None)), st.text(), st.binary())
def test_a_quarantined_record_is_one_line_and_comes_back_as_it_came(row, file, reason, raw):
    bad = Bad(row, file, reason, raw)
    text = format_rejected(bad)
    assert text.endswith(b"\n")
    assert text.count(b"\n") == 1
    assert json.loads(text.decode())["row"] == row
    assert parse_rejected(text) == bad


def test_bad_records_in_memory_are_bounded_in_number_and_in_size():
    kept = RejectedBuffer()
    kept.add(Bad(row, "f", "r", b"x" * 10) for row in range(1, 2001))
    assert [bad.row for bad in kept.records] == list(range(1, 1001))
    again = RejectedBuffer()
    again.restore(kept.state())
    assert again.records == kept.records
    large = RejectedBuffer()
    large.add(Bad(row, "f", "r", b"x" * (1 << 20)) for row in range(1, 9))
    assert len(large.records) == 3
    other = RejectedBuffer()
    other.restore(large.state())
    other.add([Bad(9, "f", "r", b"x" * (1 << 20)), Bad(10, "f", "r", b"x")])
    assert [bad.row for bad in other.records] == [1, 2, 3, 10]


@pytest.mark.parametrize("schema", [NUMBERS, LABELS])
def test_the_round_log_holds_every_round_in_groups_that_do_not_depend_on_batches(tmp_path, schema):
    count, labels = GROUP + 5000, len(schema.labels)
    rounds = some_rounds(count, seed=3, labels=labels)
    contents = []
    for most in (7777, count):
        target = tmp_path / f"{most}.parquet"
        with closing(RunWriters(Outputs(rounds=target))) as writers:
            for start in range(0, count, most):
                writers.write(rounds[start : start + most], [])
            writers.write_final_files(schema)
        contents.append(target.read_bytes())
    assert contents[0] == contents[1]
    file = parquet.ParquetFile(target)
    assert [file.metadata.row_group(at).num_rows for at in range(2)] == [GROUP, 5000]
    table = file.read()
    if labels:
        expected = {
            name: [schema.labels[int(place)] for place in values]
            for name, values in (("target", rounds.targets), ("prediction", rounds.predictions))
        }
        expected["probability"] = rounds.probabilities
    else:
        expected = {"target": rounds.targets, "prediction": rounds.predictions}
    expected = {"row": rounds.rows, **expected, "loss": rounds.losses, "weight": rounds.weights}
    assert table.column_names == list(expected)
    assert table.equals(pa.table(expected, schema=table.schema))
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".parquet"] == []


def test_files_that_cannot_be_written_are_refused_before_anything_is_done(tmp_path):
    with pytest.raises(DataError, match=r"there is no folder '.*nowhere'; create it first\."):
        check_writable(tmp_path / "nowhere" / "bad.jsonl")
    with pytest.raises(DataError, match=r"because it is a folder; name a file in it\."):
        check_writable(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_the_folder_of_the_ledgers_is_made_leaves_none(tmp_path, monkeypatch):
    make = Path.mkdir

    def interrupted(*arguments):
        make(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt):
        RunWriters(Outputs(rounds=tmp_path / "r"))
    assert list(tmp_path.iterdir()) == []


def test_an_empty_quarantine_is_not_written_unless_it_is_to_be_kept(tmp_path):
    target = tmp_path / "bad.jsonl"
    target.write_text("of another run")
    for bad, expected in (([], b"of another run"), ([Bad(1, "f", "r", b"x")], format_rejected(Bad(1, "f", "r", b"x")))):
        with closing(RunWriters(Outputs(quarantine=target, keep_empty_quarantine=False))) as writers:
            writers.write(some_rounds(0, 1), bad)
            writers.write_final_files(NUMBERS)
        assert target.read_bytes() == expected


def test_a_full_disk_is_said_in_one_sentence(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with closing(AppendLog(tmp_path / "log")) as log:
        log.append(b"12345")
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"cannot be written \(No space left on device\); free some space, and"):
            log.sync()
