"""Accuracy and speed beside the packages that people use: `python -m benchmarks.peers`.

One stream, four shares of outliers, every contestant in the same run. A contestant predicts a block of records, is
given their targets, and learns from them; those with a step get the best of a grid in hindsight, ours gets nothing.
"""
