"""The self-tuning learner, compiled: a Gaussian posterior of the model, two followers, the origin and two snapshots.

`layout` declares the state, `units` brings records into their units, `noise`, `losses` and `judging` judge a record,
`covariance` holds P, `members` moves, copies and restarts the members, `start` begins with the first records, `rounds`
is one round; `tables` and `sparse` are called from Python, by `calls`. Numba compiles only what a loss and an order
use: the implementation is chosen by the classes of the settings.
"""
