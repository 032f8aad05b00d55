"""Belief, compiled: the probability that a record is clean, from residuals or from margins of labels."""
