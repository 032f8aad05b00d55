"""
Must I scale my features?
=========================

No. Predictions do not depend on the units of the features. In this example, one column of a real
table is in another unit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import SGDRegressor
from sklearn.model_selection import cross_val_predict

from redescend.sklearn import RedescendingRegressor

X, y = load_diabetes(return_X_y=True, scaled=False)
X = (X - X.mean(axis=0)) / X.std(axis=0)
powers = np.arange(-6, 7, 2)
errors = {"RedescendingRegressor": [], "SGDRegressor": []}
for power in powers:
    units = X.copy()
    units[:, 2] *= 10.0**power  # the body mass index
    for name, model in (
        ("RedescendingRegressor", RedescendingRegressor(max_iter=3)),
        ("SGDRegressor", SGDRegressor(random_state=0)),
    ):
        predicted = cross_val_predict(model, units, y)
        errors[name].append(np.abs(predicted - y).mean())

# %%
figure, axes = plt.subplots()
for (name, found), color in zip(errors.items(), ["C0", "C2"], strict=True):
    axes.plot(10.0**powers, found, "o-", color=color, label=name)
axes.set(xscale="log", yscale="log", xlabel="one feature is multiplied by", ylabel="mean error")
axes.set_title("The unit of a feature does not matter")
axes.legend(loc="upper left")
plt.show()
