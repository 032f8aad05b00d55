"""Count the runs in which LEARN ends below OGD on the same stream.

python examples/who_wins.py results
"""

import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
rows = pq.read_table(folder / "results.parquet", filters=[("measure", "=", "regret")])
last = rows.filter(pc.equal(rows["round"], rows["rounds"])).to_pylist()
final = {(row["problem"], row["count"], row["run"], row["learner"]): row["value"] for row in last}
for problem, count in dict.fromkeys((row["problem"], row["count"]) for row in last):
    runs = sorted({row["run"] for row in last if (row["problem"], row["count"]) == (problem, count)})
    wins = sum(final[problem, count, run, "LEARN"] < final[problem, count, run, "OGD"] for run in runs)
    print(f"{problem}, k = {count}: LEARN ends below OGD in {wins} of {len(runs)} runs")
