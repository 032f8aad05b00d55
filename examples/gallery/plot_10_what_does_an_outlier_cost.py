"""
What does an outlier cost?
==========================

The clean dynamic regret of online algorithms on a real stream in which an adversary corrupts one round in
twenty. The oracle knows which ones.
"""

import matplotlib.pyplot as plt
import numpy as np

import redescend as rd

stream = rd.streams.real.load("nox", 4000)
stream = rd.Stream(stream.X, stream.y - stream.y.mean())
played = rd.adversaries.UniformResponse(-30, 30).corrupt(stream, k=200, seed=0)
loss, step, dim = rd.losses.Squared(), rd.steps.Anytime(0.05), stream.dim

learners = {
    "OGD": (rd.OGD(dim, loss=loss, step=step), "C2"),
    "Huber": (rd.Robust(dim, loss=loss, transform=rd.transforms.Huber(1.0), step=step), "C4"),
    "LEARN, a = 1, b = 0.1": (rd.Learn(dim, loss=loss, a=1.0, b=0.1, step=step), "C3"),
    "SelfTuning": (rd.SelfTuning(dim, loss=loss), "C0"),
    "OGD that knows the outliers": (rd.Oracle(dim, loss=loss, clean=played.clean, step=step), "black"),
}

# %%
# The excess loss of each on the clean rounds over the minimizer of every single round, whose loss is 0.

figure, axes = plt.subplots()
for name, (learner, color) in learners.items():
    trace = rd.play(learner, played)
    regret = rd.regret.clean_dynamic(trace, played, loss)
    dashes = (3, 2) if "knows" in name else (1, 0)
    axes.plot(np.arange(1, len(regret) + 1), regret, color=color, label=name, dashes=dashes)
    print(f"{name}: {regret[-1]:.0f}")
axes.set(xlabel="round", ylabel="clean dynamic regret", xlim=(0, len(played)), ylim=(0, None))
axes.set_title("Self-tuning pays less than OGD that knows the outliers")
axes.legend(loc="upper left")
plt.show()
