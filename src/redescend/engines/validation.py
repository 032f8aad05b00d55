"""Whether arrays could be what an engine has learned; compiled loops trust them, indices and all."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.errors import DataError
from redescend.kernels.selftuning import layout
from redescend.kernels.tabular import sparse_layout
from redescend.kernels.tabular import standardize as unit
from redescend.numeric import Array

COUNTABLE = 2.0**53
"""Floats count no further."""

LONGEST = 1.01 * layout.FARTHEST
"""No part of a model is beyond this, but for roundings."""

SMALLEST, LARGEST = 1e-300, 1e300
"""Scales of noise are between these."""


def whole(numbers: Array, low: float, high: float) -> bool:
    """Whether all are whole numbers from `low` to below `high`."""
    return bool(((numbers >= low) & (numbers < high) & (numbers % 1.0 == 0.0)).all())


def within(numbers: Array, low: float, high: float) -> bool:
    """Whether all are from `low` to `high`; NaN is not."""
    return bool(((numbers >= low) & (numbers <= high)).all())


def sound_units(units: Array) -> bool:
    """Whether counts are counts, and scales are not negative."""
    inverse = units[unit.INVERSE]
    return whole(units[unit.SEEN], 0.0, COUNTABLE) and within(inverse, 0.0, unit.LARGEST / unit.SMALLEST)


def sound_scalars(scalars: Array, labels: bool) -> bool:
    """What `SelfTuning` does not ask of its own scalars: counts that can be counted on, and scales that are."""
    lowest = scalars[layout.LOWEST]
    return (
        whole(scalars[[layout.ROUNDS, layout.SEEN, layout.AGE]], 0.0, COUNTABLE)
        and (lowest == 0.0 or SMALLEST <= lowest <= LARGEST)
        and bool((scalars[[layout.WIDEST, layout.SPREAD]] <= LARGEST).all())
        and scalars[layout.TEMPERATURE] <= (1.0 / lowest if labels and lowest > 0.0 else 1.0)
    )


def sound_rows(out: sparse_layout.Output, dim: int) -> bool:
    """Whether the parts that only rows of non-zeros have could be learned: every place is one that there is."""
    touched, refreshed = out.counters[sparse_layout.TOUCHED], out.counters[sparse_layout.REFRESHED]
    return (
        whole(out.trail, 0.0, dim)
        and whole(out.partner, -1.0, len(out.partner))
        and whole(out.counters, 0.0, COUNTABLE)
        and refreshed <= touched
        and whole(out.since, 0.0, touched + 1.0)
        and out.counters[sparse_layout.KNOWN] <= len(out.thetas)
        and whole(out.measured, 0.0, out.scalars[layout.SEEN] + 1.0)
        and within(out.kept, np.finfo(float).tiny, 1.0)
        and within(out.products, -LARGEST, LARGEST)
    )


def check_room(state: dict[str, Any], intercept: bool, second: bool) -> tuple[int, int]:
    """The features and outputs of a state, if its arrays have room for them: nothing larger is made than is there."""
    dim, outputs = state["dim"], state["outputs"]
    if not all(type(count) is int and count >= 1 for count in (dim, outputs)):
        raise DataError(f"The state has {dim!r} features and {outputs!r} outputs; it has been altered.")
    units, states = np.shape(state["units"]), np.shape(state["states"])
    width = dim + intercept
    if units[1:] != (dim,) or states[:1] != (outputs,) or states[1:] < (width * width if second else width,):
        raise DataError(f"The state has no room for {dim} features and {outputs} outputs; it has been altered.")
    return dim, outputs
