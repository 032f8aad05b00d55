"""Settings and scalar state of the self-tuning learner, each in one row of floats; and its constants."""

from __future__ import annotations

# settings; the switches are 0 where an ingredient is left out, PENALISED where l2 spares the last feature, an intercept
(LOSS, LOSS_C, L2, LABELS, GATED, COPYING, TEMPERED, WARMED, SHARE_CELLS, PENALISED, CURIOUS) = range(11)
SETTINGS = 11

# state: rounds played and learned from; the lowest scale, 0 until it is known; the next slot for a snapshot, and when;
# what the mean is multiplied by; age of the second-order follower and the largest spread in its life; the spread now;
# how new the stream is
(ROUNDS, SEEN, LOWEST, SLOT, DUE, TEMPERATURE, AGE, WIDEST, SPREAD, NEW) = range(10)
SCALARS = 10

FOLLOWERS = 3
"""Followers with each metric: steps of 16, 1 and 1/16 times the typical record's."""

LONGEST, RATIO = 16.0, 0.0625

SHARE = 1e-3
"""What every member gets of the weight in each round."""

NORMS, READY, MEMORY = 15, 5.0, 1000.0
"""Lengths of records that are remembered; when the scale of a feature is known; over how many records it is a mean."""

FIRST_SNAPSHOT, GROWTH = 62.0, 1.25

HEAVIEST = 1e6
"""A record counts at most this many times."""

RESOLUTION = 2.0**-52
FARTHEST, HUGE = 1e150, 1e300
"""Predictions and actions beyond the first are not told apart, so that their squares are floats."""
