"""What was predicted for the records of a table without them, to judge the same records again in the same way.

Trees predict the noise of records that they have seen, so that their residuals are too small.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.numeric import Array, hash_records
from redescend.state import ArraySpec, Stateful, read_arrays

MOST_NUMBERS = 1 << 15
"""Numbers that are stored, with a hash for each record: those of 32,768 records if each has one."""

SPECS = (
    ArraySpec("hashes", ("records",), dtype=np.uint64),
    ArraySpec("values", ("width", "records")),
)


class HeldOut(Stateful):
    """Numbers that belong to records, by the hashes of these.

    Parameters
    ----------
    width : int
        How many numbers each record has.

    Examples
    --------
    >>> held, X, targets = HeldOut(1), np.array([[1.0], [2.0]]), np.array([3.0, 4.0])
    >>> held.learn(X, targets, np.array([[7.0, 8.0]]))
    >>> held.recall(np.array([[2.0], [5.0]]), np.array([4.0, 4.0]), np.array([[0.5, 0.5]]))
    array([[8. , 0.5]])
    """

    def __init__(self, width: int) -> None:
        self._hashes, self._values = np.empty(0, np.uint64), np.empty((width, 0))

    def learn(self, X: Array, targets: Array, values: Array) -> None:
        """Store the `values` of records, of shape (width, rows); of equal records, those of the first."""
        self._hashes, first = np.unique(hash_records(X, targets), return_index=True)
        self._values = np.nan_to_num(values[:, first])

    def recall(self, X: Array, targets: Array, values: Array) -> Array:
        """These values of records, where those that are known have the stored ones."""
        if not len(self._hashes):
            return values
        hashes = hash_records(X, targets)
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        return np.where(self._hashes[places] == hashes, self._values[:, places], values)

    def trim(self) -> None:
        """Forget most records of a large table; which ones is random, but depends on the records alone."""
        most = MOST_NUMBERS // len(self._values)
        self._hashes, self._values = self._hashes[:most].copy(), self._values[:, :most].copy()

    def state(self) -> dict[str, Any]:
        return {"hashes": self._hashes.copy(), "values": self._values.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        arrays = read_arrays(SPECS, state, {"width": len(self._values)}, type(self).__name__)
        self._hashes, self._values = arrays["hashes"], arrays["values"]
