"""The numbers that the theorems assume, given by hand or measured on a game."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from redescend.bounds.constants import Constants, constants
from redescend.bounds.measurements import Occurred, occurred
from redescend.game import Stream, Trace
from redescend.learners.descent import Descent
from redescend.losses import LinearLoss
from redescend.losses.linear import curvature
from redescend.numeric import LARGEST, Array
from redescend.parameters import AT_LEAST_ONE, COUNT, Component, NonNegative, bad_parameter


@dataclass(frozen=True)
class Setting(Component):
    r"""A game as the theorems see it.

    Parameters
    ----------
    rounds : int
        T.
    k : int
        Corrupted rounds.
    m : float
        Strong convexity of the losses.
    G, L : float
        ‖∇f_t(θ)‖ ≤ G + L·‖θ − ω*_t‖ in every round, whatever was corrupted.
    B : float
        The largest loss of a clean round, at the actions that were played.
    B_all : float
        The largest loss of any round.
    D : float
        ‖θ‖ ≤ D for every action and minimiser.
    path : float
        V_T, the path length of the minimisers of the uncorrupted records.
    path_all : float
        The path length of the minimisers of the records as they were played.
    deviation : float
        δ, the farthest that corruption moved the minimiser of a round.
    comparator : float
        𝔇, the length of the longest minimiser of an uncorrupted record.
    gradient : float
        G(S), the longest gradient of a clean round at the action that was played.

    Examples
    --------
    >>> Setting(rounds=100, k=5, m=0.1, L=2.0, D=1.0).constants(a=1.0, b=1.0, sharp=True).kappa
    5.56929...
    """

    rounds: Annotated[int, AT_LEAST_ONE]
    m: NonNegative
    k: Annotated[int, COUNT] = 0
    G: NonNegative = 0.0
    L: NonNegative = 0.0
    B: NonNegative = 0.0
    B_all: NonNegative = 0.0
    D: NonNegative = 0.0
    path: NonNegative = 0.0
    path_all: NonNegative = 0.0
    deviation: NonNegative = 0.0
    comparator: NonNegative = 0.0
    gradient: NonNegative = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k > self.rounds:
            raise bad_parameter("Setting", "k", f"at most the {self.rounds} rounds", self.k)

    def constants(self, a: float, b: float, sharp: bool = False, everywhere: bool = False) -> Constants:
        """ψ, φ, κ, ν, ξ of LEARN at (a, b); with `everywhere`, ξ for the losses of all rounds."""
        return constants(self.m, self.G, self.L, a, b, self.B_all if everywhere else self.B, sharp)


def estimate(trace: Trace, stream: Stream, learner: Descent) -> Setting:
    r"""Numbers with which a game meets the assumptions, each as small as a single game lets it be; m as large.

    Parameters
    ----------
    trace : Trace
        Of a game played with ``keep_actions=True``.
    stream : Stream
        The stream that was played, with the originals of its corrupted rounds.
    learner : Descent
        The learner that played it: one that descends, with a loss of a linear prediction.

    Notes
    -----
    m is the loss's l2: one record says nothing about the directions orthogonal to it. ∇f changes by at most
    jump·‖x‖ + (curvature·‖x‖² + l2)·‖θ − ω‖, which gives G and, with the longest record, L. D is the radius of the
    smallest ball around 0 that holds every action and minimiser, also where the domain is larger or has no end: played
    in that ball, the game would have been the same. Rows that were skipped do not count.

    Examples
    --------
    >>> import redescend as rd
    >>> stream = rd.streams.ridge(200, seed=0, dim=3)
    >>> learner = rd.Learn(3, loss=rd.losses.Squared(l2=0.1), a=1.0, b=1.0, step=rd.steps.Horizon(200))
    >>> trace = rd.play(learner, stream, keep_actions=True)
    >>> setting = rd.bounds.estimate(trace, stream, learner)
    >>> setting.m, setting.G, setting.k
    (0.1, 0.0, 0)
    """
    return setting_of(occurred(trace, stream, learner), learner)


def setting_of(game: Occurred, learner: Descent) -> Setting:
    """The setting of a game that has been measured."""
    loss = learner.loss
    assert isinstance(loss, LinearLoss)
    longest = float(game.record.max())
    return Setting(
        rounds=len(game.clean),
        m=loss.l2,
        k=int(np.count_nonzero(~game.clean)),
        G=float(game.rest.max()),
        L=float(min(loss.l2 + curvature(loss.kind) * longest * longest, LARGEST)),
        B=float(game.losses[game.clean].max(initial=0.0)),
        B_all=float(game.losses.max(initial=0.0)),
        D=float(game.reach.max()),
        path=_total(game.path),
        path_all=_total(game.path_all),
        deviation=float(game.deviation.max()),
        comparator=float(game.comparator.max()),
        gradient=float(game.gradient[game.clean].max(initial=0.0)),
    )


def _total(values: Array) -> float:
    with np.errstate(over="ignore"):
        return float(min(values.sum(), LARGEST))
