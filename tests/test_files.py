"""Files are written in full or not at all, with the permissions of what they replace; leftovers go, others stay."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from contextlib import closing
from threading import Event, Thread, current_thread, main_thread

import pytest

from redescend import files
from redescend.files import PART, lock, name_part, remove_leftovers, replace_file
from redescend.streaming.config import Outputs
from redescend.streaming.io.writers import RunWriters


def parts(folder):
    return [path for path in folder.iterdir() if path.suffix == PART]


def mode(path):
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("wanted", [0o600, 0o640, 0o664])
def test_a_file_is_as_private_while_it_is_written_as_it_was(tmp_path, wanted):
    target = tmp_path / "model"
    target.write_bytes(b"old")
    target.chmod(wanted)
    with replace_file(target) as file:
        file.write(b"new")
        (part,) = parts(tmp_path)
        assert mode(part) == 0o600
    assert target.read_bytes() == b"new"
    assert mode(target) == wanted


def test_a_new_file_obeys_the_mask(tmp_path):
    before = os.umask(0o027)
    try:
        with replace_file(tmp_path / "model"):
            assert [mode(part) for part in parts(tmp_path)] == [0o640]
        assert mode(tmp_path / "model") == 0o640
    finally:
        os.umask(before)


def test_logs_are_private(tmp_path):
    with closing(RunWriters(Outputs(rounds=tmp_path / "rounds"))):
        (folder,) = parts(tmp_path)
        assert mode(folder) == 0o700
        assert [mode(path) for path in folder.iterdir()] == [0o600]


KILLED = """
import os, signal, sys
from pathlib import Path
from redescend.files import replace_file
from redescend.streaming.config import Outputs
from redescend.streaming.io.writers import RunWriters

writers = RunWriters(Outputs(rounds=Path(sys.argv[1], "rounds")))
with replace_file(Path(sys.argv[1], "model")) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    (tmp_path / ".0123456789abcdef.part").write_bytes(b"of another file")
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path])
    assert done.returncode < 0
    assert len(parts(tmp_path)) == 3
    with replace_file(tmp_path / "model") as file:
        file.write(b"whole")
    assert len(parts(tmp_path)) == 2
    with closing(RunWriters(Outputs(rounds=tmp_path / "rounds"))):
        assert len(parts(tmp_path)) == 2
    assert [path.name for path in parts(tmp_path)] == [".0123456789abcdef.part"]


def test_what_is_being_written_stays(tmp_path):
    target = tmp_path / "model"
    with replace_file(target) as first:
        first.write(b"first")
        with replace_file(target) as second:
            second.write(b"second")
        assert target.read_bytes() == b"second"
        remove_leftovers(target)
    assert target.read_bytes() == b"first"
    with closing(RunWriters(Outputs(rounds=target))):
        remove_leftovers(target)
        assert len(parts(tmp_path)) == 1


@pytest.mark.parametrize("moment", ["open", "flock"])
def test_a_folder_that_another_run_removes_before_it_is_locked_is_made_again(tmp_path, monkeypatch, moment):
    fcntl = pytest.importorskip("fcntl")
    target, module = tmp_path / "rounds", {"open": os, "flock": fcntl}[moment]
    original = getattr(module, moment)

    def interrupted(*arguments):
        monkeypatch.setattr(module, moment, original)
        remove_leftovers(target)
        return original(*arguments)

    monkeypatch.setattr(module, moment, interrupted)
    with closing(RunWriters(Outputs(rounds=target))) as writers:
        (folder,) = parts(tmp_path)
        assert writers.read_log("rounds").parent == folder
    assert not parts(tmp_path)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_another_run_is_about_to_remove_is_not_used(tmp_path, monkeypatch, kind):
    fcntl = pytest.importorskip("fcntl")
    target, locked, remove = tmp_path / "rounds", Event(), files._remove

    def remove_late(part):
        locked.set()
        time.sleep(0.1)
        remove(part)

    def create(descriptor, operation, flock=fcntl.flock):
        if not locked.is_set() and current_thread() is main_thread():
            monkeypatch.setattr(files, "_remove", remove_late)
            cleaner.start()
            assert locked.wait(10)
        return flock(descriptor, operation)

    cleaner = Thread(target=remove_leftovers, args=(target,))
    monkeypatch.setattr(fcntl, "flock", create)
    if kind == "folder":
        with closing(RunWriters(Outputs(rounds=target))) as writers:
            cleaner.join()
            assert writers.read_log("rounds").exists()
    else:
        with replace_file(target) as file:
            cleaner.join()
            file.write(b"whole")
        assert target.read_bytes() == b"whole"


def test_a_link_is_no_leftover(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"kept")
    link = name_part(tmp_path / "model")
    link.symlink_to(outside)
    remove_leftovers(tmp_path / "model")
    assert outside.read_bytes() == b"kept"


def test_a_lock_is_held_by_one(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    first, second = (os.open(tmp_path / "file", os.O_RDONLY) for _ in range(2))
    assert lock(first)
    assert not lock(second)
    os.close(first)
    assert lock(second)
    os.close(second)


def test_a_full_disk_names_the_file(tmp_path):
    with pytest.raises(OSError, match="No space left") as caught, replace_file(tmp_path / "model"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
