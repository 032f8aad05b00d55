"""The folder of a run: what is in it is whole, is this run's, and is used by one process at a time."""

from pathlib import Path

import pytest

import redescend as rd
from redescend.errors import DataError, ParameterError
from redescend.streaming.checkpoints import FILE, VERSION, Checkpoints, compare


def test_a_checkpoint_comes_back_and_leftovers_of_a_killed_process_go(tmp_path):
    folder = tmp_path / "deep" / "run"
    model = rd.SelfTuning(2, loss=rd.losses.Squared())
    model.update([1.0, 2.0], 3.0)
    with Checkpoints(folder) as first:
        assert first.content is None
        first.write({"model": model, "rows": 3})
        first.write({"model": model, "rows": 5})
    (folder / ".0123.part").write_bytes(b"half")
    with Checkpoints(folder, resume=True) as again:
        assert again.content["rows"] == 5
        assert again.content["model"].update([1.0, 2.0], 3.0) == model.update([1.0, 2.0], 3.0)
    assert not list(folder.glob("*.part"))


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
    with pytest.raises(DataError, match=r"cannot be loaded: .*cut short"):
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
