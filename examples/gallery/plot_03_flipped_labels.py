"""
30 % of my labels are flipped
=============================

The model predicts whether a tumour is benign from 30 measurements of 569 patients. Three labels in ten
are flipped at random. Can the model tell which?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from redescend.sklearn import RedescendingClassifier

X, truth = load_breast_cancer(return_X_y=True)
flipped = np.random.default_rng(0).random(len(truth)) < 0.3
y = np.where(flipped, 1 - truth, truth)

model = RedescendingClassifier().fit(X, y)
clean = model.clean_probability_
suspects = model.suspects_  # the largest list with 10 % false alarms
print(f"{flipped.sum()} labels are flipped")
print(f"{len(suspects)} suspects, {flipped[suspects].mean():.0%} of them are flipped")
print(f"{(model.predict(X) == truth).mean():.0%} of the predictions are right")

# %%
# Each label is judged by the prediction that the model would make had it not learned from it.

figure, axes = plt.subplots()
edges = np.linspace(0, 1, 21)
axes.hist([clean[~flipped], clean[flipped]], edges, stacked=True, color=["C2", "C1"], label=["right", "flipped"])
axes.set(xlabel="probability that the label is right", ylabel="patients", xlim=(0, 1))
axes.set_title("Most flipped labels have a low probability")
axes.legend(title="the label is", loc="upper center")
plt.show()
