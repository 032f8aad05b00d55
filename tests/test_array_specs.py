"""Arrays of a state are what their specs declare, or are refused in one sentence."""

from __future__ import annotations

import numpy as np
import pytest

from redescend.errors import DataError
from redescend.state import CORRUPT, ArraySpec, check_arrays, packed_size, read_arrays, require, unpack

SPECS = (
    ArraySpec("theta", ("dim",), low=-10.0, high=10.0),
    ArraySpec("table", ("rows", "dim"), finite=False),
    ArraySpec("order", ("rows",), kind="index", high="rows", dtype=np.int64),
    ArraySpec("flags", (2,), kind="flag"),
    ArraySpec("shares", (lambda dims: dims["dim"] - 1,), kind="share"),
    ArraySpec("mixed", (3,), parts={1: ArraySpec("rounds", kind="count"), 2: ArraySpec("slot", kind="index", high=2)}),
    ArraySpec("precise", ("dim",), dtype=None),
    ArraySpec("row_count", kind="count", high=100, dtype=np.int64),
)
SOUND = {
    "theta": [1.0, 2, -10.0],
    "table": np.full((2, 3), np.nan),
    "order": np.array([1, 0]),
    "flags": np.array([0.0, 1.0]),
    "shares": np.array([0.25, 0.75]),
    "mixed": np.array([-0.5, 7.0, 1.0]),
    "precise": np.zeros(3, np.float32),
    "row_count": 100,
}


def read(**changes):
    return read_arrays(SPECS, SOUND | changes, {"dim": 3}, "Model(3)")


def test_sound_arrays_are_copied_contiguous_writable_and_converted():
    given = {"table": np.asfortranarray(np.zeros((2, 3))), "order": np.array([1, 0], dtype=">i2")}
    given["order"].flags.writeable = False
    arrays = read(**given)
    assert list(arrays) == list(SOUND)
    assert arrays["theta"].dtype == np.float64
    assert arrays["order"].dtype == np.int64
    assert arrays["precise"].dtype == np.float32
    assert arrays["row_count"] == 100
    for name, array in arrays.items():
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert not np.shares_memory(array, np.asarray(given.get(name, SOUND[name])))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"theta": [0.0] * 4}, r"an array 'theta' of shape \(4,\), not \(3,\)"),
        ({"theta": 0.0}, r"'theta' of shape \(\), not \(3,\)"),
        ({"theta": [0.0, np.nan, 0.0]}, "'theta' that are not finite"),
        ({"theta": [0.0, np.inf, 0.0]}, "'theta' that are not finite"),
        ({"theta": [0.0, 10.1, 0.0]}, r"'theta' that are not numbers in \[-10.0, 10.0\]"),
        ({"theta": [0.0, -10.1, 0.0]}, r"'theta' that are not numbers in \[-10.0, 10.0\]"),
        ({"theta": ["a", "b", "c"]}, "'theta' that is not of float64"),
        ({"theta": [1j, 0, 0]}, "'theta' that is not of float64"),
        ({"theta": [[1.0], [1.0, 2.0], 3.0]}, "'theta' that is not of float64"),
        ({"theta": None}, "'theta' that is not of float64"),
        ({"table": np.zeros((2, 4))}, r"'table' of shape \(2, 4\), not \(2, 3\)"),
        ({"table": np.zeros((3, 3))}, r"'order' of shape \(2,\), not \(3,\)"),
        ({"order": [0, 2]}, r"'order' that are not whole numbers in \[0, 2\)"),
        ({"order": [0, -1]}, r"'order' that are not whole numbers in \[0, 2\)"),
        ({"order": [0.0, 1.0]}, "'order' that is not of int64"),
        ({"order": np.array([0, 2**63], dtype=np.uint64)}, "'order' that do not fit in int64"),
        ({"flags": [0.0, 2.0]}, r"'flags' that are not whole numbers in \[0, 1\]"),
        ({"flags": [0.0, 0.5]}, r"'flags' that are not whole numbers"),
        ({"shares": [0.5, 0.6]}, "shares 'shares' whose sum is not 1"),
        ({"shares": [-0.5, 1.5]}, r"'shares' that are not numbers in \[0, inf\)"),
        ({"mixed": [0.0, 0.5, 0.0]}, "'rounds' that are not whole numbers"),
        ({"mixed": [0.0, -1.0, 0.0]}, "'rounds' that are not whole numbers"),
        ({"mixed": [0.0, 2.0**54, 0.0]}, "'rounds' that are not whole numbers"),
        ({"mixed": [0.0, 1.0, 2.0]}, r"'slot' that are not whole numbers in \[0, 2\)"),
        ({"precise": np.zeros(3, np.float16)}, "'precise' that is not of float32 or float64"),
        ({"precise": np.zeros(3, int)}, "'precise' that is not of float32 or float64"),
        ({"row_count": 101}, r"'row_count' that are not whole numbers in \[0, 100\]"),
        ({"row_count": True}, "'row_count' that is not of int64"),
        ({"row_count": 2**80}, "'row_count' that is not of int64"),
    ],
)
def test_damaged_arrays_are_refused_in_one_sentence(changes, what):
    with pytest.raises(
        DataError, match=rf"^The state of Model\(3\) has [^:\n]*{what}[^:\n]*: {CORRUPT}; fit the model again\.$"
    ):
        read(**changes)


@pytest.mark.parametrize("state", [None, [], {}, {**SOUND, "more": 1}, {**SOUND, 3: 1}, {"theta": SOUND["theta"]}])
def test_keys_that_are_missing_or_unknown_are_refused(state):
    with pytest.raises(DataError, match="must be a dict with the keys theta, table"):
        read_arrays(SPECS, state, {"dim": 3}, "Model(3)")


def test_other_keys_are_left_to_the_caller():
    assert "learner" not in read_arrays(SPECS, SOUND | {"learner": "x"}, {"dim": 3}, "Model(3)", others=["learner"])


def test_packed_rows_are_checked_all_at_once():
    specs = (ArraySpec("theta", (2, "dim")), ArraySpec("shares", (2,), kind="share"), ArraySpec("rounds", kind="count"))
    dims = {"dim": 2}
    assert packed_size(specs, dims) == 7
    rows = np.tile([0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 3.0], (5, 1))
    arrays = unpack(specs, rows, dims)
    assert [array.shape for array in arrays.values()] == [(5, 2, 2), (5, 2), (5,)]
    assert all(np.shares_memory(array, rows) for array in arrays.values())
    check_arrays(specs, arrays, dims, "Fleet")
    rows[3, 4] = 0.6
    with pytest.raises(DataError, match="shares"):
        check_arrays(specs, arrays, dims, "Fleet")
    rows[3, 4:] = 0.5
    with pytest.raises(DataError, match="rounds"):
        check_arrays(specs, arrays, dims, "Fleet")


def test_an_index_needs_an_end_and_conditions_say_what_is_wrong():
    with pytest.raises(TypeError, match="high"):
        ArraySpec("order", (2,), kind="index")
    require(True, "Model", "nothing")
    with pytest.raises(DataError, match="The state of Model has gaps: the file"):
        require(np.bool_(False), "Model", "gaps")
