"""Whether the order of records is that of time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from redescend.sources import Batch

ORDERED = 0.98
"""The share of records that must not be earlier than the one before, for their order to be that of time."""


def is_in_time(sample: Batch) -> bool:
    """Whether a column of dates grows, or falls, from record to record, apart from a few.

    >>> from datetime import datetime
    >>> from redescend.sources import open_source
    >>> days = [datetime(2024, 1, 1 + day) for day in range(20)]
    >>> [is_in_time(open_source(pa.table({"day": order})).sample) for order in (days, days[10:] + days[:10])]
    [True, False]
    """
    for column in sample.table.columns:
        if pa.types.is_timestamp(column.type):
            moments = column.drop_null().cast(pa.int64()).to_numpy()
            steps = np.diff(moments)
            changes = len(steps) and (steps != 0).any()
            if changes and max(np.mean(steps >= 0), np.mean(steps <= 0)) >= ORDERED:
                return True
    return False
