"""Learning from tables for estimators and streams: many outputs, an intercept, weighted rows, running standardization.

`standardize` follows the median and scale of every feature. `dense` and `selftuning` learn from tables, `sparse` and
`sparse_selftuning` from sparse rows, and `fleet` from the records of many models. The state of an output is a row of
floats.
"""
