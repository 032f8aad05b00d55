"""Rows of non-zeros, standardised one at a time, at a cost that does not depend on the number of features."""

from __future__ import annotations

from redescend.kernels.compiler import inlined
from redescend.kernels.tabular import standardize as unit
from redescend.numeric import Array


@inlined
def gather(
    values: Array,
    indices: Array,
    starts: Array,
    row: int,
    standard: int,
    sample: Array,
    units: Array,
    features: Array,
    z: Array,
    changed: Array,
    ratios: Array,
) -> tuple[int, int, float]:
    """Show the row to the units, and write its features and what they are in them.

    Returns how many there are, how many features changed their units, and ‖z‖². The changed ones and their ratios are
    in `changed` and `ratios`. Units are scales alone: a median other than 0 would make every zero a non-zero.
    """
    count = events = 0
    norm2 = 0.0
    for a in range(starts[row], starts[row + 1]):
        j, value = indices[a], values[a]
        if standard == unit.SCALED:
            if value != 0.0 and unit.observe(sample, units, j, abs(value)):
                changed[events] = j
                ratios[events], _ = unit.take_anew(sample, units, j, int(units[unit.SEEN, j]), standard)
                events += 1
            value *= units[unit.INVERSE, j]
        features[count], z[count] = j, value
        norm2 += value * value
        count += 1
    return count, events, norm2
