"""The folder of a run: what is in it is whole, is this run's, and is used by one process at a time."""

from contextlib import closing

import numpy as np
import pytest

import redescend as rd
from redescend.errors import DataError, ParameterError
from redescend.streaming.config import FitConfig
from redescend.streaming.fit import fit_stream
from redescend.streaming.io.checkpoints import FILE, VERSION, CheckpointFolder

CORRUPT = "the file is corrupt or was written by an incompatible version"


@pytest.fixture
def paused(tmp_path):
    """A source, the options of a run over it that stopped after 50 of 60 records, and the folder of its checkpoint."""
    source, folder = tmp_path / "a.csv", tmp_path / "deep" / "run"
    source.write_text("a,b,y\n" + "".join(f"{row % 7},{row % 5},{row % 3}\n" for row in range(60)) + "1,2\n")
    options = {"checkpoint": folder, "rounds": tmp_path / "r", "every": 25, "task": "regression"}
    with fit_stream(source, "y", **options)[1] as rounds:
        for _ in zip(range(3), rounds.batches(), strict=False):
            pass
    return source, options, folder


def test_a_checkpoint_comes_back_and_leftovers_of_a_killed_process_go(paused):
    _, _, folder = paused
    (folder / ".0123456789abcdef.part").write_bytes(b"half")
    (folder / ".0123456789abcdee.part").mkdir()
    (folder / ".mine.part").write_bytes(b"of someone else")
    with closing(CheckpointFolder(folder, resume=True)) as again:
        assert again.last.counts == [50, 50, 0, 0]
        assert again.last.model.records == 50
    assert sorted(path.name for path in folder.glob(".*")) == [".0123456789abcdee.part", ".mine.part"]


def test_a_folder_is_refused_in_one_sentence(paused, tmp_path):
    _, _, folder = paused
    with (
        closing(CheckpointFolder(folder, resume=True)),
        pytest.raises(DataError, match=r"is in use by another run; wait until it ends, or name another\.$"),
    ):
        CheckpointFolder(folder)
    with pytest.raises(ParameterError, match=r"contains a checkpoint; resume from it, or name an empty folder\.$"):
        CheckpointFolder(folder)
    path = folder / FILE
    content, whole = path.read_bytes(), rd.load(path)
    path.write_bytes(content[:-3])
    with pytest.raises(DataError, match=r"cannot be loaded: .*corrupt"):
        CheckpointFolder(folder, resume=True)
    for other in (rd.losses.Squared(), {"version": VERSION}, whole | {"version": VERSION + 1}):
        rd.save(other, path)
        with pytest.raises(DataError, match=rf"{CORRUPT}; start again with an empty folder\.$"):
            CheckpointFolder(folder, resume=True)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match=r"cannot be used for checkpoints \(File exists\); name another\.$"):
        CheckpointFolder(tmp_path / "file")
    # A refused folder is free again.
    path.write_bytes(content)
    CheckpointFolder(folder, resume=True).close()


def test_only_the_same_run_is_resumed():
    before = FitConfig(target="y", loss=rd.losses.Squared(), features=("a", "b")).to_dict()
    FitConfig(target="y", loss=rd.losses.Squared(l2=0.0), features=["a", "b"], every=7).check_resumable(before)
    with pytest.raises(ParameterError, match=r"was started with features = \['a', 'b'\] and cannot be resumed with"):
        FitConfig(target="y", loss=rd.losses.Squared()).check_resumable(before)


ODD = (None, True, -1, "yes", [1], {"a": 1}, np.arange(3))
"""What may be in the place of a part of a checkpoint that someone has altered."""


def altered(content, odd):
    """The content with something else in the place of one of its parts, of each in turn, and of parts of these."""
    for name, part in content.items():
        yield f"{name} = {odd!r}", content | {name: odd}
        if isinstance(part, dict):
            yield from ((f"{name}.{what}", content | {name: inside}) for what, inside in altered(part, odd))


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_checkpoint_that_was_altered_is_refused_or_can_be_used(paused, every):
    """Nothing but the sentences of the library comes of it, and what must be a flag or a count is one."""
    source, options, folder = paused
    content, log = rd.load(folder / FILE), (folder / "rounds.log").read_bytes()
    assert content["counts"] == [50, 50, 0, 0]
    refused = []
    for turn, odd in enumerate(ODD):
        # Every part is replaced by everything, and parts of parts by one odd value each, or by every one.
        for place, (what, other) in enumerate(altered(content, odd)):
            if not every and "." in what.partition(" = ")[0] and place % len(ODD) != turn:
                continue
            rd.save(other, folder / FILE)
            (folder / "rounds.log").write_bytes(log)
            try:
                with fit_stream(source, "y", **options, resume=True)[1] as rounds:
                    rounds.run()
            except (DataError, ParameterError):
                refused.append(what)
    for name in content.keys() - {"position", "mark"}:
        assert {f"{name} = {odd!r}" for odd in (None, "yes", [1], {"a": 1})} <= set(refused), name


@pytest.mark.parametrize(
    "parts",
    [
        {"counts": [51, 50, 0, 0]},
        {"counts": [50, 49, 1, 0]},
        {"counts": [50, 51, -1, 0]},
        {"counts": [1]},
        {"position": [0, 0, 0, 49]},
        {"position": None},
        {"ended": "yes"},
        {"ended": 1},
        {"finished": True},
        {"more": 1},
    ],
    ids=str,
)
def test_the_parts_of_a_checkpoint_must_agree(paused, parts):
    source, options, folder = paused
    rd.save(rd.load(folder / FILE) | parts, folder / FILE)
    with pytest.raises(DataError, match=rf"^The checkpoint '.*': {CORRUPT}; start again with an empty folder\.$"):
        fit_stream(source, "y", **options, resume=True)
