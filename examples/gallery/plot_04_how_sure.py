"""
How certain is a prediction?
============================

The model predicts the concentration of nitrogen oxides by a motorway from traffic and weather. Every
prediction has an interval that contains 90 % of the *right* values. It is learned from the stream, and
its width follows the noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import redescend as rd

stream = rd.streams.real.load("nox")
trace = rd.play(rd.SelfTuning(stream.dim, loss=rd.losses.Squared()), stream)
inside = (trace.low <= stream.y) & (stream.y <= trace.high)
print(f"{inside[500:].mean():.1%} of {len(stream):,} hours are inside")

# %%
# Four days of the year. Each interval was computed before the value was seen.

days = slice(4000, 4096)
hours = np.arange(96)
figure, axes = plt.subplots()
axes.fill_between(
    hours, trace.low[days], trace.high[days], color="C0", alpha=0.18, linewidth=0, label="90 % of clean values"
)
axes.plot(hours, trace.predictions[days], color="C0", label="prediction")
axes.scatter(hours, stream.y[days], s=9, color="black", zorder=3, label="measured")
axes.set(xlabel="hour", ylabel="log of NOx", xlim=(0, 95))
axes.set_title("Intervals that contain nine values in ten")
axes.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.16))
plt.show()
