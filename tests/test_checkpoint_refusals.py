"""A file that is not what was written is refused in one sentence, and no file runs code."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pickle
import resource

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as safetensors

import redescend as rd
from redescend import errors, losses, steps
from redescend.checkpoint import load, save
from redescend.checkpoint.serialization import Serializer

ZEROS = b"0" * 64


def learner():
    one = rd.TopK(3, loss=losses.Squared(), k=2, step=steps.Anytime())
    one.update([1.0, 2.0, 3.0], 1.0)
    return one


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "model.safetensors"
    save(learner(), path)
    return path


def refused(path):
    """The one sentence, which names the file."""
    with pytest.raises(errors.DataError) as caught:
        load(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"'{path}' cannot be loaded: ")
    assert "\n" not in sentence
    assert len(sentence) < 500
    return sentence.partition(" cannot be loaded: ")[2]


@given(place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
@settings(deadline=None, derandomize=True, max_examples=150)
def test_no_byte_can_change_unseen(sound, place, flip):
    content = bytearray(sound.read_bytes())
    content[int(place * len(content))] ^= flip
    altered = sound.with_name("altered")
    altered.write_bytes(content)
    refused(altered)


@given(share=st.floats(0, 1, exclude_max=True), more=st.binary(min_size=1, max_size=9))
@settings(deadline=None, derandomize=True, max_examples=25)
def test_a_file_that_is_cut_short_or_has_grown_is_refused(sound, share, more):
    content = sound.read_bytes()
    for changed in (content[: int(share * len(content))], content + more):
        altered = sound.with_name("altered")
        altered.write_bytes(changed)
        refused(altered)


def forged(path, model, arrays=None, format=1, **more):
    """A file with a sound digest that somebody else wrote; the digest is computed here from its definition."""
    text = json.dumps({"format": format, "library": "9.9.9", "digest": ZEROS.decode(), "model": model, **more})
    content = safetensors(arrays or {}, {"redescend": text})
    assert content.count(ZEROS) == 1
    path.write_bytes(content.replace(ZEROS, hashlib.sha256(content).hexdigest().encode()))
    return path


def test_a_file_of_a_newer_version_says_so(tmp_path):
    why = refused(forged(tmp_path / "model", {"new": "things"}, format=2))
    assert why == (
        "redescend 9.9.9 wrote it in format 2, but this version reads formats up to 1. Update with: "
        "pip install --upgrade redescend"
    )


def test_what_is_no_file_of_ours_is_refused(tmp_path):
    path = tmp_path / "model"
    for content in (b"", b"\x80\x04.", pickle.dumps(learner()), b"\xff" * 100, safetensors({"a": np.zeros(3)})):
        path.write_bytes(content)
        assert refused(path).startswith("it was not written by redescend.save")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")


class Payload:
    def __reduce__(self):
        return os.mkdir, ("harm",)


def deep(levels):
    inner = None
    for _ in range(levels):
        inner = [inner]
    return inner


def parts():
    """A sound description of a learner, and its arrays."""
    writer = Serializer()
    return writer.serialize(learner()), writer.arrays


def with_setting(name, value):
    model, arrays = parts()
    model["settings"][name] = value
    return model, arrays


def with_state(name, value):
    model, arrays = parts()
    model["state"]["dict"] = [[key, value if key == name else old] for key, old in model["state"]["dict"]]
    return model, arrays


def with_scalar(name, value):
    model, arrays = with_setting(name, {"scalar": {"array": "size"}})
    return model, arrays | {"size": np.array(value)}


def with_second_order(dim):
    """A learner of order 2, which needs dim² numbers; the file has 4·dim."""
    settings = {"dim": dim, "loss": {"class": "redescend.losses.Squared", "settings": {"l2": 0.0}}, "order": 2}
    state = {"dict": [["learner", "SelfTuning"], ["thetas", {"array": "thetas"}]]}
    return {"class": "redescend.SelfTuning", "settings": settings, "state": state}, {"thetas": np.zeros((4, dim))}


def with_array(change):
    model, arrays = parts()
    for name in ("model.state.previous", "model.state.record"):
        arrays[name] = change(arrays[name])
    return model, arrays


PICKLE = base64.b64encode(pickle.dumps(Payload())).decode()
HOSTILE = {
    "pickle": (lambda: (PICKLE, {}), None),
    "pickle in a state": (lambda: with_state("learner", {"pickle": PICKLE}), "does not know"),
    "os.system": (lambda: ({"class": "os.system", "settings": {"command": "mkdir harm"}}, {}), "names 'os.system'"),
    "a function of ours": (lambda: ({"class": "redescend.play", "settings": {}}, {}), "names 'redescend.play'"),
    "a module of ours": (lambda: ({"class": "redescend.losses.linear.np.load", "settings": {}}, {}), "names"),
    "a base class": (lambda: ({"class": "redescend.Learner", "settings": {}}, {}), "names"),
    "dunder": (lambda: ({"class": "redescend.OGD.__init__", "settings": {}}, {}), "names"),
    "no name": (lambda: ({"class": ["redescend"], "settings": {}}, {}), "names"),
    "custom": (lambda: with_setting("loss", {"class": "redescend.losses.Custom", "settings": {}}), "Custom"),
    "function as a loss": (lambda: with_setting("loss", "os.system"), "'loss' parameter"),
    "unknown setting": (lambda: with_setting("__class__", "x"), "cannot be made"),
    "huge dim": (lambda: with_setting("dim", 10**12), "too short"),
    "huge scalar": (lambda: with_scalar("dim", 2**28), "too short"),
    "huge k as a scalar": (lambda: with_scalar("k", 2**28), "too short"),
    "huge square": (lambda: with_second_order(20_000), "too short"),
    "long texts": (lambda: ({"texts": ["a" * 20_000] + [""] * 20_000, "shape": [20_001]}, {}), "room"),
    "texts of numbers": (lambda: ({"texts": [1, 2.5], "shape": [2]}, {}), "texts"),
    "huge k": (lambda: with_setting("k", 10**15), "too short"),
    "deep": (lambda: (deep(900), {}), "deep"),
    "no state": (lambda: ({"class": "redescend.OGD", "settings": parts()[0]["settings"]}, {}), None),
    "state of a loss": (lambda: ({"class": "redescend.losses.Hinge", "settings": {}, "state": {}}, {}), "state"),
    "missing array": (lambda: (parts()[0], {}), "does not know"),
    "nan": (lambda: with_array(lambda array: array * np.nan), "not finite"),
    "inf in a number": (lambda: with_state("keep", {"float": "inf"}), "not finite"),
    "other shape": (lambda: with_array(lambda array: np.zeros(4)), "of shape (4,)"),
    "other type": (lambda: with_array(lambda array: array.astype(np.int64)), "not of float32"),
    "other precision": (lambda: with_array(lambda array: array.astype(np.float16)), "not of float32"),
    "foreign state": (lambda: with_state("learner", "OGD(1)"), "belongs to"),
    "unhashable": (lambda: ({"dict": [[[], 1]]}, {}), "cannot be made"),
    "uneven": (lambda: ({"dict": [[1, 2, 3]]}, {}), "cannot be made"),
    "huge shape": (lambda: ({"objects": [], "shape": [10**6, 10**6]}, {}), "cannot be made"),
    "unknown": (lambda: ({"lambda": "x: x"}, {}), "does not know"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_and_runs_nothing(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, why = HOSTILE[name]
    model, arrays = make()
    path = forged(tmp_path / "model", model, arrays)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if name == "pickle":
        assert load(path) == PICKLE  # text it is, and text it stays
    else:
        sentence = refused(path)
        assert why is None or why in sentence
    assert not (tmp_path / "harm").exists()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # in KiB


def test_shapes_that_the_file_has_no_room_for_are_refused(tmp_path):
    """The header of a sound file, rewritten to claim more than there is."""
    model, arrays = parts()
    content = forged(tmp_path / "model", model, arrays).read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["model.state.previous"]["shape"] = [10**12]
    text = json.loads(header["__metadata__"]["redescend"])
    header["__metadata__"]["redescend"] = json.dumps({**text, "digest": ZEROS.decode()})
    raw = json.dumps(header).encode()
    content = len(raw).to_bytes(8, "little") + raw + content[8 + size :]
    path = tmp_path / "model"
    path.write_bytes(content.replace(ZEROS, hashlib.sha256(content).hexdigest().encode()))
    assert "cannot be made" in refused(path)


def test_a_bomb_of_brackets_is_refused(tmp_path):
    path = tmp_path / "model"
    for raw in (b"[" * 200_000, b'{"__metadata__":{"redescend":"' + b"[" * 200_000 + b'"}}'):
        path.write_bytes(len(raw).to_bytes(8, "little") + raw)
        assert "deep" in refused(path)


def test_a_folder_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path, ""):
        assert "is a folder" in refused(path)
        with pytest.raises(errors.DataError, match="cannot be written because it is a folder"):
            save(learner(), path)


def test_a_missing_folder_gets_a_sentence(tmp_path):
    with pytest.raises(rd.errors.DataError, match=r"no folder '.*nowhere'; create it first"):
        rd.save(rd.OGD(1, loss=rd.losses.Squared(), step=rd.steps.Anytime()), tmp_path / "nowhere" / "model")
