"""
What do robust losses do with a large error?
============================================

A robust loss gives every record a weight. Huber's weight never vanishes, so far outliers still pull;
the weights of redescending losses do. LEARN's weight is a logistic switch, whose location and scale
``SelfTuning`` learns from the stream.
"""

import matplotlib.pyplot as plt
import numpy as np

from redescend import transforms

errors = np.linspace(0, 6, 400)
choices = {
    "Huber": (transforms.Huber(1.0), "C4"),
    "Cauchy": (transforms.Cauchy(1.0), "C3"),
    "Welsch": (transforms.Welsch(1.5), "C5"),
    "Tukey": (transforms.Tukey(3.0), "C2"),
    "LEARN, open up to an error of 2": (transforms.Learn.from_threshold(4.0, 0.8), "C0"),
}
figure, axes = plt.subplots()
for name, (transform, color) in choices.items():
    pull = errors * transform.weight(errors**2)
    axes.plot(errors, pull, color=color, label=name)
axes.plot(errors, errors, color="black", dashes=(3, 2), linewidth=1, label="least squares")
axes.set(xlabel="error of a record", ylabel="pull on the model", ylim=(0, 2.6), xlim=(0, 6))
axes.set_title("Redescending losses let go of far outliers")
axes.legend(loc="upper right")
plt.show()
