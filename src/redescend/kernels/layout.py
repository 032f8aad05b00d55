"""Arrays that kernels take: tables of records, and a learner as one array of floats, because one argument is cheap."""

from __future__ import annotations

from typing import NamedTuple

from redescend.numeric import Array

# settings
(LOSS, LOSS_C, L2, MARGIN, GATE, TRANSFORM, GATE_C, GATE_B, STEP, SCALE, NORMALISED, RADIUS2) = range(12)
# state: rounds played, θ = keep·previous − move·record, ‖θ‖², its largest value since recomputed, √Σ w²‖∇f‖²
(ROUNDS, KEEP, MOVE, NORM2, PEAK, TRAVELLED) = range(12, 18)
STATE = {"rounds": ROUNDS, "keep": KEEP, "move": MOVE, "norm2": NORM2, "peak": PEAK, "travelled": TRAVELLED}
# the start of the gate's memory, which follows the code of the domain
MEMORY, DOMAIN = 18, 19

# the weight of a record that could not be played
UNPLAYED = -1.0


class Outcomes(NamedTuple):
    """What a loop writes for every record; an empty array of predictions or actions is not written."""

    losses: Array
    weights: Array
    predictions: Array
    actions: Array

    def rows(self, first: int, last: int | None = None) -> Outcomes:
        """The same arrays from one row up to another."""
        return Outcomes(*(array[first:last] for array in self))


class DescentSettings(NamedTuple):
    """The settings of a descent."""

    loss: int
    loss_c: float
    l2: float
    margin: bool
    gate: int
    transform: int
    gate_c: float
    gate_b: float
    step: int
    scale: float
    normalised: float
    radius2: float
    needs_length: bool


class Scalars(NamedTuple):
    """The scalar state of a descent: θ = keep·previous − move·record."""

    t: int
    travelled: float
    tt: float
    peak: float
    keep: float
    move: float
    older_keep: float
    older_move: float


class Table(NamedTuple):
    """Records: a row of X each, a column of Y with a target for every output, and how often each record counts."""

    X: Array
    Y: Array
    sample_weight: Array


class SparseTable(NamedTuple):
    """Records in CSR format without duplicates, with their targets and weights as in `Table`."""

    values: Array
    indices: Array
    starts: Array
    Y: Array
    sample_weight: Array
