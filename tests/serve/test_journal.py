"""Journals: what is committed comes back, what is incomplete is cut off, and what is damaged is refused."""

import json
import os
import threading

import pytest

from redescend.errors import DataError
from redescend.serve.journal import Fsync, Journal, Place
from redescend.sources import Kind, open_source
from redescend.sources.journal import read_frames
from tests.serve.servers import wait_for


def join(*records: bytes) -> list[bytes]:
    return [record + b"\n" for record in records]


@pytest.mark.parametrize("size", [1, 1000, 3 << 20])
def test_parts_are_written_in_their_order(tmp_path, size):
    journal = Journal(tmp_path / "j")
    records = [b'"%03d%s"' % (number, b"x" * size) for number in range(5)]
    journal.commit([(5, None, 0)], join(*records))
    assert journal.end.offset == (tmp_path / "j" / "00000001.journal").stat().st_size
    assert replay(tmp_path / "j") == [records]


def write(folder, commits=3):
    journal = Journal(folder)
    for number in range(commits):
        journal.commit([(1, f"key {number}", number), (1, None, 0)], join(b'{"x": %d}' % number, b'{"x": -1}'))
    return journal


def replay(folder):
    return [frame.records() for frame in Journal(folder).replay()]


@pytest.mark.parametrize("fsync", list(Fsync))
def test_what_is_committed_comes_back(tmp_path, fsync):
    journal = Journal(tmp_path / "j", fsync)
    journal.commit([(2, "a", 5)], join(b'{"x": 1}', b'{"x": 2}'))
    journal.sync()
    again = Journal(tmp_path / "j", fsync)
    (frame,) = again.replay()
    assert frame.requests == [(2, "a", 5)]
    assert frame.records() == [b'{"x": 1}', b'{"x": 2}']
    assert again.end == journal.end


def test_every_cut_of_the_last_commit_loses_that_commit_and_nothing_else(tmp_path):
    journal = write(tmp_path / "j", 2)
    before = journal.end.offset
    journal.commit([(1, "c", 1)], join(b'{"x": 7}'))
    path = tmp_path / "j" / "00000001.journal"
    whole = path.read_bytes()
    for cut in range(before, len(whole)):
        path.write_bytes(whole[:cut])
        opened = Journal(tmp_path / "j")
        assert len(list(opened.replay())) == 2
        assert opened.end == Place(1, before)
        opened.commit([(1, None, 0)], join(b'{"x": 8}'))
        assert replay(tmp_path / "j")[2:] == [[b'{"x": 8}']]
    path.write_bytes(whole)
    assert len(replay(tmp_path / "j")) == 3


def test_zeros_at_the_end_are_cut_off(tmp_path):
    write(tmp_path / "j")
    path = tmp_path / "j" / "00000001.journal"
    path.write_bytes(path.read_bytes() + bytes(5000))
    assert len(replay(tmp_path / "j")) == 3


def test_a_damaged_byte_before_the_last_commit_is_refused(tmp_path):
    write(tmp_path / "j")
    path = tmp_path / "j" / "00000001.journal"
    whole = path.read_bytes()
    place = whole.index(b'{"x": 1}') + 6
    path.write_bytes(whole[:place] + b"5" + whole[place + 1 :])
    with pytest.raises(DataError, match="is damaged at byte"):
        replay(tmp_path / "j")


def test_a_full_disk_leaves_the_journal_as_it_was(tmp_path, monkeypatch):
    journal, real = write(tmp_path / "j"), __import__("os").write

    def fail(descriptor, view):
        real(descriptor, view[:10])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("redescend.serve.journal.os.write", fail)
        with pytest.raises(OSError, match=r"No space.*: '.*/00000001\.journal'"):
            journal.commit([(1, None, 0)], join(b'{"x": 9}'))
    journal.commit([(1, None, 0)], join(b'{"x": 10}'))
    assert replay(tmp_path / "j")[3:] == [[b'{"x": 10}']]


def test_commits_that_are_queued_are_written_together_and_in_their_order(tmp_path, monkeypatch):
    journal, held, real = Journal(tmp_path / "j"), threading.Event(), os.fdatasync
    calls = []

    def synchronize(descriptor):
        calls.append(descriptor)
        held.wait(10)
        real(descriptor)

    monkeypatch.setattr("redescend.serve.journal.os.fdatasync", synchronize)
    written = [journal.begin_commit([(1, None, 0)], join(b'{"x": %d}' % number)) for number in range(5)]
    wait_for(lambda: calls)
    assert not any(each.done() for each in written)
    held.set()
    assert [each.result(10) for each in written] == [None] * 5
    assert len(calls) <= 2
    assert replay(tmp_path / "j") == [[b'{"x": %d}' % number] for number in range(5)]
    assert journal.end.offset == (tmp_path / "j" / "00000001.journal").stat().st_size


def test_commits_behind_one_that_fails_fail_as_well(tmp_path, monkeypatch):
    journal = write(tmp_path / "j")
    with monkeypatch.context() as patch:
        patch.setattr("redescend.serve.journal.os.write", lambda descriptor, view: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            journal.begin_commit([(1, None, 0)], join(b'{"x": 9}')).result(10)
    assert journal.failing
    with pytest.raises(ZeroDivisionError):
        journal.begin_commit([(1, None, 0)], join(b'{"x": 10}')).result(10)
    journal.resume()
    journal.begin_commit([(1, None, 0)], join(b'{"x": 11}')).result(10)
    assert replay(tmp_path / "j")[3:] == [[b'{"x": 11}']]


def test_after_a_failed_synchronization_nothing_more_is_taken(tmp_path, monkeypatch):
    journal = write(tmp_path / "j")

    def fail(descriptor):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("redescend.serve.journal.os.fdatasync", fail)
        with pytest.raises(OSError, match="Input/output"):
            journal.commit([(1, None, 0)], join(b'{"x": 9}'))
    with pytest.raises(OSError, match="start the server again"):
        journal.commit([(1, None, 0)], join(b'{"x": 9}'))


def test_a_commit_during_a_synchronization_waits_for_the_next(tmp_path, monkeypatch):
    journal, real, sizes = Journal(tmp_path / "j", Fsync.INTERVAL), os.fdatasync, []
    journal.commit([(1, None, 0)], join(b'{"x": 1}'))

    def synchronize(descriptor):
        real(descriptor)
        sizes.append(os.fstat(descriptor).st_size)
        if len(sizes) == 1:
            journal.commit([(1, None, 0)], join(b'{"x": 2}'))

    monkeypatch.setattr("redescend.serve.journal.os.fdatasync", synchronize)
    for _ in range(3):
        journal.sync()
    assert len(sizes) == 2
    assert sizes[-1] == journal.end.offset


def test_a_synchronization_that_fails_is_tried_again(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "j", Fsync.INTERVAL)
    journal.commit([(1, None, 0)], join(b'{"x": 1}'))

    def fail(descriptor):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("redescend.serve.journal.os.fdatasync", fail)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            journal.sync()


def test_a_commit_for_which_no_thread_can_be_started_is_not_written_later(tmp_path, monkeypatch):
    """Like an executor, which raises but calls the function later, once a thread is free."""
    journal, late, held, real = write(tmp_path / "j"), [], threading.Event(), os.fdatasync

    def submit(function):
        late.append(function)
        raise RuntimeError("can't start new thread")

    def synchronize(descriptor):
        held.wait(10)
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr("redescend.serve.journal.DISK_THREADS.submit", submit)
        with pytest.raises(RuntimeError, match="new thread"):
            journal.begin_commit([(1, None, 0)], join(b'{"x": 9}'))
    monkeypatch.setattr("redescend.serve.journal.os.fdatasync", synchronize)
    first = journal.begin_commit([(1, None, 0)], join(b'{"x": 10}'))
    wait_for(lambda: not journal._queue)
    second = journal.begin_commit([(1, None, 0)], join(b'{"x": 11}'))
    thread = threading.Thread(target=late[0])
    thread.start()
    thread.join(0.05)
    assert len(journal._queue) == 1  # it waits for the thread that writes
    held.set()
    first.result(10)
    second.result(10)
    thread.join(10)
    assert replay(tmp_path / "j")[3:] == [[b'{"x": 10}'], [b'{"x": 11}']]


def test_segments_follow_one_another_and_all_declare_the_schema(tmp_path):
    journal = write(tmp_path / "j")
    journal.declare({"kinds": {"x": "number"}, "schema": {}})
    place = journal.rotate()
    journal.commit([(1, None, 0)], join(b'{"x": 9}'))
    assert [frame.kind for frame in Journal(tmp_path / "j").replay()] == ["commit"] * 3 + ["schema", "schema", "commit"]
    assert [frame.kind for frame in Journal(tmp_path / "j").replay(place)] == ["commit"]
    journal.remove_before(place.segment)
    assert [frame.kind for frame in Journal(tmp_path / "j").replay()] == ["schema", "commit"]
    with pytest.raises(DataError, match="lacks the segment 1"):
        list(Journal(tmp_path / "j").replay(Place(1, 40)))


def test_a_journal_is_a_source_of_its_records(tmp_path):
    journal = write(tmp_path / "j")
    journal.rotate()
    journal.commit([(1, None, 0)], join(b'{"x": "bad"}'))
    source = open_source(str(tmp_path / "j"), kinds={"x": Kind.NUMBER})
    (first, second) = source.batches(["x"])
    assert source.format == "journal"
    assert first.table.column("x").to_pylist() == [0.0, -1.0, 1.0, -1.0, 2.0, -1.0]
    assert [bad.row for bad in second.bad] == [7]
    (rest,) = source.batches(["x"], start=first.end)
    assert [bad.row for bad in rest.bad] == [7]


def test_another_file_is_no_journal(tmp_path):
    (tmp_path / "a.journal").write_text(json.dumps({"x": 1}))
    with open(tmp_path / "a.journal", "rb") as file, pytest.raises(DataError, match="is not a journal"):
        list(read_frames(file))


def test_few_files_stay_open_and_none_of_a_journal_that_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr("redescend.serve.journal.OPEN", opened := set())
    monkeypatch.setattr("redescend.serve.journal.MOST_OPEN", 2)
    journals = [write(tmp_path / f"{number}") for number in range(4)]
    assert len(opened) == 2
    for number, journal in enumerate(journals):
        journal.rotate()
        journal.commit([(1, None, 0)], join(b'{"x": 9}'))
        journal.close()
        journal.commit([(1, None, 0)], join(b'{"x": 10}'))
        journal.close()
        journal.close()
        assert replay(tmp_path / f"{number}")[3:] == [[b'{"x": 9}'], [b'{"x": 10}']]
    assert opened == set()
