"""Nothing in a folder is left out without a word."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from redescend.errors import DataError
from redescend.sources import open_source
from redescend.sources.readers import find_files


@pytest.fixture
def folder(tmp_path):
    """Two files with data; what is left out on purpose; and what cannot be read."""
    root = tmp_path / "parts"
    (root / "deep").mkdir(parents=True)
    for name in ("a.csv", "deep/b.csv"):
        (root / name).write_text("x,y\n" + "1,2\n3,4\n" * 50)
    for name in (".hidden.csv", "_done"):
        (root / name).write_text("no data")
    (root / "empty.csv").touch()
    (root / "link.csv").symlink_to(root / "a.csv")
    return root


@pytest.fixture
def broken(folder, monkeypatch):
    """The same, with everything that cannot be read."""
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "c.csv").write_text("x,y\n1,2\n")
    (folder / "linked").symlink_to(outside, target_is_directory=True)
    (folder / "dangling.csv").symlink_to(folder / "gone.csv")
    os.mkfifo(folder / "pipe.csv")
    (folder / "secret").mkdir()
    scandir = os.scandir

    def refuse(path):
        if Path(path).name == "secret":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    return folder


REASONS = {
    "dangling.csv": "it is a link to nothing",
    "linked": "it is a link to a folder; name that folder as well",
    "pipe.csv": "it is not a regular file",
    "secret": "the folder cannot be read: Permission denied",
}


def test_what_is_left_out_on_purpose_is_not_mentioned(folder):
    unread = []
    assert list(find_files(folder, unread)) == [folder / name for name in ("a.csv", "deep/b.csv", "link.csv")]
    assert unread == []


def test_everything_else_is_named_with_a_reason(broken):
    source = open_source(broken)
    assert [Path(name).name for name in source.files] == ["a.csv", "b.csv", "link.csv"]
    assert {Path(path).name: reason for path, reason in source.unread} == REASONS
    assert open_source(broken / "a.csv").unread == []
    assert open_source([broken / "a.csv", broken]).unread == source.unread
    with pytest.raises(DataError, match=r"There is no file .*dangling\.csv\."):
        open_source(str(broken / "dang*"))


def test_the_first_file_is_named_if_it_has_no_records(tmp_path):
    (tmp_path / "README.md").write_text("Prices by shop.\n")
    (tmp_path / "prices.csv").write_text("x,y\n1,2\n")
    with pytest.raises(DataError, match=r"README\.md, the first of the 2 files of .*, has no records\.$"):
        open_source(tmp_path)
