"""The state of the forests of a model: the last records, which all forests share, and the trees; declared once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from redescend.kernels.selftuning.layout import HEAVIEST
from redescend.numeric import Array
from redescend.state import MAX_COUNT, ArraySpec

TREES, LEAVES, LEAVES_FEW, MOST_OUTPUTS, COLUMNS = 32, 128, 64, 5, 12
"""Trees of a forest; the leaves of a tree of numbers, and of a tree of labels, or of numbers if there are more outputs
than MOST_OUTPUTS; and the features that a tree may split on."""

BINS, CELLS = 128, 33
"""The bins of a feature, and in how many cells a tree joins them at most."""

MOST_RECORDS, LEAST_RECORDS = 4096, 256
BYTES, RECORD_BYTES = 1_850_000, 1_200_000
"""The trees, the last records, and what is stored for each, take about this much; what is stored of records at least
this much."""

ON_TARGET, ON_REST, FORESTS = range(3)
"""The forests of an output: on the target, and on what the linear member leaves of it."""

HAVE, NEXT, DUE, SEEN = range(4)
"""Of the records: how many are stored, where the next one goes, when bins are due, and how many were learned from."""

BUILT, TREE, DRAWS, CREDIT, MEDIAN, STREAK, FOREST_SCALARS = range(7)
"""Of a forest: trees that were grown, the next one to grow, random numbers drawn, work that is saved up, the median
size of residuals, and how many in a row were larger (or, below 0, smaller)."""

START, LOW, HIGH, RATE, OUTPUT_SCALARS = range(5)
"""Of an output: where the forest on the target starts, the range of believed targets, the share of flipped labels."""


class State(NamedTuple):
    """Everything that is learned, in the order of `SPECS`; forest ``FORESTS * k + i`` is number i of output k."""

    X: Array
    code: Array
    target: Array
    sample_weight: Array
    edges: Array
    clock: Array
    output: Array
    leaf: Array
    base: Array
    fit: Array
    feature: Array
    threshold: Array
    value: Array
    gain: Array
    scalar: Array


SPECS = (
    ArraySpec("X", ("records", "dim"), finite=False),
    ArraySpec("code", ("records", "dim"), kind="index", high=BINS, dtype=np.uint8),
    ArraySpec("target", ("records", "outputs")),
    ArraySpec("sample_weight", ("records",), low=0.0, high=HEAVIEST),
    ArraySpec("edges", ("dim", BINS - 1), finite=False),
    ArraySpec(
        "clock",
        (4,),
        dtype=np.int64,
        kind="count",
        parts={
            HAVE: ArraySpec("clock (stored)", kind="count", high="records"),
            NEXT: ArraySpec("clock (next)", kind="index", high="records"),
        },
    ),
    ArraySpec("output", (OUTPUT_SCALARS, "outputs"), parts={RATE: ArraySpec("output (rate)", low=0.0, high=0.5)}),
    ArraySpec("leaf", ("forests", "records", TREES), kind="index", high="leaves", dtype=np.uint8),
    ArraySpec("base", ("forests", "records")),
    ArraySpec("fit", ("forests", "records")),
    ArraySpec("feature", ("forests", TREES, "nodes"), kind="index", high="dim", dtype=np.int16),
    ArraySpec("threshold", ("forests", TREES, "nodes"), finite=False),
    ArraySpec("value", ("forests", TREES, "leaves")),
    ArraySpec("gain", ("forests", "dim"), low=0.0, high=1e9),
    ArraySpec(
        "scalar",
        (FOREST_SCALARS, "forests"),
        parts={
            BUILT: ArraySpec("scalar (built)", kind="count", high=TREES),
            TREE: ArraySpec("scalar (tree)", kind="index", high=TREES),
            DRAWS: ArraySpec("scalar (draws)", kind="count"),
            CREDIT: ArraySpec("scalar (credit)", low=0.0),
            MEDIAN: ArraySpec("scalar (median)", low=0.0),
            STREAK: ArraySpec("scalar (streak)", kind="count", low=-MAX_COUNT),
        },
    ),
)


class Work(NamedTuple):
    """Buffers of a round, of no meaning between rounds."""

    order: Array
    spare: Array
    part: Array
    pull: Array
    weight: Array
    histogram: Array
    start: Array
    middle: Array
    open: Array
    sums: Array
    mean: Array
    column: Array
    first: Array
    shift: Array
    edges: Array
    fine: Array
    at: Array
    fits: Array
    ordered: Array


def most_records(dim: int, outputs: int, leaves: int) -> int:
    """How many of the last records are stored at most."""
    left = max(BYTES - 8 * BINS * dim - FORESTS * outputs * TREES * 18 * leaves, RECORD_BYTES)
    return max(LEAST_RECORDS, min(MOST_RECORDS, left // (9 * dim + (2 * TREES + 40) * outputs)))


def sizes(dim: int, outputs: int, leaves: int) -> list[int]:
    """The numbers of records that there is room for, as they come: each is twice the one before it."""
    most, size, found = most_records(dim, outputs, leaves), LEAST_RECORDS, []
    while size < most:
        found.append(size)
        size *= 2
    return [*found, most]


def count_leaves(labels: bool, outputs: int) -> int:
    """How many leaves a tree has; with many outputs few, so that there is room for records."""
    return LEAVES_FEW if labels or outputs > MOST_OUTPUTS else LEAVES


def dims_of(dim: int, outputs: int, records: int, leaves: int) -> dict[str, int]:
    """The named dimensions of the specs."""
    trees = {"forests": FORESTS * outputs, "leaves": leaves, "nodes": leaves - 1}
    return {"dim": dim, "outputs": outputs, "records": records} | trees


def grow_state(state: State) -> State:
    """The same state with room for more records."""
    old, dim = state.X.shape
    room = sizes(dim, state.target.shape[1], state.value.shape[2])
    records = room[room.index(old) + 1]
    arrays = state._asdict()
    for spec in SPECS:
        if "records" in spec.shape:
            axis, array = spec.shape.index("records"), arrays[spec.name]
            shape = list(array.shape)
            shape[axis] = records - old
            arrays[spec.name] = np.concatenate([array, np.zeros(shape, array.dtype)], axis=axis)
    arrays["clock"] = state.clock.copy()
    arrays["clock"][NEXT] = state.clock[HAVE]
    return State(**arrays)


def new_state(dim: int, outputs: int, labels: bool = False) -> State:
    """The state before the first record; forests draw from random numbers of their own."""
    dims = dims_of(dim, outputs, LEAST_RECORDS, count_leaves(labels, outputs))
    shapes: Any = [[dims.get(str(size), size) for size in spec.shape] for spec in SPECS]
    state = State(*(np.zeros(shape, spec.dtype) for shape, spec in zip(shapes, SPECS, strict=True)))
    state.edges[:] = state.threshold[:] = np.inf
    state.gain[:] = 1.0
    state.clock[DUE] = LEAST_SPLIT
    state.output[RATE] = FIRST_RATE
    state.scalar[DRAWS] = np.arange(FORESTS * outputs) * 2.0**40
    return state


def new_work(state: State) -> Work:
    """Buffers for rounds of a state of this size."""
    (records, dim), outputs, leaves = state.X.shape, state.target.shape[1], state.value.shape[2]
    columns = min(COLUMNS, dim)
    return Work(
        np.zeros(records, np.int32),
        np.zeros(records, np.int32),
        np.zeros((records, columns), np.uint8),
        np.zeros(records, np.float32),
        np.zeros(records, np.float32),
        np.zeros((leaves // 2, columns, CELLS, 2), np.float32),
        np.zeros(leaves + 1, np.int64),
        np.zeros(leaves, np.int64),
        np.zeros(leaves, np.bool_),
        np.zeros((2 * leaves - 1, 2)),
        np.zeros(2 * leaves - 1),
        np.zeros(columns, np.int64),
        np.zeros(columns, np.int64),
        np.zeros(columns, np.int64),
        np.zeros(columns, np.int64),
        np.zeros((2 * (BINS // (CELLS - 1)), 2)),
        np.zeros((FORESTS * outputs, TREES), np.int64),
        np.zeros(FORESTS * outputs),
        np.zeros(max(ORDERED, BEGIN)),
    )


LEAST_SPLIT = 32
"""Trees are grown from this many records on."""

BEGIN = 16
"""Records after which forests begin."""

ORDERED = 1024
"""The quantiles of a feature are those of at most this many records."""

FIRST_RATE = 0.01
