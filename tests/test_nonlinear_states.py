"""States of the engine with trees: forged ones are refused, and all others can be learned with."""

from __future__ import annotations

import numpy as np
import pytest

from redescend.engines import ModelConfig
from redescend.errors import DataError
from redescend.kernels.forest import layout
from tests.test_nonlinear import friedman, make, make_linear


def learned_state(outputs=1):
    X, y = friedman(200, 13)
    engine = make(5, outputs)
    engine.learn_rounds(X, np.repeat(y[None], outputs, axis=0))
    return engine.state()


FORGERIES = {
    "a feature that is none": ("forests", "feature", (0, 0, 0), 5),
    "a negative feature": ("forests", "feature", (0, 0, 0), -1),
    "a leaf that is none": ("forests", "leaf", (0, 0, 0), layout.LEAVES),
    "a bin that is none": ("forests", "code", (0, 0), layout.BINS),
    "a bin without an edge": ("forests", "edges", 0, np.inf),
    "edges that are not sorted": ("forests", "edges", (0, 0), 1e9),
    "an edge that is no number": ("forests", "edges", (0, 5), np.nan),
    "more records than there are": ("forests", "clock", 0, 10**6),
    "a place behind the end": ("forests", "clock", 1, 256),
    "a gap": ("forests", "clock", 1, 7),
    "a negative clock": ("forests", "clock", 3, -1),
    "more records than it has seen": ("forests", "clock", 3, 15),
    "more trees than there are": ("forests", "scalar", (0, 0), 33),
    "half a tree": ("forests", "scalar", (0, 0), 0.5),
    "a tree behind the last": ("forests", "scalar", (1, 0), 32),
    "a negative counter": ("forests", "scalar", (2, 0), -1),
    "a value that is not finite": ("forests", "value", (0, 0, 0), np.inf),
    "a negative gain": ("forests", "gain", (0, 0), -1.0),
    "an impossible rate": ("forests", "output", (3, 0), 0.7),
    "a negative weight": ("mixture", "weight", (0, 0), -0.1),
    "no weight": ("mixture", "weight", 0, 0.0),
    "a negative scale": ("mixture", "scale", (0, 0), -1.0),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_states_are_refused_in_a_sentence(what):
    part, name, place, value = FORGERIES[what]
    state = learned_state()
    array = state[part][name].astype(np.int64 if name in ("leaf", "code", "feature", "clock") else float)
    array[place] = value
    state[part][name] = array
    config = ModelConfig.from_parameters("Model", "regression", features="auto")
    with pytest.raises(DataError, match="corrupt or was written by an incompatible version"):
        config.restore_engine(state)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pop("mixture"),
        lambda state: state.update(stacks=[]),
        lambda state: state["stacks"].append(state["stacks"][0]),
        lambda state: state.update(forests=3),
        lambda state: state.update(linear=None),
        lambda state: state["forests"].pop("X"),
        lambda state: state["forests"].update(X=np.zeros((10**4, 5))),
        lambda state: state["forests"].update(X=np.zeros((300, 5))),
        lambda state: state.update(dim=6),
        lambda state: state.update(outputs=2),
        lambda state: state.update(linear=make_linear().state()),
    ],
)
def test_states_with_wrong_parts_are_refused(change):
    state = learned_state()
    change(state)
    with pytest.raises(DataError, match="corrupt"):
        ModelConfig.from_parameters("Model", "regression", features="auto").restore_engine(state)


def test_any_state_within_its_ranges_can_be_learned_with():
    random, state = np.random.default_rng(14), learned_state()
    forests = state["forests"]
    bins = np.count_nonzero(forests["edges"] < np.inf, axis=1)
    for name, high in (("feature", 5), ("leaf", layout.LEAVES), ("code", bins + 1)):
        forests[name] = random.integers(0, high, forests[name].shape).astype(forests[name].dtype)
    forests["clock"][:] = [256, 200, 300, 299]
    forests["scalar"][:2] = [[32, 3], [31, 5]]
    forests["threshold"][:] = random.choice([np.nan, np.inf, -np.inf, 0.5], forests["threshold"].shape)
    engine = make()
    engine.restore(state)
    X, y = friedman(500, 15)
    assert np.isfinite(engine.learn_rounds(X, y[None]).predictions).all()


def test_a_linear_model_does_not_read_trees():
    with pytest.raises(DataError, match="trees in spite of its settings"):
        ModelConfig.from_parameters("Model", "regression", features="linear").restore_engine(learned_state())
