"""Accuracy and speed compared with other packages: `python -m benchmarks.peers`.

One stream, four shares of outliers, every contestant in the same run. A contestant predicts a block of records, then
learns from them. Those with a step use the best of a grid in hindsight; ours are not tuned.
"""
