"""Draw the final regret of every learner by number of outliers.

python examples/final_regret.py results
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pyarrow.compute as pc
import pyarrow.parquet as pq

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
table = pq.read_table(folder / "results.parquet")
rows = table.filter((pc.field("problem") == "svm") & (pc.field("measure") == "regret"))
last = rows.filter(pc.equal(rows["round"], rows["rounds"]))
means = last.group_by(["learner", "k"], use_threads=False).aggregate([("value", "mean")]).to_pydict()

counts = sorted(set(means["k"]))
figure, axes = plt.subplots(1, len(counts), figsize=(3 * len(counts), 4), sharey=True, layout="constrained")
for k, panel in zip(counts, axes, strict=True):
    bars = {
        name: value
        for name, at, value in zip(means["learner"], means["k"], means["value_mean"], strict=True)
        if at == k
    }
    panel.barh(list(bars), list(bars.values()))
    panel.set(title=f"k = {k}", xlabel="clean regret", xscale="log")
figure.savefig(folder / "final-regret.png")
print(folder / "final-regret.png")
