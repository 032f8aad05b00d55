"""The paper's two problems: streams with four outlier counts, and the learners that play them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt

from redescend import adversaries, domains, losses, steps, streams, transforms
from redescend.experiments.results import COUNTS, Options
from redescend.game import Stream
from redescend.learners.learner import Learner
from redescend.learners.recipes import OGD, ClippedOGD, Learn, NormalisedOGD, Oracle, Robust, TopK
from redescend.learners.selftuning import SelfTuning

ORACLE = "oracle"  # the learner that knows which rounds are clean
PAPER = ("LEARN", "OGD", "Top-k", "Uncertain Top-k")  # the learners that the paper compares

TITLES = {"ridge": "Online ridge regression", "svm": "Online support vector machine"}

MEASURES = ("measured", "convexity", "certificate", "sharp bound", "printed bound")
"""LEARN's regret and its guarantees; each should be at least the one before."""


@dataclass(frozen=True)
class Problem:
    """A stream, an adversary, a loss, and the paper's constants for it."""

    name: str
    rounds: int
    dim: int
    clean_stream: Callable[[int, int, int], Stream]
    adversary: adversaries.Adversary
    loss: losses.LinearLoss
    a: float
    b: float
    c: float

    def streams(self, seed: int) -> dict[str, Stream]:
        """One clean stream, corrupted in k rounds for each k."""
        clean = self.clean_stream(self.rounds, seed, self.dim)
        return {
            name: self.adversary.corrupt(clean, resolve_outlier_count(name, self.rounds), [seed, place])
            for place, name in enumerate(COUNTS)
        }

    def learners(self, stream: Stream) -> dict[str, Learner]:
        """Fresh learners at the paper's step 1/√T, and the self-tuning ones, which have no step."""
        d, k, loss, step = self.dim, stream.corrupted, self.loss, steps.Horizon(self.rounds)
        smaller = steps.Horizon(self.rounds, scale=1.0 / (1.0 + self.b))
        classic = {
            f"{kind.__name__}, c = {self.c:g}": Robust(d, loss=loss, transform=kind(self.c), step=step)
            for kind in (transforms.Huber, transforms.Cauchy, transforms.Welsch, transforms.Tukey)
        }
        return {
            "LEARN": Learn(d, loss=loss, a=self.a, b=self.b, step=step),
            "OGD": OGD(d, loss=loss, step=step),
            "Top-k": TopK(d, loss=loss, k=k, step=step),
            "Uncertain Top-k": TopK(d, loss=loss, k=int(0.75 * k), step=step),
            f"OGD, step/{1 + self.b:g}": OGD(d, loss=loss, step=smaller),
            "normalised OGD": NormalisedOGD(d, loss=loss, step=step),
            "median clip": ClippedOGD(d, loss=loss, step=step),
            **classic,
            "self-tuning, order 1": SelfTuning(d, loss=loss, order=1),
            "self-tuning, order 2": SelfTuning(d, loss=loss, order=2),
            ORACLE: Oracle(d, loss=loss, clean=stream.clean, step=step),
        }

    def strongly_convex(self, stream: Stream) -> dict[str, Learner]:
        """The baselines at the step 1/(m·t), m = l2, which the paper rejects; Pegasos projects on a ball."""
        d, loss, step = self.dim, self.loss, steps.StronglyConvex(self.loss.l2)
        learners: dict[str, Learner] = {
            "OGD, 1/(m·t)": OGD(d, loss=loss, step=step),
            "Top-k, 1/(m·t)": TopK(d, loss=loss, k=stream.corrupted, step=step),
        }
        if self.loss.margin:
            learners["Pegasos"] = OGD(d, loss=loss, step=step, domain=domains.Ball(self.loss.l2**-0.5))
        return learners


def resolve_outlier_count(name: str, rounds: int) -> int:
    """The number of outliers that a name stands for.

    >>> [resolve_outlier_count(name, 8000) for name in ("0", "√T", "T^⅔", "T/10", "T/4")]
    [0, 89, 400, 800, 2000]
    """
    root, power = isqrt(rounds), int(round(rounds ** (2 / 3), 9))
    return {"0": 0, "√T": root, "T^⅔": power, "T/10": rounds // 10, "T/4": rounds // 4}[name]


def ridge(rounds: int = 100_000, dim: int = 100) -> Problem:
    """Online ridge regression; corrupted responses are uniform on [0, 1]."""
    adversary = adversaries.UniformResponse(0.0, 1.0)
    loss = losses.Squared(l2=1e-4)
    return Problem("ridge", rounds, dim, streams.ridge, adversary, loss, a=10.0, b=10.0, c=1.0)


def svm(rounds: int = 10_000, dim: int = 2) -> Problem:
    """Online support vector machine; corrupted labels are flipped."""
    adversary = adversaries.LabelFlip()
    loss = losses.Hinge(l2=1e-4)
    return Problem("svm", rounds, dim, streams.svm, adversary, loss, a=1e4, b=10.0, c=2.0)


PROBLEMS: dict[str, Callable[..., Problem]] = {"ridge": ridge, "svm": svm}
QUICK_ROUNDS = {"ridge": 20_000, "svm": 2_000}
"""Below about 10⁴ rounds ridge with 100 features diverges at the step 1/√T."""


def choose_rounds(name: str, options: Options) -> int:
    """The length of a run of a problem: as requested, or as in the paper, or fewer if it is quick."""
    return options.rounds or (QUICK_ROUNDS[name] if options.quick else PROBLEMS[name]().rounds)
