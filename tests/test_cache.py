"""Compiled kernels are kept where that is possible; without a cache, or with a damaged one, everything works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from redescend.kernels import compiler, quantiles, views
from redescend.kernels.compilation import cache, parts

READ_ONLY = """
import tempfile

def refuse(*_, **__):
    raise OSError(30, "Read-only file system")

tempfile.TemporaryFile = refuse
"""
"""As it is where neither the package nor the home can be written."""

PLAY = """
import json, logging
import redescend as rd
from redescend.kernels import descent

learner = rd.OGD(2, loss=rd.losses.Squared(), step=rd.steps.Constant(0.25), start=[1.0, 2.0])
theta = learner.theta.tolist()
print(json.dumps([theta, sum(descent.action.stats.cache_hits.values())]))
"""


def play(code: str, **environment: str) -> tuple[list, str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=os.environ | environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_without_a_writable_folder_it_runs_and_says_so_once():
    (theta, hits), said = play(READ_ONLY + PLAY)
    assert theta == [1.0, 2.0]
    assert hits == 0
    assert said == cache.UNCACHED + "\n"


def test_damaged_files_are_compiled_again_and_replaced(tmp_path):
    """The folder is the one of the variable; a second process loads what the first compiled."""
    folder = {cache.VARIABLE: str(tmp_path)}
    assert play(PLAY, **folder)[0] == [[1.0, 2.0], 0]
    files = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.nb?"))}
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    for number, (path, content) in enumerate(files.items()):
        damaged = content[: len(content) // 2] if number % 2 else content[:-9] + b"\x80" + content[-8:]
        path.write_bytes(damaged)
    assert play(PLAY, **folder) == ([[1.0, 2.0], 0], "")
    assert play(PLAY, **folder) == ([[1.0, 2.0], 1], "")


def test_checks_of_bounds_have_files_of_their_own(tmp_path):
    folder, checked = {cache.VARIABLE: str(tmp_path)}, {"NUMBA_BOUNDSCHECK": "1"}
    for more, hits in (({}, 0), (checked, 0), ({}, 1), (checked, 1)):
        assert play(PLAY, **folder, **more) == ([[1.0, 2.0], hits], "")


def test_a_kernel_is_compiled_again_if_anything_changes_that_it_is_compiled_from_or_by(monkeypatch):
    monkeypatch.setattr(compiler, "_hash", set)
    used = compiler.module_digest.__wrapped__(Path(quantiles.__file__))
    assert {Path(module.__file__) for module in (quantiles, views, compiler, parts)} <= used


def test_a_digest_is_checked_before_anything_is_unpickled(tmp_path):
    class Harm:
        def __reduce__(self):
            return Path.touch, (tmp_path / "harm",)

    file = cache.CheckedFile(str(tmp_path), "kernel", "stamp")
    file.save("key", [1, 2])
    assert file.load("key") == [1, 2]
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        path.write_bytes(content[: cache.DIGEST] + file._dump(Harm()))
        assert file.load("key") is None
        path.write_bytes(content)
    assert not (tmp_path / "harm").exists()
    assert cache.CheckedFile(str(tmp_path), "kernel", "another stamp").load("key") is None


def test_what_another_version_of_numba_wrote_is_not_read(tmp_path, monkeypatch):
    """It may name modules that this version does not have; neither loading nor saving may stumble over it."""
    monkeypatch.setattr("numba.__version__", "0.1")
    other = cache.CheckedFile(str(tmp_path), "kernel", "stamp")
    monkeypatch.setattr(other, "_dump", lambda content: b"cnumba.no_such_module\nName\n.")
    other.save("key", [1])
    monkeypatch.undo()
    file = cache.CheckedFile(str(tmp_path), "kernel", "stamp")
    assert file.load("key") is None
    file.save("key", [2])
    assert file.load("key") == [2]


@pytest.mark.parametrize("type_name", [b"redescend.no_such_module\nName", b"redescend.numeric\nno_such_name"])
def test_a_kernel_of_types_that_have_moved_is_compiled_again(tmp_path, monkeypatch, type_name):
    file = cache.CheckedFile(str(tmp_path), "kernel", "stamp")
    with monkeypatch.context() as patch:
        patch.setattr(file, "_dump", lambda content: b"c" + type_name + b"\n.")
        file.save("key", [1])
    assert file.load("key") is None
    file.save("key", [2])
    assert file.load("key") == [2]


@pytest.mark.skipif(os.name != "posix", reason="other systems do not say who may write")
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path):
    cache.check_owner(str(tmp_path))
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match="others may write to it"):
        cache.check_owner(str(tmp_path))
