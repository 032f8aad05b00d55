"""Whether an audit finds stretches in another unit, and no others: ``python -m benchmarks.table_units``.

In eight real tables, 200 rows of the target are multiplied by 1000, by 2.54 or by 0.1. All sixteen tables are also
audited unchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.table_errors import TABLES, load
from redescend.sources import open_source
from redescend.streaming.audit import audit_source

FIRST, LAST = 700, 900
UNITS = {"times 1000": 1000.0, "times 2.54": 2.54, "divided by 10": 0.1}


def tell(frame: Any) -> list[str]:
    """The sentences of an audit about units."""
    found = audit_source(open_source(pa.Table.from_pandas(frame, preserve_index=False)))
    return [line for line in found.notes if "in another unit" in line]


def main() -> None:
    for split, tables in TABLES.items():
        for table in tables:
            frame = load(table)
            print(f"{table.name}, {split}, as it is: {tell(frame)}", flush=True)
            if split != "tune":
                continue
            for name, factor in UNITS.items():
                values = frame[table.target].to_numpy(np.float64).copy()
                values[FIRST:LAST] *= factor
                print(f"  {name}: {tell(frame.assign(**{table.target: values}))}", flush=True)


if __name__ == "__main__":
    main()
