"""The folder of a run: what is in it is whole, is this run's, and is used by one process at a time."""

from pathlib import Path

import numpy as np
import pytest

import redescend as rd
from redescend.errors import DataError, ParameterError
from redescend.streaming.fit import fit_stream
from redescend.streaming.io.checkpoints import FILE, VERSION, Checkpoints, compare


def test_a_checkpoint_comes_back_and_leftovers_of_a_killed_process_go(tmp_path):
    folder = tmp_path / "deep" / "run"
    model = rd.SelfTuning(2, loss=rd.losses.Squared())
    model.update([1.0, 2.0], 3.0)
    with Checkpoints(folder) as first:
        assert first.content is None
        first.write({"model": model, "rows": 3})
        first.write({"model": model, "rows": 5})
    (folder / ".0123456789abcdef.part").write_bytes(b"half")
    (folder / ".0123456789abcdee.part").mkdir()
    (folder / ".mine.part").write_bytes(b"of someone else")
    with Checkpoints(folder, resume=True) as again:
        assert again.content["rows"] == 5
        assert again.content["model"].update([1.0, 2.0], 3.0) == model.update([1.0, 2.0], 3.0)
    assert sorted(path.name for path in folder.glob(".*")) == [".0123456789abcdee.part", ".mine.part"]


def test_a_folder_is_refused_in_one_sentence(tmp_path):
    with Checkpoints(tmp_path) as mine:
        with pytest.raises(DataError, match=r"is in use by another run; wait for its end, or name another\.$"):
            Checkpoints(tmp_path)
        mine.write({})
    with pytest.raises(ParameterError, match=r"holds a checkpoint; resume from it, or name an empty folder\.$"):
        Checkpoints(tmp_path)
    path = tmp_path / FILE
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    with pytest.raises(DataError, match=r"cannot be loaded: .*corrupt"):
        Checkpoints(tmp_path, resume=True)
    rd.save(rd.losses.Squared(), path)
    with pytest.raises(DataError, match=r"is not a checkpoint of a pass over a stream; name another folder\.$"):
        Checkpoints(tmp_path, resume=True)
    rd.save({"pass_version": VERSION + 1}, path)
    with pytest.raises(DataError, match=r"newer version; update with: pip install --upgrade redescend$"):
        Checkpoints(tmp_path, resume=True)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match=r"cannot be used for checkpoints \(File exists\); name another\.$"):
        Checkpoints(tmp_path / "file")
    # A refused folder is free again.
    path.write_bytes(content)
    Checkpoints(tmp_path, resume=True).close()


def test_only_the_same_run_is_resumed():
    before = {"target": "y", "loss": rd.losses.Squared(), "features": ["a", "b"]}
    compare({"target": "y", "loss": rd.losses.Squared(l2=0.0), "features": ["a", "b"]}, before, Path("run"))
    with pytest.raises(ParameterError, match=r"'run' was started with features = \['a', 'b'\], and cannot be resumed"):
        compare(before | {"features": None}, before, Path("run"))


ODD = (None, True, -1, "yes", [1], {"a": 1}, np.arange(3))
"""What may be in the place of a part of a checkpoint that someone has altered."""


def altered(content, odd):
    """The content with something else in the place of one of its parts, of each in turn, and of parts of these."""
    for name, part in content.items():
        yield f"{name} = {odd!r}", content | {name: odd}
        if isinstance(part, dict):
            yield from ((f"{name}.{what}", content | {name: inside}) for what, inside in altered(part, odd))


def test_a_checkpoint_that_was_altered_is_refused_or_can_be_used(tmp_path):
    """Nothing but the sentences of the library comes of it, and what must be a flag or a count is one."""
    source, folder = tmp_path / "a.csv", tmp_path / "run"
    source.write_text("a,b,y\n" + "".join(f"{row % 7},{row % 5},{row % 3}\n" for row in range(60)) + "1,2\n")
    kept = {"checkpoint": folder, "rounds": tmp_path / "r", "every": 25, "task": "regression"}
    with fit_stream(source, "y", **kept)[1] as rounds:
        for _ in zip(range(3), rounds.batches(), strict=False):
            pass
    content, ledger = rd.load(folder / FILE), (folder / "rounds.ledger").read_bytes()
    assert content["counts"] == [50, 50, 0, 0]
    refused = []
    for odd in ODD:
        for what, other in altered(content, odd):
            rd.save(other, folder / FILE)
            (folder / "rounds.ledger").write_bytes(ledger)
            try:
                with fit_stream(source, "y", **kept, resume=True)[1] as rounds:
                    rounds.run()
            except (DataError, ParameterError):
                refused.append(what)
    for name in content.keys() - {"position"}:
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
def test_the_parts_of_a_checkpoint_must_agree(tmp_path, parts):
    source, folder = tmp_path / "a.csv", tmp_path / "run"
    source.write_text("a,b,y\n" + "".join(f"{row % 7},{row % 5},{row % 3}\n" for row in range(60)))
    kept = {"checkpoint": folder, "every": 25, "task": "regression"}
    with fit_stream(source, "y", **kept)[1] as rounds:
        for _ in zip(range(3), rounds.batches(), strict=False):
            pass
    rd.save(rd.load(folder / FILE) | parts, folder / FILE)
    with pytest.raises(
        DataError, match=r"^The checkpoint in '.*run' does not hold what a run writes, so it is damaged"
    ):
        fit_stream(source, "y", **kept, resume=True)
