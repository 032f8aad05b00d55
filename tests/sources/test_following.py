"""A file that is rotated while it is followed: every record of the old and the new file is read once, in order."""

from __future__ import annotations

import os
import shutil

import pytest

from redescend.errors import DataError
from redescend.sources import open_source
from redescend.streaming import fit_stream

HEADER = "x,y\n"


def lines(first, last):
    return "".join(f"{row},{row % 7}\n" for row in range(first, last))


def append(path, text):
    with open(path, "a") as file:
        file.write(text)


def rename_and_create(path, rest, new):
    """The program writes the rest to the old file before it opens the new one."""
    os.rename(path, f"{path}.1")
    append(f"{path}.1", rest)
    path.write_text(new)


def copy_and_truncate(path, rest, new):
    append(path, rest)
    shutil.copy(path, f"{path}.1")
    with open(path, "r+") as file:
        file.truncate()
        file.write(new)


def truncate_and_refill(path, rest, new):
    """Nothing was written after the last look: what nobody has a copy of is lost."""
    with open(path, "r+") as file:
        file.truncate()
        file.write(new)


ROTATIONS = {
    "rename": (rename_and_create, lines(200, 250)),
    "rename, nothing left": (rename_and_create, ""),
    "rename, no newline at the end": (rename_and_create, lines(200, 250).rstrip("\n")),
    "copy": (copy_and_truncate, lines(200, 250)),
    "copy, nothing left": (copy_and_truncate, ""),
    "refill": (truncate_and_refill, ""),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(HEADER + lines(0, 200))
    (tmp_path / "log.csv.old").write_text(HEADER + lines(5000, 6000))  # another file
    return path


def read(path, *steps, **options):
    """The values of a file that is followed; at its end, the next step is taken."""
    # Twice more, to read what the last step wrote.
    left, source = [*steps, list, list], open_source(path, kinds={"x": "number"})

    def follow():
        return bool(left) and left.pop(0)() is not follow

    found = [x for batch in source.batches(["x"], follow=follow, **options) for x in batch.table["x"].to_pylist()]
    return [int(x) for x in found]


@pytest.mark.parametrize("new", [lines(250, 260), lines(250, 900)], ids=["smaller", "larger"])
@pytest.mark.parametrize("header", [HEADER, ""], ids=["header", "no header"])
@pytest.mark.parametrize("name", ROTATIONS)
def test_rotations(path, name, header, new):
    rotate, rest = ROTATIONS[name]
    expected = [*range(200), *range(200, 200 + len(rest.splitlines())), *range(250, 250 + len(new.splitlines()))]
    assert read(path, lambda: rotate(path, rest, header + new)) == expected


def test_a_file_that_is_created_late_and_line_by_line(path):
    steps = [
        lambda: append(path, lines(200, 210)),
        lambda: os.rename(path, f"{path}.1"),
        lambda: append(f"{path}.1", lines(210, 220)),
        lambda: path.write_text("x"),
        lambda: append(path, ",y\n220,"),
        lambda: append(path, "3\n"),
        lambda: rename_and_create(path, lines(221, 230), HEADER + lines(230, 240)),
    ]
    assert read(path, *steps) == list(range(240))


def play(path, folder, resume, once=True, **options):
    _, rounds = fit_stream(
        path, "y", checkpoint=folder, resume=resume, task="regression", follow=lambda: not once, **options
    )
    with rounds:
        rows = [row for batch in rounds.batches() for row in batch.targets.tolist()]
    return rounds, rows


@pytest.mark.parametrize("new", [lines(250, 260), lines(250, 900)], ids=["smaller", "larger"])
@pytest.mark.parametrize("header", [HEADER, ""], ids=["header", "no header"])
@pytest.mark.parametrize("name", ["rename", "copy", "rename, nothing left"])
def test_a_resumed_run_finds_its_place_by_content(path, tmp_path, name, header, new):
    _, before = play(path, tmp_path / "run", resume=False)
    rotate, rest = ROTATIONS[name]
    rotate(path, rest, header + new)
    second, after = play(path, tmp_path / "run", resume=True)
    count = 200 + len(rest.splitlines())
    expected = [*range(count), *range(250, 250 + len(new.splitlines()))]
    assert before + after == [float(row % 7) for row in expected]
    assert second.counts.records == second.counts.learned == len(expected)
    append(path, lines(900, 950))
    _, last = play(path, tmp_path / "run", resume=True)
    assert last == [float(row % 7) for row in range(900, 950)]


def test_a_file_that_was_replaced_by_something_else_is_refused(path, tmp_path):
    play(path, tmp_path / "run", resume=False)
    path.write_text(HEADER + lines(1000, 1500))
    with pytest.raises(DataError, match=r"log\.csv has changed before the last record that was read"):
        play(path, tmp_path / "run", resume=True)
