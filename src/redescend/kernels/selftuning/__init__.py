"""The self-tuning learner, compiled: a Gaussian posterior of the model, and a few other members beside it.

`layout` declares the state, `units` brings records into their units, `noise`, `labels`, `losses` and `judging` judge a
record, `covariance` holds P, `members` moves and copies the members, `restarts` restarts the posterior, `start` begins
with the first records, `rounds` is one round; `tables` and `sparse` are called from Python, by `calls`. Numba compiles
only what a loss and an order use: the implementation is chosen by the classes of the settings.
"""
