r"""An online Fréchet mean that outliers cannot move, with nothing to tune: the gate on a manifold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redescend.errors import DataError
from redescend.invex.algorithm import check_state
from redescend.invex.gate import Noise, Sight
from redescend.invex.space import Geodesic, Space
from redescend.kernels.selftuning.layout import SHARE
from redescend.kernels.selftuning.mixture import LUCK, TIED
from redescend.learners.base import Round
from redescend.numeric import Array
from redescend.parameters import check_instance

MEMORIES = np.array([np.inf, 32.0, 4.0])
"""How many records a follower remembers."""

START = 0.5
"""Weight of the start at first: the first record may be an outlier."""

FLOOR = 2.0 * SHARE / len(MEMORIES)
"""A member with less than this has had its chance."""


class RobustFrechetMean:
    r"""LEARN over squared distances with a scale that it reads off the stream, and steps that follow drift.

    `Noise` says how likely a record is to be clean. Three followers with long, middling and short memories go part of
    the way to every record, as far as they believe it; the start is beside them at first. Bayes' rule with a fixed
    share decides how much of each is played: their mean along geodesics. A record counts by its weight over the square
    of the distance that was typical when it came, so that what was learned while nothing was known is soon outvoted.

    Nothing here has a unit: the weights depend on ratios of distances alone.

    Parameters
    ----------
    space : Space
        Where the records are, such as ``SPD(5)``.
    start : point, optional
        What is played before the first record; the origin of the space unless given.

    Examples
    --------
    >>> from redescend import invex
    >>> space, generator = invex.SPD(3), np.random.default_rng(0)
    >>> mean = RobustFrechetMean(space)
    >>> for t in range(300):
    ...     played = mean.update((100.0 if t % 10 == 9 else 1.0) * space.random(generator, 0.1))
    >>> space.distance(mean.theta, space.origin) < 0.05, played.weight < 1e-3
    (True, True)
    """

    def __init__(self, space: Space, *, start: Any = None) -> None:
        self.space = check_instance(type(self).__name__, "space", space, Space, "a space, such as SPD(5)")
        first = space.origin if start is None else space.check("start", start)
        followers = len(MEMORIES)
        self._points = [first] * (followers + 1)
        self._shares = np.array([(1.0 - START) / followers] * followers + [START])
        self._counts = np.zeros(followers)
        self._noise = Noise(space.dim)
        self._theta: Array = first
        self.rounds = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space})"

    @property
    def theta(self) -> Array:
        return self._theta.copy()

    @property
    def typical(self) -> float:
        """How far clean records are from the mean, by and large; NaN before any was away from it."""
        return self._noise.typical

    def update(self, record: Any) -> Round:
        """Learn from one record, and say what the action lost on it and how much of it was believed."""
        point = self.space.check("The record", record)
        ways = [self.space.geodesic(member, point) for member in self._points]
        played = self.space.distance(self._theta, point)
        self.rounds += 1
        distances = np.array([*(way.length for way in ways), played])
        if not distances.any():
            return Round(0.0, 1.0)
        sight = self._noise.see(distances)
        beliefs = self._noise.believe(sight)
        self._reweigh(sight)
        if distances[self._leader] > 0.0:
            # The leader says what clean records look like: the mean's distances are wider while members disagree.
            self._noise.learn(sight, self._leader)
        self._follow(ways, beliefs)
        self._theta = self._mean()
        return Round(0.5 * played**2, float(beliefs[-1]))

    @property
    def _leader(self) -> int:
        return int((self._shares >= TIED * self._shares.max()).argmax())

    def _reweigh(self, sight: Sight) -> None:
        """Bayes' rule with a share for all followers; none gains more than `LUCK` on the leader by one record.

        The start gets no share: it is there for the first records alone, and outliers that gather around it later must
        not call it back.
        """
        gains = self._noise.compare(sight, self._leader)[:-1]
        shares = self._shares * np.minimum(gains, LUCK)
        shares *= (1.0 - SHARE) / shares.sum()
        shares[:-1] += SHARE / len(MEMORIES)
        self._shares = shares

    def _follow(self, ways: list[Geodesic], beliefs: Array) -> None:
        worth = self._noise.typical**-2
        leader = self._leader
        for i, memory in enumerate(MEMORIES):
            gained = beliefs[i] * worth
            self._counts[i] = min(self._counts[i] + gained, memory * worth)
            if gained > 0.0:
                self._points[i] = ways[i].at(gained / self._counts[i])
        for i, memory in enumerate(MEMORIES):
            if self._shares[i] < FLOOR:
                self._points[i] = self._points[leader]
                known = self._counts[leader] if leader < len(MEMORIES) else 0.0
                self._counts[i] = min(known, memory * worth)

    def _mean(self) -> Array:
        """From the leader on, along the geodesic to every other member that is not at the floor."""
        order = np.argsort(-self._shares, kind="stable")
        mean, total = self._points[order[0]], self._shares[order[0]]
        for i in order[1:]:
            if self._shares[i] >= FLOOR:
                total += self._shares[i]
                mean = self.space.between(mean, self._points[i], self._shares[i] / total)
        return mean

    def state(self) -> dict[str, Any]:
        return {
            "learner": repr(self),
            "points": np.array(self._points),
            "shares": self._shares.copy(),
            "counts": self._counts.copy(),
            "theta": self.theta,
            "rounds": self.rounds,
            "cells": self._noise.cells.copy(),
            "lowest": self._noise.lowest if self._noise.ready else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        check_state(self, state, {**self.state(), "lowest": None})
        shares, counts, cells = (np.array(state[name], dtype=np.float64) for name in ("shares", "counts", "cells"))
        if (
            min(shares.min(), counts.min(), cells.min()) < 0.0
            or max(abs(shares.sum() - 1), abs(cells.sum() - 1)) > 1e-6
        ):
            raise DataError(f"The state of {self!r} has impossible shares; it has been altered.")
        points = [self.space.check("A point of the state", point) for point in state["points"]]
        self._theta = self.space.check("The 'theta' of the state", state["theta"])
        self._points, self._shares, self._counts, self.rounds = points, shares, counts, int(state["rounds"])
        self._noise.cells = cells
        self._noise.lowest = math.nan if state["lowest"] is None else float(state["lowest"])
