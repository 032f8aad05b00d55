"""Compiled learning for estimators: many outputs, an intercept, weighted rows, features standardised as they come.

`units` follows the median and the scale of every feature; `descent` and `selftuning` learn from tables, and
`sparse_descent` and `sparse_selftuning` from rows of non-zeros. The state of an output is one row of floats.
"""
