"""Labels as outputs of an engine: one output for two labels, or one for each of more, whose scores a link turns into
logits of all classes together.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy

from redescend.kernels.link import SPECS, learn_link, new_link, read_link
from redescend.losses import LinearLoss, Logistic
from redescend.numeric import LARGEST, Array
from redescend.state import ArraySpec, check_arrays, require

LINK = ArraySpec("link", ("linked",))

_learn: Any = learn_link


def count_outputs(labels: int) -> int:
    """The number of outputs for this number of labels."""
    return 1 if labels <= 2 else labels


def encode_labels(places: Array, labels: int) -> Array:
    """Encode the indices of labels as targets of −1 and 1, a row for each output."""
    if labels <= 2:
        return 2.0 * places.reshape(1, -1) - 1.0
    return np.where(np.arange(labels)[:, None] == places, 1.0, -1.0)


def label_probabilities(logits: Array) -> Array:
    """The probability of every label, a row each, given a row of logits for each output."""
    if len(logits) == 1:
        return scipy.special.expit(np.stack([-logits[0], logits[0]]))
    with np.errstate(over="ignore"):
        shares = np.exp(logits - logits.max(axis=0))
    return shares / sum_outputs(shares)


def count_losses(loss: LinearLoss, predictions: Array, Y: Array) -> Array:
    """The loss of every record: with three or more labels and a logistic loss −ln of the probability of the label,
    otherwise the sum over outputs; at most the largest float.
    """
    if len(Y) > 1 and isinstance(loss, Logistic):
        with np.errstate(over="ignore"):
            below = predictions - predictions.max(axis=0)
            return np.minimum(
                np.log(sum_outputs(np.exp(below))) - np.where(Y > 0.0, below, -np.inf).max(axis=0), LARGEST
            )
    return sum_outputs(np.minimum(loss.of_prediction(predictions, Y), LARGEST))


def sum_outputs(rows: Iterable[Array]) -> Array:
    """Sum rows from the first to the last; NumPy uses another order if there is a single column."""
    return functools.reduce(np.add, rows)


def make_link(outputs: int, loss: LinearLoss) -> Array:
    """A new link for three or more classes with a logistic loss; other models have an empty one."""
    return new_link(outputs) if outputs > 1 and isinstance(loss, Logistic) else np.empty(0)


def add_class(link: Array, outputs: int, loss: LinearLoss) -> Array:
    """The link of a model with `outputs` outputs, with one more class.

    The logits of two classes, whose scores are −s and s, differ by s as before. That of the new class follows its score
    as the others follow theirs on average.
    """
    classes = 2 if outputs == 1 else outputs
    grown = make_link(classes + 1, loss)
    if not len(grown):
        return grown
    new = read_link(grown, classes + 1)
    if outputs == 1:
        new["A"] *= 0.5
        return grown
    old, known = read_link(link, classes), np.r_[:classes, classes + 1]
    new["A"][np.ix_(range(classes), known)] = old["A"]
    new["A"][classes, classes] = np.trace(old["A"]) / classes
    P = np.zeros((classes + 2, classes + 2))
    P[classes, classes] = new["P"][0]
    lower, places = np.tril_indices(classes + 1), np.tril_indices(classes + 2)
    P[known[lower[0]], known[lower[1]]] = old["P"]
    new["P"][:], new["flips"][:] = P[places], old["flips"]
    return grown


def learn_scores(link: Array, Y: Array, weights: Array, scores: Array) -> None:
    """Write logits over scores, a row for each class, and learn from them; an empty link changes nothing."""
    if len(link):
        runs = np.array([0, len(weights)]), np.zeros(1, np.int64)
        learn_packed_scores(link.reshape(1, -1), 0, runs, Y, weights, scores)


def learn_packed_scores(
    rows: Array, at: int, runs: tuple[Array, Array], Y: Array, weights: Array, scores: Array
) -> None:
    """The same for many models, a row each, whose links begin at `at`; `runs` are the starts and places of `Runs`."""
    _learn(rows, at, *runs, Y, weights, scores, np.empty(3 * len(scores) + 2))


def apply_link(link: Array, scores: Array, constant: float = 1.0) -> Array:
    """The logits of scores, a row for each class; of coefficients, with a constant of 0."""
    if not len(link):
        return scores
    A = read_link(link, len(scores))["A"]
    with np.errstate(over="ignore", invalid="ignore"):
        # Term by term: the bits of a record do not depend on those beside it.
        centred = scores - sum_outputs(scores / len(scores))
        terms = (A[:, place, None] * row for place, row in enumerate(centred))
        return np.nan_to_num(sum_outputs(itertools.chain([A[:, -1:] * constant], terms)))


def check_link(links: Array, outputs: int, owner: object) -> None:
    """Raise an error if these rows of floats are not links."""
    if links.shape[-1]:
        arrays = read_link(links, outputs)
        check_arrays(SPECS, arrays, {"classes": outputs}, owner)
        places = np.arange(outputs + 1)
        require((arrays["P"][..., places * (places + 3) // 2] >= 0.0).all(), owner, "variances below 0")
