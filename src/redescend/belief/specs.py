"""The arrays of a belief about residuals, as they are saved, and what is allowed in them."""

from __future__ import annotations

from redescend.kernels.belief import layout
from redescend.kernels.belief.cells import CELLS
from redescend.state import ArraySpec

_COUNT, _SHARE = ArraySpec("shared", kind="count"), ArraySpec("shared", low=0.0, high=1.0)
_POSITIVE, _NOT_NEGATIVE = ArraySpec("shared", low=1e-300), ArraySpec("shared", low=0.0)

_LEAST, _MOST = 1e-30, 1e100
"""Bounds of shares in natural tails and of counts, which no stream reaches; beyond them, densities underflow."""

SPECS = (
    ArraySpec(
        "numbers",
        ("keys", layout.NUMBERS),
        parts={
            (..., layout.ROUNDS): _COUNT,
            (..., layout.UNIT): _NOT_NEGATIVE,
            (..., layout.AGE): _NOT_NEGATIVE,
            (..., layout.LOST): _SHARE,
            (..., layout.REPEATS): _COUNT,
            (..., layout.GRID): ArraySpec("shared", low=-1.0),
            (..., layout.MULTIPLES): ArraySpec("shared", low=-1.0),
            (..., layout.HITS): _COUNT,
            (..., layout.SINCE): _COUNT,
            (..., layout.POINT_LEVEL): ArraySpec("shared", low=-2.0 * layout.HUGE, high=2.0 * layout.HUGE),
            (..., layout.DIFFERENCES): _COUNT,
            (..., layout.NEGATIVE): _SHARE,
            (..., layout.POSITIVE): _SHARE,
            (..., layout.SPREAD): ArraySpec("shared", low=-700.0, high=700.0),
        },
    ),
    ArraySpec("features", ("keys", layout.FEATURES, lambda dims: dims["dim"] + 1)),
    ArraySpec(
        "shared",
        (layout.SHARED,),
        parts={
            layout.TOTAL: _COUNT,
            layout.COUNTED: _COUNT,
            layout.INCREMENT: ArraySpec("shared", low=1.0),
            layout.OUTLIERS: _SHARE,
            layout.THRESHOLD: _SHARE,
            layout.BELOW: _NOT_NEGATIVE,
            layout.ABOVE: _NOT_NEGATIVE,
            layout.FIRST_TIES: _POSITIVE,
            layout.FIRST_CHANCES: _POSITIVE,
            layout.NEXT_TIES: _POSITIVE,
            layout.NEXT_CHANCES: _POSITIVE,
        },
    ),
    ArraySpec("counts", (2, 2, CELLS), low=0.0, high=_MOST),
    ArraySpec("scales", (2, "families"), kind="index", high="widths"),
    ArraySpec("natural", (2, "families"), low=_LEAST, high=layout.NATURAL),
    ArraySpec("outliers", (2, "families", "atoms"), low=0.0, high=1.0),
    ArraySpec("clean", (2, CELLS), low=0.0, high=1.0),
    ArraySpec("log_odds", (2, CELLS)),
)
"""The arrays of the state, in the order of `layout.State`."""
