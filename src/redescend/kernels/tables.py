"""Records that are learned from together, as kernels take them."""

from __future__ import annotations

from typing import NamedTuple

from redescend.numeric import Array


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
