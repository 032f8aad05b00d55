"""A model that was saved and loaded goes on as if it had never stopped."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import redescend as rd
from redescend import errors, losses, steps
from redescend.checkpoint import FORMAT, load, save
from redescend.checkpoint.serialization import CLASSES, DTYPES, Deserializer, Serializer, class_name
from redescend.files import replace_file
from tests.catalogue import CATALOGUE, name_of, public_classes
from tests.saved_models import AFTER, COMMON, DIM, ESTIMATORS, FAMILIES, FILES, LEARNERS, answers, streams, teach

COMPONENTS = [one for kind in CATALOGUE.values() for one in kind if not isinstance(one, losses.Custom)]


def round_trip(value):
    """Through the words of a file, without the file."""
    writer = Serializer()
    described = json.loads(json.dumps(writer.serialize(value)))
    return Deserializer(writer.arrays, file_size=10**6).deserialize(described)


def assert_same_bits(left, right):
    assert left.keys() == right.keys()
    for name, value in left.items():
        one, other = np.asarray(value), np.asarray(right[name])
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes()), name


@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_goes_on_bit_for_bit(name, tmp_path):
    learner = LEARNERS[name]()
    before, after = streams(learner)
    rd.play(learner, before)
    save(learner, tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is type(learner)
    assert repr(again) == repr(learner)
    assert_same_bits(again.state(), learner.state())
    traces = [rd.play(one, after, keep_actions=True) for one in (learner, again)]
    for part in ("actions", "losses", "weights", "theta"):
        assert getattr(traces[0], part).tobytes() == getattr(traces[1], part).tobytes()
    assert_same_bits(again.state(), learner.state())


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_a_model_that_has_seen_nothing_settles_its_precision_as_it_would_have(dtype, tmp_path):
    learner = rd.OGD(2, start=[0.1, 0.2], dtype=dtype, **COMMON)
    save(learner, tmp_path / "model")
    again = load(tmp_path / "model")
    for one in (learner, again):
        one.update(np.array([0.3, 0.7], np.float32), 1.0)
    assert again.dtype == learner.dtype == np.float32
    assert again.theta.tobytes() == learner.theta.tobytes()


@pytest.mark.parametrize("component", COMPONENTS, ids=name_of)
def test_every_component_is_described(component):
    assert repr(round_trip(component)) == repr(component)


def test_every_public_class_may_be_named():
    for module in CATALOGUE:
        expected = {kind for kind in public_classes(module) if kind is not losses.Custom}
        assert {getattr(module, name) for name in CLASSES[module.__name__]} == expected
    made = [getattr(rd, name) for name in rd.__all__]
    learners = {kind for kind in made if isinstance(kind, type) and issubclass(kind, rd.Learner)} - {rd.Learner}
    assert {getattr(rd, name) for name in CLASSES["redescend"]} == learners
    assert {type(make()) for make in FAMILIES.values()} == learners


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
NUMERIC = arrays.arrays(
    st.sampled_from(sorted(DTYPES)).map(np.dtype), arrays.array_shapes(min_dims=0, min_side=0, max_side=3)
)
TEXTS = arrays.arrays("U3", 2, elements=st.text("ab", max_size=3)) | arrays.arrays(object, (2, 2), elements=PLAIN)
VALUES = st.recursive(
    PLAIN | NUMERIC | TEXTS | NUMERIC.filter(lambda array: array.size).map(lambda array: array.ravel()[0]),
    lambda part: st.lists(part, max_size=3) | st.tuples(part, part) | st.dictionaries(PLAIN, part, max_size=3),
    max_leaves=8,
)


def in_full(value):
    """A value written out with its types, so that 1, True and 1.0 differ, and NaN is itself."""
    if isinstance(value, dict):
        return {"dict": [(in_full(key), in_full(part)) for key, part in value.items()]}
    if isinstance(value, list | tuple):
        return type(value), [in_full(part) for part in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "UO":
        return value.dtype.kind, value.shape, [in_full(part) for part in value.ravel().tolist()]
    if isinstance(value, np.ndarray | np.generic):
        return type(value), value.dtype, value.shape, value.tobytes()
    return type(value), repr(value)


@given(value=VALUES)
@settings(deadline=None, derandomize=True, max_examples=60)
def test_every_value_of_a_state_comes_back_as_it_was(value):
    assert in_full(round_trip(value)) == in_full(value)


def test_the_same_model_makes_the_same_file_and_safetensors_reads_it(tmp_path):
    from safetensors.numpy import load_file

    learner = LEARNERS["selftuning"]()
    rd.play(learner, streams(learner)[0])
    for name in ("one", "two"):
        save(learner, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    np.testing.assert_array_equal(load_file(tmp_path / "one")["model.state.theta"], learner.state()["theta"])


def test_a_custom_loss_is_refused_and_the_advice_works(tmp_path):
    def make():
        custom = losses.Custom(lambda theta, x, y: (y - x @ theta) ** 2, lambda theta, x, y: 2 * (x @ theta - y) * x)
        return rd.OGD(DIM, loss=custom, step=steps.Anytime())

    learner = make()
    learner.update([1.0, 2.0, 3.0], 1.0)
    with pytest.raises(errors.ParameterError, match=r"Custom loss cannot be saved, because .* restore\(\) that"):
        save(learner, tmp_path / "model")
    assert not any(tmp_path.iterdir())
    save(learner.state(), tmp_path / "state")
    again = make()
    again.restore(load(tmp_path / "state"))
    assert again.theta.tobytes() == learner.theta.tobytes()


def cyclic():
    inner = []
    inner.append(inner)
    return inner


class Own(rd.OGD):
    """Somebody else's learner."""


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (Own(DIM, **COMMON), "test_checkpoint.Own"),
        (os.system, "builtin_function"),
        ({"when": np.zeros(1, "M8[s]")}, "datetime64"),
        ({"which": {1, 2}}, "builtins.set"),
        ({"count": -(10**5000)}, "integer of more than"),
        (cyclic(), "contains itself"),
    ],
)
def test_what_is_not_ours_is_not_written(model, why, tmp_path):
    with pytest.raises(errors.ParameterError, match=rf"cannot be saved, because .*{why}"):
        save(model, tmp_path / "model")


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "model"
    save(rd.OGD(1, **COMMON), path)
    before = path.read_bytes()

    def full(_handle):
        raise OSError("no space left")

    monkeypatch.setattr("redescend.files.os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        save(rd.OGD(2, **COMMON), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_replaced_keeps_its_permissions_and_its_links(tmp_path):
    path, link = tmp_path / "model", tmp_path / "link"
    save(rd.OGD(1, **COMMON), path)
    path.chmod(0o640)
    link.symlink_to("model")
    save(rd.OGD(2, **COMMON), link)
    assert link.is_symlink()
    assert load(path).dim == 2
    assert path.stat().st_mode & 0o777 == 0o640
    longest = tmp_path / ("m" * 255)
    save(rd.OGD(3, **COMMON), longest)
    assert load(longest).dim == 3


def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("pipe")
    for path in (pipe, link):
        sentence = rf"^'.*{path.name}' cannot be replaced because it is not a regular file; choose another path\.$"
        with pytest.raises(errors.DataError, match=sentence), replace_file(path):
            pytest.fail("Nothing must be written.")
    with pytest.raises(errors.DataError, match="is not a regular file"):
        save(rd.OGD(1, **COMMON), pipe)
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == [link, pipe]


RELEASED = sorted(FILES.glob("*/*.safetensors"))


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_files_of_every_released_version_load(path):
    """They go on to where the version that wrote them went; another processor may round the last digits otherwise."""
    model, tolerance = load(path), 1e-9
    if path.stem in ESTIMATORS:
        teach(path.stem, model, AFTER)
        end = answers(path.stem, model)
    else:
        end = rd.play(model, streams(model)[1]).theta
        tolerance = 1e-9 if model.dtype == np.float64 else 1e-4
    expected = json.loads((path.parent / "ends.json").read_text(encoding="utf-8"))[path.stem]
    np.testing.assert_allclose(end, expected, rtol=tolerance, atol=tolerance)


def test_there_is_a_file_of_every_family():
    assert {path.stem for path in RELEASED if path.parent.name == "0.1.0"} == FAMILIES.keys() | ESTIMATORS.keys()
    for library in ("redescend.sklearn", "redescend.river"):
        made = {type(make()) for make in ESTIMATORS.values()}
        assert {f"{library}.{name}" for name in CLASSES[library]} <= {class_name(kind) for kind in made}
    assert FORMAT == 1  # a new format comes with new files
