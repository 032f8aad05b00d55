"""Draw LEARN's weights of clean and of corrupted rounds.

python examples/weights.py results
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
rows = pq.read_table(folder / "results.parquet", filters=[("problem", "=", "svm"), ("count", "=", "T/4")]).to_pylist()
figure, panel = plt.subplots(layout="constrained")
for kind in ("clean", "corrupted"):
    weights = np.array([row["value"] for row in rows if row["measure"] == f"weight {kind}"])
    panel.hist(weights, bins=40, alpha=0.6, label=kind)
panel.set(xlabel="weight of a round", ylabel="rounds")
panel.legend()
figure.savefig(folder / "weights.png")
print(folder / "weights.png")
