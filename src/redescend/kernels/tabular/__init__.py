"""Descent on tables for estimators and streams: many outputs, an intercept, weighted rows, running standardization.

`standardize` follows the median and scale of every feature. `dense` learns from tables, `sparse` from sparse rows, and
`fleet` from the records of many models. The state of an output is a row of floats.
"""
