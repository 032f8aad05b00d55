"""Folders, pipes, files that grow, and reading ahead."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pytest

from redescend.errors import DataError
from redescend.sources import open_source
from redescend.sources.columnar import ColumnarFile, RowGroup
from redescend.sources.source import MOST_THREADS, prefetch
from tests.sources.outcomes import outcomes


def test_a_folder_is_read_file_by_file_by_the_names_of_the_columns(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a.csv").write_bytes(b"x,y\n1,2\n3,4")
    (tmp_path / "b" / "c.csv").write_bytes(b"y,z,x\n5,no,6\n\n7\n")
    (tmp_path / "d.csv").write_bytes(b"")
    (tmp_path / "_SUCCESS").write_bytes(b"not data")
    (tmp_path / ".hidden.csv").write_bytes(b"not data")
    source = open_source(tmp_path)
    rows = [(1, "good", (1.0, 2.0), b"1,2"), (2, "good", (3.0, 4.0), b"3,4"), (3, "good", (6.0, 5.0), b"5,no,6")]
    rows.append((4, "bad", "1 value where the header has 3", b"7"))
    assert outcomes(source, ["x", "y"]) == rows
    assert [batch.files for batch in source.batches(["x"])][-1] == str(tmp_path / "b" / "c.csv")
    assert [source.sample.raw(i) for i in range(3)] == [raw for *_, raw in rows[:3]]
    for batch in source.batches(["x", "y"], most=1):
        assert outcomes(source, ["x", "y"], start=batch.end) == rows[batch.end.row :]
    assert outcomes(open_source([tmp_path / "a.csv", str(tmp_path / "b" / "*.csv")]), ["x", "y"]) == rows
    (tmp_path / "e.csv").write_bytes(b"x\n8\n")
    with pytest.raises(DataError, match=r"e\.csv has no column 'y', which .*a\.csv has"):
        open_source(tmp_path).batches(["x", "y"])
    assert len(outcomes(open_source(tmp_path), ["x"])) == 5
    assert open_source(tmp_path).spread.num_rows == 3  # of the files with all columns


def test_a_pipe_is_read_as_it_comes_and_nothing_is_lost():
    text = b"x,t\n" + b"".join(b'%d,"a\nb"\n' % i for i in range(3000))
    whole = outcomes(open_source(io.BytesIO(text)), ["x", "t"])
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb", buffering=0) as pipe:
            for at in range(0, len(text), 997):
                pipe.write(text[at : at + 997])

    writer = threading.Thread(target=write)
    writer.start()
    # As a shell names it in the place of a command.
    assert outcomes(open_source(f"/dev/fd/{reading}"), ["x", "t"]) == whole
    writer.join()
    os.close(reading)


def test_a_pipe_that_has_nothing_yet_is_waited_for():
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    waiting = threading.Event()

    class Pipe(io.FileIO):
        def read(self, size=-1):
            data = super().read(size)
            if data is None:
                waiting.set()
            return data

    def write() -> None:
        with open(writing, "wb", buffering=0) as pipe:
            pipe.write(b"x\n1\n2")
            assert waiting.wait(30)
            pipe.write(b"3\n4\n")

    expected = [(1, "good", (1.0,), b"1"), (2, "good", (23.0,), b"23"), (3, "good", (4.0,), b"4")]
    writer = threading.Thread(target=write)
    writer.start()
    with Pipe(reading) as pipe:
        assert outcomes(open_source(pipe), ["x"]) == expected
    writer.join()
    assert waiting.is_set()

    class Unnumbered:
        answers = iter([None, b"x\n1\n2", None, None, b"3\n4\n"])

        def read(self, size):
            return next(self.answers, b"")

    assert outcomes(open_source(Unnumbered()), ["x"]) == expected


def test_standard_input_can_be_left_while_it_waits():
    code = (
        "from redescend.sources import open_source\n"
        "batches = open_source('-').batches(['x'])\n"
        "print(next(batches).count, flush=True)\n"
        "batches.close()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        process.stdin.write(b"x\n" + b"1\n" * 2000)
        process.stdin.flush()
        # The pipe stays open: a program that waits for its end never ends.
        assert int(process.stdout.read()) > 0
        assert process.wait() == 0


def test_a_file_that_grows_is_followed_record_by_record(tmp_path):
    path = tmp_path / "growing.csv"
    path.write_bytes(b"x,t\n1,a\n2,")
    pieces = [b"b", b'\n3,"c', b"", b'\nd"\n4,e', b"\n5", b",unfinished"]

    def grow() -> bool:
        if not pieces:
            return False
        with path.open("ab") as file:
            file.write(pieces.pop(0))
        return True

    source = open_source(path, kinds={"x": "number", "t": "text"})
    found = []
    for batch in source.batches(["x", "t"], follow=grow):
        found += zip(batch.rows.tolist(), batch.table.to_pydict()["t"], strict=True)
        end = batch.end
    assert found == [(1, "a"), (2, "b"), (3, "c\nd"), (4, "e")]
    with path.open("ab") as file:
        file.write(b" no more\n")
    assert outcomes(source, ["x", "t"], start=end) == [
        (5, "good", (5.0, "unfinished no more"), b"5,unfinished no more")
    ]


def test_what_cannot_grow_cannot_be_followed():
    with pytest.raises(DataError, match="cannot be followed"):
        open_source(io.BytesIO(b"x\n1\n")).batches(["x"], follow=lambda: True)


def test_work_ahead_keeps_its_order_its_bound_and_its_errors(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    done = []

    def work(number: int) -> int:
        time.sleep(0.001 * (number % 3))
        done.append(number)
        if number == 20:
            raise DataError("The twentieth.")
        return number

    def jobs():
        for number in range(1000):
            yield lambda number=number: work(number)

    results = prefetch(jobs())
    for number in range(20):
        assert next(results) == number
        # The one that came, those that wait, and the one in the hands of the thread that hands them out.
        assert len(done) <= number + 1 + 2 + 1
    with pytest.raises(DataError, match="The twentieth"):
        next(results)
    assert all_threads_end()
    early = prefetch(jobs())
    assert next(early) == 0
    early.close()
    assert all_threads_end()


def test_work_ahead_is_bounded_however_many_processors_there_are(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    handed, go_on = [], threading.Event()

    def jobs():
        yield lambda: True
        for number in range(1000):
            handed.append(number)
            yield go_on.wait

    results = prefetch(jobs())
    assert next(results)
    # Those that wait, and the one in the hands of the thread that hands them out.
    while len(handed) < MOST_THREADS + 1:
        time.sleep(0.01)
    time.sleep(0.1)
    most = len(handed)
    go_on.set()
    assert most == MOST_THREADS + 1
    results.close()
    assert all_threads_end()


def test_a_record_is_its_own_while_another_thread_looks_up_another():
    class Interrupted(RowGroup):
        """In the middle of its use another thread has its turn."""

        @property
        def content(self):
            other = threading.Thread(target=part._read_record, args=(["x"], 0, 3))
            other.start()
            other.join()
            return self[2]

    class Part(ColumnarFile):
        def _look_up(self, columns, row):
            if row < 2:
                return Interrupted(0, 2, pa.record_batch({"x": [0, 1]}))
            return RowGroup(2, 4, pa.record_batch({"x": [2, 3]}))

    part = Part("table")
    assert [part._read_record(["x"], 0, row) for row in range(4)] == [b'{"x": %d}' % row for row in range(4)]


def all_threads_end() -> bool:
    ours = [thread for thread in threading.enumerate() if thread.name.startswith("reading")]
    for thread in ours:
        thread.join(10)
    return not any(thread.is_alive() for thread in ours)
