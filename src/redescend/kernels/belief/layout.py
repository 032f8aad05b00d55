"""What a belief about residuals has learned, as arrays; its constants; and the tables of densities that it compares."""

from __future__ import annotations

from typing import NamedTuple

from redescend.numeric import Array

# Numbers of one key; without keys there is one.
# rounds; a power of 2 near the first residual, the unit of all others
(ROUNDS, UNIT) = range(2)
# logarithms of scales: steady, of records after the effect of their features, quick; rounds since the last change;
# the evidence for the effect of features
(STEADY, ADJUSTED, QUICK, AGE, EVIDENCE) = range(2, 7)
# the probability that the model is lost; corrections of the logarithms of the interval's ends
(LOST, LOWER, HIGHER) = range(7, 10)
# the last target; how often it was repeated, and the log-odds that it is stuck
(LAST, REPEATS, STUCK) = range(10, 13)
# the resolution of targets, of which all differences were multiples, and how many were; -1 if there is none
(GRID, MULTIPLES) = range(13, 15)
# a target that many records have, the point; how many runs of it there were since it was chosen, out of how many of any
# target; the mean of the predictions at the first record of each
(POINT, HITS, SINCE, POINT_LEVEL) = range(15, 19)
# the logarithm of the typical difference between a target and the next one, and how many differences there were
(SPREAD, DIFFERENCES) = range(19, 21)
# whether a target below and one above 0 was believed
(NEGATIVE, POSITIVE) = range(21, 23)
NUMBERS = 23

# Numbers that all keys share.
# rounds; records that told something about the noise; how much a new record counts; when densities are fitted next
(TOTAL, COUNTED, INCREMENT, DUE) = range(4)
# the share of outliers; the largest probability of a suspect
(OUTLIERS, THRESHOLD) = range(4, 6)
# quantiles of clean residuals below and above, for the usual level
(BELOW, ABOVE) = range(6, 8)
# repetitions and chances of them, of a target that was not repeated before, and of one that was
(FIRST_TIES, FIRST_CHANCES, NEXT_TIES, NEXT_CHANCES) = range(8, 12)
# of a table: the typical logarithm of the sizes of residuals around records; the unit of the logarithmic scale
(MIDDLE, LOG_UNIT) = range(12, 14)
SHARED = 14

# rows of what is known of every feature, the last of which is the prediction
(MEAN, SQUARES, EFFECT, TRAVELLED, PREVIOUS) = range(5)
FEATURES = 5

YOUNG = 16
"""A key's records before this one are not in the histograms, because its scale is not known yet; but some have to be
the first ones."""

RECENT, ALL = range(2)
"""Histograms: one that forgets, for the judgement of the next record, and one of all records, for the final verdict."""

DECAYS = (0.05, 1 / 20_000)
"""The largest and the smallest share of the recent histogram that a round forgets; in between it is 1/rounds."""

WARM = 100
"""Records before this round are not in the histogram of all records. The final verdict uses it from as many on."""

SHORTEST, LONGEST, GROWTH = 16, 512, 4
"""Rounds between two fits, at least and at most; in between, rounds/GROWTH."""

ITERATIONS, FINAL_ITERATIONS = 3, 100

SLOWEST, QUICKEST, APART = 0.005, 0.05, 0.8
"""Gains of the two scales, and by how much they may differ before the quick one replaces the steady one."""

READY, RATE, LARGEST_EFFECT = 50, 0.1, 2.5
"""When the effect of features is learned, how fast, and how large it may be."""

FORGET, CONVINCED, DOUBT = 0.999, 10.0, -3.0
"""How evidence for the effect of features fades, its limit and its first value."""

CLIP = 3.0
"""Standardised features are clipped here."""

NEIGHBOUR = 0.1
"""How much a residual counts in the histogram of the other sign."""

TEMPERATURE, MOST_RECORDS = 5.0, 200.0
"""The likelihood of n records under a family counts as that of TEMPERATURE·√n records, and of MOST_RECORDS at most."""

CLEAN_PRIOR = 10.0
"""Prior records that are clean."""

EDGE_SHARE, BEYOND_EDGE = 0.15, 0.01
"""Runs of more records than this share, at a target beyond which there is at most the next share, are not stuck."""

MANY, MANY_STEEP = 0.35, 120.0
"""A group of outliers has errors up to about this share of the records; above it is another population."""

UNLIKELY = -1.1
"""Log-odds below which a record counts as an outlier, and those of an outlier without evidence for a second group: not
likely enough to be wrong for a list, but not likely clean either."""

TAIL_EVIDENCE = 2.0
"""How many nats of evidence for a second group each factor of e in the number of outliers takes, beyond the first."""

LEVEL, LEARN_RATE, NEAREST = 0.9, 0.05, -3.0
"""The level of intervals, how fast the corrections of their ends learn, and the least of these. Where predictions are
exact, they would fall for ever, and intervals would miss hundreds of records once predictions are not."""

FALSE_ALARMS = 0.1
"""The share of false alarms among suspects."""

LOSING, STAYING, FIRST_LOST, RAREST = 0.001, 0.9, 0.5, 0.01
"""The chance that the model is lost from one round to the next, and that it stays lost; the chance at the beginning;
the least share of outliers that a burst of them is compared with."""

STICKING, RUNS = 1e-5, 8.0
"""The chance that a sensor sticks, and how much natural runs of equal targets differ in length."""

LONGEST_RUN = 4
"""Natural runs are learned from up to this length, so that a stuck sensor does not look natural later."""

SMALL, FIRST_DIFFERENCES = 2.0**-14, 6
"""Smaller residuals than this part of the typical difference between targets are taken for that part. At first it is
the smallest of some differences, because each wrong target spoils two."""

EARLY, WIDER = 6, 5.0
"""During the first EARLY residuals, no level may exceed the logarithm of a residual by more than WIDER: the very first
one, which sets the levels, may be wrong."""

EXACT, FINEST, ENOUGH, ROUNDED = 1e-10, 100.0, 16, 0.25
"""Differences of targets are known up to the first part of them. Targets without a resolution above FINEST of these
errors are not rounded. A resolution counts after ENOUGH multiples; smaller residuals than the last part of it are taken
for that part."""

FEWEST, RARE_POINT, COMMON_POINT, NEARER = 8.0, 0.02, 0.25, 0.5
"""A point mass needs FEWEST runs of equal targets, and the share RARE_POINT of all runs. It is natural if its share
reaches COMMON_POINT, or if the mean prediction at the point lies beyond it, or at most the fraction NEARER of the way
from it to the mean of all predictions."""

HUGE = 1e100


class State(NamedTuple):
    """All that a belief has learned, in the order in which its arrays are saved."""

    numbers: Array  # key, number
    features: Array  # key, what is known of a feature, feature
    shared: Array
    counts: Array  # histogram, sign, cell
    scales: Array  # sign, family: an index
    outliers: Array  # sign, family, atom: shares
    clean: Array  # sign, cell: share of the sign's records that are clean and there
    log_odds: Array  # sign, cell


class Densities(NamedTuple):
    """What is fitted to the histograms: the last fields of `State`."""

    scales: Array
    outliers: Array
    clean: Array
    log_odds: Array


class Records(NamedTuple):
    """Records to judge, with the places of their keys."""

    X: Array
    predictions: Array
    targets: Array
    places: Array


class Tables(NamedTuple):
    """Shares of residuals in cells: of clean ones by family and scale, and of outliers by atom."""

    edges: Array
    centers: Array
    clean: Array  # family, scale, cell
    log_clean: Array
    outliers: Array  # atom, cell
    spans: Array  # atom: its first cell, and the one after its last
    prior: Array  # family, atom
    log_prior: Array  # family


class Outputs(NamedTuple):
    """What a loop writes for every record."""

    clean_log_odds: Array
    low: Array
    high: Array
    scale: Array
    stuck: Array
    suspect: Array
