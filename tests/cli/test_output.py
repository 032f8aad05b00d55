"""Output is complete, or the command fails: on a full disk, under a limit, into pipes that close or do not block."""

from __future__ import annotations

import errno
import io
import os
import resource
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from redescend.cli.startup import CompleteWriter
from tests.cli.commands import COMMAND, prices, run

LIMIT = 100_000
"""Bytes; less than what the commands write here, and no multiple of a block."""

BUFFERING = {"buffered": {}, "unbuffered": {"PYTHONUNBUFFERED": "1"}}


def soak(*values):
    return pytest.param(*values, marks=pytest.mark.soak)


@contextmanager
def file_size_limit(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_short_writes_are_completed_or_fail(tmp_path):
    with open(tmp_path / "file", "wb", buffering=0) as file, file_size_limit(1000):
        writer = CompleteWriter(file.fileno())
        assert writer.write(b"a" * 700) == 700
        with pytest.raises(OSError, match="standard output") as caught:
            writer.write(memoryview(b"b" * 700))
    assert caught.value.errno == errno.EFBIG
    assert (tmp_path / "file").read_bytes() == b"a" * 700 + b"b" * 300


def test_a_pipe_that_does_not_block_gets_everything():
    read, write = os.pipe()
    os.set_blocking(write, False)
    content = os.urandom(1 << 20)
    got = []

    def read_slowly():
        while data := os.read(read, 1 << 16):
            got.append(data)
            time.sleep(0.001)

    reader = threading.Thread(target=read_slowly)
    reader.start()
    CompleteWriter(write).write(content)
    os.close(write)
    reader.join()
    os.close(read)
    assert b"".join(got) == content


def test_a_pipe_that_was_closed_is_told():
    read, write = os.pipe()
    os.close(read)
    with pytest.raises(BrokenPipeError):
        io.BufferedWriter(CompleteWriter(write)).raw.write(b"x")
    os.close(write)


@pytest.fixture
def commands(in_a_folder):
    """Commands that write more than LIMIT bytes, and what they write."""
    prices(in_a_folder / "prices.csv", 600)
    run("fit", "prices.csv", "--target", "price", "--model", "m", "--no-report", "--quiet")
    lines = Path("prices.csv").read_text().splitlines(keepends=True)
    Path("many.csv").write_text("".join([lines[0], *lines[1:] * 20]))
    tail = ("tail", "many.csv", "--target", "price", "--once", "--threshold", "2", "--quiet")
    listed = {name: (name, "m", "many.csv", "--quiet") for name in ("predict", "score")} | {"tail": tail}
    return lambda name: (listed[name], run(*listed[name]).stdout.encode())


MATRIX = [
    ("predict", "unbuffered", "limit"),
    ("tail", "unbuffered", "not blocking"),
    *(
        soak(name, buffering, sink)
        for name in ("predict", "score", "tail")
        for buffering in BUFFERING
        for sink in ("limit", "full device", "full disk", "not blocking", "closed")
        if (name, buffering, sink) not in {("predict", "unbuffered", "limit"), ("tail", "unbuffered", "not blocking")}
    ),
]


@pytest.mark.parametrize(("name", "buffering", "sink"), MATRIX)
def test_every_byte_is_written_or_the_command_fails(name, buffering, sink, commands, tmp_path):
    command, whole = commands(name)
    assert len(whole) > LIMIT
    environment = os.environ | BUFFERING[buffering]
    if sink == "not blocking":
        read, write = os.pipe()
        os.set_blocking(write, False)
        process = subprocess.Popen([*COMMAND, *command], stdout=write, stderr=subprocess.PIPE, env=environment)
        os.close(write)
        with open(read, "rb", buffering=0) as pipe:
            time.sleep(0.2)  # the pipe has to be full for a while
            got = b"".join(iter(lambda: pipe.read(1000), b""))
        _, said = process.communicate()
        assert (process.returncode, said) == (0, b"")
        assert got == whole
        return
    folder = tmp_path
    if sink == "full disk":
        folder = tmp_path / "disk"
        folder.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={LIMIT // 4096 * 4096}", "none", folder])
        if mounted.returncode:
            pytest.skip("only an administrator can mount a small disk")
    path = Path("/dev/full") if sink == "full device" else folder / "out"
    try:
        if sink == "closed":
            done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, *command], capture_output=True)
        else:
            before = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT,) * 2)) if sink == "limit" else None
            with open(path, "wb") as out:
                done = subprocess.run(
                    [*COMMAND, *command], stdout=out, stderr=subprocess.PIPE, env=environment, preexec_fn=before
                )
            if sink != "full device":
                assert whole.startswith(path.read_bytes())
    finally:
        if sink == "full disk":
            subprocess.run(["umount", folder], check=True)
    assert done.returncode == 2, done.stderr
    assert done.stderr.lower().startswith(b"standard output")
    assert done.stderr.count(b"\n") == 1
